/* SPDX-License-Identifier: BSD-2-Clause */
/* The driver of registers on groups of servers: writes that a failover loses, and a slot that moves. */
#include "redisbed.h"

#include <string.h>

#include "asker.h"
#include "stores/redis/registers/open.h"

static struct dm_url *url;
static int slot;
static const struct dm_reg_version absent;

static struct dm_reg_driver *open_redis(const char *version, const struct dm_reg_place *place,
                                        const struct dm_reg_client *client, char ret_reason[DM_REASON_ROOM])
{
    (void)version;
    (void)place;
    return dm_redis_registers_open(url, client, ret_reason);
}

static int begin(void **state)
{
    int failed = cluster_group_setup_fast(state);

    asker_driver = open_redis;
    url = redisbed_url(cluster_url(the_cluster, ""));
    slot = cluster_slot(the_cluster, "~registers");
    return failed;
}

static void begin_test(struct asker **ret_one, struct asker **ret_other)
{
    cluster_heal(the_cluster);
    *ret_one = asker_start("", "one");
    *ret_other = asker_start("", "other");
    asker_until(*ret_one, (*ret_one)->has_inbox);
    asker_until(*ret_other, (*ret_other)->has_inbox);
}

static void end_test(struct asker *one, struct asker *other)
{
    asker_end(one);
    asker_end(other);
}

/* Turns both. */
#define until(expression) asker_until(one, (asker_turn(other), (expression)))

/* Both have found the new data, and hear notices. */
static bool have_moved(const struct asker *one, const struct asker *other, const char *identity)
{
    return strcmp(one->identity, identity) != 0 && strcmp(one->identity, other->identity) == 0 && one->has_inbox &&
           other->has_inbox;
}

/*
 * The replica that is promoted lacks an acknowledged swap: another identity, the older value, and notices again.  It is
 * stopped meanwhile, because a replica whose connection was cut connects again within a second.
 */
static void test_failover_that_loses_a_swap_is_another_identity(void **state)
{
    struct asker *one, *other;
    struct dm_reg_version version = absent, lost;
    char identity[DM_REG_IDENTITY_ROOM];
    int before, replica;

    (void)state;
    begin_test(&one, &other);
    assert_outcome(asker_swap(one, "n/lost", &version, "kept"), DM_REG_DONE);
    before = cluster_master(the_cluster, slot);
    replica = cluster_replica(the_cluster, slot);
    wait_until(side_has_replicas(cluster_side(the_cluster, "~registers"), "{~registers}", 1));
    cluster_stop(the_cluster, replica);
    cluster_part(the_cluster, slot);
    lost = version;
    assert_outcome(asker_swap(one, "n/lost", &lost, "lost"), DM_REG_DONE);
    memcpy(identity, one->identity, sizeof identity);
    cluster_kill(the_cluster, before);
    cluster_cont(the_cluster, replica);
    cluster_await_failover(the_cluster, slot, before);
    until(have_moved(one, other, identity));
    assert_string_equal(asker_read(one, "n/lost", NULL)->value, "kept");
    assert_outcome(asker_swap(other, "n/lost", &lost, "on"), DM_REG_CONFLICT);
    assert_outcome(asker_swap_and_tell(other, "n/lost", &version, "on", "one", "told"), DM_REG_DONE);
    until(one->tells == 1);
    end_test(one, other);
}

/* While the slot moves, keys are read and swapped on both nodes; a new key waits.  Then all are there. */
static void test_moving_slot_loses_nothing(void **state)
{
    struct asker *one, *other;
    struct dm_reg_version versions[10], created = absent;
    struct dm_reg_item item = { .key = "n/new" };
    char key[16], identity[DM_REG_IDENTITY_ROOM];
    struct move move;
    int from;

    (void)state;
    begin_test(&one, &other);
    memset(versions, 0, sizeof versions);
    for (int i = 0; i < 10; i++) {
        snprintf(key, sizeof key, "n/%d", i);
        assert_outcome(asker_swap(one, key, &versions[i], "before"), DM_REG_DONE);
    }
    memcpy(identity, one->identity, sizeof identity);
    from = cluster_master(the_cluster, slot);
    cluster_move_begin(the_cluster, slot, (from + 1) % 3, &move);
    cluster_move_key(&move, "dmutex:{~registers}:register:n/3");
    assert_outcome(asker_read(one, "n/4", NULL), DM_REG_DONE);
    item.value = asker_value(one, "new", &item.size);
    memcpy(created.bytes, item.value, sizeof created.bytes);
    asker_post(one, &item, 1, true);
    for (int i = 0; i < 20; i++)
        asker_turn(one);
    assert_int_equal(one->answered, 0);
    while (cluster_move_step(&move))
        continue;
    cluster_move_finish(&move);
    until(one->answered == 1 && have_moved(one, other, identity));
    if (one->asked[0].reply.outcome == DM_REG_DONE)
        assert_outcome(asker_read(other, "n/new", &created), DM_REG_SAME);
    else
        assert_outcome(&one->asked[0], DM_REG_UNKNOWN);
    for (int i = 0; i < 10; i++) {
        snprintf(key, sizeof key, "n/%d", i);
        assert_outcome(asker_swap(other, key, &versions[i], "after"), DM_REG_DONE);
    }
    assert_outcome(asker_swap_and_tell(other, "n/1", &versions[1], "on", "one", "told"), DM_REG_DONE);
    until(one->tells == 1);
    end_test(one, other);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_failover_that_loses_a_swap_is_another_identity),
        cmocka_unit_test(test_moving_slot_loses_nothing),
    };

    test_begin(argc, argv);
    return cmocka_run_group_tests(tests, begin, cluster_group_teardown);
}
