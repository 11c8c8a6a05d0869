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
 * This many checks in a row must miss a lock if the kernel itself cannot be asked about the file; and this many if the
 * file is locked by a process that we cannot see, in another container for example.
 */
#define MISSING_IN_PIECES 3
#define MISSING_THOUGH_LOCKED 10

/*
 * All holds, including those that no caller waits for any more. Only the main loop changes the list, with the guard
 * held; the library's thread reads it with the guard held. The main loop itself reads it without.
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
 * True if the hold has the lock and should keep it. This is a hint, because the library's thread may lose the hold just
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
    char program[HOLDER_PROGRAM_ROOM];
    pid_t pid;
    bool is_found = false;

    for (int i = 0; i < loss->count && !is_found; i++)
        is_found = holders_name(&loss->locks[i], &pid, program);
    if (is_found)
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

/* The line is written before the signal is sent: the signal may end the process, and the reader would not know why. */
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
 * Runs in the library's thread. Until it returns no other process can own the name, unless the lock was broken by
 * force. So the processes are told and signalled here, although that reads all of /proc with the guard held, and makes
 * the main loop wait for the guard in add() and take_out(). Several holds may have the name, the former and the next
 * one; hold_lose() is true only for the hold with the token.
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
        sem_post(&hold->end); /* the main loop may post as well; one post is taken */
    }
    pthread_mutex_unlock(&guard);
}

/* ---- what becomes of a question ---------------------------------------------------------- */

/*
 * The caller no longer waits: if the lock is granted, the keeper gives it back at once. Nothing can interrupt
 * dmutex_lock(), so the thread goes on waiting, and adopt() may use it.
 */
static void on_caller_gone(void *user)
{
    struct hold *hold = user;

    hold->caller = NULL;
    hold_end(hold);
}

/*
 * A hold has at most one caller. A granted hold has none: the answer has been sent, and the kernel's lock stands for
 * the process.
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

/* Two holds of one file, by flock() and by fcntl(), share one watch, because the kernel numbers files, not paths. */
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

static void watch_hold(struct hold *hold)
{
    char path[32];

    for (int i = 0; i < BACKINGS && hold->file_watch < 0; i++) {
        snprintf(path, sizeof path, "/proc/self/fd/%d", hold->backings[i].witness.file);
        if (hold->backings[i].witness.file)
            hold->file_watch = watch_file(path);
    }
    hold->is_surely_watched = hold->file_watch >= 0;
    if (hold->file_watch < 0)
        hold->file_watch = watch_file(hold->wish.path);
}

/*
 * A granted hold is a reason to live. One that is asking is not, but its caller is. watch_soon() is called because the
 * process may have ended during the wait, before the file was watched.
 */
static void on_granted(void *user)
{
    struct hold *hold = user;
    struct caller *caller = detach(hold);
    pid_t pid = caller ? caller_pid(caller) : 0;

    life_add();
    hold->is_granted = true;
    watch_hold(hold);
    watch_soon();
    if (caller && hold->is_ending)
        caller_dismiss(caller); /* somebody else had the file by then */
    else if (caller)
        caller_answer(caller, "ok");
    say(DMUTEX_LOG_INFO, "%s (%s) is locked for process %d", hold->wish.path, hold->wish.name, (int)pid);
}

/*
 * The thread has nothing left to do, so the join returns at once; another hold's thread may do it instead. First the
 * hold leaves the list, then its memory is freed, because on_lost() walks the list.
 */
static void on_over(void *user)
{
    struct hold *hold = user;
    struct caller *caller = detach(hold); /* NULL if the lock was granted */

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
 * An open descriptor of the file, instead of one by O_PATH, would keep alive the very lock that we watch. The module
 * sends none.
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
 * Finds the hold of this name and file that a process still has, after a check. Without the check a process could share
 * the hold of a dead process, and lose it at the next check.
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
 * A process that already had the kernel's lock has the distributed lock, too, unless that was lost. A process with a
 * flock() lock shares it with one that has a fcntl() lock: programs take both, and would wait for themselves (rule 6).
 * A second process with a lock of the same kind does not share but succeeds, because the kernel gives an exclusive lock
 * of a kind to one at a time.
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

/* The kernel's lock is not compared: the new caller's lock replaces the former one. */
static bool is_same_wish(const struct wish *one, const struct wish *other)
{
    return one->is_try == other->is_try && one->lease_ms == other->lease_ms && one->linger_ms == other->linger_ms &&
           one->on_down == other->on_down && one->on_lost == other->on_lost && strcmp(one->name, other->name) == 0 &&
           strcmp(one->path, other->path) == 0;
}

/*
 * A wait cannot be interrupted, and a caller that gives up often comes back; then it continues with the same place in
 * the queue. So there is only one thread for a file that is waited for, however often it is asked for.
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
 * The caller has the kernel's lock, so the former process no longer has it, even if the keeper has not noticed yet. The
 * new hold starts when the former one has been given back, and after the waiters elsewhere (rule 5). A thread can be
 * joined only once, so a former hold that already has a joiner is not found again.
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
 * If no thread can be made, the former hold still ends, because its process is gone in any case; only the join goes
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

/* Records what identifies the file if the kernel's name for its inode does not. */
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

/* A hold that is ending still counts as this file's: the kernel decides between processes of this host. */
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

/* Leaves out bytes that a terminal would obey. */
static void add_clean(GString *to, const char *word)
{
    char room[1024];
    struct text text = text_in(room, sizeof room);

    text_add_clean(&text, word);
    g_string_append(to, room);
    g_string_append_c(to, ' ');
}

/*
 * Asks the kernel for the current holder, because the process that asked may have ended and left the lock to a child. 0
 * and "?" for another user's process.
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

/* ---- checks ------------------------------------------------------------------------------ */

/*
 * Whether /proc shows a lock that is missing from the kernel's list. A list that comes in pieces while others lock and
 * unlock may miss the same lock again and again, if it falls between two pieces (finding 41). SIGHT_NONE is certain
 * only if the list is whole; otherwise a process may have passed the lock on while the others were inspected.
 */
static enum sight look_for_holder(struct backing *backing, const struct proc_locks *locks, bool is_list_sure)
{
    if (is_list_sure && locks->is_whole)
        return holders_look_at_owner(&backing->lock, &backing->known);
    return holders_look_at_all(&backing->lock, &backing->known);
}

/*
 * Called when neither /proc nor the file gives an answer. A complete list decides after some checks, and so do
 * processes that can all be seen. Otherwise the lock goes on: a lock that ends too late makes others wait, but one that
 * ends too early lets two in.
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

static void note_seen(struct backing *backing)
{
    backing->missing = 0;
    backing->may_be_over = false;
}

/*
 * True if the file's lock may be another one by now. A lock by flock() or of an open file ends when the file is closed
 * for the last time, or when it is unlocked. If neither has happened, a process out of sight has it, for example one
 * outside this container.
 */
static bool may_be_over(const struct hold *hold, const struct backing *backing)
{
    return backing->may_be_over || !hold->is_surely_watched || backing->lock.kind == LOCK_OF_PROCESS;
}

/*
 * Doubt means "still locked", because releasing too early lets two hosts in. A listed lock may be that of another file,
 * if the list cannot distinguish the two.
 */
static bool has_ended(const struct hold *hold, struct backing *backing, const struct proc_locks *locks)
{
    bool is_listed = proc_locks_has(locks, &backing->lock), is_next_listed = proc_locks_has_next(locks, &backing->lock);
    bool is_list_sure = locks->is_readable && (is_list_complete || backing->lock.kind != LOCK_OF_FLOCK);
    bool is_distinct = backing->lock.device == 0;
    enum sight sight;

    if (backing->is_known || (is_listed && is_distinct)) {
        note_seen(backing);
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
        note_seen(backing);
        return false;
    }
    switch (witness_ask(&backing->witness, backing->lock.kind)) {
    case WITNESS_LOCKED:
        is_list_needed_whole |= locks->is_cut;
        if (sight == SIGHT_UNSURE && !is_next_listed)
            backing->missing = 0;
        if (backing->missing >= MISSING_THOUGH_LOCKED &&
            (!may_be_over(hold, backing) || holders_map_file(&backing->lock)))
            backing->missing = 0;
        return backing->missing >= MISSING_THOUGH_LOCKED;
    case WITNESS_FREE:
        return true;
    case WITNESS_SILENT:
        break;
    }
    return is_missing_for_good(backing, hold->wish.path, is_list_sure || sight == SIGHT_NONE);
}

/* The last lock stays recorded: the next caller for this file must wait until the lock has been given back. */
static void look_at(struct hold *hold, const struct proc_locks *locks)
{
    int ended = -1, left = 0;

    for (int i = 0; i < BACKINGS; i++) {
        if (!hold->backings[i].is_there)
            continue;
        hold_look_at_voice(hold, i);
        if (has_ended(hold, &hold->backings[i], locks))
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

/* Asks the processes that took the locks, or were found to have them. True if they all have them: no list is needed. */
static bool ask_owners(struct hold *hold)
{
    bool are_all = true;

    for (int i = 0; i < BACKINGS; i++) {
        struct backing *backing = &hold->backings[i];

        backing->is_known = backing->is_there && holders_look_at_owner(&backing->lock, &backing->known) == SIGHT_HOLDER;
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
        are_all &= !is_kept(at->data) || ask_owners(at->data);
    return are_all;
}

/* Reads the list at most once for all holds. look_at() ends holds but frees none, so the loop is safe. */
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

static void on_closed(int number)
{
    for (GList *at = holds; at; at = at->next) {
        struct hold *hold = at->data;

        for (int i = 0; i < BACKINGS; i++)
            hold->backings[i].may_be_over |= number < 0 || hold->file_watch == number;
    }
}

void holds_on_unlock(void)
{
    on_closed(-1);
    watch_soon();
}

/* Call before the library's first thread starts. */
void holds_begin(void)
{
    is_list_complete = proc_locks_is_complete();
    watch_begin(holds_look, on_closed);
    dmutex_setlost_np(on_lost, NULL);
}
