/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Moments that nobody can hit from outside: between an answer and its thread reading it, a grant and the return from
 * lock, one question and the next.  The program contains the library's parts, and replaces a few of their functions
 * with the linker's --wrap: a test's hook runs there, in the thread that calls the function.
 */
#include <malloc.h>
#include <pthread.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "link/turns.h"
#include "pair.h"
#include "process/claims/steps.h"
#include "process/keep/loop.h"
#include "process/life/runtime.h"
#include "stores/redis/parts.h"

#define NAMES 150     /* more than a batch */
#define NAPS 20       /* during which a thread that does not wait continues */
#define SPOILED 0xa5u /* in every byte of freed memory: these bytes make no valid address */

/* ---- the functions that are wrapped ------------------------------------------------------ */

static void (*behind_acquire)(void); /* runs once, with the answer in hand */
static void (*before_renew)(void);   /* runs once, and then there is no answer */
static int renewals;                 /* by a call */
static void (*before_end)(void);     /* runs once, when a switch ends the connections */
static __thread bool is_victim;      /* the thread that the rest is about */
static bool must_keep, is_kept;      /* a grant has ended the sleep; the thread stays there */
static bool is_past_deadline;        /* the server has settled the deadline of a wait */
static bool is_settled;              /* the server has settled a cancelled wait */

static void run_once(void (**hook)(void))
{
    void (*run)(void) = *hook;

    *hook = NULL;
    if (run)
        run();
}

void __real_free(void *memory);
void __wrap_free(void *memory);
void __wrap_free(void *memory)
{
    if (memory)
        memset(memory, SPOILED, malloc_usable_size(memory));
    __real_free(memory);
}

struct dm_answer __real_dm_redis_ask(struct dm_store *store, const struct dm_question *question,
                                     const struct dm_deadline *deadline, char ret_reason[DM_REASON_ROOM]);
struct dm_answer __wrap_dm_redis_ask(struct dm_store *store, const struct dm_question *question,
                                     const struct dm_deadline *deadline, char ret_reason[DM_REASON_ROOM]);
struct dm_answer __wrap_dm_redis_ask(struct dm_store *store, const struct dm_question *question,
                                     const struct dm_deadline *deadline, char ret_reason[DM_REASON_ROOM])
{
    struct dm_answer answer;

    renewals += question->op == DM_OP_RENEW;
    if (question->op == DM_OP_RENEW && before_renew) {
        run_once(&before_renew);
        return (struct dm_answer){ .verdict = DM_SAYS_NOTHING };
    }
    answer = __real_dm_redis_ask(store, question, deadline, ret_reason);
    if (question->op == DM_OP_ACQUIRE)
        run_once(&behind_acquire);
    if (question->op == DM_OP_COND_CANCEL)
        __atomic_store_n(&is_past_deadline, true, __ATOMIC_RELEASE);
    return answer;
}

void __real_dm_node_end(struct dm_node *node);
void __wrap_dm_node_end(struct dm_node *node);
void __wrap_dm_node_end(struct dm_node *node)
{
    run_once(&before_end);
    __real_dm_node_end(node);
}

/* The victim sleeps without cancellation once a cancelled wait has been settled, and not before. */
bool __real_dm_link_listen(struct dm_link *link, const struct dm_deadline *deadline, int cancel_state);
bool __wrap_dm_link_listen(struct dm_link *link, const struct dm_deadline *deadline, int cancel_state);
bool __wrap_dm_link_listen(struct dm_link *link, const struct dm_deadline *deadline, int cancel_state)
{
    bool is_woken;

    if (is_victim && cancel_state == PTHREAD_CANCEL_DISABLE)
        __atomic_store_n(&is_settled, true, __ATOMIC_RELEASE);
    is_woken = __real_dm_link_listen(link, deadline, cancel_state);
    while (is_victim && is_woken && __atomic_load_n(&must_keep, __ATOMIC_ACQUIRE)) {
        __atomic_store_n(&is_kept, true, __ATOMIC_RELEASE);
        wait_nap();
    }
    return is_woken;
}

/* ---- a victim ---------------------------------------------------------------------------- */

/* A thread that waits on the condition, and is cancelled. */
struct victim {
    pthread_t thread;
    int timeout_ms; /* 0: none */
    int unlocked;
};

static void give_back(void *user)
{
    struct victim *victim = user;

    victim->unlocked = dmutex_unlock(&mutex);
}

static void *suffer(void *user)
{
    struct victim *victim = user;
    struct timespec until = wait_time_in_ms(CLOCK_MONOTONIC, victim->timeout_ms);

    is_victim = true;
    dmutex_lock(&mutex);
    pthread_cleanup_push(give_back, victim);
    if (victim->timeout_ms)
        dcond_clockwait(&cond, &mutex, CLOCK_MONOTONIC, &until);
    else
        dcond_wait(&cond, &mutex);
    pthread_cleanup_pop(1);
    return NULL;
}

static void begin_victim(struct victim *victim, int timeout_ms)
{
    *victim = (struct victim){ .timeout_ms = timeout_ms, .unlocked = -1 };
    must_keep = is_kept = is_past_deadline = is_settled = false;
    assert_int_equal(pthread_create(&victim->thread, NULL, suffer, victim), 0);
}

static bool is_true(const bool *flag)
{
    return __atomic_load_n(flag, __ATOMIC_ACQUIRE);
}

/* Cancels the victim, which waits for the mutex, and returns when the victim has begun to come back. */
static void cancel_victim(struct victim *victim)
{
    assert_int_equal(pthread_cancel(victim->thread), 0);
    wait_until(is_true(&is_settled));
}

static void end_victim(struct victim *victim)
{
    void *end;

    assert_int_equal(pthread_join(victim->thread, &end), 0);
    assert_ptr_equal(end, PTHREAD_CANCELED);
    assert_result(victim->unlocked, 0);
}

/* True if the signal came before the victim's deadline. */
static bool is_signalled_in_time(struct victim *victim, int timeout_ms, struct actor *other)
{
    begin_victim(victim, timeout_ms);
    wait_until(on_condition() == 1);
    begin_wait(other);
    assert_result(dmutex_lock(&mutex), 0);
    assert_result(dcond_signal(&cond), 0);
    if (on_condition() == 1)
        return true;
    assert_result(dmutex_unlock(&mutex), 0);
    pthread_join(victim->thread, NULL);
    assert_back(other, "0");
    return false;
}

/* Finding 51: a signal that came before the deadline passes on when the wait is cancelled after the deadline. */
static void test_a_signal_passes_on_when_its_waiter_is_cancelled_after_the_deadline(void **state)
{
    struct victim victim;
    struct actor *other;
    int timeout_ms = 250;

    (void)state;
    if (IS_THREAD_SANITIZED)
        return; /* a thread is cancelled */
    make_both("late", &normal, LONG_LEASE);
    other = start_actor(&normal, LONG_LEASE);
    while (!is_signalled_in_time(&victim, timeout_ms, other))
        timeout_ms *= 2;
    wait_until(is_true(&is_past_deadline));
    cancel_victim(&victim);
    promise_within(AT_ONCE);
    assert_result(dmutex_unlock(&mutex), 0);
    end_victim(&victim);
    assert_back(other, "0");
    assert_kept();
    actor_end(other);
}

/* True if a thread of this process is granted a hold that has been lost before the thread could enter. */
static bool is_lost_before_entry(void)
{
    struct dm_runtime *runtime = dm_runtime_peek();
    const struct dm_claim *claim;

    dm_state_lock();
    claim = runtime->registry.claims;
    while (claim && claim->hold.phase != DM_LOST)
        claim = claim->next;
    dm_state_unlock();
    return claim != NULL;
}

/* Finding 51: the same if the hold that the signal led to was lost before the return: the thread has asked again. */
static void test_a_signal_passes_on_when_its_waiter_has_lost_the_hold_and_is_cancelled(void **state)
{
    struct actor *other, *holder;
    struct victim victim;

    (void)state;
    if (IS_THREAD_SANITIZED)
        return; /* a thread is cancelled */
    make_both("anew", &normal, LONG_LEASE);
    other = start_actor(&normal, LONG_LEASE);
    holder = start_actor(&normal, LONG_LEASE);
    begin_victim(&victim, 0);
    wait_until(on_condition() == 1);
    begin_wait(other);
    __atomic_store_n(&must_keep, true, __ATOMIC_RELEASE);
    assert_result(dmutex_lock(&mutex), 0);
    assert_result(dcond_signal(&cond), 0);
    assert_result(dmutex_unlock(&mutex), 0);
    wait_until(is_true(&is_kept));
    actor_send(holder, "lock %s", mutex_name);
    wait_until(in_queue() == 1);
    assert_result(dmutex_forceunlock_np(&mutex), 0);
    actor_expect(holder, "0");
    wait_until(is_lost_before_entry());
    __atomic_store_n(&must_keep, false, __ATOMIC_RELEASE);
    wait_until(in_queue() == 1);
    cancel_victim(&victim);
    promise_within(AT_ONCE);
    actor_do(holder, "0", "unlock %s", mutex_name);
    end_victim(&victim);
    assert_back(other, "0");
    assert_kept();
    actor_end(other);
    actor_end(holder);
}

/* ---- a server that comes in between ------------------------------------------------------ */

static uint64_t server_number(void)
{
    return dm_store_origin(dm_runtime_peek()->store, NULL).number;
}

/* The server comes back empty, and is connected. */
static void restart_server(void)
{
    uint64_t before = server_number();

    server_kill(the_server);
    server_restart(the_server);
    wait_until(server_number() != before);
}

/* Finding 50: "owned" from a server that is gone when the thread reads the answer is not the next server's answer. */
static void test_an_unlock_is_no_loss_when_owned_is_read_after_a_restart(void **state)
{
    (void)state;
    make_normal(&mutex, "moment/restart", LONG_LEASE);
    behind_acquire = restart_server;
    assert_result(dmutex_lock(&mutex), 0);
    assert_null(behind_acquire);
    assert_result(dmutex_unlock(&mutex), 0);
}

/* ---- the loop thread --------------------------------------------------------------------- */

static bool is_through_gate;

/* As fork() does, in its own thread, because the gate may never be free. */
static void *go_through_gate(void *user)
{
    (void)user;
    dm_loop_fork_prepare();
    dm_loop_fork_parent();
    __atomic_store_n(&is_through_gate, true, __ATOMIC_RELEASE);
    return NULL;
}

static void note_names_to_serve(struct dm_runtime *runtime)
{
    dm_state_lock();
    for (int i = 0; i < NAMES; i++) {
        char key[32];

        snprintf(key, sizeof key, "nmoment/serve%d", i);
        dm_step_must_serve(runtime, dm_registry_name(&runtime->registry, key), i == NAMES - 1);
    }
    dm_state_unlock();
}

static unsigned names_to_serve(struct dm_runtime *runtime)
{
    unsigned count;

    dm_state_lock();
    count = runtime->registry.names_to_serve;
    dm_state_unlock();
    return count;
}

/* Finding 53: names that cannot be served without a server do not keep the loop thread at the gate. */
static void test_the_loop_goes_on_when_more_than_a_batch_cannot_be_served(void **state)
{
    struct dm_runtime *runtime = dm_runtime_peek();
    pthread_t thread;

    (void)state;
    make_normal(&mutex, "moment/server", LONG_LEASE);
    server_kill(the_server);
    note_names_to_serve(runtime);
    assert_int_equal(pthread_create(&thread, NULL, go_through_gate, NULL), 0);
    wait_until(is_true(&is_through_gate));
    pthread_join(thread, NULL);
    server_restart(the_server);
    assert_result(dmutex_lock(&mutex), 0);
    assert_result(dmutex_unlock(&mutex), 0);
    wait_until(names_to_serve(runtime) == 0);
}

/* ---- a record that ends ------------------------------------------------------------------ */

#define SHORT_HOLD 50

static dmutex_t twin; /* of the same name as `mutex` */
static bool is_held, may_destroy;

static void *hold_too_long(void *user)
{
    int *result = user;

    *result = dmutex_lock(&twin);
    __atomic_store_n(&is_held, true, __ATOMIC_RELEASE);
    while (!is_true(&may_destroy))
        wait_nap();
    if (*result == 0)
        *result = dmutex_destroy(&twin);
    return NULL;
}

/* True once the server has confirmed the end of the lost hold; the thread has not noticed. */
static bool is_lost_for_good(void)
{
    struct dm_runtime *runtime = dm_runtime_peek();
    const struct dm_claim *claim;
    bool is_so;

    dm_state_lock();
    claim = runtime->registry.claims;
    is_so = claim && claim->hold.phase == DM_LOST && !claim->hold.back.is_pending;
    dm_state_unlock();
    return is_so;
}

static void begin_twins(void)
{
    dmutexattr_t attr;

    assert_result(dmutexattr_init(&attr), 0);
    assert_result(dmutexattr_setmaxhold_np(&attr, SHORT_HOLD), 0);
    assert_result(dmutex_init_np(&mutex, "moment/twin", &attr), 0);
    assert_result(dmutex_init_np(&twin, "moment/twin", &attr), 0);
    assert_result(dmutexattr_destroy(&attr), 0);
}

/* Finding 55: the end of a lost hold ends the record that the destroyed object of the same name has forgotten. */
static void test_destroy_reads_no_freed_record_when_it_ends_a_lost_hold(void **state)
{
    pthread_t thread;
    int result = -1;

    (void)state;
    begin_twins();
    assert_int_equal(pthread_create(&thread, NULL, hold_too_long, &result), 0);
    wait_until(is_true(&is_held) && is_lost_for_good());
    assert_result(dmutex_destroy(&mutex), 0);
    __atomic_store_n(&may_destroy, true, __ATOMIC_RELEASE);
    pthread_join(thread, NULL);
    assert_result(result, 0);
}

/* ---- a renewal that is repeated ---------------------------------------------------------- */

/* As a message of force does, while the renewal is under way. */
static void lose_hold(void)
{
    struct dm_runtime *runtime = dm_runtime_peek();

    dm_state_lock();
    dm_step_kind(runtime, runtime->registry.claims, DM_EV_TOLD_LOST);
    dm_state_unlock();
}

/* True if the process holds nothing, waits for nothing, and has nothing to report. */
static bool is_quiet(void)
{
    struct dm_runtime *runtime = dm_runtime_peek();
    bool has_claims;

    dm_state_lock();
    has_claims = runtime->registry.claims != NULL;
    dm_state_unlock();
    return !has_claims;
}

/* A renewal without an answer is not sent again for a hold that is lost: on a new server the hold would come back. */
static void test_a_renewal_is_not_repeated_when_the_hold_was_lost_since(void **state)
{
    (void)state;
    make_normal(&mutex, "moment/renew", LONG_LEASE);
    assert_result(dmutex_lock(&mutex), 0);
    before_renew = lose_hold;
    renewals = 0;
    assert_result(dmutex_renew_np(&mutex), EPERM);
    assert_int_equal(renewals, 1);
    assert_result(dmutex_unlock(&mutex), EPERM);
    wait_until(is_quiet()); /* the loss is reported */
}

/* ---- another server ---------------------------------------------------------------------- */

static bool is_telling, may_return;
static int losses;

/* The first loss keeps the loop thread. */
static void note_lost(const char *name, uint64_t token, void *user)
{
    (void)name;
    (void)token;
    (void)user;
    __atomic_store_n(&is_telling, true, __ATOMIC_RELEASE);
    while (!is_true(&may_return))
        wait_nap();
    __atomic_add_fetch(&losses, 1, __ATOMIC_RELEASE);
}

static void hold_for_ms(dmutex_t *object, const char *name, unsigned ms)
{
    dmutexattr_t attr;

    assert_result(dmutexattr_init(&attr), 0);
    assert_result(dmutexattr_setmaxhold_np(&attr, ms), 0);
    assert_result(dmutex_init_np(object, name, &attr), 0);
    assert_result(dmutexattr_destroy(&attr), 0);
    assert_result(dmutex_lock(object), 0);
}

/* A loss that has not been reported yet keeps the process at its server: nobody would report it afterwards. */
static void test_a_loss_is_reported_when_the_server_is_changed_before_the_report(void **state)
{
    (void)state;
    assert_result(dmutex_setlost_np(note_lost, NULL), 0);
    hold_for_ms(&mutex, "moment/told", SHORT_HOLD);
    wait_until(is_true(&is_telling));
    hold_for_ms(&twin, "moment/untold", SHORT_HOLD);
    let_pass(2 * SHORT_HOLD);
    assert_result(dm_runtime_switch(NULL, 1), EBUSY);
    __atomic_store_n(&may_return, true, __ATOMIC_RELEASE);
    wait_until(dm_runtime_switch(NULL, 1000) == 0);
    assert_int_equal(__atomic_load_n(&losses, __ATOMIC_ACQUIRE), 2);
    assert_result(dmutex_setlost_np(NULL, NULL), 0);
}

/* A thread that forks, and the child's answer: how many descriptors the child has. */
struct forker {
    pthread_t thread;
    pid_t tid, child;
};

static void *fork_and_count(void *user)
{
    struct forker *forker = user;
    pid_t child;

    __atomic_store_n(&forker->tid, gettid(), __ATOMIC_RELEASE);
    child = keeper_fork();
    if (child == 0)
        _exit(open_descriptors());
    __atomic_store_n(&forker->child, child, __ATOMIC_RELEASE);
    return NULL;
}

static int end_forker(struct forker *forker)
{
    pthread_join(forker->thread, NULL);
    return WEXITSTATUS(keeper_reap(forker->child));
}

static struct forker meanwhile;

/* True if the fork is done, or has waited so long that it must be waiting for the end of the switch. */
static bool is_forked_or_waits(void)
{
    static int naps;
    pid_t tid = __atomic_load_n(&meanwhile.tid, __ATOMIC_ACQUIRE);

    naps = tid && proc_state(tid) == 'S' ? naps + 1 : 0;
    return __atomic_load_n(&meanwhile.child, __ATOMIC_ACQUIRE) || naps == NAPS;
}

static void fork_meanwhile(void)
{
    pthread_create(&meanwhile.thread, NULL, fork_and_count, &meanwhile);
    wait_until(is_forked_or_waits());
}

/* A child that is born while the process changes its server has none of the library's descriptors. */
static void test_a_child_has_no_sockets_when_the_server_changes_during_the_fork(void **state)
{
    struct forker before = { 0 };
    int usual;

    (void)state;
    make_normal(&mutex, "moment/switched", LONG_LEASE);
    assert_result(dmutex_lock(&mutex), 0);
    assert_result(dmutex_unlock(&mutex), 0);
    assert_int_equal(pthread_create(&before.thread, NULL, fork_and_count, &before), 0);
    usual = end_forker(&before);
    before_end = fork_meanwhile;
    wait_until(dm_runtime_switch(NULL, 1000) == 0);
    assert_within(end_forker(&meanwhile), 1, usual);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_signal_passes_on_when_its_waiter_is_cancelled_after_the_deadline),
        cmocka_unit_test(test_a_signal_passes_on_when_its_waiter_has_lost_the_hold_and_is_cancelled),
        cmocka_unit_test(test_an_unlock_is_no_loss_when_owned_is_read_after_a_restart),
        cmocka_unit_test(test_the_loop_goes_on_when_more_than_a_batch_cannot_be_served),
        cmocka_unit_test(test_destroy_reads_no_freed_record_when_it_ends_a_lost_hold),
        cmocka_unit_test(test_a_renewal_is_not_repeated_when_the_hold_was_lost_since),
        cmocka_unit_test(test_a_loss_is_reported_when_the_server_is_changed_before_the_report),
        cmocka_unit_test(test_a_child_has_no_sockets_when_the_server_changes_during_the_fork),
        cmocka_unit_test(test_nothing_is_left),
    };

    test_begin(argc, argv);
    return cmocka_run_group_tests(tests, test_group_setup, test_group_teardown);
}
