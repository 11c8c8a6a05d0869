/* SPDX-License-Identifier: BSD-2-Clause */
/* A user of the server with the right to PUBLISH and no other: makes no owner, and poisons no name. */
#include <hiredis.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../lib/testlib.h"

#define LONG_LEASE 60000
#define BEYOND_ALL "9223372036854775807" /* 2^63 - 1 */

static dmutex_t mutex;
static struct actor *waiter;
static char id[200]; /* of the waiter's attempt: <uuid>:<thread>:<attempt> */
static char run[17]; /* of the server, as grants name the server: no secret */
static redisContext *forger;

static int begin(void **state)
{
    (void)state;
    side_text(the_server->side, "ACL SETUSER forger reset on >pw allchannels -@all +publish");
    forger = redisConnectUnix(the_server->path);
    freeReplyObject(redisCommand(forger, "AUTH forger pw"));
    snprintf(run, sizeof run, "%.16s", strstr(side_text(the_server->side, "INFO server"), "run_id:") + 7);
    make_robust(&mutex, "forged/m", LONG_LEASE);
    assert_result(dmutex_lock(&mutex), 0);
    waiter = actor_start(the_server);
    actor_do(waiter, "0", "init forged/m robust lease=%d", LONG_LEASE);
    actor_send(waiter, "lock forged/m");
    wait_until(waiters_of(&mutex) == 1);
    assert_int_equal(sscanf(first_waiter_at(the_server->side, "forged/m"), "%99s", id), 1);
    return 0;
}

/* The mutex is handed over as ever, and the tokens are the usual ones. */
static int end(void **state)
{
    uint64_t before, after;

    (void)state;
    assert_true(actor_is_silent(waiter));
    assert_result(dmutex_token_np(&mutex, &before), 0);
    assert_result(dmutex_unlock(&mutex), 0);
    actor_expect(waiter, "0");
    actor_do(waiter, "0", "renew forged/m");
    actor_do(waiter, "0", "unlock forged/m");
    assert_result(dmutex_lock(&mutex), 0);
    assert_result(dmutex_token_np(&mutex, &after), 0);
    assert_within(after, before + 1, before + (UINT64_C(3600000000) << 12)); /* an hour later at most */
    assert_result(dmutex_unlock(&mutex), 0);
    actor_do(waiter, "0", "lock forged/m");
    actor_do(waiter, "0", "unlock forged/m");
    actor_end(waiter);
    wait_until(!is_locked(&mutex));
    redisFree(forger);
    side_text(the_server->side, "ACL DELUSER forger");
    return 0;
}

static uint64_t attempt_of_the_waiter(void)
{
    return strtoull(strrchr(id, ':') + 1, NULL, 10);
}

/* The newest request that the server has of the waiter; 0: the waiter waits no longer. */
static uint64_t request_of_the_waiter(void)
{
    const char *first = first_waiter_at(the_server->side, "forged/m");

    return strncmp(first, id, strlen(id)) == 0 ? strtoull(first + strlen(id), NULL, 10) : 0;
}

/* The channel of the inbox can be listed by users with the right to PUBSUB. */
static void forge(const char *message)
{
    redisReply *reply = redisCommand(forger, "PUBLISH dmutex:inbox:%b %s", id, strcspn(id, ":"), message);

    assert_int_equal(reply->type, REDIS_REPLY_INTEGER);
    assert_int_equal(reply->integer, 1);
    freeReplyObject(reply);
}

/*
 * All published messages are read: the last message makes the waiter poll, because the message names the waiter's
 * attempt.
 */
static void wait_until_read(void)
{
    uint64_t before = request_of_the_waiter();
    char ask[64];

    snprintf(ask, sizeof ask, "ask %" PRIu64, attempt_of_the_waiter());
    forge(ask);
    wait_until(request_of_the_waiter() > before || !actor_is_silent(waiter));
}

/* Numbers are guessed blindly: the waiter does not own while the owner does. */
static void test_a_waiter_does_not_own_when_grants_are_guessed(void **state)
{
    char message[100];

    (void)state;
    for (int attempt = 1; attempt <= 64; attempt++) {
        snprintf(message, sizeof message, "granted %d 1 1000000000000000 60000 0 %s", attempt, run);
        forge(message);
    }
    wait_until_read();
    assert_true(actor_is_silent(waiter));
}

/* An impossible token is refused with the whole message, even if the sender knew the attempt. */
static void test_a_grant_is_refused_when_its_token_is_beyond_all(void **state)
{
    char message[100];

    (void)state;
    snprintf(message, sizeof message, "granted %" PRIu64 " %" PRIu64 " " BEYOND_ALL " 60000 0 %s",
             attempt_of_the_waiter(), request_of_the_waiter(), run);
    forge(message);
    wait_until_read();
    assert_true(actor_is_silent(waiter));
}

#define FORGED(test) cmocka_unit_test_setup_teardown(test, begin, end)

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        FORGED(test_a_waiter_does_not_own_when_grants_are_guessed),
        FORGED(test_a_grant_is_refused_when_its_token_is_beyond_all),
        cmocka_unit_test(test_nothing_is_left),
    };

    test_begin(argc, argv);
    return cmocka_run_group_tests(tests, test_group_setup, test_group_teardown);
}
