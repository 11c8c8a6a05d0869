/* SPDX-License-Identifier: BSD-2-Clause */
/* The driver of ZooKeeper on real servers: elections, restored data, and what is left behind. */
#include "../lib/testlib.h"

#include <stdlib.h>
#include <string.h>

#include "asker.h"
#include "stores/zookeeper/open.h"
#include "stores/zookeeper/parts.h"
#include "zkserver.h"

static struct zkserver *server;
static const struct dm_reg_version absent;

/* Drivers keep their URLs. */
static struct dm_reg_driver *open_zookeeper(const char *version, const struct dm_reg_place *place,
                                            const struct dm_reg_client *client, char ret_reason[DM_REASON_ROOM])
{
    struct dm_url *url = dm_url_parse(place->url, ret_reason);

    (void)version;
    if (!url)
        fail_msg("%s", ret_reason);
    return dm_zookeeper_driver_open(url, client, ret_reason);
}

static const char *url_with(const char *options)
{
    static char text[256];

    snprintf(text, sizeof text, "%s%s", server->url, options);
    return text;
}

/* A server is killed, then the next one: a value that was written is there, and the identity stays */
static void test_servers_that_are_killed_lose_nothing(void **state)
{
    struct asker *asker;
    struct dm_reg_version version = absent;
    char identity[DM_REG_IDENTITY_ROOM], text[16];

    (void)state;
    server = zkserver_start(3);
    asker = asker_start(server->url, "me");
    memcpy(identity, asker->identity, sizeof identity);
    for (int i = 0; i < 3; i++) {
        asker_swap_surely(asker, "n/k", &version, 2 * i);
        zkserver_kill(server, i % 3);
        asker_swap_surely(asker, "n/k", &version, 2 * i + 1);
        zkserver_restart(server, i % 3);
        snprintf(text, sizeof text, "%d", 2 * i + 1);
        asker_until(asker, asker->is_up);
        assert_string_equal(asker_read(asker, "n/k", NULL)->value, text);
        assert_string_equal(asker->identity, identity);
    }
    asker_end(asker);
    zkserver_end(server);
}

/* Without a majority no server gives a session, which is told; with it all goes on, and notices come */
static void test_no_majority_is_waited_for(void **state)
{
    struct asker *asker, *other;
    struct dm_reg_version version = absent;

    (void)state;
    server = zkserver_start(3);
    asker = asker_start(url_with("?command_timeout=1000"), "me");
    other = asker_start(server->url, "other");
    assert_outcome(asker_swap(asker, "n/m", &version, "x"), DM_REG_DONE);
    zkserver_kill(server, 1);
    zkserver_kill(server, 2);
    asker_until(asker, strstr(asker->reason, "is a majority of the servers up"));
    zkserver_restart_all(server);
    asker_until(asker, asker->is_up && asker->has_inbox);
    asker_until(other, other->down > 0 && other->is_up);
    assert_outcome(asker_read(other, "n/m", NULL), DM_REG_DONE);
    assert_outcome(asker_swap_and_tell(other, "n/m", &version, "y", "me", "told"), DM_REG_DONE);
    asker_until(asker, asker->tells == 1);
    asker_end(asker);
    asker_end(other);
    zkserver_end(server);
}

/* Data of yesterday: whoever has seen today's draws another epoch, and the others find it */
static void test_restored_copy_is_another_identity(void **state)
{
    struct asker *asker, *other;
    struct dm_reg_version version = absent;
    char identity[DM_REG_IDENTITY_ROOM];

    (void)state;
    server = zkserver_start(1);
    asker = asker_start(server->url, "me");
    other = asker_start(server->url, "other");
    assert_outcome(asker_swap(asker, "n/r", &version, "old"), DM_REG_DONE);
    zkserver_kill(server, 0);
    asker_until(asker, !asker->is_up);
    zkserver_save(server);
    zkserver_restart(server, 0);
    asker_until(asker, asker->is_up);
    memcpy(identity, asker->identity, sizeof identity);
    assert_outcome(asker_swap(asker, "n/r", &version, "new"), DM_REG_DONE);
    zkserver_kill(server, 0);
    asker_until(asker, !asker->is_up);
    zkserver_restore(server);
    zkserver_restart(server, 0);
    asker_until(asker, asker->is_up && strcmp(asker->identity, identity) != 0);
    assert_string_equal(asker_read(asker, "n/r", NULL)->value, "old");
    asker_until(other, strcmp(other->identity, asker->identity) == 0);
    asker_end(asker);
    asker_end(other);
    zkserver_end(server);
}

/* The data have been deleted under a running driver */
static void test_deleted_epoch_is_another_identity(void **state)
{
    struct asker *asker;
    struct dm_reg_version version = absent;
    char identity[DM_REG_IDENTITY_ROOM];

    (void)state;
    server = zkserver_start(1);
    asker = asker_start(server->url, "me");
    memcpy(identity, asker->identity, sizeof identity);
    zkserver_delete(server, "/dmutex");
    assert_outcome(asker_swap(asker, "n/d", &version, "x"), DM_REG_UNKNOWN);
    asker_until(asker, asker->is_up);
    assert_string_not_equal(asker->identity, identity);
    assert_outcome(asker_read(asker, "n/d", NULL), DM_REG_DONE);
    asker_end(asker);
    zkserver_end(server);
}

/* So they are if the epoch alone was deleted, as the guide asks for; nodes that are missing are made again */
static void test_missing_nodes_are_made(void **state)
{
    struct asker *asker;
    struct dm_reg_version version = absent;
    char identity[DM_REG_IDENTITY_ROOM], path[128];

    (void)state;
    server = zkserver_start(1);
    asker = asker_start(server->url, "me");
    memcpy(identity, asker->identity, sizeof identity);
    snprintf(path, sizeof path, "/dmutex/epoch/%s", identity);
    zkserver_delete(server, path);
    assert_outcome(asker_swap(asker, "n/d", &version, "x"), DM_REG_UNKNOWN);
    asker_until(asker, asker->is_up);
    assert_string_not_equal(asker->identity, identity);
    zkserver_delete(server, "/dmutex/r");
    assert_outcome(asker_swap(asker, "n/d", &version, "x"), DM_REG_UNKNOWN);
    asker_until(asker, asker->is_up);
    assert_outcome(asker_swap(asker, "n/d", &version, "x"), DM_REG_DONE);
    asker_end(asker);
    zkserver_end(server);
}

/* Notices leave no nodes behind, nor do registers that are deleted; a known inbox gets each notice of a call */
static void test_nothing_is_left_behind(void **state)
{
    static const char value[DM_REG_VERSION_SIZE + 1] = "version";
    const struct dm_reg_tell tells[] = { { "other", "one", 3 }, { "me", "two", 3 }, { "other", "one", 3 } };
    const struct dm_reg_item item = {
        .key = "n/l", .value = value, .size = sizeof value, .tells = tells, .tell_count = 3
    };
    struct asker *asker, *other;
    struct dm_reg_version version = absent;

    (void)state;
    server = zkserver_start(1);
    asker = asker_start(server->url, "me");
    other = asker_start(server->url, "other");
    asker_post(asker, &item, 1, true);
    asker_until(asker, asker->answered == 1 && asker->tells == 1);
    asker_until(other, other->tells == 2);
    assert_string_equal(other->told, "one");
    assert_int_equal(zkserver_count(server, "/dmutex/i", ""), 0);
    memcpy(version.bytes, value, sizeof version.bytes);
    assert_int_equal(zkserver_count(server, "/dmutex/r/n:l", ""), 1);
    assert_outcome(asker_delete(asker, "n/l", &version), DM_REG_DONE);
    assert_int_equal(zkserver_count(server, "/dmutex/r", ""), 0);
    asker_end(asker);
    asker_end(other);
    zkserver_end(server);
}

/* A refused swap brings the newest value, or says that nodes were changed by hand: nobody tries it for ever */
static void test_refusal_brings_the_value_or_tells_of_changes_by_hand(void **state)
{
    struct asker *asker, *other;
    struct dm_reg_version first = absent, version = absent, stale;
    const struct asked *asked;
    char path[128] = "/dmutex/r/n:h/";

    (void)state;
    server = zkserver_start(1);
    asker = asker_start(server->url, "me");
    other = asker_start(server->url, "other");
    assert_outcome(asker_swap(asker, "n/h", &version, "x"), DM_REG_DONE);
    stale = version;
    assert_outcome(asker_swap(asker, "n/h", &version, "y"), DM_REG_DONE);
    for (int i = 0; i < 2; i++) {
        asked = asker_swap(other, "n/h", i ? &stale : &first, "z");
        assert_int_equal(asked->reply.outcome, DM_REG_CONFLICT);
        assert_true(asked->reply.has_value);
        assert_string_equal(asked->value, "y");
        assert_true(dm_reg_version_equals(&asked->reply.version, &version));
    }
    for (int i = 0; i < DM_REG_VERSION_SIZE; i++)
        snprintf(path + strlen(path), 3, "%02x", version.bytes[i]);
    zkserver_delete(server, path);
    asked = asker_swap(asker, "n/h", &version, "z");
    assert_int_equal(asked->reply.outcome, DM_REG_REFUSED);
    assert_non_null(strstr(asked->reason, "by hand"));
    asker_end(asker);
    asker_end(other);
    zkserver_end(server);
}

/* The age of a value is known to who only reads, and of what another leader has written nobody tells one */
static void test_ages_are_of_one_leader(void **state)
{
    struct asker *asker, *other;
    struct dm_reg_version version = absent;
    struct dm_zk *zk;

    (void)state;
    server = zkserver_start(1);
    asker = asker_start(server->url, "me");
    other = asker_start(server->url, "other");
    assert_outcome(asker_swap(asker, "n/a", &version, "x"), DM_REG_DONE);
    asker_until(other, asker_read(other, "n/a", NULL)->reply.age_ms > 0);
    zk = (struct dm_zk *)(void *)other->driver;
    zk->clock_leader++;
    assert_int_equal(asker_read(other, "n/a", NULL)->reply.age_ms, -1);
    zk->clock_leader -= 2;
    assert_int_equal(asker_read(other, "n/a", NULL)->reply.age_ms, -1);
    assert_true(asker_read(other, "n/a", NULL)->reply.age_ms >= 0);
    asker_end(asker);
    asker_end(other);
    zkserver_end(server);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_servers_that_are_killed_lose_nothing),
        cmocka_unit_test(test_no_majority_is_waited_for),
        cmocka_unit_test(test_restored_copy_is_another_identity),
        cmocka_unit_test(test_deleted_epoch_is_another_identity),
        cmocka_unit_test(test_missing_nodes_are_made),
        cmocka_unit_test(test_nothing_is_left_behind),
        cmocka_unit_test(test_refusal_brings_the_value_or_tells_of_changes_by_hand),
        cmocka_unit_test(test_ages_are_of_one_leader),
    };

    if (!zkserver_is_possible()) {
        puts("1..0 # SKIP no ZooKeeper is installed (package zookeeper)");
        return 0;
    }
    test_begin(argc, argv);
    asker_driver = open_zookeeper;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
