/* SPDX-License-Identifier: BSD-2-Clause */
/* The suite of drivers on the driver of Redis: a group of Sentinel, whose master is replaced. */
#include "redisbed.h"

#include "../lib/sentinels.h"

static struct sentinels group;

static void cut(void *user)
{
    int master = sentinels_master(&group, 0);

    (void)user;
    assert_true(master >= 0);
    redisbed_cut(group.data[master]);
}

/* The new master may lack what the old one has acknowledged. */
static void change_data(void *user)
{
    (void)user;
    sentinels_switch(&group);
}

int main(int argc, char **argv)
{
    struct driver_bed bed = { .name = "redis_sentinel", .open = redisbed_open, .cut = cut, .change_data = change_data };
    int failures;

    test_begin(argc, argv);
    sentinels_start(&group, "");
    bed.user = redisbed_url(sentinels_url(&group, ""));
    failures = driver_suite(&bed);
    sentinels_end(&group);
    dm_url_free(bed.user);
    return failures;
}
