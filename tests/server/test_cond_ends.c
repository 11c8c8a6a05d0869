/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Ends: of waiters that are killed, exit, or are cancelled, and of conditions that are destroyed;
 * and what a fork makes of them.  A signal that one of those had gets to another waiter.
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../lib/testlib.h"

#define LONG_LEASE 60000
#define SHORT_LEASE 900 /* what died is found out by polls */
#define AT_ONCE 8000
#define CHILDREN 4
#define DEPTH 3

static dmutex_t mutex;
static dcond_t cond;
static char mutex_name[32], cond_name[32];

static void promise_within(int ms)
{
    side_set_control(the_server->side, "bound", ms);
}

static void assert_kept(void)
{
    assert_false(side_is_control_over(the_server->side, "bound"));
}

/* A mutex and a condition of this test; kind: as an actor's init takes it. */
static void make_both(const char *word, const struct kind *kind, unsigned lease_ms)
{
    snprintf(mutex_name, sizeof mutex_name, "ends/m-%s", word);
    snprintf(cond_name, sizeof cond_name, "ends/c-%s", word);
    make_mutex(&mutex, mutex_name, kind, lease_ms);
    assert_result(dcond_init_np(&cond, cond_name, NULL), 0);
}

static const struct kind normal = { PTHREAD_MUTEX_NORMAL, PTHREAD_MUTEX_STALLED, "" };
static const struct kind recursive = { PTHREAD_MUTEX_RECURSIVE, PTHREAD_MUTEX_STALLED,
                                       "recursive" };
static const struct kind robust = { PTHREAD_MUTEX_NORMAL, PTHREAD_MUTEX_ROBUST, "robust" };

static struct actor *start(const struct kind *kind, unsigned lease_ms)
{
    struct actor *actor = actor_start(the_server);

    actor_do(actor, "0", "init %s%s%s lease=%u", mutex_name, *kind->words ? " " : "", kind->words,
             lease_ms);
    return actor;
}

static int64_t on_condition(void)
{
    return side_int(the_server->side, "ZCARD %s", key_of("cond", cond_name));
}

static int64_t in_queue(void)
{
    return side_int(the_server->side, "ZCARD %s", key_of("queue", mutex_name));
}

static void begin_wait(struct actor *actor)
{
    int64_t before = on_condition();

    actor_do(actor, "0", "lock %s", mutex_name);
    actor_send(actor, "wait %s %s", cond_name, mutex_name);
    wait_until(on_condition() == before + 1);
}

static void assert_back(struct actor *actor, const char *answer)
{
    actor_expect(actor, answer);
    assert_int_equal(actor_value(actor, "holdcount %s", mutex_name), 1);
    if (strcmp(answer, "EOWNERDEAD") == 0)
        actor_do(actor, "0", "consistent %s", mutex_name);
    actor_do(actor, "0", "unlock %s", mutex_name);
    wait_until(!is_locked(&mutex));
}

/* ---- processes --------------------------------------------------------------------------- */

/*
 * POSIX scenarios 37 and 42, finding 22: the first of two waiters is killed, at one moment or
 * another, and the signal reaches the second.
 */
enum moment {
    WAITING,   /* before the signal */
    SIGNALLED, /* and the mutex is owned by another */
    GRANTED    /* and it cannot tell: its process is stopped */
};

static void kill_first(const struct kind *kind, enum moment moment, const char *answer)
{
    static int calls; /* the dead stay on their condition for a while: another one each time */
    struct actor *first, *second;
    char word[16];

    snprintf(word, sizeof word, "kill%d", ++calls);
    make_both(word, kind, SHORT_LEASE);
    first = start(kind, SHORT_LEASE);
    second = start(kind, SHORT_LEASE);
    begin_wait(first);
    begin_wait(second);
    if (moment == WAITING) {
        actor_kill(first);
        assert_result(dcond_signal(&cond), 0);
    } else if (moment == SIGNALLED) {
        assert_result(dmutex_lock(&mutex), 0);
        assert_result(dcond_signal(&cond), 0);
        assert_int_equal(in_queue(), 1);
        actor_kill(first);
        assert_result(dmutex_unlock(&mutex), 0);
    } else {
        actor_stop(first);
        assert_result(dcond_signal(&cond), 0);
        assert_true(is_locked(&mutex));
        actor_kill(first);
    }
    promise_within(AT_ONCE);
    assert_back(second, answer);
    assert_kept();
    actor_end(first);
    actor_end(second);
}

static void test_a_signal_reaches_the_second_when_the_first_is_killed(void **state)
{
    (void)state;
    for (int i = 0; i < repetitions(5); i++) {
        kill_first(&normal, WAITING, "0");
        kill_first(&robust, WAITING, "0");
    }
}

static void test_a_signal_passes_on_when_who_had_it_is_killed(void **state)
{
    (void)state;
    for (int i = 0; i < repetitions(1); i++) {
        kill_first(&normal, SIGNALLED, "0");
        kill_first(&robust, SIGNALLED, "0");
    }
}

static void test_a_signal_passes_on_when_who_had_it_is_killed_as_owner(void **state)
{
    (void)state;
    for (int i = 0; i < repetitions(1); i++) {
        kill_first(&normal, GRANTED, "0");
        kill_first(&robust, GRANTED, "EOWNERDEAD");
    }
}

/* POSIX scenario 42: who signals and dies owning the mutex leaves it to the waiter. */
static void test_wait_says_eownerdead_when_the_signaller_dies(void **state)
{
    struct actor *waiter, *caller;

    (void)state;
    make_both("caller", &robust, SHORT_LEASE);
    waiter = start(&robust, SHORT_LEASE);
    caller = start(&robust, SHORT_LEASE);
    begin_wait(waiter);
    actor_do(caller, "0", "lock %s", mutex_name);
    actor_do(caller, "0", "signal %s", cond_name);
    actor_kill(caller);
    promise_within(AT_ONCE);
    assert_back(waiter, "EOWNERDEAD");
    assert_kept();
    actor_end(caller);
    caller = start(&robust, SHORT_LEASE);
    actor_do(waiter, "0", "lock %s", mutex_name);
    actor_send(waiter, "timedwait %s %s 300", cond_name, mutex_name);
    actor_do(caller, "0", "lock %s", mutex_name);
    actor_kill(caller);
    assert_back(waiter, "EOWNERDEAD"); /* before ETIMEDOUT */
    actor_end(caller);
    actor_end(waiter);
}

/* The mutex cannot be recovered any more: all waiters are told, and own nothing. */
static void test_waits_end_when_the_mutex_becomes_not_recoverable(void **state)
{
    struct actor *waiters[2], *owner;

    (void)state;
    make_both("spoiled", &robust, SHORT_LEASE);
    for (int i = 0; i < 2; i++)
        waiters[i] = start(&robust, SHORT_LEASE);
    owner = start(&robust, SHORT_LEASE);
    begin_wait(waiters[0]);
    begin_wait(waiters[1]);
    actor_do(owner, "0", "in-thread lock %s", mutex_name); /* and dies */
    actor_do(owner, "EOWNERDEAD", "lock %s", mutex_name);
    actor_do(owner, "0", "unlock %s", mutex_name);
    promise_within(AT_ONCE);
    actor_do(owner, "0", "broadcast %s", cond_name);
    for (int i = 0; i < 2; i++) {
        actor_expect(waiters[i], "ENOTRECOVERABLE");
        assert_int_equal(actor_value(waiters[i], "holdcount %s", mutex_name), 0);
        actor_end(waiters[i]);
    }
    assert_kept();
    actor_end(owner);
    assert_result(dmutex_destroy(&mutex), 0);
}

/* A waiter in another thread of an actor, which answers meanwhile. */
static void begin_wait_aside(struct actor *actor, const char *file)
{
    int64_t before = on_condition();

    actor_do(actor, "0", "start crowd %s 1 %s %s", file, cond_name, mutex_name);
    wait_until(on_condition() == before + 1);
}

/* A process ends while a thread of it waits: it does not hang, and the next signal is for another.
 */
static void test_a_signal_reaches_the_second_when_the_first_exits(void **state)
{
    static const char *const ends[] = { "exit", "_exit", "exec" };
    char file[64];

    (void)state;
    snprintf(file, sizeof file, "%s/exit", the_server->folder);
    for (int i = 0; i < 3; i++) {
        struct actor *first, *second;

        make_both(ends[i], &normal, SHORT_LEASE);
        first = start(&normal, SHORT_LEASE);
        second = start(&normal, SHORT_LEASE);

        actor_begin_count(file);
        begin_wait_aside(first, file);
        begin_wait(second);
        actor_send(first, "%s", ends[i]);
        if (strcmp(ends[i], "exec") == 0) {
            actor_expect(first, "ready");
            actor_end(first);
        } else {
            assert_int_equal(actor_await(first), 0);
        }
        promise_within(AT_ONCE);
        assert_result(dcond_signal(&cond), 0);
        assert_back(second, "0");
        assert_kept();
        assert_int_equal(actor_counted(file), 0);
        actor_end(second);
    }
}

/* ---- cancellation ------------------------------------------------------------------------ */

/* A thread that waits, and is cancelled or not. */
struct victim {
    pthread_t thread;
    int depth;      /* to which it locks */
    int timeout_us; /* 0: none */
    int result;     /* of the wait, -1: did not return */
    unsigned found; /* depth in the cleanup handler */
    bool is_kept;   /* the handler does not give back until it may */
    bool is_in_handler, may_leave;
    int unlocked; /* the result of giving back */
};

static void give_back(void *user)
{
    struct victim *victim = user;

    dmutex_holdcount_np(&mutex, &victim->found);
    __atomic_store_n(&victim->is_in_handler, true, __ATOMIC_RELEASE);
    while (victim->is_kept && !__atomic_load_n(&victim->may_leave, __ATOMIC_ACQUIRE))
        wait_nap();
    for (int i = 0; i < victim->depth; i++)
        victim->unlocked |= dmutex_unlock(&mutex);
}

static struct timespec in_us(int us)
{
    struct timespec time = wait_time_in_ms(CLOCK_REALTIME, us / 1000);

    time.tv_nsec += us % 1000 * 1000;
    time.tv_sec += time.tv_nsec / 1000000000;
    time.tv_nsec %= 1000000000;
    return time;
}

static void *suffer(void *user)
{
    struct victim *victim = user;
    struct timespec until = in_us(victim->timeout_us);

    for (int i = 0; i < victim->depth; i++)
        dmutex_lock(&mutex);
    pthread_cleanup_push(give_back, victim);
    victim->result =
        victim->timeout_us ? dcond_timedwait(&cond, &mutex, &until) : dcond_wait(&cond, &mutex);
    pthread_cleanup_pop(1);
    return NULL;
}

static bool is_back(struct victim *victim)
{
    return __atomic_load_n(&victim->is_in_handler, __ATOMIC_ACQUIRE);
}

/* It waits when this returns, or has come back at its deadline; nobody else waits. */
static void begin_victim(struct victim *victim, int depth, int timeout_us)
{
    *victim = (struct victim){ .depth = depth, .timeout_us = timeout_us, .result = -1 };
    assert_int_equal(pthread_create(&victim->thread, NULL, suffer, victim), 0);
    wait_until(on_condition() == 1 || is_back(victim));
}

/* The other waits behind the victim, if that has not come back meanwhile. */
static void begin_second(struct actor *other, struct victim *victim)
{
    actor_do(other, "0", "lock %s", mutex_name);
    actor_send(other, "wait %s %s", cond_name, mutex_name);
    wait_until((is_back(victim) && on_condition() == 1) || on_condition() == 2);
}

/* True if it was cancelled; owned the mutex at its depth either way. */
static bool end_victim(struct victim *victim)
{
    void *end;

    wait_until(is_back(victim));
    assert_int_equal(pthread_join(victim->thread, &end), 0);
    assert_int_equal(victim->found, victim->depth);
    assert_result(victim->unlocked, 0);
    return end == PTHREAD_CANCELED;
}

/* POSIX scenario 35: the cleanup handlers run with the mutex owned, at the depth of before. */
static void test_cleanup_handlers_own_the_mutex_when_a_waiter_is_cancelled(void **state)
{
    struct actor *other;
    struct victim victim;

    (void)state;
    make_both("cleanup", &recursive, LONG_LEASE);
    other = start(&recursive, LONG_LEASE);
    begin_victim(&victim, DEPTH, 0);
    actor_do(other, "0", "lock %s", mutex_name);
    __atomic_store_n(&victim.is_kept, true, __ATOMIC_RELEASE);
    pthread_cancel(victim.thread);
    wait_until(in_queue() == 1); /* not before it owns the mutex */
    assert_false(is_back(&victim));
    actor_do(other, "0", "unlock %s", mutex_name);
    wait_until(is_back(&victim));
    actor_do(other, "EBUSY", "trylock %s", mutex_name);
    __atomic_store_n(&victim.may_leave, true, __ATOMIC_RELEASE);
    assert_true(end_victim(&victim));
    actor_do(other, "0", "lock %s", mutex_name);
    actor_do(other, "0", "unlock %s", mutex_name);
    assert_int_equal(on_condition() + in_queue(), 0);
    actor_end(other);
}

/* A signal that has reached a waiter which is cancelled then goes on to the other. */
static void test_a_signal_passes_on_when_who_had_it_is_cancelled(void **state)
{
    struct actor *other;
    struct victim victim;

    (void)state;
    make_both("passes", &normal, LONG_LEASE);
    other = start(&normal, LONG_LEASE);
    for (int i = 0; i < repetitions(20); i++) {
        begin_victim(&victim, 1, 0);
        begin_wait(other);
        assert_result(dmutex_lock(&mutex), 0);
        assert_result(dcond_signal(&cond), 0);
        assert_int_equal(in_queue(), 1); /* the victim, and it cannot own the mutex yet */
        pthread_cancel(victim.thread);
        assert_result(dmutex_unlock(&mutex), 0);
        promise_within(AT_ONCE);
        if (!end_victim(&victim)) /* it had left its sleep: what it had was its own */
            assert_result(dcond_signal(&cond), 0);
        assert_back(other, "0");
        assert_kept();
    }
    actor_end(other);
}

/*
 * POSIX scenario 35: a signal and a cancellation come at about the same time, from two processes.
 * If the waiter was cancelled the other one has the signal, else the waiter.
 */
static void test_a_signal_is_had_by_one_when_a_waiter_is_cancelled_at_the_time(void **state)
{
    struct actor *other, *caller;
    int cancelled = 0, rounds = repetitions(200);

    (void)state;
    make_both("race", &normal, LONG_LEASE);
    other = start(&normal, LONG_LEASE);
    caller = start(&normal, LONG_LEASE);
    for (int i = 0; i < rounds; i++) {
        struct victim victim;

        begin_victim(&victim, 1, 0);
        begin_wait(other);
        if (i % 3 == 0)
            pthread_cancel(victim.thread);
        actor_send(caller, "signal %s", cond_name);
        if (i % 3 == 1)
            actor_expect(caller, "0");
        if (i % 3 != 0)
            pthread_cancel(victim.thread);
        if (i % 3 != 1)
            actor_expect(caller, "0");
        if (end_victim(&victim)) {
            cancelled++;
        } else {
            assert_true(actor_is_silent(other));
            assert_int_equal(on_condition(), 1);
            assert_result(dcond_signal(&cond), 0);
        }
        assert_back(other, "0");
    }
    assert_in_range(cancelled, rounds / 3, rounds);
    actor_end(other);
    actor_end(caller);
}

/*
 * POSIX scenario 30: the same with a deadline, which is moved to the moment of the signal by and
 * by; who says ETIMEDOUT has eaten no signal.
 */
static void test_a_signal_is_had_by_one_when_a_deadline_comes_at_the_time(void **state)
{
    int timeout_us = 3000, signalled = 0, rounds = repetitions(200);
    struct actor *other;

    (void)state;
    make_both("deadline", &normal, LONG_LEASE);
    other = start(&normal, LONG_LEASE);
    for (int i = 0; i < rounds; i++) {
        struct victim victim;

        begin_victim(&victim, 1, timeout_us);
        begin_second(other, &victim);
        assert_result(dcond_signal(&cond), 0);
        end_victim(&victim);
        if (victim.result == 0) {
            assert_true(actor_is_silent(other));
            assert_int_equal(on_condition(), 1);
            assert_result(dcond_signal(&cond), 0);
            timeout_us -= timeout_us / 16;
            signalled++;
        } else {
            assert_result(victim.result, ETIMEDOUT);
            timeout_us += timeout_us / 16;
        }
        assert_back(other, "0");
    }
    assert_in_range(signalled, 1, rounds - 1);
    actor_end(other);
}

/* ---- fork -------------------------------------------------------------------------------- */

/* What a family shares: objects without a name, and a count that the mutex guards. */
static struct family {
    dmutex_t mutex;
    dcond_t cond;
    int waiting, woken;
    bool may_go;
} * family;

static struct family *share(void)
{
    struct family *made =
        mmap(NULL, sizeof *made, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

    assert_ptr_not_equal(made, MAP_FAILED);
    return made;
}

static void make_shared(struct family *made)
{
    dmutexattr_t mutex_attr;
    dcondattr_t cond_attr;

    assert_result(dmutexattr_init(&mutex_attr), 0);
    assert_result(dmutexattr_setpshared(&mutex_attr, PTHREAD_PROCESS_SHARED), 0);
    assert_result(dmutexattr_setlease_np(&mutex_attr, LONG_LEASE), 0);
    assert_result(dmutex_init(&made->mutex, &mutex_attr), 0);
    assert_result(dcondattr_init(&cond_attr), 0);
    assert_result(dcondattr_setpshared(&cond_attr, PTHREAD_PROCESS_SHARED), 0);
    assert_result(dcond_init(&made->cond, &cond_attr), 0);
}

/* A child that waits until it may go; its status is 0 if all is well. */
static int wait_in_child(void)
{
    int result = dmutex_lock(&family->mutex);

    if (result)
        return 1;
    family->waiting++;
    while (!family->may_go && !result)
        result = dcond_wait(&family->cond, &family->mutex);
    family->woken++;
    return result || dmutex_unlock(&family->mutex) ? 1 : 0;
}

static pid_t start_child(int (*work)(void))
{
    pid_t pid = keeper_fork();

    if (pid == 0)
        _exit(work());
    return pid;
}

/* True with the mutex given back: so many have begun to wait. */
static bool do_wait(int count)
{
    int waiting;

    assert_result(dmutex_lock(&family->mutex), 0);
    waiting = family->waiting;
    assert_result(dmutex_unlock(&family->mutex), 0);
    return waiting == count;
}

static void let_go(bool all)
{
    assert_result(dmutex_lock(&family->mutex), 0);
    family->may_go = true;
    assert_result(all ? dcond_broadcast(&family->cond) : dcond_signal(&family->cond), 0);
    assert_result(dmutex_unlock(&family->mutex), 0);
}

/*
 * Objects without names in memory that a family shares: the parent signals, and each time one child
 * wakes; then it wakes all the others.
 */
static void test_a_parent_wakes_its_children_when_they_share_the_memory(void **state)
{
    pid_t children[CHILDREN];

    (void)state;
    for (int all = 0; all < 2; all++) {
        family = share();
        make_shared(family);
        for (int i = 0; i < CHILDREN; i++)
            children[i] = start_child(wait_in_child);
        wait_until(do_wait(CHILDREN));
        for (int i = 0; i < (all ? 1 : CHILDREN); i++)
            let_go(all);
        for (int i = 0; i < CHILDREN; i++)
            assert_int_equal(keeper_reap(children[i]), 0);
        assert_int_equal(family->woken, CHILDREN);
        assert_result(dcond_destroy(&family->cond), 0);
        assert_result(dmutex_destroy(&family->mutex), 0);
        munmap(family, sizeof *family);
    }
}

static dmutex_t private_mutex = DMUTEX_ANONYMOUS_INITIALIZER;
static dcond_t private_cond = DCOND_ANONYMOUS_INITIALIZER;

static int wait_privately(dmutex_t *guard)
{
    int result;

    if (dmutex_lock(guard))
        return ENOLCK;
    __atomic_store_n(&family->waiting, 1, __ATOMIC_RELEASE); /* seen once the mutex is had again */
    result = dcond_wait(&private_cond, guard);
    family->woken++;
    return dmutex_unlock(guard) ? ENOLCK : result;
}

/* In the child both are others: nobody waits there, and nobody owns. */
static int meddle(void)
{
    struct timespec soon = wait_time_in_ms(CLOCK_REALTIME, 50);

    if (dcond_broadcast(&private_cond) || dmutex_lock(&private_mutex))
        return 1;
    if (dcond_timedwait(&private_cond, &private_mutex, &soon) != ETIMEDOUT)
        return 2;
    if (dmutex_unlock(&private_mutex) || dcond_destroy(&private_cond))
        return 3;
    return dmutex_destroy(&private_mutex);
}

static int meddle_and_exit(void)
{
    exit(meddle());
}

/* A private condition is another one in the child, whose end does not end the parent's wait. */
static void test_a_child_disturbs_no_wait_when_the_condition_is_private(void **state)
{
    struct errand waiter;

    (void)state;
    family = share();
    errand_begin(&waiter, wait_privately, &private_mutex);
    wait_until(__atomic_load_n(&family->waiting, __ATOMIC_ACQUIRE));
    assert_result(dmutex_lock(&private_mutex), 0);
    assert_result(dmutex_unlock(&private_mutex), 0);
    assert_int_equal(keeper_reap(start_child(meddle)), 0);
    assert_int_equal(keeper_reap(start_child(meddle_and_exit)), 0);
    assert_false(errand_is_over(&waiter));
    assert_int_equal(family->woken, 0);
    assert_result(dcond_signal(&private_cond), 0);
    assert_result(errand_join(&waiter), 0);
    assert_int_equal(family->woken, 1);
    assert_result(dcond_destroy(&private_cond), 0);
    assert_result(dmutex_destroy(&private_mutex), 0);
    munmap(family, sizeof *family);
}

static int signal_in_child(void)
{
    return dcond_signal(&cond);
}

static int exit_at_once(void)
{
    dmutex_t unused = DMUTEX_INITIALIZER("ends/unused");

    exit(dmutex_lock(&unused) || dmutex_unlock(&unused));
}

/* A fork during a wait: neither the child's end nor its own use of the library ends it; a signal
 * does. */
static void test_a_wait_goes_on_when_its_process_forks(void **state)
{
    struct victim victim;

    (void)state;
    make_both("fork", &normal, LONG_LEASE);
    begin_victim(&victim, 1, 0);
    assert_int_equal(keeper_reap(start_child(exit_at_once)), 0);
    assert_int_equal(on_condition(), 1);
    assert_false(is_back(&victim));
    assert_int_equal(keeper_reap(start_child(signal_in_child)), 0);
    assert_false(end_victim(&victim));
    assert_result(victim.result, 0);
}

/* ---- destroy ----------------------------------------------------------------------------- */

/* POSIX scenario 34: destroyed straight after the broadcast, while those it woke have not returned.
 */
static void test_destroy_is_legal_when_a_broadcast_has_woken_all(void **state)
{
    pid_t children[CHILDREN];

    (void)state;
    for (int i = 0; i < repetitions(10); i++) {
        family = share();
        make_shared(family);
        for (int k = 0; k < CHILDREN; k++)
            children[k] = start_child(wait_in_child);
        wait_until(do_wait(CHILDREN));
        assert_result(dmutex_lock(&family->mutex), 0);
        family->may_go = true;
        assert_result(dcond_broadcast(&family->cond), 0);
        assert_result(dcond_destroy(&family->cond), 0);
        memset(&family->cond, 0xff, sizeof family->cond);
        assert_result(dmutex_unlock(&family->mutex), 0);
        for (int k = 0; k < CHILDREN; k++)
            assert_int_equal(keeper_reap(children[k]), 0);
        assert_int_equal(family->woken, CHILDREN);
        assert_result(dmutex_destroy(&family->mutex), 0);
        munmap(family, sizeof *family);
    }
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_signal_reaches_the_second_when_the_first_is_killed),
        cmocka_unit_test(test_a_signal_passes_on_when_who_had_it_is_killed),
        cmocka_unit_test(test_a_signal_passes_on_when_who_had_it_is_killed_as_owner),
        cmocka_unit_test(test_wait_says_eownerdead_when_the_signaller_dies),
        cmocka_unit_test(test_waits_end_when_the_mutex_becomes_not_recoverable),
        cmocka_unit_test(test_a_signal_reaches_the_second_when_the_first_exits),
        cmocka_unit_test(test_cleanup_handlers_own_the_mutex_when_a_waiter_is_cancelled),
        cmocka_unit_test(test_a_signal_passes_on_when_who_had_it_is_cancelled),
        cmocka_unit_test(test_a_signal_is_had_by_one_when_a_waiter_is_cancelled_at_the_time),
        cmocka_unit_test(test_a_signal_is_had_by_one_when_a_deadline_comes_at_the_time),
        cmocka_unit_test(test_a_parent_wakes_its_children_when_they_share_the_memory),
        cmocka_unit_test(test_a_child_disturbs_no_wait_when_the_condition_is_private),
        cmocka_unit_test(test_a_wait_goes_on_when_its_process_forks),
        cmocka_unit_test(test_destroy_is_legal_when_a_broadcast_has_woken_all),
        cmocka_unit_test(test_nothing_is_left),
    };

    test_begin(argc, argv);
    return cmocka_run_group_tests(tests, test_group_setup, test_group_teardown);
}
