/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Leases that are renewed, and holds that are lost: the exact time, the receivers of the news, and the rest. This
 * process reaches the server through a proxy; the other processes do not.
 */
#include <hiredis.h>
#include <stdio.h>
#include <string.h>

#include "../lib/testlib.h"

static struct proxy *proxy;
static dmutex_t mutex;

/* The findings of the lost callback; written by the library's thread before `calls` is. */
static struct {
    redisContext *server;
    const char *lock; /* the key of the watched mutex */
    uint64_t token;
    char name[64];
    int64_t boot_ms;
    bool was_locked; /* the server still kept the lock when the callback ran */
    int calls;
} lost;

static int64_t boot_ms(void)
{
    struct timespec now;

    clock_gettime(CLOCK_BOOTTIME, &now);
    return now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

static void note_lost(const char *name, uint64_t token, void *user)
{
    redisReply *reply;

    lost.boot_ms = user == &lost ? boot_ms() : 0;
    lost.token = token;
    snprintf(lost.name, sizeof lost.name, "%s", name);
    reply = redisCommand(lost.server, "EXISTS %s", lost.lock);
    lost.was_locked = reply && reply->integer == 1;
    if (reply)
        freeReplyObject(reply);
    __atomic_add_fetch(&lost.calls, 1, __ATOMIC_RELEASE);
}

static int losses(void)
{
    return __atomic_load_n(&lost.calls, __ATOMIC_ACQUIRE);
}

static int begin_group(void **state)
{
    char url[128];

    the_server = server_start();
    proxy = proxy_start(the_server);
    snprintf(url, sizeof url, "%s&command_timeout=1000", proxy_url(proxy));
    assert_result(dmutex_configure_np(url), 0);
    lost.server = redisConnectUnix(the_server->path);
    assert_true(lost.server && !lost.server->err);
    assert_result(dmutex_setlost_np(note_lost, &lost), 0);
    *state = the_server;
    return 0;
}

static int end_group(void **state)
{
    redisFree(lost.server);
    proxy_end(proxy);
    return test_group_teardown(state);
}

static int begin_test(void **state)
{
    (void)state;
    __atomic_store_n(&lost.calls, 0, __ATOMIC_RELEASE);
    return 0;
}

static int end_test(void **state)
{
    (void)state;
    proxy_pass(proxy);
    return 0;
}

/* The test's thread locks the mutex with this name; the callback checks this lock. */
static void lock_made(const char *name)
{
    static char room[128];

    snprintf(room, sizeof room, "%s", key_of("lock", name));
    lost.lock = room;
    assert_result(dmutex_lock(&mutex), 0);
}

static void hold(const char *name, const struct kind *kind, unsigned lease_ms)
{
    make_mutex(&mutex, name, kind, lease_ms);
    lock_made(name);
}

static const struct kind normal = { PTHREAD_MUTEX_NORMAL, PTHREAD_MUTEX_STALLED, "" };
static const struct kind recursive = { PTHREAD_MUTEX_RECURSIVE, PTHREAD_MUTEX_STALLED, "" };
static const struct kind robust = { PTHREAD_MUTEX_NORMAL, PTHREAD_MUTEX_ROBUST, "" };

/* ---- renewal ----------------------------------------------------------------------------- */

/* Failure 12: a hold of many leases is a hold all the time, and the unlock says 0. */
static void test_a_hold_goes_on_when_it_lasts_for_many_leases(void **state)
{
    (void)state;
    hold("loss/long", &normal, 1000);
    let_pass(4000);
    assert_true(remaining_of(&mutex) > 0);
    assert_result(dmutex_unlock(&mutex), 0);
    assert_int_equal(losses(), 0);
}

/* Failure 9, POSIX scenario 5: a recursive hold is renewed until the last unlock. */
static void test_a_hold_goes_on_when_it_is_unlocked_in_part(void **state)
{
    (void)state;
    hold("loss/deep", &recursive, 1000);
    assert_result(dmutex_lock(&mutex), 0);
    assert_result(dmutex_lock(&mutex), 0);
    assert_result(dmutex_unlock(&mutex), 0);
    assert_result(dmutex_unlock(&mutex), 0);
    let_pass(2500);
    assert_int_equal(holdcount_of(&mutex), 1);
    assert_true(is_locked(&mutex));
    assert_result(dmutex_unlock(&mutex), 0);
    assert_result(dmutex_unlock(&mutex), EPERM);
    assert_int_equal(losses(), 0);
}

/* Failure 5: a network that is away for less than a lease costs no hold, and later leases are renewed. */
static void test_a_hold_goes_on_when_the_network_is_gone_for_a_while(void **state)
{
    (void)state;
    for (int way = 0; way < 2; way++) {
        hold("loss/while", &normal, 1500);
        if (way == 0) {
            proxy_hold(proxy, PROXY_BOTH_WAYS, PROXY_ALL);
        } else {
            proxy_refuse(proxy);
            proxy_cut(proxy);
        }
        let_pass(750); /* a renewal was due at 500 */
        proxy_pass(proxy);
        let_pass(800); /* beyond the earlier certain time */
        assert_true(remaining_of(&mutex) > 0);
        assert_result(dmutex_unlock(&mutex), 0);
        hold("loss/while", &normal, 1000);
        let_pass(1400);
        assert_true(remaining_of(&mutex) > 0);
        assert_result(dmutex_unlock(&mutex), 0);
    }
    assert_int_equal(losses(), 0);
}

/* dmutex_renew_np() restarts the max-hold; without the call the hold ends there. */
static void test_a_hold_goes_on_beyond_max_hold_when_renewed_by_hand(void **state)
{
    dmutexattr_t attr;

    (void)state;
    assert_result(dmutexattr_init(&attr), 0);
    assert_result(dmutexattr_setmaxhold_np(&attr, 2000), 0);
    assert_result(dmutexattr_setlease_np(&attr, 1000), 0);
    assert_result(dmutex_init_np(&mutex, "loss/by-hand", &attr), 0);
    lost.lock = "dmutex:{loss}:lock:by-hand";
    assert_result(dmutex_lock(&mutex), 0);
    for (int i = 0; i < 4; i++) {
        let_pass(800);
        assert_result(dmutex_renew_np(&mutex), 0);
    }
    wait_until(losses() == 1);
    assert_result(dmutex_renew_np(&mutex), EPERM);
    assert_result(dmutex_unlock(&mutex), EPERM);
}

/* dmutex_renew_np() without an answer says so, and the hold is unchanged. */
static void test_renew_says_enolck_when_there_is_no_answer(void **state)
{
    (void)state;
    hold("loss/no-answer", &normal, 20000);
    proxy_hold(proxy, PROXY_TO_CLIENT, PROXY_COMMANDS);
    assert_result(dmutex_renew_np(&mutex), ENOLCK);
    assert_non_null(strchr(dmutex_strerror_np(), ' '));
    assert_true(remaining_of(&mutex) > 0);
    proxy_pass(proxy);
    wait_until(dmutex_renew_np(&mutex) == 0);
    assert_result(dmutex_unlock(&mutex), 0);
    assert_int_equal(losses(), 0);
}

/* ---- loss -------------------------------------------------------------------------------- */

/* The answers of a lost hold: nothing is left but the old token. */
static void check_lost(uint64_t token)
{
    assert_int_equal(remaining_of(&mutex), 0);
    assert_int_equal(holdcount_of(&mutex), 0);
    assert_true(token_of(&mutex) == token);
    assert_result(dmutex_renew_np(&mutex), EPERM);
    assert_result(dmutex_unlock(&mutex), EPERM);
    assert_result(dmutex_unlock(&mutex), EPERM);
}

/*
 * Failure 6: without any network the loss is reported after 0.8 of a lease, no earlier, and while the server still
 * gives the lock to nobody else.
 */
static void test_a_loss_is_reported_before_another_can_own_when_the_network_is_gone(void **state)
{
    struct actor *b = actor_start(the_server);
    int64_t before_ms;
    uint64_t token;

    (void)state;
    actor_do(b, "0", "init loss/gone lease=500");
    before_ms = boot_ms();
    hold("loss/gone", &normal, 1500);
    token = token_of(&mutex);
    proxy_hold(proxy, PROXY_BOTH_WAYS, PROXY_ALL);
    actor_send(b, "lock loss/gone");
    wait_until(losses() == 1);
    assert_true(lost.boot_ms >= before_ms + 1500 * 8 / 10);
    assert_true(lost.was_locked);
    assert_true(lost.token == token);
    assert_string_equal(lost.name, "loss/gone");
    check_lost(token);
    actor_expect(b, "0");
    proxy_pass(proxy); /* the held-back commands reach the server now: the lock is b's, and stays so */
    wait_until(dmutex_trylock(&mutex) == EBUSY);
    assert_true(actor_value(b, "remaining loss/gone") > 0);
    actor_do(b, "0", "renew loss/gone");
    actor_do(b, "0", "unlock loss/gone");
    actor_end(b);
    assert_int_equal(losses(), 1);
}

/* Several holds are each lost with their own lease, and each is reported. */
static void test_each_loss_is_reported_when_many_are_lost(void **state)
{
    dmutex_t many[20];

    (void)state;
    lost.lock = "dmutex:{loss}:lock:none";
    for (int i = 0; i < 20; i++) {
        char name[32];

        snprintf(name, sizeof name, "loss/many%d", i);
        make_normal(&many[i], name, (unsigned)(300 + 20 * i));
        assert_result(dmutex_lock(&many[i]), 0);
    }
    proxy_hold(proxy, PROXY_BOTH_WAYS, PROXY_ALL);
    wait_until(losses() == 20);
    for (int i = 0; i < 20; i++)
        assert_result(dmutex_unlock(&many[i]), EPERM);
    proxy_pass(proxy);
}

/* POSIX scenario 2: at max-hold the lock is another's, and the late unlock touches nothing. */
static void test_a_hold_is_lost_at_max_hold(void **state)
{
    struct actor *b = actor_start(the_server);
    int64_t before_ms = boot_ms();
    dmutexattr_t attr;
    uint64_t token;

    (void)state;
    actor_do(b, "0", "init loss/max");
    lost.lock = "dmutex:{loss}:lock:max";
    assert_result(dmutexattr_init(&attr), 0);
    assert_result(dmutexattr_setmaxhold_np(&attr, 300), 0);
    assert_result(dmutexattr_setrobust(&attr, PTHREAD_MUTEX_ROBUST), 0);
    assert_result(dmutex_init_np(&mutex, "loss/max", &attr), 0);
    assert_result(dmutex_lock(&mutex), 0);
    token = token_of(&mutex);
    actor_send(b, "lock loss/max");
    wait_until(losses() == 1);
    assert_true(lost.boot_ms >= before_ms + 300);
    actor_expect(b, "0");
    assert_result(dmutex_consistent(&mutex), EINVAL);
    check_lost(token);
    assert_result(in_thread(dmutex_trylock, &mutex), EBUSY);
    assert_true(actor_value(b, "remaining loss/max") > 0);
    actor_do(b, "0", "unlock loss/max");
    actor_end(b);
}

/* Every call for more of a lost recursive hold is refused, until an unlock has said so. */
static void unlock_lost(const struct kind *kind)
{
    dcond_t cond = DCOND_INITIALIZER("loss/cond");

    if (kind->type != PTHREAD_MUTEX_RECURSIVE)
        return;
    for (int w = 0; w < WAY_COUNT; w++)
        assert_result(ways_to_lock[w].lock(&mutex), EPERM);
    assert_result(dcond_wait(&cond, &mutex), EPERM);
    assert_int_equal(holdcount_of(&mutex), 0);
    assert_result(dmutex_unlock(&mutex), EPERM);
}

/*
 * Attack C9. For every type except recursive, the next lock ignores a lost hold: it gets a fresh hold, with a higher
 * token. An inner lock must not start afresh in a section whose outer hold was lost.
 */
static void test_lock_is_fresh_when_the_hold_before_was_lost(void **state)
{
    (void)state;
    for (int i = 0; i < KIND_COUNT; i++) {
        int calls = losses();
        uint64_t token;

        hold("loss/fresh", &kinds[i], 200);
        token = token_of(&mutex);
        proxy_hold(proxy, PROXY_BOTH_WAYS, PROXY_ALL);
        wait_until(losses() == calls + 1);
        proxy_pass(proxy);
        unlock_lost(&kinds[i]);
        if (kinds[i].robust) {
            assert_result(dmutex_lock(&mutex), EOWNERDEAD); /* a death for all later owners */
            assert_result(dmutex_consistent(&mutex), 0);
        } else {
            assert_result(dmutex_lock(&mutex), 0);
        }
        assert_int_equal(holdcount_of(&mutex), 1);
        assert_true(token_of(&mutex) > token);
        assert_result(dmutex_unlock(&mutex), 0);
    }
}

/* ---- keys that go away ------------------------------------------------------------------- */

/* Failure 4: a deleted lock is put back, and no process notices. */
static void test_the_lock_is_put_back_when_its_key_was_deleted(void **state)
{
    uint64_t token;

    (void)state;
    hold("loss/deleted", &robust, 600);
    token = token_of(&mutex);
    assert_int_equal(side_int(the_server->side, "DEL %s", lost.lock), 1);
    wait_until(side_int(the_server->side, "EXISTS %s", lost.lock) == 1);
    assert_true(token_of(&mutex) == token);
    assert_result(dmutex_unlock(&mutex), 0);
    assert_result(dmutex_lock(&mutex), 0);
    assert_result(dmutex_unlock(&mutex), 0);
    assert_int_equal(losses(), 0);
}

/* POSIX scenario 50: the same if all data is gone; tokens keep rising. */
static void test_the_lock_is_put_back_when_all_data_is_gone(void **state)
{
    uint64_t token;

    (void)state;
    hold("loss/flushed", &robust, 600);
    token = token_of(&mutex);
    side_text(the_server->side, "FLUSHALL");
    wait_until(side_int(the_server->side, "EXISTS %s", lost.lock) == 1);
    assert_result(in_thread(dmutex_trylock, &mutex), EBUSY);
    assert_true(token_of(&mutex) == token);
    assert_result(dmutex_unlock(&mutex), 0);
    assert_result(dmutex_lock(&mutex), 0);
    assert_true(token_of(&mutex) > token);
    assert_result(dmutex_unlock(&mutex), 0);
    assert_int_equal(losses(), 0);
}

/* Failure 4: a waiter that came first has the lock; the former owner learns of the loss by renewal. */
static void test_the_owner_is_notified_when_a_waiter_came_first(void **state)
{
    struct actor *b = actor_start(the_server);
    uint64_t token;

    (void)state;
    actor_do(b, "0", "init loss/first robust lease=1000");
    hold("loss/first", &robust, 3000);
    token = token_of(&mutex);
    actor_send(b, "lock loss/first");
    wait_until(waiters_of(&mutex) == 1);
    assert_int_equal(side_int(the_server->side, "DEL %s", lost.lock), 1);
    side_set_bound(the_server->side, "bound", 3000 / 3 + 1000);
    actor_expect(b, "EOWNERDEAD");
    wait_until(losses() == 1);
    assert_false(side_is_control_over(the_server->side, "bound"));
    check_lost(token);
    assert_true(actor_value(b, "remaining loss/first") > 0);
    actor_do(b, "0", "consistent loss/first");
    actor_do(b, "0", "unlock loss/first");
    actor_end(b);
}

/* An unlock that was too late is a loss: the unlock says so, and the callback is called. */
static void test_a_loss_is_reported_when_an_unlock_finds_no_lock(void **state)
{
    uint64_t token;

    (void)state;
    make_fair(&mutex, "loss/unlock", &normal, 20000); /* the unlock asks the server */
    lock_made("loss/unlock");
    token = token_of(&mutex);
    side_text(the_server->side, "FLUSHALL");
    assert_result(dmutex_unlock(&mutex), EPERM);
    wait_until(losses() == 1);
    assert_true(lost.token == token);
    assert_result(dmutex_unlock(&mutex), EPERM);
    assert_result(dmutex_lock(&mutex), 0);
    assert_result(dmutex_unlock(&mutex), 0);
}

#define LOSS_TEST(test) cmocka_unit_test_setup_teardown(test, begin_test, end_test)

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        LOSS_TEST(test_a_hold_goes_on_when_it_lasts_for_many_leases),
        LOSS_TEST(test_a_hold_goes_on_when_it_is_unlocked_in_part),
        LOSS_TEST(test_a_hold_goes_on_when_the_network_is_gone_for_a_while),
        LOSS_TEST(test_a_hold_goes_on_beyond_max_hold_when_renewed_by_hand),
        LOSS_TEST(test_renew_says_enolck_when_there_is_no_answer),
        LOSS_TEST(test_a_loss_is_reported_before_another_can_own_when_the_network_is_gone),
        LOSS_TEST(test_each_loss_is_reported_when_many_are_lost),
        LOSS_TEST(test_a_hold_is_lost_at_max_hold),
        LOSS_TEST(test_lock_is_fresh_when_the_hold_before_was_lost),
        LOSS_TEST(test_the_lock_is_put_back_when_its_key_was_deleted),
        LOSS_TEST(test_the_lock_is_put_back_when_all_data_is_gone),
        LOSS_TEST(test_the_owner_is_notified_when_a_waiter_came_first),
        LOSS_TEST(test_a_loss_is_reported_when_an_unlock_finds_no_lock),
    };

    test_begin(argc, argv);
    return cmocka_run_group_tests(tests, begin_group, end_group);
}
