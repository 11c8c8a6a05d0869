/* SPDX-License-Identifier: BSD-2-Clause */
/* The server has acted, and the answer was lost, or the other way round: scenarios 12 and 13. */
#include <string.h>

#include "../lib/testlib.h"

/*
 * One process, A, has a bad network; the test's own network is good. A's lease is 10 s: what happens before a control
 * of 5 s ends did not wait for the lease.
 */
struct scene {
    struct proxy *proxy;
    struct actor *a;
};

static void begin_scene(struct scene *scene)
{
    scene->proxy = proxy_start(the_server);
    scene->a = actor_start_at(proxy_url(scene->proxy));
    actor_open_inbox(scene->a);
    assert_int_equal(proxy_open(scene->proxy), 2);
    side_set_bound(the_server->side, "unclear", 5000);
}

static void end_scene(struct scene *scene)
{
    assert_false(side_is_control_over(the_server->side, "unclear"));
    proxy_pass(scene->proxy);
    actor_do(scene->a, "0 0", "lost");
    actor_end(scene->a);
    proxy_end(scene->proxy);
}

/* A owns the mutex once, also on the server; after one unlock the mutex is free. */
static void check_owned_once(struct scene *scene, const char *name)
{
    dmutex_t mutex;

    assert_result(dmutex_init_np(&mutex, name, NULL), 0);
    assert_int_equal(actor_value(scene->a, "holdcount %s", name), 1);
    assert_string_equal(side_text(the_server->side, "HVALS %s", key_of("lock", name)), "1");
    assert_result(dmutex_trylock(&mutex), EBUSY);
    assert_int_equal(waiters_of(&mutex), 0);
    actor_do(scene->a, "0", "unlock %s", name);
    actor_do(scene->a, "EPERM", "unlock %s", name);
    wait_until(!is_locked(&mutex));
    assert_result(dmutex_trylock(&mutex), 0);
    assert_result(dmutex_unlock(&mutex), 0);
}

static const enum proxy_fault cuts[] = { PROXY_SWALLOW_AND_CUT, PROXY_CUT_MID_REPLY, PROXY_CUT_COMMAND,
                                         PROXY_CUT_MID_COMMAND };
#define CUTS (sizeof cuts / sizeof cuts[0])

/*
 * POSIX scenario 12: the connection breaks before, in or after the script that takes the lock: the retry finds A the
 * owner, at depth 1, by each way to lock and for each kind.
 */
static void test_lock_owns_once_when_its_answer_is_lost(void **state)
{
    const char *const ways[] = { "timedlock", "clocklock", "lock" };
    struct scene scene;
    int serial = 0;

    (void)state;
    begin_scene(&scene);
    for (size_t cut = 0; cut < CUTS; cut++) {
        for (int kind = 0; kind < KIND_COUNT; kind++) {
            char name[32];

            snprintf(name, sizeof name, "unclear/lock%d", ++serial);
            actor_do(scene.a, "0", "init %s%s", name, kinds[kind].words);
            proxy_break(scene.proxy, cuts[cut], PROXY_COMMANDS, key_of("lock", name), 1);
            actor_do(scene.a, "0", "%s %s 20000", ways[serial % 3], name);
            assert_int_equal(proxy_hits(scene.proxy), 1);
            check_owned_once(&scene, name);
        }
    }
    end_scene(&scene);
}

/* The same for the try: 0 with the lock, within command_timeout; the retry finds its own lock. */
static void test_trylock_owns_once_when_its_answer_is_lost(void **state)
{
    struct scene scene;

    (void)state;
    begin_scene(&scene);
    for (size_t cut = 0; cut < CUTS; cut++) {
        char name[32];

        snprintf(name, sizeof name, "unclear/try%zu", cut);
        proxy_break(scene.proxy, cuts[cut], PROXY_COMMANDS, key_of("lock", name), 1);
        actor_do(scene.a, "0", "trylock %s", name);
        assert_int_equal(proxy_hits(scene.proxy), 1);
        check_owned_once(&scene, name);
    }
    end_scene(&scene);
}

/* A try without an answer is ENOLCK and holds nothing; the server's grant is undone. */
static void test_trylock_holds_nothing_when_its_answer_never_comes(void **state)
{
    dmutex_t mutex = DMUTEX_INITIALIZER("unclear/never");
    struct scene scene;

    (void)state;
    begin_scene(&scene);
    proxy_break(scene.proxy, PROXY_HOLD_REPLY, PROXY_COMMANDS, key_of("lock", "unclear/never"), 1);
    actor_do(scene.a, "ENOLCK", "trylock unclear/never");
    assert_int_equal(proxy_hits(scene.proxy), 1);
    proxy_pass(scene.proxy);
    wait_until(!is_locked(&mutex));
    actor_do(scene.a, "EPERM", "unlock unclear/never");
    assert_result(dmutex_trylock(&mutex), 0);
    assert_result(dmutex_unlock(&mutex), 0);
    end_scene(&scene);
}

/* POSIX scenario 12 in the queue: the answer to the enqueue is lost; the waiter waits once, at the same place. */
static void test_waiter_waits_once_when_its_answer_is_lost(void **state)
{
    dmutex_t mutex = DMUTEX_INITIALIZER("unclear/queue");
    struct actor *behind = actor_start(the_server);
    struct scene scene;

    (void)state;
    begin_scene(&scene);
    for (size_t cut = 0; cut < CUTS; cut++) {
        assert_result(dmutex_lock(&mutex), 0);
        proxy_break(scene.proxy, cuts[cut], PROXY_COMMANDS, key_of("queue", "unclear/queue"), 1);
        actor_send(scene.a, "lock unclear/queue");
        wait_until(proxy_hits(scene.proxy) == 1);
        wait_until(waiters_of(&mutex) == 1);
        actor_send(behind, "lock unclear/queue");
        wait_until(waiters_of(&mutex) == 2);
        assert_result(dmutex_unlock(&mutex), 0);
        actor_expect(scene.a, "0");
        assert_true(actor_is_silent(behind));
        actor_do(scene.a, "0", "unlock unclear/queue");
        actor_expect(behind, "0");
        actor_do(behind, "0", "unlock unclear/queue");
    }
    end_scene(&scene);
    actor_end(behind);
}

/*
 * POSIX scenario 13: the connection breaks before, in or after the script that gives the lock back:
 * unlock is 0 all the same, and the mutex is free soon, though the lease has long to go.
 */
static void test_unlock_succeeds_when_its_answer_is_lost(void **state)
{
    struct scene scene;
    int serial = 0;

    (void)state;
    begin_scene(&scene);
    for (size_t cut = 0; cut < CUTS; cut++) {
        for (int kind = 0; kind < KIND_COUNT; kind += 2) {
            char name[32];
            dmutex_t mutex;

            snprintf(name, sizeof name, "unclear/unlock%d", ++serial);
            make_mutex(&mutex, name, &kinds[kind], 0);
            actor_do(scene.a, "0", "init %s%s", name, kinds[kind].words);
            actor_do(scene.a, "0", "lock %s", name);
            proxy_break(scene.proxy, cuts[cut], PROXY_COMMANDS, key_of("lock", name), 1);
            actor_do(scene.a, "0", "unlock %s", name);
            assert_result(dmutex_lock(&mutex), 0);
            wait_until(proxy_hits(scene.proxy) == 1);
            assert_result(dmutex_unlock(&mutex), 0);
        }
    }
    end_scene(&scene);
}

/* POSIX scenario 13: the retried release does not touch the lock that A took after the release. */
static void test_retried_unlock_spares_the_relock(void **state)
{
    struct scene scene;
    int serial = 0;

    (void)state;
    begin_scene(&scene);
    for (size_t cut = 0; cut < CUTS; cut++) {
        for (int kind = 0; kind < KIND_COUNT; kind += 2) {
            char name[32];
            long long token;

            snprintf(name, sizeof name, "unclear/relock%d", ++serial);
            actor_do(scene.a, "0", "init %s%s", name, kinds[kind].words);
            actor_do(scene.a, "0", "lock %s", name);
            token = actor_value(scene.a, "token %s", name);
            proxy_break(scene.proxy, cuts[cut], PROXY_COMMANDS, key_of("lock", name), 1);
            actor_do(scene.a, "0", "unlock %s", name);
            actor_do(scene.a, "0", "lock %s", name);
            assert_int_equal(proxy_hits(scene.proxy), 1);
            assert_true(actor_value(scene.a, "token %s", name) > token);
            actor_do(scene.a, "0", "renew %s", name); /* comes after all requests that were not sent */
            check_owned_once(&scene, name);
        }
    }
    end_scene(&scene);
}

/* A waiter gets the lock once although the granting release is sent twice. */
static void test_retried_unlock_grants_once_when_others_wait(void **state)
{
    struct actor *first = actor_start(the_server), *second = actor_start(the_server);
    dmutex_t mutex = DMUTEX_INITIALIZER("unclear/grant");
    struct scene scene;

    (void)state;
    begin_scene(&scene);
    for (size_t cut = 0; cut < CUTS; cut++) {
        actor_do(scene.a, "0", "lock unclear/grant");
        actor_send(first, "lock unclear/grant");
        wait_until(waiters_of(&mutex) == 1);
        actor_send(second, "lock unclear/grant");
        wait_until(waiters_of(&mutex) == 2);
        proxy_break(scene.proxy, cuts[cut], PROXY_COMMANDS, key_of("lock", "unclear/grant"), 1);
        actor_do(scene.a, "0", "unlock unclear/grant");
        actor_expect(first, "0");
        actor_do(scene.a, "EBUSY", "trylock unclear/grant"); /* comes after the retry */
        assert_true(actor_is_silent(second));
        assert_int_equal(waiters_of(&mutex), 1);
        actor_do(first, "0", "unlock unclear/grant");
        actor_expect(second, "0");
        actor_do(second, "0", "unlock unclear/grant");
    }
    end_scene(&scene);
    actor_end(first);
    actor_end(second);
}

/* consistent: the answer is lost, the library repeats the call, and the server acts once. */
static void test_consistent_succeeds_when_its_answer_is_lost(void **state)
{
    struct scene scene;

    (void)state;
    begin_scene(&scene);
    for (size_t cut = 0; cut < CUTS; cut++) {
        const char *name = "unclear/mended";

        actor_do(scene.a, "0", "init %s robust", name);
        actor_do(scene.a, "0", "in-thread lock %s", name);
        actor_do(scene.a, "EOWNERDEAD", "lock %s", name);
        proxy_break(scene.proxy, cuts[cut], PROXY_COMMANDS, key_of("state", name), 1);
        actor_send(scene.a, "consistent %s", name);
        if (strcmp(actor_answer(scene.a), "0") != 0)
            actor_do(scene.a, "0", "consistent %s", name); /* after ENOLCK the call may be repeated */
        assert_int_equal(proxy_hits(scene.proxy), 1);
        actor_do(scene.a, "0", "unlock %s", name);
        actor_do(scene.a, "0", "lock %s", name);
        actor_do(scene.a, "0", "unlock %s", name);
    }
    end_scene(&scene);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_lock_owns_once_when_its_answer_is_lost),
        cmocka_unit_test(test_trylock_owns_once_when_its_answer_is_lost),
        cmocka_unit_test(test_trylock_holds_nothing_when_its_answer_never_comes),
        cmocka_unit_test(test_waiter_waits_once_when_its_answer_is_lost),
        cmocka_unit_test(test_unlock_succeeds_when_its_answer_is_lost),
        cmocka_unit_test(test_retried_unlock_spares_the_relock),
        cmocka_unit_test(test_retried_unlock_grants_once_when_others_wait),
        cmocka_unit_test(test_consistent_succeeds_when_its_answer_is_lost),
        cmocka_unit_test(test_nothing_is_left),
    };

    test_begin(argc, argv);
    return cmocka_run_group_tests(tests, test_group_setup, test_group_teardown);
}
