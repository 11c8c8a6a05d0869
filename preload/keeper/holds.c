/* SPDX-License-Identifier: BSD-2-Clause */
#include "holds.h"

#include <errno.h>
#include <fcntl.h>
#include <glib.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "caller.h"
#include "hold.h"
#include "life.h"
#include "proc_locks.h"
#include "say.h"
#include "shared/keeper_talk.h"
#include "shared/text.h"
#include "watch.h"

/*
 * So many looks in a row must miss a lock if the kernel itself cannot be asked about the file; and so many if the file
 * is locked by a process that is out of sight: another container's, say.
 */
#define MISSING_IN_PIECES 3
#define MISSING_THOUGH_LOCKED 10

/*
 * All holds, also holds that no caller waits for any more. Changed by the main loop only, under the guard, and read by
 * the library's thread, also under the guard. The main loop itself reads without the guard.
 */
static pthread_mutex_t guard = PTHREAD_MUTEX_INITIALIZER;
static GList *holds;
static bool is_list_complete;     /* of /proc/locks */
static bool is_list_needed_whole; /* by the next look */

static void add(struct hold *hold)
{
    pthread_mutex_lock(&guard);
    holds = g_list_prepend(holds, hold);
    pthread_mutex_unlock(&guard);
}

static void take_out(struct hold *hold)
{
    pthread_mutex_lock(&guard);
    holds = g_list_remove(holds, hold);
    pthread_mutex_unlock(&guard);
}

/*
 * True if the hold has the lock, and is to keep the lock. A hint, because the library's thread may lose the hold just
 * after; a lost hold is given back whatever the answer was.
 */
static bool is_kept(struct hold *hold)
{
    return !hold->is_ending && hold_phase(hold) == HOLD_HELD;
}

/* ---- a hold that is lost ----------------------------------------------------------------- */

static void write_line(const struct hold *hold, char *line, size_t room)
{
    struct text text = text_in(line, room - 1);

    text_add(&text, "dmutex: the lease of ");
    text_add_clean(&text, hold->wish.name);
    text_add(&text, " has ended while ");
    text_add_clean(&text, hold->wish.path);
    text_add(&text, " was locked: others may have it from now on");
    text_add(&text, hold->wish.on_lost ? "" : " (OnLost= ends the program)");
    strcpy(line + text.length, "\n");
}

/* For a job whose standard error is closed, a file, or gone with the process that took the lock. */
static void alert(const struct loss *loss, const char *line)
{
    char program[HOLDER_PROGRAM_ROOM] = "?";
    pid_t pid = 0;

    for (int i = 0; i < loss->count && pid == 0; i++) {
        struct holder holder = { .folder = 0 };

        if (!holders_find(&loss->locks[i], &holder, &pid, program))
            pid = 0;
        holder_forget(&holder);
    }
    if (pid)
        say_alert("%s (process %d): %.*s", program, (int)pid, (int)strcspn(line, "\n"), line);
    else
        say_alert("%.*s", (int)strcspn(line, "\n"), line);
}

/* The keeper has no standard error, but the processes that took the locks have handed theirs over. */
static void tell_jobs(const struct hold *hold, const struct loss *loss)
{
    bool is_told = false;
    char line[1024];

    write_line(hold, line, sizeof line);
    for (int i = 0; i < loss->voices; i++) {
        is_told |= voice_say(loss->fds[i], line);
        close(loss->fds[i]);
    }
    if (!is_told)
        alert(loss, line);
}

/* The line goes out before the signal, because the signal may end the process, and its reader would not know why. */
static void punish(const struct hold *hold, const struct loss *loss)
{
    int processes = 0;
    bool is_spared, is_any_spared = false;

    tell_jobs(hold, loss);
    for (int i = 0; i < loss->count && hold->wish.on_lost; i++) {
        processes += holders_signal(&loss->locks[i], hold->wish.on_lost, &is_spared);
        is_any_spared |= is_spared;
    }
    say(DMUTEX_LOG_ERROR,
        "the lock of %s (%s) was lost, another host may have it now: %d processes were sent signal %d", hold->wish.path,
        hold->wish.name, processes, hold->wish.on_lost);
    if (is_any_spared)
        say(DMUTEX_LOG_ERROR,
            "process 1 goes on without the lock of %s, because the kernel spares the first process of a container: "
            "start the container with an init, for example by \"docker run --init\"",
            hold->wish.path);
}

/*
 * In the library's thread. Until the return no other process can own the name, unless the name was forced. So the
 * processes are told and signalled here, although that reads all of /proc under the guard, and the main loop waits for
 * the guard in add() and take_out(). Several holds may have the name, the former and the next: hold_lose() is true for
 * the hold of the token only.
 */
static void on_lost(const char *name, uint64_t token, void *user)
{
    (void)user;
    pthread_mutex_lock(&guard);
    for (GList *at = holds; at; at = at->next) {
        struct hold *hold = at->data;
        struct loss loss;

        if (strcmp(hold->wish.name, name) != 0 || !hold_lose(hold, token, &loss))
            continue;
        punish(hold, &loss);
        sem_post(&hold->end); /* the main loop may post as well: one post is taken */
    }
    pthread_mutex_unlock(&guard);
}

/* ---- what becomes of a question ---------------------------------------------------------- */

/*
 * The caller does not wait any more: if the lock is granted, the keeper gives the lock back at once. Nothing breaks
 * dmutex_lock() off, so the thread goes on waiting, and adopt() may use it.
 */
static void on_caller_gone(void *user)
{
    struct hold *hold = user;

    hold->caller = NULL;
    hold_end(hold);
}

/*
 * A hold has one caller at a time. Granted holds have none: the answer is sent, and the kernel's lock stands for the
 * process.
 */
static void attach(struct hold *hold, struct caller *caller)
{
    hold->caller = caller;
    caller_on_gone(caller, on_caller_gone, hold);
}

static struct caller *detach(struct hold *hold)
{
    struct caller *caller = hold->caller;

    hold->caller = NULL;
    return caller;
}

/*
 * Two holds of one file, by flock() and by fcntl(), have one watch, because the kernel gives one number to a file, by
 * whatever path.
 */
static void leave_file(const struct hold *hold)
{
    bool is_shared = false;

    for (GList *at = holds; at; at = at->next) {
        const struct hold *other = at->data;

        is_shared |= other != hold && other->file_watch == hold->file_watch;
    }
    if (hold->file_watch >= 0 && !is_shared)
        watch_leave(hold->file_watch);
}

/*
 * A granted hold is a reason to live, an asking hold is none, but its caller is. watch_soon(), because the process may
 * have ended during the wait, before the file was watched.
 */
static void on_granted(void *user)
{
    struct hold *hold = user;
    struct caller *caller = detach(hold);
    pid_t pid = caller ? caller_pid(caller) : 0;

    life_add();
    hold->is_granted = true;
    hold->file_watch = watch_file(hold->wish.path);
    watch_soon();
    if (caller && hold->is_ending)
        caller_dismiss(caller); /* somebody else had the file by then */
    else if (caller)
        caller_answer(caller, "ok");
    say(DMUTEX_LOG_INFO, "%s (%s) is locked for process %d", hold->wish.path, hold->wish.name, (int)pid);
}

/*
 * The thread has no more to do, so the join returns at once; another hold's thread may be the joiner. The list comes
 * first, the memory last, because on_lost() walks the list.
 */
static void on_over(void *user)
{
    struct hold *hold = user;
    struct caller *caller = detach(hold); /* NULL, if the lock was granted */

    if (caller && hold->error == EBUSY)
        caller_answer(caller, "busy");
    else if (caller)
        caller_fail(caller, hold->error, hold->sentence);
    if (!hold->is_joined_by_other)
        pthread_join(hold->thread, NULL);
    leave_file(hold);
    take_out(hold);
    if (hold->is_granted) {
        say(DMUTEX_LOG_INFO, "%s (%s) is not locked any more", hold->wish.path, hold->wish.name);
        life_remove();
    }
    hold_free(hold);
}

/* ---- questions --------------------------------------------------------------------------- */

/*
 * An open descriptor of the file instead of one by O_PATH would keep the very lock alive that is looked after. The
 * module sends none.
 */
static int take_file(struct caller *caller)
{
    int fd = caller_take_gift(caller, KEEPER_GIFT_FILE);
    bool is_by_path = fd >= 0 && (fcntl(fd, F_GETFL) & O_PATH);

    if (fd >= 0 && !is_by_path)
        close(fd);
    return is_by_path ? fd : 0;
}

static struct backing take_backing(struct caller *caller, const struct wish *wish)
{
    struct backing backing = { .is_there = true, .lock = wish->lock, .witness = { .file = take_file(caller) } };

    voice_take(&backing.voice, caller_take_gift(caller, KEEPER_GIFT_STDERR), caller_pid(caller));
    return backing;
}

/*
 * The hold of the name and file that a process still has, after a look. Without the look a process could share the hold
 * of a dead process, and lose the hold at the next look.
 */
static struct hold *find_kept(const struct wish *wish)
{
    for (GList *at = holds; at; at = at->next) {
        struct hold *hold = at->data;

        if (strcmp(hold->wish.name, wish->name) == 0 && hold_is_of(hold, &wish->lock) && is_kept(hold)) {
            holds_look();
            return is_kept(hold) ? hold : NULL;
        }
    }
    return NULL;
}

/*
 * A process that had the kernel's lock already has the distributed lock, too, unless the distributed lock was lost. A
 * process with a lock by flock() shares the lock with a process with a lock by fcntl(): programs take both, and would
 * wait for themselves (rule 6). A second process by the same kind is no sharer but a successor, because the kernel
 * gives an exclusive lock of a kind to one at a time.
 */
static bool share(struct caller *caller, const struct wish *wish)
{
    struct hold *hold = find_kept(wish);
    int place = backing_of(&wish->lock);
    struct backing backing;

    if (!hold || (!wish->is_again && !hold->backings[1 - place].is_there))
        return false;
    backing = take_backing(caller, wish);
    hold_add_backing(hold, &backing);
    caller_answer(caller, "ok");
    return true;
}

/* The kernel's lock is left out: the new caller's lock takes the place of the former. */
static bool is_same_wish(const struct wish *one, const struct wish *other)
{
    return one->is_try == other->is_try && one->lease_ms == other->lease_ms && one->linger_ms == other->linger_ms &&
           one->on_down == other->on_down && one->on_lost == other->on_lost && strcmp(one->name, other->name) == 0 &&
           strcmp(one->path, other->path) == 0;
}

/*
 * A wait cannot be broken off, and a caller that gives up often comes back: then the caller goes on with the same place
 * in the queue. So there is one thread for an awaited file, however often the file is asked for.
 */
static bool adopt(struct caller *caller, const struct wish *wish)
{
    for (GList *at = wish->is_try ? NULL : holds; at; at = at->next) {
        struct hold *hold = at->data;
        struct backing backing;

        if (hold->caller || hold->is_granted || !is_same_wish(&hold->wish, wish) || !hold_revive(hold))
            continue;
        backing = take_backing(caller, wish);
        hold_remove_backing(hold, 1 - backing_of(&wish->lock));
        hold_add_backing(hold, &backing);
        attach(hold, caller);
        return true;
    }
    return false;
}

/*
 * The caller has the kernel's lock, so the former process has the lock no more, even if the keeper has not yet seen the
 * end. The new hold begins when the former hold is given back, and behind the waiters elsewhere (rule 5). A thread can
 * be joined once: a former hold that has a joiner is not found again.
 */
static struct hold *end_former(const struct kernel_lock *lock)
{
    for (GList *at = holds; at; at = at->next) {
        struct hold *hold = at->data;
        enum hold_phase phase = hold_phase(hold);

        if ((phase != HOLD_HELD && phase != HOLD_LOST) || hold->is_joined_by_other || !hold_is_of(hold, lock))
            continue;
        hold_end(hold);
        hold->is_joined_by_other = true;
        return hold;
    }
    return NULL;
}

/*
 * Without a thread the former hold stays ended, because the former process is gone all the same; only the join goes
 * back to on_over().
 */
static void start(struct caller *caller, const struct wish *wish)
{
    struct backing backing = take_backing(caller, wish);
    struct hold *hold = hold_new(wish, &backing), *former = end_former(&wish->lock);
    int error;

    if (former) {
        hold->has_former = true;
        hold->former = former->thread;
    }
    add(hold);
    error = hold_start(hold, on_granted, on_over);
    if (!error) {
        attach(hold, caller);
        return;
    }
    if (former)
        former->is_joined_by_other = false;
    take_out(hold);
    hold_free(hold);
    caller_fail(caller, ENOLCK, "the keeper of lock files cannot start a thread: look at ulimit and pids.max");
}

/* Notes what tells the file from others, if the kernel's name of its inode does not. */
static void tell_apart(struct kernel_lock *lock, int file)
{
    char inode[sizeof lock->inode];
    struct stat status;

    if (fstat(file, &status) < 0)
        return;
    snprintf(inode, sizeof inode, "%02x:%02x:%ju", major(status.st_dev), minor(status.st_dev),
             (uintmax_t)status.st_ino);
    if (strcmp(inode, lock->inode) == 0)
        return;
    lock->device = status.st_dev;
    lock->number = status.st_ino;
}

void holds_ask(struct caller *caller, const struct wish *asked)
{
    struct wish wish = *asked;

    tell_apart(&wish.lock, caller_gift(caller, KEEPER_GIFT_FILE));
    if (!share(caller, &wish) && !adopt(caller, &wish))
        start(caller, &wish);
}

/*
 * An ending hold counts as this file's, because the hold is on its way back: the kernel decides between processes of
 * this host.
 */
enum holds_owner holds_who(const char *name, const char *path)
{
    holds_look();
    for (GList *at = holds; at; at = at->next) {
        struct hold *hold = at->data;

        if (hold_phase(hold) == HOLD_HELD && strcmp(hold->wish.name, name) == 0)
            return hold->is_ending || strcmp(hold->wish.path, path) == 0 ? HOLDS_FOR_FILE : HOLDS_FOR_OTHER;
    }
    return HOLDS_NOTHING;
}

/* Leaves out the bytes that a terminal would obey. */
static void add_clean(GString *to, const char *word)
{
    char room[1024];
    struct text text = text_in(room, sizeof room);

    text_add_clean(&text, word);
    g_string_append(to, room);
    g_string_append_c(to, ' ');
}

/*
 * Asks the kernel for the holder now, because the asking process may have ended and left the lock to a child. 0 and "?"
 * for a process of another user.
 */
static void list_hold(GString *to, struct hold *hold)
{
    char program[HOLDER_PROGRAM_ROOM] = "?";
    pid_t pid = 0;

    for (int i = 0; i < BACKINGS && pid == 0; i++)
        if (hold->backings[i].is_there &&
            !holders_find(&hold->backings[i].lock, &hold->backings[i].known, &pid, program))
            pid = 0;
    add_clean(to, hold->wish.name);
    add_clean(to, hold->wish.path);
    g_string_append_printf(to, "%d ", (int)pid);
    add_clean(to, program);
    to->str[to->len - 1] = '\n';
}

void holds_list(GString *to)
{
    holds_look();
    for (GList *at = holds; at; at = at->next)
        if (is_kept(at->data))
            list_hold(to, at->data);
}

/* ---- looking ----------------------------------------------------------------------------- */

/*
 * Whether /proc shows the lock, which is missing in the kernel's list. A list that comes in pieces while others lock
 * and unlock may leave the same lock out again and again, if the lock stands where two pieces meet (finding 41).
 * SIGHT_NONE is sure for a list that is whole; otherwise a process may have handed the lock on while the others were
 * looked into.
 */
static enum sight look_for_holder(struct backing *backing, const struct proc_locks *locks, bool is_list_sure)
{
    if (is_list_sure && locks->is_whole)
        return holders_look_at_owner(&backing->lock, &backing->known);
    return holders_look_at_all(&backing->lock, &backing->known);
}

/*
 * Neither /proc nor the file tells. A list without gaps decides after some looks, as do processes that can all be seen;
 * else the lock goes on: a lock that ends too late makes others wait, a lock that ends too early lets two in.
 */
static bool is_missing_for_good(struct backing *backing, const char *path, bool is_sure)
{
    if (is_sure)
        return backing->missing >= MISSING_IN_PIECES;
    if (!backing->is_doubt_said)
        say(DMUTEX_LOG_WARN,
            "%s may be locked or not, and counts as locked: the keeper may look neither into all processes nor at the "
            "file",
            path);
    backing->is_doubt_said = true;
    return false;
}

/* Once a process is known to have the lock, no list is read until the process has it no more. */
static void remember_owner(struct backing *backing)
{
    if (!backing->known.folder)
        holders_look_at_owner(&backing->lock, &backing->known);
}

/*
 * Doubt means "still locked", because a release too early lets two hosts in. What is listed may be another file's lock
 * if the list does not tell the two apart.
 */
static bool has_ended(struct backing *backing, const struct proc_locks *locks, const char *path)
{
    bool is_listed = proc_locks_has(locks, &backing->lock), is_next_listed = proc_locks_has_next(locks, &backing->lock);
    bool is_list_sure = locks->is_readable && (is_list_complete || backing->lock.kind != LOCK_OF_FLOCK);
    bool is_distinct = backing->lock.device == 0;
    enum sight sight;

    if (backing->is_known || is_listed)
        remember_owner(backing);
    if (backing->known.folder || (is_listed && is_distinct)) {
        backing->missing = 0;
        return false;
    }
    if (is_next_listed && is_distinct)
        return true;
    is_list_sure &= !is_listed;
    backing->missing++;
    sight = look_for_holder(backing, locks, is_list_sure);
    if (sight == SIGHT_NONE && is_list_sure && locks->is_whole)
        return true;
    if (sight == SIGHT_HOLDER) {
        backing->missing = 0;
        return false;
    }
    switch (witness_ask(&backing->witness, backing->lock.kind)) {
    case WITNESS_LOCKED:
        is_list_needed_whole |= locks->is_cut;
        if (sight == SIGHT_UNSURE && !is_next_listed)
            backing->missing = 0;
        if (backing->missing >= MISSING_THOUGH_LOCKED && holders_map_file(&backing->lock))
            backing->missing = 0;
        return backing->missing >= MISSING_THOUGH_LOCKED;
    case WITNESS_FREE:
        return true;
    case WITNESS_SILENT:
        break;
    }
    return is_missing_for_good(backing, path, is_list_sure || sight == SIGHT_NONE);
}

/* The last lock stays noted: the next caller for this file is to wait until the lock is given back. */
static void look_at(struct hold *hold, const struct proc_locks *locks)
{
    int ended = -1, left = 0;

    for (int i = 0; i < BACKINGS; i++) {
        if (!hold->backings[i].is_there)
            continue;
        hold_look_at_voice(hold, i);
        if (has_ended(&hold->backings[i], locks, hold->wish.path))
            ended = i;
        else
            left++;
    }
    if (left == 0)
        hold_end(hold);
    else if (ended >= 0)
        hold_remove_backing(hold, ended);
}

static bool is_any_kept(void)
{
    bool is_any = false;

    for (GList *at = holds; at; at = at->next)
        is_any |= is_kept(at->data);
    return is_any;
}

/* Asks the processes that are known to have the locks; true if they all have them. */
static bool ask_known(struct hold *hold)
{
    bool are_all = true;

    for (int i = 0; i < BACKINGS; i++) {
        struct backing *backing = &hold->backings[i];

        backing->is_known = backing->is_there && holder_has_still(&backing->known, &backing->lock);
        are_all &= backing->is_known || !backing->is_there;
        if (backing->is_known)
            hold_look_at_voice(hold, i);
    }
    return are_all;
}

static bool are_all_known(void)
{
    bool are_all = true;

    for (GList *at = holds; at; at = at->next)
        are_all &= !is_kept(at->data) || ask_known(at->data);
    return are_all;
}

/*
 * Reads the list at most once for all holds. look_at() ends holds and frees none, so the walk goes on safely.
 */
bool holds_look(void)
{
    struct proc_locks locks;

    if (!is_any_kept())
        return false;
    if (are_all_known())
        return true;
    proc_locks_read(&locks, is_list_needed_whole);
    is_list_needed_whole = false;
    for (GList *at = holds; at; at = at->next)
        if (is_kept(at->data))
            look_at(at->data, &locks);
    proc_locks_clear(&locks);
    return true;
}

/* Before the first thread of the library. */
void holds_begin(void)
{
    is_list_complete = proc_locks_is_complete();
    watch_begin(holds_look);
    dmutex_setlost_np(on_lost, NULL);
}
