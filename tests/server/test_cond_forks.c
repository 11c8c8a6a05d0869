/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Conditions and fork(): objects that parent and children share, private objects that the child has afresh, waits of
 * the parent that the child's end does not end; and conditions destroyed right after a broadcast.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../lib/testlib.h"

#define LONG_LEASE 60000
#define CHILDREN 4

/* Shared by a family: objects without a name, and a count that the mutex guards. */
static struct family {
    dmutex_t mutex;
    dcond_t cond;
    int waiting, woken;
    bool may_go;
} * family;

static struct family *share(void)
{
    struct family *made = mmap(NULL, sizeof *made, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

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

/* A child that waits until allowed to go; the status is 0 if all is well. */
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

/* True, with the mutex given back, if `count` have begun to wait. */
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
 * Objects without names in memory that a family shares: the parent signals, and each time one child wakes; then the
 * parent wakes all the others.
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

/* A private condition is another condition in the child: the child's end does not end the parent's wait. */
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

static dmutex_t named_mutex = DMUTEX_INITIALIZER("forks/m");
static dcond_t named_cond = DCOND_INITIALIZER("forks/c");

static int wait_by_name(dmutex_t *guard)
{
    int result = dmutex_lock(guard);

    if (result == 0)
        result = dcond_wait(&named_cond, guard);
    return result ? result : dmutex_unlock(guard);
}

static int signal_by_name(void)
{
    return dcond_signal(&named_cond);
}

static int exit_at_once(void)
{
    dmutex_t unused = DMUTEX_INITIALIZER("forks/unused");

    exit(dmutex_lock(&unused) || dmutex_unlock(&unused));
}

static int64_t on_condition(void)
{
    return side_int(the_server->side, "ZCARD %s", key_of("cond", "forks/c"));
}

/* A fork during a wait: neither the child's end nor its own use of the library ends the wait; a signal does. */
static void test_a_wait_goes_on_when_its_process_forks(void **state)
{
    struct errand waiter;

    (void)state;
    errand_begin(&waiter, wait_by_name, &named_mutex);
    wait_until(on_condition() == 1);
    assert_int_equal(keeper_reap(start_child(exit_at_once)), 0);
    assert_int_equal(on_condition(), 1);
    assert_false(errand_is_over(&waiter));
    assert_int_equal(keeper_reap(start_child(signal_by_name)), 0);
    assert_result(errand_join(&waiter), 0);
}

/* ---- destroy ----------------------------------------------------------------------------- */

/* POSIX scenario 34: destroyed straight after the broadcast, while the woken waiters have not returned. */
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
        cmocka_unit_test(test_a_parent_wakes_its_children_when_they_share_the_memory),
        cmocka_unit_test(test_a_child_disturbs_no_wait_when_the_condition_is_private),
        cmocka_unit_test(test_a_wait_goes_on_when_its_process_forks),
        cmocka_unit_test(test_destroy_is_legal_when_a_broadcast_has_woken_all),
        cmocka_unit_test(test_nothing_is_left),
    };

    test_begin(argc, argv);
    return cmocka_run_group_tests(tests, test_group_setup, test_group_teardown);
}
