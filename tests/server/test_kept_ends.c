/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Ends and pauses of a process that keeps: killed idle, in the gap before a woken seat, inside; stopped; another
 * program; fork(), also by a handler in the midst of a lock; a lease that ends between the swap of a lock and its look
 * at the clock; and another server.
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "kept.h"
#include "line_state.h"
#include "process/life/runtime.h"
#include "stops.h"

static dmutex_t mutex; /* of this process */
static struct errand errand;

/* A process that gets deaths of the mutex. */
static struct actor *start_heir(const char *name, int lease_ms)
{
    struct actor *heir = actor_start(the_server);

    actor_do(heir, "0", "init %s robust lease=%d", name, lease_ms);
    return heir;
}

/* The heir has the mutex within a lease, or soon after, and gets the death. */
static void assert_inherits(struct actor *heir, const char *name, const char *told)
{
    promise_within(AT_ONCE);
    actor_do(heir, told, "lock %s", name);
    assert_kept();
    if (*told == 'E')
        actor_do(heir, "0", "consistent %s", name);
    actor_do(heir, "0", "unlock %s", name);
    actor_end(heir);
}

/* ---- kill -9 ----------------------------------------------------------------------------- */

/* Before the first unlock that keeps, a kill inside is a death for a robust object of the name; after it, none. */
static void test_a_kill_inside_is_a_death_until_the_process_has_kept(void **state)
{
    const char *name = "ends/inside";

    (void)state;
    for (int has_kept = 0; has_kept < 2; has_kept++) {
        struct actor *heir = start_heir(name, SHORT_LEASE);

        kept_begin(NULL, name, SHORT_LEASE);
        if (!has_kept) {
            kept_use(keeper, name);
            kept_use(keeper, name);
            kept_use(other, name);
        }
        actor_do(keeper, "0", "lock %s", name);
        actor_kill(keeper);
        assert_inherits(heir, name, has_kept ? "0" : "EOWNERDEAD");
        kept_end();
    }
}

/* A robust mutex that threads hand on reports each death: its owner is inside from the grant to the unlock. */
static void test_a_kill_is_a_death_when_a_robust_mutex_was_handed_on(void **state)
{
    const char *name = "ends/robust";
    struct actor *owner = actor_start(the_server), *heir = start_heir(name, SHORT_LEASE);
    char file[64];

    (void)state;
    snprintf(file, sizeof file, "%s/robust", the_server->folder);
    actor_begin_count(file);
    actor_do(owner, "0", "init %s robust lease=%d linger=%d", name, SHORT_LEASE, LONG_LEASE);
    actor_do(owner, "0", "lock %s", name);
    actor_do(owner, "0", "start count %s 1000000 %s 2", file, name);
    actor_do(owner, "0", "unlock %s", name);
    wait_until(actor_counted(file) > 10);
    actor_do(owner, "0", "lock %s", name);
    actor_kill(owner);
    assert_inherits(heir, name, "EOWNERDEAD");
    actor_end(owner);
}

#define GAP "TEST_GAP" /* the environment variable of an actor whose thread stops in the gap: a folder for its notes */

static void note(const char *what)
{
    char path[128];
    int fd;

    snprintf(path, sizeof path, "%s/%s", getenv(GAP), what);
    fd = creat(path, 0600);
    if (fd >= 0)
        close(fd);
}

/* In the actor: the thread sits down and, woken, does not look. */
static void *sit_for_ever(void *user)
{
    dmutex_t *at = user;

    stop_at(STOP_WOKEN);
    dmutex_lock(at);
    return NULL;
}

/* In the actor: one thread has left, the woken one has not entered, and the process is killed there. */
static void wait_in_the_gap(void)
{
    const char *name = "ends/gap";
    pthread_t thread;
    dmutexattr_t attr;

    dmutexattr_init(&attr);
    dmutexattr_setlease_np(&attr, SHORT_LEASE);
    if (dmutex_init_np(&mutex, name, &attr) != 0 || dmutex_lock(&mutex) != 0 ||
        pthread_create(&thread, NULL, sit_for_ever, &mutex) != 0)
        exit(1);
    while (seats_of(name) == 0)
        wait_nap();
    if (dmutex_unlock(&mutex) != 0)
        exit(1);
    note("gap");
    for (;;)
        pause();
}

/* Nobody was inside. */
static void test_a_kill_in_the_gap_is_no_death(void **state)
{
    struct actor *heir = start_heir("ends/gap", SHORT_LEASE);
    pid_t pid;

    (void)state;
    setenv(GAP, the_server->folder, 1);
    pid = keeper_fork();
    if (pid == 0)
        execl(program_path, program_path, (char *)NULL);
    unsetenv(GAP);
    wait_until(access(server_file(the_server, "gap"), F_OK) == 0);
    wait_until(kept_is_marked("ends/gap"));
    assert_int_equal(kill(pid, SIGKILL), 0);
    keeper_reap(pid);
    assert_inherits(heir, "ends/gap", "0");
}

/* ---- other ends -------------------------------------------------------------------------- */

/* An exec() is not seen coming: the others wait for the end of the lease, and hear of no death. */
static void test_another_program_costs_the_others_a_lease(void **state)
{
    const char *name = "ends/exec";
    struct actor *heir = start_heir(name, SHORT_LEASE);

    (void)state;
    kept_begin(NULL, name, SHORT_LEASE);
    actor_do(keeper, "ready", "exec");
    assert_true(kept_is_locked(name));
    assert_inherits(heir, name, "0");
    kept_end();
}

/* A process that was stopped inside a relocked lease for longer than the lease learns of the loss. */
static void test_a_loss_is_reported_when_the_process_was_stopped_inside(void **state)
{
    const char *name = "ends/stop";
    uint64_t token;

    (void)state;
    kept_begin(NULL, name, SHORT_LEASE);
    actor_do(keeper, "0", "lock %s", name);
    actor_stop(keeper);
    promise_within(AT_ONCE);
    actor_do(other, "0", "lock %s", name);
    assert_kept();
    token = (uint64_t)actor_value(other, "token %s", name);
    actor_cont(keeper);
    wait_until(actor_losses(keeper) == 1);
    actor_do(keeper, "EPERM", "unlock %s", name);
    actor_do(keeper, "EBUSY", "trylock %s", name);
    assert_true((uint64_t)actor_value(other, "token %s", name) == token);
    actor_do(other, "0", "unlock %s", name);
    kept_use(keeper, name);
    kept_end();
}

/* ---- fork -------------------------------------------------------------------------------- */

/* The server's token of the mutex, which rises with each hold that a process asks for. */
static int64_t servers_token(const char *name)
{
    return side_int(the_server->side, "HGET %s token", key_of("state", name));
}

/* The command is done at once, and not without the server. */
static void assert_asks(struct actor *actor, const char *name, const char *command)
{
    int64_t before = servers_token(name);

    promise_within(AT_ONCE);
    actor_do(actor, "0", "%s", command);
    assert_kept();
    assert_true(servers_token(name) > before);
}

/* An object in shared memory is the same for parent and child: the parent gives back, the child locks, each in turn. */
static void test_a_child_locks_the_shared_object_that_its_parent_keeps(void **state)
{
    struct actor *parent = actor_start(the_server);
    char file[64], count[64], counting[96];

    (void)state;
    snprintf(file, sizeof file, "%s/object", the_server->folder);
    snprintf(count, sizeof count, "%s/count", the_server->folder);
    snprintf(counting, sizeof counting, "in-child-exit count %s 5 x", count);
    actor_begin_count(count);
    command_run("truncate -s 4096 %s", file);
    actor_do(parent, "0", "map x %s 0", file);
    actor_do(parent, "0", "init x shared name=ends/shared lease=%d linger=%d", LONG_LEASE, LONG_LEASE);
    actor_open_inbox(parent);
    for (int i = 0; i < 3; i++) {
        kept_use(parent, "x");
        kept_use(parent, "x");
        kept_use(parent, "x");
        assert_true(kept_is_locked("ends/shared"));
        assert_asks(parent, "ends/shared", "in-child-exit lock x"); /* in the thread that has called fork() */
        kept_use(parent, "x");
        assert_asks(parent, "ends/shared", counting);
    }
    kept_use(parent, "x");
    assert_int_equal(actor_counted(count), 15);
    actor_end(parent);
}

/* A child that ends without dmutex_destroy() leaves the state of its private mutex, for a week. */
static void delete_states(void)
{
    side_text(the_server->side, "EVAL %s 0",
              "for _, key in ipairs(redis.call('KEYS', 'dmutex:{~*}:state:')) do redis.call('DEL', key) end");
}

/* A private object without a name is another mutex in the child, and free there. */
static void test_a_childs_copy_of_a_private_object_is_free(void **state)
{
    struct actor *parent = actor_start(the_server);

    (void)state;
    actor_do(parent, "0", "init x anonymous lease=%d linger=%d", LONG_LEASE, LONG_LEASE);
    actor_do(parent, "0", "lock x");
    actor_do(parent, "0", "in-child-exit trylock x");
    for (int i = 0; i < 3; i++) {
        actor_do(parent, "0", "unlock x");
        actor_do(parent, "0", "in-child-exit lock x");
        actor_do(parent, "0", "lock x");
    }
    actor_do(parent, "0", "unlock x");
    actor_do(parent, "0", "destroy x");
    actor_end(parent);
    delete_states();
}

/* ---- between the swap and the clock ------------------------------------------------------ */

/* A thread's first lock takes the state lock; the next one stops after its swap. */
static int lock_and_stop(dmutex_t *at, enum stop where)
{
    int result = lock_and_unlock(at);

    stop_at(where);
    return result ? result : dmutex_lock(at);
}

static int lock_and_stop_alone(dmutex_t *at)
{
    return lock_and_stop(at, STOP_CLOCK) || dmutex_unlock(at);
}

static int lock_and_stop_with_all(dmutex_t *at)
{
    return lock_and_stop(at, STOP_CLOCK_ALL) || dmutex_unlock(at);
}

static bool is_kept_now(void)
{
    assert_result(lock_and_unlock(&mutex), 0);
    return is_locked(&mutex);
}

static void keep(const char *name, unsigned lease_ms)
{
    make_handed(&mutex, name, &kinds[0], lease_ms, LONG_LEASE);
    wait_until(is_kept_now());
    wait_until(kept_is_marked(name));
}

/* The whole process stands still between the swap and the clock, until the lease is over and another process owns. */
static void test_a_lock_asks_when_the_lease_ended_after_the_swap(void **state)
{
    const char *name = "ends/clock";

    (void)state;
    other = actor_start(the_server);
    actor_do(other, "0", "init %s lease=%d", name, LONG_LEASE);
    keep(name, SHORT_LEASE);
    errand_begin(&errand, lock_and_stop_with_all, &mutex);
    stop_await();
    promise_within(AT_ONCE);
    actor_do(other, "0", "lock %s", name);
    assert_kept();
    stop_end_all();
    wait_until(errand_is_over(&errand) || waiters_at(the_server->side, name) == 1);
    assert_false(errand_is_over(&errand));
    actor_do(other, "0", "unlock %s", name);
    assert_result(errand_join(&errand), 0);
    assert_result(dmutex_destroy(&mutex), 0);
    actor_end(other);
}

static int lock_and_stop_twice(dmutex_t *at)
{
    int result = lock_and_unlock(at);

    stop_at_both(STOP_CLOCK_ALL, STOP_VISIT);
    return result || dmutex_lock(at) || dmutex_unlock(at);
}

static int losses; /* atomic */

static void note_lost(const char *name, uint64_t token, void *user)
{
    (void)name;
    (void)token;
    (void)user;
    __atomic_add_fetch(&losses, 1, __ATOMIC_RELEASE);
}

/* A thread that has found out that the lease is over has nothing to lose, though it has not come to the state lock. */
static void test_no_loss_is_reported_when_the_lock_has_found_the_end_of_the_lease(void **state)
{
    const char *name = "ends/found";

    (void)state;
    assert_result(dmutex_setlost_np(note_lost, NULL), 0);
    other = actor_start(the_server);
    actor_do(other, "0", "init %s lease=%d", name, LONG_LEASE);
    keep(name, (unsigned)late_stretched_ms(SHORT_LEASE));
    __atomic_store_n(&losses, 0, __ATOMIC_RELEASE); /* on a busy machine a short lease may have ended before */
    errand_begin(&errand, lock_and_stop_twice, &mutex);
    stop_await();
    actor_do(other, "0", "lock %s", name);
    stop_end();
    stop_await();
    wait_until(!line_state_of(name).has_claim || __atomic_load_n(&losses, __ATOMIC_ACQUIRE));
    assert_int_equal(__atomic_load_n(&losses, __ATOMIC_ACQUIRE), 0);
    actor_do(other, "0", "unlock %s", name);
    stop_end_all();
    assert_result(errand_join(&errand), 0);
    assert_result(dmutex_destroy(&mutex), 0);
    assert_result(dmutex_setlost_np(NULL, NULL), 0);
    actor_end(other);
}

static uint64_t token_of_new_hold;

static int lock_anew(dmutex_t *at)
{
    int result = dmutex_lock(at);

    if (!result)
        result = dmutex_token_np(at, &token_of_new_hold);
    return result ? result : dmutex_unlock(at);
}

static uint64_t token_of_errand; /* of the hold in which the thread stays; 0: it is not inside yet.  Atomic */
static bool may_go;              /* atomic */

static int lock_and_stay(dmutex_t *at)
{
    uint64_t token = 0;
    int result = lock_and_stop(at, STOP_CLOCK);

    if (!result)
        result = dmutex_token_np(at, &token);
    __atomic_store_n(&token_of_errand, token, __ATOMIC_RELEASE);
    while (!__atomic_load_n(&may_go, __ATOMIC_ACQUIRE))
        wait_nap();
    return result ? result : dmutex_unlock(at);
}

/*
 * The hold is lost after the swap, and another thread has a new hold, which is kept: the swap belonged to the old hold.
 */
static void test_a_lock_is_of_the_new_hold_when_the_old_was_lost_after_the_swap(void **state)
{
    const char *name = "ends/swap";

    (void)state;
    keep(name, LONG_LEASE);
    errand_begin(&errand, lock_and_stay, &mutex);
    stop_await();
    assert_result(dmutex_forceunlock_np(&mutex), 0);
    wait_until(!line_state_of(name).has_claim);
    assert_result(in_thread(lock_anew, &mutex), 0);
    stop_end_all();
    wait_until(__atomic_load_n(&token_of_errand, __ATOMIC_ACQUIRE));
    assert_true(token_of_errand > token_of_new_hold);
    assert_result(dmutex_trylock(&mutex), EBUSY);
    __atomic_store_n(&may_go, true, __ATOMIC_RELEASE);
    assert_result(errand_join(&errand), 0);
    assert_result(lock_and_unlock(&mutex), 0);
    assert_result(dmutex_destroy(&mutex), 0);
}

/* A hold that another thread has left, and that was kept all the time, is acquired without a question. */
static void test_a_lock_is_acquired_when_nothing_happened_after_the_swap(void **state)
{
    int64_t before;

    (void)state;
    keep("ends/nothing", LONG_LEASE);
    before = client_commands();
    errand_begin(&errand, lock_and_stop_alone, &mutex);
    stop_await();
    assert_result(dmutex_trylock(&mutex), EBUSY);
    stop_end_all();
    assert_result(errand_join(&errand), 0);
    assert_int_equal(client_commands(), before);
    assert_result(dmutex_destroy(&mutex), 0);
}

/* ---- a handler that forks ---------------------------------------------------------------- */

static volatile pid_t copy; /* of the child, made by the handler; 0 in the copy itself */

static void fork_and_go_on(int number)
{
    int kept_errno = errno;

    (void)number;
    copy = fork();
    if (copy == 0)
        stop_end_all();
    errno = kept_errno;
}

static int try_while_a_handler_forks(dmutex_t *at)
{
    int result = lock_and_unlock(at);

    stop_at(STOP_CLOCK);
    if (!result)
        result = dmutex_trylock(at);
    if (copy == 0)
        _exit(result == EBUSY ? 0 : 1);
    return result ? result : dmutex_unlock(at);
}

/* The handler has interrupted a lock after the swap: the lease is the parent's, and not also the copy's. */
static void test_a_copy_does_not_lock_when_a_handler_forks_after_the_swap(void **state)
{
    struct sigaction action = { .sa_handler = fork_and_go_on };

    (void)state;
    keep("ends/handler", LONG_LEASE);
    copy = -1;
    assert_return_code(sigaction(SIGUSR1, &action, NULL), errno);
    errand_begin(&errand, try_while_a_handler_forks, &mutex);
    stop_await();
    assert_int_equal(pthread_kill(errand.thread, SIGUSR1), 0);
    wait_until(copy > 0);
    assert_int_equal(keeper_reap(copy), 0);
    stop_end_all();
    assert_result(errand_join(&errand), 0);
    assert_result(dmutex_destroy(&mutex), 0);
}

/* ---- another server ---------------------------------------------------------------------- */

static int switch_and_stop(dmutex_t *at)
{
    (void)at;
    stop_at(STOP_RELEASED);
    return dm_runtime_switch(NULL, 0);
}

/* Changing servers first gives kept leases back.  A lease that is kept again by then, and entered, is in use. */
static void test_another_server_is_refused_when_a_thread_is_inside_a_kept_lease(void **state)
{
    (void)state;
    keep("ends/server", LONG_LEASE);
    errand_begin(&errand, switch_and_stop, &mutex);
    stop_await();
    wait_until(is_kept_now());
    wait_until(kept_is_marked("ends/server"));
    assert_result(dmutex_lock(&mutex), 0);
    stop_end_all();
    assert_result(errand_join(&errand), EBUSY);
    assert_result(dmutex_unlock(&mutex), 0);
    assert_result(dmutex_destroy(&mutex), 0);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_kill_inside_is_a_death_until_the_process_has_kept),
        cmocka_unit_test(test_a_kill_is_a_death_when_a_robust_mutex_was_handed_on),
        cmocka_unit_test(test_a_kill_in_the_gap_is_no_death),
        cmocka_unit_test(test_another_program_costs_the_others_a_lease),
        cmocka_unit_test(test_a_loss_is_reported_when_the_process_was_stopped_inside),
        cmocka_unit_test(test_a_child_locks_the_shared_object_that_its_parent_keeps),
        cmocka_unit_test(test_a_childs_copy_of_a_private_object_is_free),
        cmocka_unit_test(test_a_lock_asks_when_the_lease_ended_after_the_swap),
        cmocka_unit_test(test_no_loss_is_reported_when_the_lock_has_found_the_end_of_the_lease),
        cmocka_unit_test(test_a_lock_is_of_the_new_hold_when_the_old_was_lost_after_the_swap),
        cmocka_unit_test(test_a_lock_is_acquired_when_nothing_happened_after_the_swap),
        cmocka_unit_test(test_a_copy_does_not_lock_when_a_handler_forks_after_the_swap),
        cmocka_unit_test(test_another_server_is_refused_when_a_thread_is_inside_a_kept_lease),
        cmocka_unit_test(test_nothing_is_left),
    };

    if (getenv(GAP) && argc == 1)
        wait_in_the_gap();
    test_begin(argc, argv);
    return cmocka_run_group_tests(tests, test_group_setup, test_group_teardown);
}
