/* SPDX-License-Identifier: BSD-2-Clause */
/* The driver of registers on Redis, on servers of its own that fail. */
#include "../lib/testlib.h"

#include <stdlib.h>
#include <string.h>

#include "../lib/server.h"
#include "asker.h"
#include "base/units.h"
#include "config/url.h"
#include "stores/redis/registers/open.h"

#define EPOCH "dmutex:{~registers}:epoch"
#define KEY "dmutex:{~registers}:register:"

static struct server *server;
static const struct dm_reg_version absent;

/* Each driver has a URL of its own for as long as it lives. */
static struct dm_url *urls[64];
static int url_count;

static struct dm_reg_driver *open_redis(const char *version, const struct dm_reg_place *place,
                                        const struct dm_reg_client *client, char ret_reason[DM_REASON_ROOM])
{
    struct dm_url *url = dm_url_parse(place->url, ret_reason);

    (void)version;
    if (!url)
        return NULL;
    assert_true(url_count < 64);
    urls[url_count++] = url;
    url->connect_timeout_ms = place->connect_timeout_ms;
    url->command_timeout_ms = place->command_timeout_ms;
    return dm_redis_registers_open(url, client, ret_reason);
}

static int start_server(void **state)
{
    (void)state;
    server = server_start();
    return 0;
}

static int end_server(void **state)
{
    (void)state;
    server_end(server);
    while (url_count)
        dm_url_free(urls[--url_count]);
    return 0;
}

/* The same, connected, with a command_timeout of its own. */
static struct asker *start_impatient(unsigned command_timeout_ms)
{
    struct asker *asker = asker_open(server->url, "dmutex", command_timeout_ms);

    assert_non_null(asker->driver);
    asker->driver->ops->want(asker->driver);
    asker_until(asker, asker->ready);
    return asker;
}

/* One swap of an absent key, without waiting. */
static void post_swap(struct asker *asker, const char *key, const char *text)
{
    struct dm_reg_item item = { .key = key };

    item.value = asker_value(asker, text, &item.size);
    asker_post(asker, &item, 1, true);
}

static void keep_identity(const struct asker *asker, char ret_identity[DM_REG_IDENTITY_ROOM])
{
    memcpy(ret_identity, asker->identity, DM_REG_IDENTITY_ROOM);
}

/* ---- data --------------------------------------------------------------------------------- */

/* FLUSHALL on a server that goes on: the next swap finds it, does nothing, and there is another identity */
static void test_flushed_data_are_another_identity(void **state)
{
    struct asker *one = asker_start(server->url, NULL), *other = asker_start(server->url, NULL);
    struct dm_reg_version version = absent, none = absent;
    char identity[DM_REG_IDENTITY_ROOM];

    (void)state;
    assert_outcome(asker_swap(one, "n/a", &version, "first"), DM_REG_DONE);
    keep_identity(one, identity);
    assert_true(side_try(server->side, "FLUSHALL"));
    post_swap(one, "n/b", "late");
    asker_until(one, one->answered == 1 && one->ready == 2);
    assert_outcome(&one->asked[0], DM_REG_UNKNOWN);
    assert_string_not_equal(one->identity, identity);
    assert_int_equal(side_count_keys(server->side, KEY "*"), 0);
    post_swap(other, "n/b", "late");
    asker_until(other, other->answered == 1 && other->ready == 2);
    assert_string_equal(other->identity, one->identity);
    assert_outcome(asker_swap(other, "n/b", &none, "new"), DM_REG_DONE);
    asker_end(one);
    asker_end(other);
}

/* A restart with its data may have lost the last writes; all see the same new identity */
static void test_restarted_server_is_another_identity(void **state)
{
    struct server *lasting = server_start_with(false, "--appendonly", "yes", NULL);
    struct asker *one = asker_start(lasting->url, NULL), *other = asker_start(lasting->url, NULL);
    struct dm_reg_version version = absent;
    char identity[DM_REG_IDENTITY_ROOM];

    (void)state;
    assert_outcome(asker_swap(one, "n/a", &version, "first"), DM_REG_DONE);
    keep_identity(one, identity);
    server_shutdown(lasting);
    asker_until(one, one->down > 0);
    server_restart(lasting);
    asker_until(one, one->ready == 2);
    asker_until(other, other->ready == 2);
    assert_string_not_equal(one->identity, identity);
    assert_string_equal(one->identity, other->identity);
    assert_string_equal(asker_read(one, "n/a", NULL)->value, "first");
    assert_int_equal(one->asked[0].reply.age_ms, -1); /* another process's clock */
    asker_end(one);
    asker_end(other);
    server_end(lasting);
}

/* The connection alone breaks: the same process, and so the same data */
static void test_broken_connection_keeps_the_identity(void **state)
{
    struct asker *asker = asker_start(server->url, "inbox");
    char identity[DM_REG_IDENTITY_ROOM];

    (void)state;
    keep_identity(asker, identity);
    asker_until(asker, asker->has_inbox);
    side_int(server->side, "CLIENT KILL TYPE pubsub");
    asker_until(asker, !asker->has_inbox);
    asker_until(asker, asker->has_inbox);
    assert_int_equal(asker->down, 0);
    side_int(server->side, "CLIENT KILL TYPE normal SKIPME yes");
    asker_until(asker, asker->ready == 2);
    assert_string_equal(asker->identity, identity);
    assert_int_equal(asker->down, 1);
    asker_end(asker);
}

/* An epoch that somebody else draws, for instance after a restored backup, ends swaps of the former one */
static void test_swap_of_another_epoch_does_nothing(void **state)
{
    struct asker *asker = asker_start(server->url, NULL);
    struct dm_reg_version version = absent;

    (void)state;
    assert_outcome(asker_swap(asker, "n/a", &version, "first"), DM_REG_DONE);
    side_int(server->side, "HSET " EPOCH " id 00000000000000000000000000000001");
    asker_swap(asker, "n/a", &version, "second");
    assert_outcome(&asker->asked[0], DM_REG_UNKNOWN);
    asker_until(asker, asker->ready == 2);
    assert_string_equal(asker->identity, "00000000000000000000000000000001");
    assert_string_equal(asker_read(asker, "n/a", NULL)->value, "first");
    asker_end(asker);
}

/* ---- faults of the server ----------------------------------------------------------------- */

/* SCRIPT FLUSH: the text is sent once more, and nobody notices */
static void test_flushed_scripts_are_sent_again(void **state)
{
    struct asker *asker = asker_start(server->url, NULL);
    struct dm_reg_version version = absent;
    struct dm_reg_item items[20];
    char keys[20][8];

    (void)state;
    assert_outcome(asker_swap(asker, "n/a", &version, "first"), DM_REG_DONE);
    assert_outcome(asker_read(asker, "n/a", NULL), DM_REG_DONE);
    assert_true(side_try(server->side, "SCRIPT FLUSH"));
    assert_outcome(asker_swap(asker, "n/a", &version, "second"), DM_REG_DONE);
    assert_string_equal(asker_read(asker, "n/a", NULL)->value, "second");
    assert_true(side_try(server->side, "SCRIPT FLUSH"));
    for (int i = 0; i < 20; i++) {
        snprintf(keys[i], sizeof keys[i], "n/%d", i);
        items[i] = (struct dm_reg_item){ .key = keys[i] };
        items[i].value = asker_value(asker, "x", &items[i].size);
    }
    asker_post(asker, items, 20, true);
    asker_until(asker, asker->answered == 20);
    for (int i = 0; i < 20; i++)
        assert_outcome(&asker->asked[i], DM_REG_DONE);
    assert_int_equal(asker->down, 0);
    asker_end(asker);
}

/* A stopped server gives no answer: unknown; and it executes the swap late, when it goes on */
static void test_swap_at_a_stopped_server_is_unknown_and_comes_late(void **state)
{
    struct asker *asker = start_impatient(300), *other;

    (void)state;
    server_stop(server);
    post_swap(asker, "n/late", "late");
    asker_until(asker, asker->answered == 1);
    assert_outcome(&asker->asked[0], DM_REG_UNKNOWN);
    asker_until(asker, asker->down > 0);
    assert_false(asker->is_final);
    server_cont(server);
    other = asker_start(server->url, NULL);
    asker_until(other, strcmp(asker_read(other, "n/late", NULL)->value, "late") == 0);
    asker_until(asker, asker->ready == 2);
    assert_string_equal(asker->identity, other->identity);
    asker_end(asker);
    asker_end(other);
}

/* A killed server: unknown, once for each, and a sentence says where it was */
static void test_swaps_at_a_killed_server_are_unknown(void **state)
{
    struct asker *asker = asker_start(server->url, NULL);
    struct dm_reg_item items[20];
    char keys[20][8];

    (void)state;
    for (int i = 0; i < 20; i++) {
        snprintf(keys[i], sizeof keys[i], "n/%d", i);
        items[i] = (struct dm_reg_item){ .key = keys[i] };
        items[i].value = asker_value(asker, "x", &items[i].size);
    }
    server_stop(server);
    asker_post(asker, items, 20, true);
    server_kill(server);
    asker_until(asker, asker->down > 0); /* twice in a turn, if the reason changes */
    assert_int_equal(asker->answered, 20);
    for (int i = 0; i < 20; i++)
        assert_outcome(&asker->asked[i], DM_REG_UNKNOWN);
    assert_false(asker->driver->ops->swap(asker->driver, 1, items, 1));
    server_restart(server);
    asker_until(asker, asker->ready == 2);
    asker_end(asker);
}

/* No server: the sentence says so, and the driver goes on trying */
static void test_missing_server_is_told_and_awaited(void **state)
{
    struct asker *asker = asker_open(server->url, "dmutex", 0);

    (void)state;
    server_kill(server);
    asker->driver->ops->want(asker->driver);
    asker_until(asker, asker->down > 0);
    assert_false(asker->is_final);
    assert_non_null(strstr(asker->reason, server->path));
    server_restart(server);
    asker_until(asker, asker->ready == 1);
    asker_end(asker);
}

/* A full server refuses new keys and longer values, and goes on with what does not grow: releases, beats, deletions */
static void test_full_server_refuses_what_grows(void **state)
{
    struct asker *asker = asker_start(server->url, NULL);
    struct dm_reg_version version = absent, other = absent, none = absent;

    (void)state;
    assert_outcome(asker_swap(asker, "n/a", &version, "a value that is held"), DM_REG_DONE);
    assert_outcome(asker_swap(asker, "n/b", &other, "to be deleted"), DM_REG_DONE);
    assert_true(side_try(server->side, "CONFIG SET maxmemory 1"));
    assert_outcome(asker_swap(asker, "n/new", &none, "x"), DM_REG_REFUSED);
    assert_non_null(strstr(asker->asked[0].reason, "maxmemory"));
    assert_outcome(asker_swap(asker, "n/a", &version, "a value that is held, and much longer than before"),
                   DM_REG_REFUSED);
    assert_outcome(asker_swap(asker, "n/a", &version, "a value that is held 2"), DM_REG_DONE);
    assert_outcome(asker_swap(asker, "n/a", &version, "free"), DM_REG_DONE);
    assert_outcome(asker_swap(asker, "n/a", &other, "x"), DM_REG_CONFLICT);
    assert_outcome(asker_delete(asker, "n/b", &other), DM_REG_DONE);
    assert_string_equal(asker_read(asker, "n/a", NULL)->value, "free");
    assert_true(side_try(server->side, "CONFIG SET maxmemory 0"));
    assert_outcome(asker_swap(asker, "n/new", &none, "x"), DM_REG_DONE);
    assert_int_equal(asker->down, 0);
    asker_end(asker);
}

/* A server that has too few replicas executes nothing: the driver asks again until it does */
static void test_swap_waits_until_the_server_takes_writes(void **state)
{
    struct asker *asker = asker_start(server->url, NULL), *impatient = start_impatient(100);

    (void)state;
    assert_true(side_try(server->side, "CONFIG SET min-replicas-to-write 1"));
    post_swap(impatient, "n/b", "x");
    asker_until(impatient, impatient->answered == 1);
    assert_outcome(&impatient->asked[0], DM_REG_UNKNOWN);
    assert_non_null(strstr(impatient->asked[0].reason, "NOREPLICAS"));
    post_swap(asker, "n/a", "x");
    for (int i = 0; i < 20; i++)
        asker_turn(asker);
    assert_int_equal(asker->answered, 0);
    assert_true(side_try(server->side, "CONFIG SET min-replicas-to-write 0"));
    asker_until(asker, asker->answered == 1);
    assert_outcome(&asker->asked[0], DM_REG_DONE);
    asker_end(asker);
    asker_end(impatient);
}

/* A master that becomes a replica executes nothing more; promoted again, it is another identity */
static void test_demoted_server_is_left(void **state)
{
    struct server *master = server_start_with(true, NULL), *second = server_start_with(true, NULL);
    struct asker *asker = asker_start(second->url, NULL);
    struct dm_reg_version version = absent;
    char identity[DM_REG_IDENTITY_ROOM];

    (void)state;
    assert_outcome(asker_swap(asker, "n/a", &version, "first"), DM_REG_DONE);
    keep_identity(asker, identity);
    assert_true(side_try(second->side, "REPLICAOF 127.0.0.1 %d", master->port));
    wait_until(side_info_says(second->side, "master_link_status:up"));
    post_swap(asker, "n/b", "x");
    asker_until(asker, asker->answered == 1 && asker->down > 0);
    assert_outcome(&asker->asked[0], DM_REG_UNKNOWN);
    asker_until(asker, strstr(asker->reason, "master"));
    assert_int_equal(side_count_keys(master->side, KEY "*"), 0);
    assert_true(side_try(second->side, "REPLICAOF NO ONE"));
    asker_until(asker, asker->ready == 2);
    assert_string_not_equal(asker->identity, identity);
    asker_end(asker);
    server_end(master);
    server_end(second);
}

/* ---- rights and strangers ----------------------------------------------------------------- */

/* A right that is taken away: refused, with the server's words; nothing else suffers */
static void test_missing_right_is_refused(void **state)
{
    char url[160];
    struct asker *asker;
    struct dm_reg_version version = absent;

    (void)state;
    assert_true(side_try(server->side, "ACL SETUSER app on >secret ~dmutex:* &dmutex:inbox:* +@all"));
    snprintf(url, sizeof url, "unix://app:secret@%s", server->path);
    asker = asker_start(url, "inbox");
    assert_outcome(asker_swap(asker, "n/a", &version, "x"), DM_REG_DONE);
    assert_true(side_try(server->side, "ACL SETUSER app -hset"));
    assert_outcome(asker_swap(asker, "n/a", &version, "y"), DM_REG_REFUSED);
    assert_true(strstr(asker->asked[0].reason, "can't run this command") || strstr(asker->asked[0].reason, "'hset'"));
    assert_string_equal(asker_read(asker, "n/a", NULL)->value, "x");
    assert_true(side_try(server->side, "ACL SETUSER app +hset -scan"));
    assert_true(asker->driver->ops->list(asker->driver, ++asker->tickets, "n/", "", 10));
    asker->answered = 0;
    asker_until(asker, asker->answered == 1);
    assert_false(asker->is_listed);
    assert_outcome(asker_swap(asker, "n/a", &version, "y"), DM_REG_DONE);
    asker_end(asker);
}

/* Without INFO nobody can tell a server that has lost writes: no identity, and a sentence */
static void test_server_that_hides_its_identity_is_refused(void **state)
{
    char url[160];
    struct asker *asker;

    (void)state;
    assert_true(side_try(server->side, "ACL SETUSER mute on >secret ~dmutex:* &* +@all -info"));
    snprintf(url, sizeof url, "unix://mute:secret@%s", server->path);
    asker = asker_open(url, "dmutex", 0);
    asker->driver->ops->want(asker->driver);
    asker_until(asker, asker->down > 0);
    assert_non_null(strstr(asker->reason, "INFO"));
    assert_true(side_try(server->side, "ACL SETUSER mute +info"));
    asker_until(asker, asker->ready == 1);
    asker_end(asker);
}

/* A key of another program is refused by name, and left as it is */
static void test_key_of_another_program_is_refused(void **state)
{
    struct asker *asker = asker_start(server->url, NULL);
    struct dm_reg_version version = absent;

    (void)state;
    assert_true(side_try(server->side, "SET " KEY "n/a text"));
    assert_outcome(asker_swap(asker, "n/a", &version, "x"), DM_REG_REFUSED);
    assert_non_null(strstr(asker->asked[0].reason, KEY "n/a"));
    assert_outcome(asker_read(asker, "n/a", NULL), DM_REG_REFUSED);
    side_int(server->side, "HSET " KEY "n/b version short data x");
    assert_outcome(asker_read(asker, "n/b", NULL), DM_REG_REFUSED);
    assert_outcome(asker_swap(asker, "n/c", &version, "x"), DM_REG_DONE);
    assert_string_equal(side_text(server->side, "GET " KEY "n/a"), "text");
    asker_end(asker);
}

/* Anybody may publish: what is no notice of ours is left out */
static void test_strange_messages_are_left_out(void **state)
{
    struct asker *asker = asker_start(server->url, "inbox");
    struct dm_reg_version version = absent;

    (void)state;
    asker_until(asker, asker->has_inbox);
    side_int(server->side, "PUBLISH dmutex:inbox:~registers:inbox %s", "not hexadecimal");
    side_int(server->side, "PUBLISH dmutex:inbox:~registers:inbox %s", "abc");
    side_int(server->side, "PUBLISH dmutex:inbox:~registers:inbox %s", "616263");
    asker_until(asker, asker->tells == 1);
    assert_string_equal(asker->told, "abc");
    assert_outcome(asker_swap_and_tell(asker, "n/a", &version, "x", "inbox", "own"), DM_REG_DONE);
    asker_until(asker, asker->tells == 2);
    asker_end(asker);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_flushed_data_are_another_identity, start_server, end_server),
        cmocka_unit_test_setup_teardown(test_restarted_server_is_another_identity, start_server, end_server),
        cmocka_unit_test_setup_teardown(test_broken_connection_keeps_the_identity, start_server, end_server),
        cmocka_unit_test_setup_teardown(test_swap_of_another_epoch_does_nothing, start_server, end_server),
        cmocka_unit_test_setup_teardown(test_flushed_scripts_are_sent_again, start_server, end_server),
        cmocka_unit_test_setup_teardown(test_swap_at_a_stopped_server_is_unknown_and_comes_late, start_server,
                                        end_server),
        cmocka_unit_test_setup_teardown(test_swaps_at_a_killed_server_are_unknown, start_server, end_server),
        cmocka_unit_test_setup_teardown(test_missing_server_is_told_and_awaited, start_server, end_server),
        cmocka_unit_test_setup_teardown(test_full_server_refuses_what_grows, start_server, end_server),
        cmocka_unit_test_setup_teardown(test_swap_waits_until_the_server_takes_writes, start_server, end_server),
        cmocka_unit_test_setup_teardown(test_demoted_server_is_left, start_server, end_server),
        cmocka_unit_test_setup_teardown(test_missing_right_is_refused, start_server, end_server),
        cmocka_unit_test_setup_teardown(test_server_that_hides_its_identity_is_refused, start_server, end_server),
        cmocka_unit_test_setup_teardown(test_key_of_another_program_is_refused, start_server, end_server),
        cmocka_unit_test_setup_teardown(test_strange_messages_are_left_out, start_server, end_server),
    };

    test_begin(argc, argv);
    asker_driver = open_redis;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
