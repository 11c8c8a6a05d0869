/* SPDX-License-Identifier: BSD-2-Clause */
/* Robust mutexes, and pthread_mutex_consistent(): the results for the next owners of a dead thread's mutex. */
#include "shalls.h"

#include <stdlib.h>
#include <unistd.h>

/* ---- EOWNERDEAD ------------------------------------------------------------------------------ */

/* A thread has died: prints the results for the next owner, and for the owner after. */
static void orphan_by(work_fn lock)
{
    for (int i = 4; i < KINDS; i++) {
        pthread_mutex_t mutex;

        make_kind(&mutex, &kinds[i]);
        die_holding(&mutex);
        say(kinds[i].name, lock(&mutex));
        say("elsewhere", try_elsewhere(&mutex));
        say("consistent", pthread_mutex_consistent(&mutex));
        say("unlock", pthread_mutex_unlock(&mutex));
        say("next", try_elsewhere(&mutex));
    }
}

static void orphan_lock(void)
{
    orphan_by(lock_it);
}

static void orphan_trylock(void)
{
    orphan_by(trylock_it);
}

static void orphan_timedlock(void)
{
    orphan_by(timedlock_it_past);
}

static void orphan_clocklock(void)
{
    orphan_by(clocklock_it_past);
}

/* A holder that ends its thread when the test says so. */
struct mortal {
    pthread_mutex_t mutex;
    _Atomic bool holds;
    _Atomic bool may_die;
};

static int die_when_told(void *with)
{
    struct mortal *mortal = with;

    pthread_mutex_lock(&mortal->mutex);
    mortal->holds = true;
    await(mortal->may_die);
    return 0;
}

static void orphan_with_a_waiter(void)
{
    struct mortal mortal = { .holds = false };
    struct blocked blocked;
    struct task task;

    make_robust(&mortal.mutex, PTHREAD_MUTEX_NORMAL);
    task_begin(&task, die_when_told, &mortal);
    await(mortal.holds);
    blocked_begin(&blocked, lock_it, &mortal.mutex);
    blocked.is_released = true;
    mortal.may_die = true;
    say("waiter", blocked_end(&blocked));
    say_text("death", blocked_when(&blocked));
}

/* The thread that got EOWNERDEAD dies, too. */
static void orphan_twice(void)
{
    pthread_mutex_t mutex;

    make_robust(&mutex, PTHREAD_MUTEX_NORMAL);
    die_holding(&mutex);
    say("second", elsewhere(lock_it, &mutex));
    say("third", elsewhere(lock_it, &mutex));
    say("fourth", pthread_mutex_lock(&mutex));
    say("consistent", pthread_mutex_consistent(&mutex));
    say("unlock", pthread_mutex_unlock(&mutex));
    say("next", try_elsewhere(&mutex));
}

static int lock_thrice(void *mutex)
{
    for (int i = 0; i < 3; i++)
        pthread_mutex_lock(mutex);
    return 0;
}

/* The next owner does not inherit the dead owner's depth. */
static void orphan_of_depth(void)
{
    pthread_mutex_t mutex;

    make_robust(&mutex, PTHREAD_MUTEX_RECURSIVE);
    elsewhere(lock_thrice, &mutex);
    say("lock", pthread_mutex_lock(&mutex));
    say("consistent", pthread_mutex_consistent(&mutex));
    say_number("unlocks", unlock_all(&mutex));
    say("elsewhere", try_elsewhere(&mutex));
}

/* Locking again before the state is consistent. */
static void orphan_relock(void)
{
    pthread_mutex_t mutex;

    make_robust(&mutex, PTHREAD_MUTEX_ERRORCHECK);
    die_holding(&mutex);
    say("lock", pthread_mutex_lock(&mutex));
    say("again", pthread_mutex_lock(&mutex));
    say("unlock-elsewhere", elsewhere(unlock_it, &mutex));
    say("consistent", pthread_mutex_consistent(&mutex));
    say("unlock", pthread_mutex_unlock(&mutex));
}

/* A mutex of a dead owner may be destroyed by the next owner, after the unlock. */
static void orphan_destroy(void)
{
    pthread_mutex_t mutex;

    make_robust(&mutex, PTHREAD_MUTEX_NORMAL);
    die_holding(&mutex);
    say("lock", pthread_mutex_lock(&mutex));
    say("consistent", pthread_mutex_consistent(&mutex));
    say("unlock", pthread_mutex_unlock(&mutex));
    say("destroy", pthread_mutex_destroy(&mutex));
}

/* Many locks of one dead thread. */
static int lock_all(void *mutexes)
{
    for (int i = 0; i < 10; i++)
        pthread_mutex_lock((pthread_mutex_t *)mutexes + i);
    return 0;
}

static void orphans_of_one_thread(void)
{
    pthread_mutex_t mutexes[10];

    for (int i = 0; i < 10; i++)
        make_robust(&mutexes[i], PTHREAD_MUTEX_NORMAL);
    elsewhere(lock_all, mutexes);
    for (int i = 0; i < 10; i++)
        say("lock", pthread_mutex_lock(&mutexes[i]));
}

/* ---- Without robustness ---------------------------------------------------------------------- */

static void stalled_trylock(void)
{
    for (int i = 0; i < 4; i++) {
        pthread_mutex_t mutex;

        make_kind(&mutex, &kinds[i]);
        die_holding(&mutex);
        say(kinds[i].name, pthread_mutex_trylock(&mutex));
    }
}

static void stalled_timedlock(void)
{
    struct timespec soon;
    pthread_mutex_t mutex;

    make(&mutex, PTHREAD_MUTEX_NORMAL);
    die_holding(&mutex);
    soon = in_ms(CLOCK_REALTIME, 5000); /* libc waits as long; a busy server answers before that */
    say("timedlock", pthread_mutex_timedlock(&mutex, &soon));
}

/* ---- ENOTRECOVERABLE ------------------------------------------------------------------------- */

/* Leaves a mutex that is not recoverable. */
static void spoil(pthread_mutex_t *mutex, int type)
{
    make_robust(mutex, type);
    die_holding(mutex);
    say("lock", pthread_mutex_lock(mutex));
    say("unlock", pthread_mutex_unlock(mutex));
}

/* Each way on its own mutex: glibc's trylock leaves a mutex that blocks. */
static void spoiled_locks(void)
{
    for (int i = 0; i < WAYS; i++) {
        pthread_mutex_t mutex;

        spoil(&mutex, PTHREAD_MUTEX_NORMAL);
        say(ways[i].name, ways[i].lock(&mutex));
    }
}

static void spoiled_is_not_owned(void)
{
    pthread_mutex_t mutex;

    spoil(&mutex, PTHREAD_MUTEX_NORMAL);
    say("lock", pthread_mutex_lock(&mutex));
    say("unlock", pthread_mutex_unlock(&mutex));
    say("lock", pthread_mutex_lock(&mutex));
}

static void spoiled_consistent(void)
{
    pthread_mutex_t mutex;

    spoil(&mutex, PTHREAD_MUTEX_NORMAL);
    say("consistent", pthread_mutex_consistent(&mutex));
    say("lock", pthread_mutex_lock(&mutex));
}

static void spoiled_locks_past(void)
{
    pthread_mutex_t mutex;

    spoil(&mutex, PTHREAD_MUTEX_NORMAL);
    say("timedlock", timedlock_it_past(&mutex));
    say("clocklock", clocklock_it_past(&mutex));
}

/* The state for others after a failed trylock. */
static void spoiled_trylock_twice(void)
{
    pthread_mutex_t mutex;

    spoil(&mutex, PTHREAD_MUTEX_NORMAL);
    say("trylock", pthread_mutex_trylock(&mutex));
    say("elsewhere", try_elsewhere(&mutex));
}

static void spoiled_of_each_type(void)
{
    for (int i = 4; i < KINDS; i++) {
        pthread_mutex_t mutex;

        spoil(&mutex, kinds[i].type);
        say(kinds[i].name, pthread_mutex_lock(&mutex));
    }
}

static void spoiled_waiters(void)
{
    struct blocked blocked[4];
    pthread_mutex_t mutex;
    int told = 0;

    make_robust(&mutex, PTHREAD_MUTEX_NORMAL);
    die_holding(&mutex);
    say("lock", pthread_mutex_lock(&mutex));
    for (int i = 0; i < 4; i++)
        blocked_begin(&blocked[i], lock_it, &mutex);
    for (int i = 0; i < 4; i++)
        blocked[i].is_released = true;
    say("unlock", pthread_mutex_unlock(&mutex));
    for (int i = 0; i < 4; i++) {
        if (!task_ends_soon(&blocked[i].task))
            continue;
        say("waiter", blocked_end(&blocked[i]));
        say_text("unlock", blocked_when(&blocked[i]));
        told++;
    }
    say_number("told", told);
}

static void spoiled_init(void)
{
    pthread_mutex_t mutex;

    spoil(&mutex, PTHREAD_MUTEX_NORMAL);
    say("destroy", pthread_mutex_destroy(&mutex));
    make_robust(&mutex, PTHREAD_MUTEX_NORMAL);
    say("lock", pthread_mutex_lock(&mutex));
    say("unlock", pthread_mutex_unlock(&mutex));
    say("elsewhere", try_elsewhere(&mutex));
}

/* A recursive owner unlocks all holds, without calling consistent. */
static void spoiled_at_the_last_unlock(void)
{
    pthread_mutex_t mutex;

    make_robust(&mutex, PTHREAD_MUTEX_RECURSIVE);
    die_holding(&mutex);
    say("lock", pthread_mutex_lock(&mutex));
    say("again", pthread_mutex_lock(&mutex));
    say("unlock", pthread_mutex_unlock(&mutex));
    say("elsewhere", try_elsewhere(&mutex));
    say("unlock", pthread_mutex_unlock(&mutex));
    say("elsewhere", try_elsewhere(&mutex));
}

/* ---- consistent ------------------------------------------------------------------------------ */

static void consistent_healthy(void)
{
    for (int i = 4; i < KINDS; i++) {
        pthread_mutex_t mutex;

        make_kind(&mutex, &kinds[i]);
        say(kinds[i].name, pthread_mutex_consistent(&mutex));
        pthread_mutex_lock(&mutex);
        say("locked", pthread_mutex_consistent(&mutex));
        say("unlock", pthread_mutex_unlock(&mutex));
    }
}

static void consistent_stalled(void)
{
    for (int i = 0; i < 4; i++) {
        pthread_mutex_t mutex;

        make_kind(&mutex, &kinds[i]);
        pthread_mutex_lock(&mutex);
        say(kinds[i].name, pthread_mutex_consistent(&mutex));
        say("unlock", pthread_mutex_unlock(&mutex));
    }
}

static void consistent_twice(void)
{
    pthread_mutex_t mutex;

    make_robust(&mutex, PTHREAD_MUTEX_NORMAL);
    die_holding(&mutex);
    say("lock", pthread_mutex_lock(&mutex));
    say("consistent", pthread_mutex_consistent(&mutex));
    say("consistent", pthread_mutex_consistent(&mutex));
    say("unlock", pthread_mutex_unlock(&mutex));
    say("lock", pthread_mutex_lock(&mutex));
}

/* Making the state consistent does not affect the next owner's death. */
static void consistent_then_death(void)
{
    pthread_mutex_t mutex;

    make_robust(&mutex, PTHREAD_MUTEX_NORMAL);
    for (int i = 0; i < 3; i++) {
        die_holding(&mutex);
        say("lock", pthread_mutex_lock(&mutex));
        say("consistent", pthread_mutex_consistent(&mutex));
        say("unlock", pthread_mutex_unlock(&mutex));
    }
}

/* ---- Processes that end ---------------------------------------------------------------------- */

static int hold_and_exit(void *mutex)
{
    pthread_mutex_lock(mutex);
    exit(0);
}

static int hold_and_leave(void *mutex)
{
    pthread_mutex_lock(mutex);
    _exit(0);
}

static int hold_and_be_killed(void *mutex)
{
    pthread_mutex_lock(mutex);
    return raise(SIGKILL);
}

static int hold_and_abort(void *mutex)
{
    pthread_mutex_lock(mutex);
    signal(SIGABRT, SIG_DFL);
    abort();
}

static int hold_and_execute(void *mutex)
{
    pthread_mutex_lock(mutex);
    execl("/bin/true", "true", (char *)NULL);
    return 4;
}

/* A shared robust mutex of a process that ended: the next locker, and the lockers after. */
static void process_ends(work_fn work)
{
    pthread_mutex_t *mutex = shared_memory(sizeof *mutex);

    make_shared(mutex, &kinds[4]);
    say("end", in_process(work, mutex));
    say("lock", pthread_mutex_lock(mutex));
    say("elsewhere", try_elsewhere(mutex));
    say("consistent", pthread_mutex_consistent(mutex));
    say("unlock", pthread_mutex_unlock(mutex));
    say("lock", pthread_mutex_lock(mutex));
}

static void process_exits(void)
{
    process_ends(hold_and_exit);
}

static void process_leaves(void)
{
    process_ends(hold_and_leave);
}

static void process_is_killed(void)
{
    process_ends(hold_and_be_killed);
}

static void process_aborts(void)
{
    process_ends(hold_and_abort);
}

static void process_executes(void)
{
    process_ends(hold_and_execute);
}

/* At once after the end of a killed process, without waiting. */
static void try_after_death(work_fn lock)
{
    pthread_mutex_t *mutex = shared_memory(sizeof *mutex);

    make_shared(mutex, &kinds[4]);
    say("end", in_process(hold_and_be_killed, mutex));
    say("lock", lock(mutex));
}

static void process_trylock(void)
{
    try_after_death(trylock_it);
}

static void process_timedlock_past(void)
{
    try_after_death(timedlock_it_past);
}

/* A child that holds until killed. */
struct held {
    pthread_mutex_t mutex;
    _Atomic bool holds;
};

static int hold_for_ever(void *with)
{
    struct held *held = with;

    pthread_mutex_lock(&held->mutex);
    held->holds = true;
    await(false);
    return 0;
}

static void process_is_killed_with_waiters(void)
{
    struct held *held = shared_memory(sizeof *held);
    struct blocked blocked;
    pid_t pid;

    make_shared(&held->mutex, &kinds[4]);
    pid = process_begin(hold_for_ever, held);
    await(held->holds);
    blocked_begin(&blocked, lock_it, &held->mutex);
    blocked.is_released = true;
    kill(pid, SIGKILL);
    say("waiter", blocked_end(&blocked));
    say_text("death", blocked_when(&blocked));
    process_end(pid);
}

const struct clause robust_clauses[] = {
    { "2.1-robust-lock", "after a thread's death", orphan_lock },
    { "2.1-robust-trylock", "after a thread's death", orphan_trylock },
    { "2.1-robust-timedlock", "after a thread's death, the time is over", orphan_timedlock },
    { "2.1-robust-clocklock", "after a thread's death, the time is over", orphan_clocklock },
    { "2.1-robust-waiter", "waits when the thread dies", orphan_with_a_waiter },
    { "2.1-robust-twice", "the next owner dies, too", orphan_twice },
    { "2.1-robust-depth", "of a recursive mutex", orphan_of_depth },
    { "2.1-robust-relock", "before the state is consistent", orphan_relock },
    { "2.1-robust-destroy", "after a death", orphan_destroy },
    { "2.1-robust-many", "mutexes of one dead thread", orphans_of_one_thread },
    { "2.1-stalled-trylock", "after a thread's death", stalled_trylock },
    { "2.1-stalled-timedlock", "after a thread's death", stalled_timedlock },
    { "2.1-notrecoverable-locks", "all ways to lock", spoiled_locks },
    { "2.1-notrecoverable-not-owned", "by the one that was told", spoiled_is_not_owned },
    { "2.1-consistent-notrecoverable", "is too late", spoiled_consistent },
    { "2.1-notrecoverable-past", "the time is over", spoiled_locks_past },
    { "2.1-notrecoverable-trylock-twice", "by different threads", spoiled_trylock_twice },
    { "2.1-notrecoverable-types", "of each type", spoiled_of_each_type },
    { "2.1-notrecoverable-waiters", "are told", spoiled_waiters },
    { "2.1-notrecoverable-init", "makes a new mutex", spoiled_init },
    { "2.1-notrecoverable-recursive", "at the last unlock", spoiled_at_the_last_unlock },
    { "2.1-consistent-healthy", "nobody died", consistent_healthy },
    { "2.1-consistent-stalled", "not robust", consistent_stalled },
    { "2.1-consistent-twice", "the second time", consistent_twice },
    { "2.1-consistent-each-death", "again after each", consistent_then_death },
    { "2.1-process-exits", "by exit()", process_exits },
    { "2.1-process-leaves", "by _exit()", process_leaves },
    { "2.1-process-killed", "by SIGKILL", process_is_killed },
    { "2.1-process-aborts", "by abort()", process_aborts },
    { "2.1-process-executes", "by exec()", process_executes },
    { "2.1-process-killed-waiter", "waits meanwhile", process_is_killed_with_waiters },
    { "2.1-process-killed-trylock", "at once after its end", process_trylock },
    { "2.1-process-killed-timedlock", "at once, the time is over", process_timedlock_past },
    { NULL, NULL, NULL },
};
