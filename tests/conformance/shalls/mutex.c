/* SPDX-License-Identifier: BSD-2-Clause */
/* pthread_mutex_lock(), trylock(), unlock(), getprioceiling() and setprioceiling(), on mutexes with living owners. */
#include "shalls.h"

/* ---- lock ------------------------------------------------------------------------------------ */

static void lock_owns(void)
{
    for (int i = 0; i < KINDS; i++) {
        pthread_mutex_t mutex;

        make_kind(&mutex, &kinds[i]);
        say(kinds[i].name, pthread_mutex_lock(&mutex));
        say("elsewhere", try_elsewhere(&mutex));
        say("unlock", pthread_mutex_unlock(&mutex));
    }
}

/* Somebody else waits in each kind of lock until the owner's unlock. */
static void block_by(work_fn lock)
{
    for (int i = 0; i < KINDS; i++) {
        struct blocked blocked;
        pthread_mutex_t mutex;

        make_kind(&mutex, &kinds[i]);
        pthread_mutex_lock(&mutex);
        blocked_begin(&blocked, lock, &mutex);
        blocked.is_released = true;
        pthread_mutex_unlock(&mutex);
        say(kinds[i].name, blocked_end(&blocked));
        say_text("unlock", blocked_when(&blocked));
    }
}

static void lock_blocks(void)
{
    block_by(ways[0].lock);
}

static void timedlock_blocks(void)
{
    block_by(ways[2].lock);
}

static void clocklock_blocks(void)
{
    block_by(ways[3].lock);
}

static int lock_twice(void *mutex)
{
    pthread_mutex_lock(mutex);
    return pthread_mutex_lock(mutex);
}

/* The second lock never returns, and nobody else gets the mutex. */
static void relock_blocks(int robust)
{
    const struct kind kind = { "", PTHREAD_MUTEX_NORMAL, robust };
    pthread_mutex_t mutex;
    struct task task;

    make_kind(&mutex, &kind);
    task_begin(&task, lock_twice, &mutex);
    task_await_sleep(&task);
    for (int i = 0; i < 20; i++)
        try_elsewhere(&mutex);
    say_whether("blocks", task_await_sleep(&task));
    say("elsewhere", try_elsewhere(&mutex));
}

static void relock_normal(void)
{
    relock_blocks(PTHREAD_MUTEX_STALLED);
}

static void relock_robust_normal(void)
{
    relock_blocks(PTHREAD_MUTEX_ROBUST);
}

/* Locks twice in each way but trylock, and unlocks until refused. */
static void relock(int type, int robust)
{
    const struct kind kind = { "", type, robust };

    for (int i = 0; i < WAYS; i++) {
        pthread_mutex_t mutex;

        if (ways[i].lock == trylock_it)
            continue;
        make_kind(&mutex, &kind);
        say(ways[i].name, ways[i].lock(&mutex));
        say("again", ways[i].lock(&mutex));
        say_number("unlocks", unlock_all(&mutex));
    }
}

static void relock_errorcheck(void)
{
    relock(PTHREAD_MUTEX_ERRORCHECK, PTHREAD_MUTEX_STALLED);
}

static void relock_robust_errorcheck(void)
{
    relock(PTHREAD_MUTEX_ERRORCHECK, PTHREAD_MUTEX_ROBUST);
}

static void relock_recursive(void)
{
    relock(PTHREAD_MUTEX_RECURSIVE, PTHREAD_MUTEX_STALLED);
}

static void relock_robust_recursive(void)
{
    relock(PTHREAD_MUTEX_RECURSIVE, PTHREAD_MUTEX_ROBUST);
}

static void recursive_is_free_after_the_last_unlock(void)
{
    pthread_mutex_t mutex;

    make(&mutex, PTHREAD_MUTEX_RECURSIVE);
    for (int i = 0; i < 3; i++)
        say("lock", pthread_mutex_lock(&mutex));
    for (int i = 0; i < 3; i++) {
        say("unlock", pthread_mutex_unlock(&mutex));
        say("elsewhere", try_elsewhere(&mutex));
    }
    say("unlock", pthread_mutex_unlock(&mutex));
}

/* The threads' first lock is the first use of the object. */
static void say_torture(struct torture *torture)
{
    struct task tasks[16];

    for (int i = 0; i < 16; i++)
        task_begin(&tasks[i], torture_add, torture);
    for (int i = 0; i < 16; i++)
        task_join(&tasks[i]);
    say_number("number", torture->number);
    say_number("meetings", torture->meetings);
}

static void lock_excludes(void)
{
    struct torture torture = { .rounds = 100 };

    make(&torture.mutex, PTHREAD_MUTEX_NORMAL);
    say_torture(&torture);
}

static void static_first_locks(void)
{
    static struct torture torture = { .mutex = PTHREAD_MUTEX_INITIALIZER, .rounds = 100 };

    say_torture(&torture);
}

/* Waiters, each holding the mutex until the test lets go. */
struct crowd {
    pthread_mutex_t mutex;
    _Atomic int got;
    _Atomic int left;
};

static int pass(void *with)
{
    struct crowd *crowd = with;
    int result = pthread_mutex_lock(&crowd->mutex);

    crowd->got++;
    await(crowd->left >= crowd->got);
    pthread_mutex_unlock(&crowd->mutex);
    return result;
}

static void unlock_admits_one(void)
{
    struct crowd crowd = { .mutex = PTHREAD_MUTEX_INITIALIZER };
    struct task tasks[8];
    int most = 0;

    pthread_mutex_lock(&crowd.mutex);
    for (int i = 0; i < 8; i++) {
        task_begin(&tasks[i], pass, &crowd);
        task_await_sleep(&tasks[i]);
    }
    say_number("before", crowd.got);
    pthread_mutex_unlock(&crowd.mutex);
    for (int i = 1; i <= 8; i++) {
        await(crowd.got >= i);
        try_elsewhere(&crowd.mutex);
        most = crowd.got - crowd.left > most ? crowd.got - crowd.left : most;
        crowd.left = i;
    }
    for (int i = 0; i < 8; i++)
        say("waiter", task_join(&tasks[i]));
    say_number("at-once", most);
}

/* A waiter continues to wait after a signal handler, and gets the mutex. */
static void signal_during(work_fn lock)
{
    struct blocked blocked;
    pthread_mutex_t mutex;

    signals_begin();
    make(&mutex, PTHREAD_MUTEX_NORMAL);
    pthread_mutex_lock(&mutex);
    blocked_begin(&blocked, lock, &mutex);
    signals_send(&blocked.task, 5);
    say_whether("waits-on", task_await_sleep(&blocked.task));
    blocked.is_released = true;
    pthread_mutex_unlock(&mutex);
    say("result", blocked_end(&blocked));
    say_text("unlock", blocked_when(&blocked));
}

static void signal_during_lock(void)
{
    signal_during(ways[0].lock);
}

static void signal_during_timedlock(void)
{
    signal_during(ways[2].lock);
}

static void signal_during_clocklock(void)
{
    signal_during(ways[3].lock);
}

/* ---- trylock --------------------------------------------------------------------------------- */

static void trylock_free(void)
{
    for (int i = 0; i < KINDS; i++) {
        pthread_mutex_t mutex;

        make_kind(&mutex, &kinds[i]);
        say(kinds[i].name, pthread_mutex_trylock(&mutex));
        say("elsewhere", try_elsewhere(&mutex));
        say("unlock", pthread_mutex_unlock(&mutex));
    }
}

/* Owns a mutex of a kind and tries a second lock. */
static void try_own(const struct kind *kind)
{
    pthread_mutex_t mutex;

    make_kind(&mutex, kind);
    pthread_mutex_lock(&mutex);
    say(kind->name, pthread_mutex_trylock(&mutex));
    say_number("unlocks", kind->type == PTHREAD_MUTEX_RECURSIVE ? unlock_all(&mutex) : 0);
}

static void trylock_own(void)
{
    for (int i = 0; i < KINDS; i++) {
        if (i != 6)
            try_own(&kinds[i]);
    }
}

/* Apart from the others, for glibc's answer is another. */
static void trylock_own_robust_errorcheck(void)
{
    try_own(&kinds[6]);
}

static void trylock_of_another(void)
{
    for (int i = 0; i < KINDS; i++) {
        struct holder holder;
        pthread_mutex_t mutex;

        make_kind(&mutex, &kinds[i]);
        holder_begin(&holder, &mutex);
        say(kinds[i].name, pthread_mutex_trylock(&mutex));
        holder_let_go(&holder);
        say("then", pthread_mutex_trylock(&mutex));
    }
}

/* ---- unlock ---------------------------------------------------------------------------------- */

/* The owner keeps the mutex, and can unlock. */
static void unlock_of_another(void)
{
    for (int i = 0; i < KINDS; i++) {
        pthread_mutex_t mutex;

        if (!is_owner_checked(&kinds[i]))
            continue;
        make_kind(&mutex, &kinds[i]);
        pthread_mutex_lock(&mutex);
        say(kinds[i].name, elsewhere(unlock_it, &mutex));
        say("elsewhere", try_elsewhere(&mutex));
        say("owner", pthread_mutex_unlock(&mutex));
    }
}

static void unlock_unlocked(void)
{
    for (int i = 0; i < KINDS; i++) {
        pthread_mutex_t mutex;

        if (!is_owner_checked(&kinds[i]))
            continue;
        make_kind(&mutex, &kinds[i]);
        say(kinds[i].name, pthread_mutex_unlock(&mutex));
        say("lock", pthread_mutex_lock(&mutex));
        say("unlock", pthread_mutex_unlock(&mutex));
        say("unlock", pthread_mutex_unlock(&mutex));
    }
}

/* ---- Priority ceilings ----------------------------------------------------------------------- */

static void getprioceiling_of_none(void)
{
    pthread_mutex_t mutex;
    int ceiling = 4711;

    make(&mutex, PTHREAD_MUTEX_NORMAL);
    say("get", pthread_mutex_getprioceiling(&mutex, &ceiling));
    say_number("ceiling", ceiling);
}

static void setprioceiling_of_none(void)
{
    pthread_mutex_t mutex;
    int old = 4711;

    make(&mutex, PTHREAD_MUTEX_NORMAL);
    say("set", pthread_mutex_setprioceiling(&mutex, 10, &old));
    say_number("old", old);
    say("elsewhere", try_elsewhere(&mutex));
}

const struct clause mutex_clauses[] = {
    { "2.1-static-first-locks", "16 threads use a new mutex at once", static_first_locks },
    { "2.1-lock-owns", "the caller is the owner", lock_owns },
    { "2.1-lock-blocks", "until the owner's unlock", lock_blocks },
    { "2.1-timedlock-blocks", "until the owner's unlock", timedlock_blocks },
    { "2.1-clocklock-blocks", "until the owner's unlock", clocklock_blocks },
    { "2.1-lock-excludes", "16 threads add to a number", lock_excludes },
    { "2.1-lock-relock-normal", "a normal mutex locked twice by its owner", relock_normal },
    { "2.1-lock-relock-robust-normal", "the same, robust", relock_robust_normal },
    { "2.1-lock-relock-errorcheck", "is refused", relock_errorcheck },
    { "2.1-lock-relock-robust-errorcheck", "is refused", relock_robust_errorcheck },
    { "2.1-lock-relock-recursive", "counts", relock_recursive },
    { "2.1-lock-relock-robust-recursive", "counts", relock_robust_recursive },
    { "2.1-unlock-recursive", "as often as locked", recursive_is_free_after_the_last_unlock },
    { "2.1-unlock-admits-one", "of 8 waiters at a time", unlock_admits_one },
    { "2.1-lock-signal", "a handler does not end the wait", signal_during_lock },
    { "2.1-timedlock-signal", "a handler does not end the wait", signal_during_timedlock },
    { "2.1-clocklock-signal", "a handler does not end the wait", signal_during_clocklock },
    { "2.1-trylock-free", "of each kind", trylock_free },
    { "2.1-trylock-own", "what the caller owns already", trylock_own },
    { "2.1-trylock-own-robust-errorcheck", "what the caller owns already", trylock_own_robust_errorcheck },
    { "2.1-trylock-busy", "what another owns", trylock_of_another },
    { "2.1-unlock-foreign", "of what another owns", unlock_of_another },
    { "2.1-unlock-unlocked", "of what nobody owns", unlock_unlocked },
    { "2.1-getprioceiling-none", "without a priority protocol", getprioceiling_of_none },
    { "2.1-setprioceiling-none", "without a priority protocol", setprioceiling_of_none },
    { NULL, NULL, NULL },
};
