/* SPDX-License-Identifier: BSD-2-Clause */
/* The suite of drivers, on the driver of ZooKeeper. */
#include "../lib/testlib.h"
#include "driver.h"
#include "stores/zookeeper/open.h"
#include "zkserver.h"

static struct zkserver *server;
static struct dm_url *url;

static struct dm_reg_driver *open_driver(void *user, const struct dm_reg_client *client)
{
    char reason[DM_REASON_ROOM];

    (void)user;
    return dm_zookeeper_driver_open(url, client, reason);
}

static void cut(void *user)
{
    (void)user;
    zkserver_kill(server, 0);
    zkserver_restart(server, 0);
}

/* As an administrator draws an epoch after a copy was restored. */
static void change_data(void *user)
{
    static int drawn;
    char epoch[64];

    snprintf(epoch, sizeof epoch, "%032x", ++drawn);
    zkserver_set_epoch(server, epoch);
    cut(user);
}

int main(int argc, char **argv)
{
    struct driver_bed bed = { .name = "zookeeper", .open = open_driver, .cut = cut, .change_data = change_data };
    char text[256], reason[DM_REASON_ROOM];
    int failures;

    if (!zkserver_is_possible()) {
        puts("1..0 # SKIP no ZooKeeper is installed (package zookeeper)");
        return 0;
    }
    test_begin(argc, argv);
    server = zkserver_start(1);
    snprintf(text, sizeof text, "%s?command_timeout=%d", server->url, WAIT_LIMIT_MS);
    url = dm_url_parse(text, reason);
    if (!url)
        fail_msg("%s", reason);
    failures = driver_suite(&bed);
    dm_url_free(url);
    zkserver_end(server);
    return failures;
}
