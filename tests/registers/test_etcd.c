/* SPDX-License-Identifier: BSD-2-Clause */
/* The driver of etcd on real members: elections, restored data, logins, a full store, and what is no etcd. */
#include "../lib/testlib.h"

#include <stdlib.h>
#include <string.h>

#include "asker.h"
#include "etcdserver.h"
#include "stores/etcd/open.h"
#include "stores/etcd/parts.h"

static struct etcdserver *server;
static const struct dm_reg_version absent;

/* Drivers keep their URLs. */
static struct dm_reg_driver *open_etcd(const char *version, const struct dm_reg_place *place,
                                       const struct dm_reg_client *client, char ret_reason[DM_REASON_ROOM])
{
    struct dm_url *url = dm_url_parse(place->url, ret_reason);

    (void)version;
    if (!url)
        fail_msg("%s", ret_reason);
    return dm_etcd_driver_open(url, client, ret_reason);
}

static struct dm_etcd *etcd_of(const struct asker *asker)
{
    return (struct dm_etcd *)(void *)asker->driver;
}

static const char *url_with(const char *options)
{
    static char text[256];

    snprintf(text, sizeof text, "%s%s", server->url, options);
    return text;
}

/* A member is killed, then the next one: a value that was written is there, and the identity stays */
static void test_members_that_are_killed_lose_nothing(void **state)
{
    struct asker *asker;
    struct dm_reg_version version = absent;
    char identity[DM_REG_IDENTITY_ROOM], text[16];

    (void)state;
    server = etcdserver_start(3);
    asker = asker_start(server->url, "me");
    memcpy(identity, asker->identity, sizeof identity);
    for (int i = 0; i < 3; i++) {
        asker_swap_surely(asker, "n/k", &version, 2 * i);
        etcdserver_kill(server, i % 3);
        asker_swap_surely(asker, "n/k", &version, 2 * i + 1);
        etcdserver_restart(server, i % 3);
        snprintf(text, sizeof text, "%d", 2 * i + 1);
        asker_until(asker, asker->is_up);
        assert_string_equal(asker_read(asker, "n/k", NULL)->value, text);
        assert_string_equal(asker->identity, identity);
    }
    asker_end(asker);
    etcdserver_end(server);
}

/* Without a majority nothing is answered in time; with it all goes on, and notices come */
static void test_no_majority_is_waited_for(void **state)
{
    struct asker *asker, *other;
    struct dm_reg_version version = absent;

    (void)state;
    server = etcdserver_start(3);
    asker = asker_start(url_with("?command_timeout=1000"), "me");
    other = asker_start(server->url, "other");
    assert_outcome(asker_swap(asker, "n/m", &version, "x"), DM_REG_DONE);
    etcdserver_kill(server, 1);
    etcdserver_kill(server, 2);
    asker_until(asker, asker->is_up);
    assert_outcome(asker_read(asker, "n/m", NULL), DM_REG_UNKNOWN);
    etcdserver_restart_all(server);
    asker_until(asker, asker->is_up && asker->has_inbox);
    asker_until(other, other->is_up);
    asker_until(other, asker_read(other, "n/m", NULL)->reply.outcome == DM_REG_DONE);
    assert_outcome(asker_swap_and_tell(other, "n/m", &version, "y", "me", "told"), DM_REG_DONE);
    asker_until(asker, asker->tells == 1);
    asker_end(asker);
    asker_end(other);
    etcdserver_end(server);
}

/* Data of yesterday: whoever has seen today's draws another epoch, and the others find it */
static void test_restored_copy_is_another_identity(void **state)
{
    struct asker *asker, *other;
    struct dm_reg_version version = absent;
    char identity[DM_REG_IDENTITY_ROOM];

    (void)state;
    server = etcdserver_start(1);
    asker = asker_start(server->url, "me");
    other = asker_start(server->url, "other");
    assert_outcome(asker_swap(asker, "n/r", &version, "old"), DM_REG_DONE);
    etcdserver_kill(server, 0);
    asker_until(asker, !asker->is_up);
    etcdserver_save(server);
    etcdserver_restart(server, 0);
    asker_until(asker, asker->is_up);
    memcpy(identity, asker->identity, sizeof identity);
    assert_outcome(asker_swap(asker, "n/r", &version, "new"), DM_REG_DONE);
    etcdserver_kill(server, 0);
    asker_until(asker, !asker->is_up);
    etcdserver_restore(server);
    etcdserver_restart(server, 0);
    asker_until(asker, asker->is_up && strcmp(asker->identity, identity) != 0);
    assert_string_equal(asker_read(asker, "n/r", NULL)->value, "old");
    asker_until(other, strcmp(other->identity, asker->identity) == 0);
    asker_end(asker);
    asker_end(other);
    etcdserver_end(server);
}

/* The data have been deleted under a running driver */
static void test_deleted_epoch_is_another_identity(void **state)
{
    struct asker *asker;
    struct dm_reg_version version = absent;
    char identity[DM_REG_IDENTITY_ROOM];

    (void)state;
    server = etcdserver_start(1);
    asker = asker_start(server->url, "me");
    memcpy(identity, asker->identity, sizeof identity);
    etcdserver_ask(server, 0, "/v3/kv/deleterange", "{\"key\":\"AA==\",\"range_end\":\"AA==\"}");
    assert_outcome(asker_swap(asker, "n/d", &version, "x"), DM_REG_UNKNOWN);
    asker_until(asker, asker->is_up);
    assert_string_not_equal(asker->identity, identity);
    assert_outcome(asker_read(asker, "n/d", NULL), DM_REG_DONE);
    asker_end(asker);
    etcdserver_end(server);
}

/* A user with rights on the prefix alone keeps locks there; a wrong password is told */
static void test_user_logs_in(void **state)
{
    struct asker *asker;
    struct dm_reg_version version = absent;
    char url[160];

    (void)state;
    server = etcdserver_start(1);
    etcdserver_use_login(server, "locks", "se\"cret", "/dmutex/", "/dmutex0");
    snprintf(url, sizeof url, "etcd://locks:se%%22cret@127.0.0.1:%d", server->ports[0]);
    asker = asker_start(url, "me");
    assert_outcome(asker_swap(asker, "n/u", &version, "x"), DM_REG_DONE);
    asker_end(asker);
    snprintf(url, sizeof url, "etcd://locks:wrong@127.0.0.1:%d", server->ports[0]);
    asker = asker_open(url, "dmutex", 0);
    asker->driver->ops->want(asker->driver);
    asker_until(asker, asker->down == 1);
    assert_true(asker->is_final);
    assert_non_null(strstr(asker->reason, "refuses the login"));
    asker_end(asker);
    snprintf(url, sizeof url, "etcd://locks:se%%22cret@127.0.0.1:%d/others", server->ports[0]);
    asker = asker_open(url, "dmutex", 0);
    asker->driver->ops->want(asker->driver);
    asker_until(asker, asker->down == 1);
    assert_true(asker->is_final);
    assert_non_null(strstr(asker->reason, "permission denied"));
    asker_end(asker);
    etcdserver_end(server);
}

/* The token of a login ends: another login follows, and what was asked is answered */
static void test_login_is_renewed(void **state)
{
    struct asker *asker;
    struct dm_reg_version version = absent;
    char url[160];

    (void)state;
    server = etcdserver_start(1);
    etcdserver_use_login(server, "locks", "secret", "/dmutex/", "/dmutex0");
    snprintf(url, sizeof url, "etcd://locks:secret@127.0.0.1:%d", server->ports[0]);
    asker = asker_start(url, "me");
    assert_outcome(asker_swap(asker, "n/u", &version, "x"), DM_REG_DONE);
    for (int i = 0; i < 3; i++) {
        snprintf(etcd_of(asker)->token, sizeof etcd_of(asker)->token, "ended.%d", i);
        assert_outcome(asker_swap(asker, "n/u", &version, "y"), DM_REG_DONE);
    }
    assert_int_equal(asker->down, 0);
    asker_end(asker);
    asker = asker_open(server->url, "dmutex", 0);
    asker->driver->ops->want(asker->driver);
    asker_until(asker, asker->down == 1);
    if (!strstr(asker->reason, "etcd wants a login"))
        fail_msg("%s", asker->reason);
    assert_true(asker->is_final);
    asker_end(asker);
    etcdserver_end(server);
}

/*
 * When the quota is used up, etcd goes on with our swaps, also for those who come now, and people are warned.  Where
 * locks were never kept, they cannot begin
 */
static void test_full_store_keeps_locks_and_is_told(void **state)
{
    struct asker *asker, *other;
    struct dm_reg_version version = absent;
    char url[160];

    (void)state;
    server = etcdserver_start_with_quota(1 << 20);
    asker_end(asker_start(server->url, "before"));
    etcdserver_fill(server);
    asker = asker_start(server->url, "me");
    other = asker_start(server->url, "other");
    for (int i = 0; i < 100; i++)
        assert_outcome(asker_swap_and_tell(asker, "n/f", &version, "x", "other", "told"), DM_REG_DONE);
    asker_until(other, other->tells == 100);
    assert_non_null(strstr(asker->warning, "has used up its quota"));
    assert_string_equal(other->warning, "");
    etcd_of(other)->look_due_ns = 0;
    asker_until(other, *other->warning);
    assert_non_null(strstr(other->warning, "has used up its quota"));
    asker_end(asker);
    asker_end(other);
    snprintf(url, sizeof url, "%s/others", server->url);
    asker = asker_open(url, "dmutex", 0);
    asker->driver->ops->want(asker->driver);
    asker_until(asker, asker->down == 1);
    assert_true(asker->is_final);
    assert_non_null(strstr(asker->reason, "its quota is used up: compact and defragment"));
    asker_end(asker);
    etcdserver_end(server);
}

/* Notices that were written without a lease are deleted once there is room again */
static void test_notices_of_a_full_store_are_deleted(void **state)
{
    struct asker *asker;
    struct dm_reg_version version = absent;

    (void)state;
    server = etcdserver_start_with_quota(1 << 20);
    asker = asker_start(server->url, "me");
    etcdserver_fill(server);
    assert_outcome(asker_swap_and_tell(asker, "n/f", &version, "x", "gone", "told"), DM_REG_DONE);
    assert_int_equal(etcdserver_count(server, "/dmutex/i/"), 1);
    etcdserver_make_room(server);
    etcd_of(asker)->lease_due_ns = 0;
    assert_outcome(asker_swap_and_tell(asker, "n/f", &version, "x", "other", "told"), DM_REG_DONE);
    assert_true(etcd_of(asker)->is_leased);
    assert_int_equal(etcdserver_count(server, "/dmutex/i/gone"), 0);
    assert_int_equal(etcdserver_count(server, "/dmutex/i/other"), 1);
    assert_outcome(asker_delete(asker, "n/f", &version), DM_REG_DONE);
    asker_end(asker);
    etcdserver_end(server);
}

/* A refused swap that knocks is heard once, by the next swap that listens, and leaves nothing */
static void test_knock_is_heard_once(void **state)
{
    struct asker *fast, *slow;
    struct dm_reg_version version = absent, old;

    (void)state;
    server = etcdserver_start(1);
    fast = asker_start(server->url, "fast");
    slow = asker_start(server->url, "slow");
    assert_outcome(asker_swap(fast, "n/k", &version, "1"), DM_REG_DONE);
    old = version;
    fast->door = DM_REG_LISTENS;
    assert_outcome(asker_swap(fast, "n/k", &version, "2"), DM_REG_DONE);
    assert_false(fast->asked[0].reply.is_knocked);
    assert_outcome(asker_swap(slow, "n/k", &old, "3"), DM_REG_CONFLICT);
    assert_int_equal(etcdserver_count(server, "/dmutex/k/"), 0);
    slow->door = DM_REG_KNOCKS;
    assert_outcome(asker_swap(slow, "n/k", &old, "3"), DM_REG_CONFLICT);
    assert_int_equal(etcdserver_count(server, "/dmutex/k/n/k"), 1);
    fast->door = DM_REG_PASSES;
    assert_outcome(asker_swap(fast, "n/k", &version, "4"), DM_REG_DONE);
    assert_false(fast->asked[0].reply.is_knocked);
    fast->door = DM_REG_LISTENS;
    assert_outcome(asker_swap(fast, "n/k", &version, "5"), DM_REG_DONE);
    assert_true(fast->asked[0].reply.is_knocked);
    assert_int_equal(etcdserver_count(server, "/dmutex/k/"), 0);
    assert_outcome(asker_swap(fast, "n/k", &version, "6"), DM_REG_DONE);
    assert_false(fast->asked[0].reply.is_knocked);
    assert_outcome(asker_swap(slow, "n/k", &old, "7"), DM_REG_CONFLICT);
    assert_outcome(asker_delete(fast, "n/k", &version), DM_REG_DONE);
    assert_int_equal(etcdserver_count(server, "/dmutex/k/"), 0);
    asker_end(fast);
    asker_end(slow);
    etcdserver_end(server);
}

static int64_t entries_of_log(void)
{
    return dm_json_int64(
        dm_json_get(dm_json_check(etcdserver_ask(server, 0, "/v3/maintenance/status", "{}")), "raftIndex"));
}

/* Reads are no entries of the log, which members write to their disks */
static void test_reads_write_nothing(void **state)
{
    struct asker *asker;
    struct dm_reg_version version = absent;
    int64_t before;

    (void)state;
    server = etcdserver_start(1);
    asker = asker_start(server->url, "me");
    assert_outcome(asker_swap(asker, "n/r", &version, "x"), DM_REG_DONE);
    before = entries_of_log();
    for (int i = 0; i < 10; i++)
        assert_outcome(asker_read(asker, "n/r", &version), DM_REG_SAME);
    assert_outcome(asker_read(asker, "n/r", NULL), DM_REG_DONE);
    assert_int_equal(entries_of_log(), before);
    asker_end(asker);
    etcdserver_end(server);
}

/* Notices end with a lease, and one is asked for by those alone who send notices */
static void test_notices_do_not_stay(void **state)
{
    struct asker *asker;
    struct dm_reg_version version = absent;
    struct dm_json answer;
    const char *key = "{\"key\":\"L2RtdXRleC9pL290aGVy\"}"; /* "/dmutex/i/other" */

    (void)state;
    server = etcdserver_start(1);
    asker = asker_start(server->url, "me");
    assert_outcome(asker_swap(asker, "n/t", &version, "x"), DM_REG_DONE);
    assert_false(etcd_of(asker)->is_leased);
    assert_outcome(asker_swap_and_tell(asker, "n/t", &version, "y", "other", "told"), DM_REG_DONE);
    answer = dm_json_check(etcdserver_ask(server, 0, "/v3/kv/range", key));
    assert_true(dm_json_int64(dm_json_get(dm_json_first(dm_json_get(answer, "kvs")), "lease")) ==
                etcd_of(asker)->lease);
    asker_end(asker);
    etcdserver_end(server);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_members_that_are_killed_lose_nothing),
        cmocka_unit_test(test_no_majority_is_waited_for),
        cmocka_unit_test(test_restored_copy_is_another_identity),
        cmocka_unit_test(test_deleted_epoch_is_another_identity),
        cmocka_unit_test(test_user_logs_in),
        cmocka_unit_test(test_login_is_renewed),
        cmocka_unit_test(test_full_store_keeps_locks_and_is_told),
        cmocka_unit_test(test_notices_of_a_full_store_are_deleted),
        cmocka_unit_test(test_knock_is_heard_once),
        cmocka_unit_test(test_reads_write_nothing),
        cmocka_unit_test(test_notices_do_not_stay),
    };

    if (!etcdserver_is_possible()) {
        puts("1..0 # SKIP no etcd is installed (package etcd-server)");
        return 0;
    }
    test_begin(argc, argv);
    asker_driver = open_etcd;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
