/* SPDX-License-Identifier: BSD-2-Clause */
#include "worker.h"

#include <dirent.h>
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "../lib/testlib.h"
#include "dice.h"

static const struct worker *self;
static dmutex_t mutexes[NAMES];
static dcond_t filled = DCOND_INITIALIZER("chaos/filled");
static dcond_t emptied = DCOND_INITIALIZER("chaos/emptied");

/* A thread of the worker. */
struct hand {
    struct dice dice;
    unsigned track;
    int thread;
    int resource;
    bool is_full; /* no room left in the history */
};

static int phase(void)
{
    return __atomic_load_n(self->phase, __ATOMIC_ACQUIRE);
}

static void nap_us(unsigned us)
{
    nanosleep(&(struct timespec){ .tv_sec = us / 1000000, .tv_nsec = us % 1000000 * 1000 }, NULL);
}

/* ---- calls, written down ----------------------------------------------------------------- */

/* A deadline by one of the two clocks; the library sees the same wrong clock as the process. */
struct until {
    clockid_t clock;
    struct timespec at;
};

static int64_t left_of(const struct until *until)
{
    struct timespec now;

    clock_gettime(until->clock, &now);
    return (until->at.tv_sec - now.tv_sec) * 1000000000 + until->at.tv_nsec - now.tv_nsec;
}

/*
 * Returns the token, or 0 if there is no hold, or it was lost before its token was known.  A quorum knows a token once
 * a majority has it, which may take longer than a call.
 */
static uint64_t told_token(dmutex_t *mutex)
{
    uint64_t token = 0;
    int64_t left_ms = 0;
    int result;

    do
        result = dmutex_token_np(mutex, &token);
    while (self->locks_only && result == ENOLCK && dmutex_remaining_np(mutex, &left_ms) == 0 && left_ms > 0);
    return result ? 0 : token;
}

/* Fills in the hold's state, as the library reports it now; the token comes last, because it may ask the servers. */
static void describe(struct op *op)
{
    dmutex_t *mutex = &mutexes[op->name];
    int64_t now_ns = history_now_ns(), left_ms = 0;
    unsigned depth = 0;

    if (dmutex_remaining_np(mutex, &left_ms))
        left_ms = 0;
    dmutex_holdcount_np(mutex, &depth);
    op->certain_ns = left_ms > 0 ? clocks_true_ns(now_ns, left_ms * 1000000) : 0;
    op->depth = (uint8_t)depth;
    op->told_ns = history_now_ns();
    op->token = told_token(mutex);
}

/* The arguments of a call other than the mutex. */
struct means {
    struct until until;
    dcond_t *cond;
    int resource;
    enum wish wish;
};

static int touch(enum name name, const struct means *means)
{
    uint64_t token = told_token(&mutexes[name]);

    return token ? resource_do(means->resource, name, means->wish, token) : EACCES;
}

static int make_call(enum op_kind kind, enum name name, const struct means *means)
{
    dmutex_t *mutex = &mutexes[name];

    switch (kind) {
    case OP_LOCK:
        return dmutex_lock(mutex);
    case OP_TRYLOCK:
        return dmutex_trylock(mutex);
    case OP_TIMEDLOCK:
        return dmutex_clocklock(mutex, means->until.clock, &means->until.at);
    case OP_UNLOCK:
        return dmutex_unlock(mutex);
    case OP_CONSISTENT:
        return dmutex_consistent(mutex);
    case OP_WAIT:
        return dcond_wait(means->cond, mutex);
    case OP_TIMEDWAIT:
        return dcond_clockwait(means->cond, mutex, means->until.clock, &means->until.at);
    case OP_SIGNAL:
        return dcond_signal(means->cond);
    case OP_BROADCAST:
        return dcond_broadcast(means->cond);
    default:
        return touch(name, means);
    }
}

/* Makes a call and records the result.  -1: no call was made, because there is no room left in the history. */
static int call(struct hand *hand, enum op_kind kind, enum name name, const struct means *means)
{
    struct op *op = history_begin(self->history, hand->track, kind, name);
    int64_t ended_ns;
    int result;

    if (!op) {
        hand->is_full = true;
        return -1;
    }
    result = make_call(kind, name, means);
    ended_ns = history_now_ns();
    if (result == ETIMEDOUT)
        op->left_ns = left_of(&means->until);
    if (result == ENOLCK && kind != OP_TRYLOCK)
        snprintf(self->history->surprise, sizeof self->history->surprise, "%s of %s: %s", op_name(op),
                 mutex_kinds[name].name, dmutex_strerror_np());
    describe(op);
    history_end(op, result, ended_ns);
    return result;
}

static struct until soon(struct hand *hand, unsigned most_ms)
{
    clockid_t clock = dice_below(&hand->dice, 2) ? CLOCK_REALTIME : CLOCK_MONOTONIC;

    return (struct until){ clock, wait_time_in_ms(clock, dice_below(&hand->dice, most_ms)) };
}

static int wish(struct hand *hand, enum name name, enum wish wish)
{
    return call(hand, OP_TOUCH, name, &(struct means){ .resource = hand->resource, .wish = wish });
}

/* Signals or broadcasts, again if the server does not answer: a signal too many does no harm. */
static void tell(struct hand *hand, dcond_t *cond, bool all)
{
    const struct means means = { .cond = cond };

    if (self->locks_only)
        return;
    while (call(hand, all ? OP_BROADCAST : OP_SIGNAL, NAME_TABLE, &means) == ENOLCK && phase() < PHASE_OVER)
        nap_us(1000);
}

/* ---- owning ------------------------------------------------------------------------------ */

static void note_holding(struct hand *hand, int count)
{
    __atomic_fetch_add(&self->card->holding[hand->thread], count, __ATOMIC_ACQ_REL);
}

/* Repairs the data of a mutex after an owner's death; the owner of the table may have died before it sent a signal. */
static void mend(struct hand *hand, enum name name)
{
    while (call(hand, OP_CONSISTENT, name, NULL) == ENOLCK)
        nap_us(1000);
    if (name == NAME_TABLE) {
        tell(hand, &filled, true);
        tell(hand, &emptied, true);
    }
}

/* True if the thread owns the mutex after a call with this result; a dead owner's mutex is made consistent. */
static bool owns(struct hand *hand, enum name name, int result)
{
    if (result == EOWNERDEAD)
        mend(hand, name);
    return result == 0 || result == EOWNERDEAD;
}

static bool lock_by(struct hand *hand, enum op_kind kind, enum name name)
{
    const struct means means = { .until = soon(hand, 300) };
    int result = call(hand, kind, name, &means);

    if (result == ENOLCK || result == EAGAIN)
        nap_us(1000);
    return owns(hand, name, result);
}

static void unlock(struct hand *hand, enum name name)
{
    call(hand, OP_UNLOCK, name, NULL);
}

/* ---- lockers ----------------------------------------------------------------------------- */

static enum op_kind some_way(struct hand *hand)
{
    static const enum op_kind ways[] = { OP_LOCK, OP_LOCK, OP_TRYLOCK, OP_TIMEDLOCK };

    return ways[dice_below(&hand->dice, 4)];
}

/*
 * Locks an owned mutex again, because the second lock shows the mutex's type.  After a loss the lock begins a new
 * hold, or says EPERM for a recursive mutex; so each successful lock is undone.
 */
static void lock_again(struct hand *hand, enum name name)
{
    static const enum op_kind ways[] = {
        [PTHREAD_MUTEX_NORMAL] = OP_TRYLOCK, [PTHREAD_MUTEX_RECURSIVE] = OP_LOCK, [PTHREAD_MUTEX_ERRORCHECK] = OP_LOCK
    };
    enum op_kind way = dice_below(&hand->dice, 3) ? ways[mutex_kinds[name].type] : OP_TRYLOCK;

    if (!lock_by(hand, way, name))
        return;
    wish(hand, name, WISH_ENTER);
    unlock(hand, name);
}

/* Mostly stays inside for no time, but sometimes for longer than a lease. */
static void stay(struct hand *hand)
{
    unsigned luck = dice_below(&hand->dice, 500);

    if (luck == 0)
        nap_us(dice_below(&hand->dice, 3 * self->lease_ms / 2) * 1000);
    else if (luck < 50)
        nap_us(dice_below(&hand->dice, 2000));
}

static void use(struct hand *hand, enum name name)
{
    note_holding(hand, 1);
    wish(hand, name, WISH_ENTER);
    stay(hand);
    if (dice_below(&hand->dice, 4) == 0)
        lock_again(hand, name);
    /* A second mutex, by trylock: two threads with two mutexes each could wait for each other forever. */
    if (dice_below(&hand->dice, 8) == 0 && name + 1 < NAME_TABLE && lock_by(hand, OP_TRYLOCK, name + 1)) {
        wish(hand, name + 1, WISH_ENTER);
        wish(hand, name + 1, WISH_LEAVE);
        unlock(hand, name + 1);
    }
    wish(hand, name, WISH_LEAVE);
    note_holding(hand, -1);
    unlock(hand, name);
}

/* Waits for a moment, and passes a wake-up on.  A wait that times out must not have consumed a signal. */
static void pass_by(struct hand *hand)
{
    struct means means = { .cond = dice_below(&hand->dice, 2) ? &filled : &emptied, .until = soon(hand, 10) };
    int result;

    if (self->locks_only || !lock_by(hand, OP_LOCK, NAME_TABLE))
        return;
    result = call(hand, OP_TIMEDWAIT, NAME_TABLE, &means);
    if (owns(hand, NAME_TABLE, result))
        tell(hand, means.cond, false);
    unlock(hand, NAME_TABLE);
}

/* Uses a mutex; a process that keeps leases comes back at once some times, and then leaves others some time. */
static void visit(struct hand *hand, enum name name)
{
    unsigned times = self->hands_on ? 1 + dice_below(&hand->dice, 8) : 1;

    for (; times > 0 && phase() == PHASE_FLOW && !hand->is_full; times--) {
        if (lock_by(hand, some_way(hand), name))
            use(hand, name);
    }
    if (self->hands_on)
        nap_us(dice_below(&hand->dice, 10000));
}

static void lock_on_and_on(struct hand *hand)
{
    while (phase() == PHASE_FLOW && !hand->is_full) {
        enum name name = dice_below(&hand->dice, NAME_TABLE);

        if (dice_below(&hand->dice, 16) == 0)
            pass_by(hand);
        else
            visit(hand, name);
    }
}

/* ---- the table --------------------------------------------------------------------------- */

static int64_t things(void)
{
    return __atomic_load_n(&self->resource->guarded[NAME_TABLE].things, __ATOMIC_ACQUIRE);
}

/* Waits on a condition.  True if the thread still owns the table. */
static bool await(struct hand *hand, dcond_t *cond)
{
    const struct means means = { .cond = cond };
    int result;

    note_holding(hand, -1);
    result = call(hand, OP_WAIT, NAME_TABLE, &means);
    note_holding(hand, 1);
    if (result == EAGAIN)
        nap_us(1000);
    return owns(hand, NAME_TABLE, result) || result == EAGAIN;
}

static bool change(struct hand *hand, enum wish what, dcond_t *cond)
{
    if (wish(hand, NAME_TABLE, what))
        return false;
    tell(hand, cond, dice_below(&hand->dice, 16) == 0);
    return dice_below(&hand->dice, 8) != 0;
}

/* Puts things on the table, which the thread owns; returns to let other threads work, or after a loss. */
static void make(struct hand *hand)
{
    bool goes_on = true;

    while (goes_on && phase() == PHASE_FLOW && !hand->is_full)
        goes_on = things() < TABLE_ROOM ? change(hand, WISH_MAKE, &filled) : await(hand, &emptied);
}

static void take(struct hand *hand)
{
    bool goes_on = true;

    while (goes_on && phase() < PHASE_OVER && !hand->is_full)
        goes_on = things() > 0 ? change(hand, WISH_TAKE, &emptied) : await(hand, &filled);
}

static void work_at_table(struct hand *hand, void (*work)(struct hand *), int last_phase)
{
    while (phase() <= last_phase && !hand->is_full) {
        if (!lock_by(hand, OP_LOCK, NAME_TABLE))
            continue;
        note_holding(hand, 1);
        work(hand);
        note_holding(hand, -1);
        unlock(hand, NAME_TABLE);
    }
}

/* ---- the process ------------------------------------------------------------------------- */

#define LINGER "1000" /* ms; two leases */

/*
 * Returns the names that the table calls robust and the process does not: of the processes that keep leases every other
 * one has a robust name as a name that is not robust.
 */
static unsigned not_robust(void)
{
    return self->hands_on && self->process % 2 ? 1u << NAME_APART : 0;
}

static void make_object(enum name name)
{
    bool is_robust = mutex_kinds[name].is_robust && !(not_robust() & 1u << name);
    const struct kind kind = { .type = mutex_kinds[name].type,
                               .robust = is_robust ? PTHREAD_MUTEX_ROBUST : PTHREAD_MUTEX_STALLED };

    if (self->hands_on)
        make_handed(&mutexes[name], mutex_kinds[name].name, &kind, self->lease_ms, 0);
    else
        make_mutex(&mutexes[name], mutex_kinds[name].name, &kind, self->lease_ms);
}

static void begin(const struct worker *worker)
{
    self = worker;
    clocks_set(&worker->clocks);
    setenv("DMUTEX_URL", worker->url, 1);
    setenv("DMUTEX_HOST", worker->host, 1);
    if (worker->hands_on)
        setenv("DMUTEX_LINGER", LINGER, 1);
    for (int i = 0; i < NAMES; i++)
        make_object((enum name)i);
    /*
     * Loads the store's module, if it has one.  A call with a deadline waits for that by the kernel's wall clock, and
     * looks at ours afterwards.
     */
    if (!self->locks_only)
        dcond_signal(&filled);
}

static void hand_begin(struct hand *hand, int thread)
{
    *hand = (struct hand){ .dice = dice_make(self->seed, (unsigned)(self->process * WORKER_THREADS + thread)),
                           .track = history_add_track(self->history, self->process, thread),
                           .thread = thread,
                           .resource = resource_connect(self->resource) };
    self->history->tracks[hand->track].not_robust = not_robust();
}

static void *play(void *user)
{
    struct hand *hand = user;

    if (self->locks_only)
        lock_on_and_on(hand);
    else if (hand->thread == 2)
        work_at_table(hand, make, PHASE_FLOW);
    else if (hand->thread == 3)
        work_at_table(hand, take, PHASE_DRAIN);
    else
        lock_on_and_on(hand);
    return NULL;
}

/* Counts threads and descriptors until the round is over, because a broken connection may just be coming back. */
static void end(int descriptors_before)
{
    struct card *card = self->card;

    while (phase() != PHASE_GONE) {
        __atomic_store_n(&card->threads, proc_own_threads() - 1, __ATOMIC_RELEASE);
        __atomic_store_n(&card->descriptors, open_descriptors() - descriptors_before, __ATOMIC_RELEASE);
        __atomic_store_n(&card->is_done, 1, __ATOMIC_RELEASE);
        wait_nap();
    }
    _exit(0);
}

void worker_run(const struct worker *worker)
{
    int before = open_descriptors();
    struct hand hands[WORKER_THREADS];
    pthread_t threads[WORKER_THREADS];
    int count = worker->hands_on ? WORKER_THREADS : 4;

    begin(worker);
    for (int i = 0; i < count; i++) {
        hand_begin(&hands[i], i);
        if (pthread_create(&threads[i], NULL, play, &hands[i]))
            _exit(2);
    }
    for (int i = 0; i < count; i++) {
        pthread_join(threads[i], NULL);
        close(hands[i].resource);
    }
    end(before);
    abort();
}

static void lock_table(struct hand *hand)
{
    while (!lock_by(hand, OP_LOCK, NAME_TABLE))
        ;
}

static void wake_all(struct hand *hand)
{
    tell(hand, &filled, true);
    tell(hand, &emptied, true);
}

void worker_close(const struct worker *worker, bool must_wake)
{
    int before = open_descriptors();
    struct hand hand;

    begin(worker);
    hand_begin(&hand, 0);
    lock_table(&hand);
    if (must_wake)
        wake_all(&hand);
    unlock(&hand, NAME_TABLE);
    pass_by(&hand); /* so that the closer has an inbox, too */
    while (things() > 0)
        nap_us(1000);
    lock_table(&hand);
    __atomic_store_n(self->phase, PHASE_OVER, __ATOMIC_RELEASE);
    wake_all(&hand);
    unlock(&hand, NAME_TABLE);
    close(hand.resource);
    end(before);
    abort();
}
