/* SPDX-License-Identifier: BSD-2-Clause */
/* The suite of drivers, on the driver of memcached. */
#include "../lib/testlib.h"
#include "driver.h"
#include "mcserver.h"
#include "stores/memcached/open.h"

static struct mcserver *server;
static struct proxy *proxy;
static struct dm_url *url;

static struct dm_reg_driver *open_driver(void *user, const struct dm_reg_client *client)
{
    char reason[DM_REASON_ROOM];

    (void)user;
    return dm_memcached_driver_open(url, client, reason);
}

static void close_driver(void *user, struct dm_reg_driver *driver)
{
    (void)user;
    driver->ops->free_unused(driver);
}

static void cut(void *user)
{
    (void)user;
    proxy_cut(proxy);
}

static void change_data(void *user)
{
    mcserver_ask(server, "flush_all");
    cut(user);
}

int main(int argc, char **argv)
{
    struct driver_bed bed = {
        .name = "memcached", .open = open_driver, .close = close_driver, .cut = cut, .change_data = change_data
    };
    char text[128], reason[DM_REASON_ROOM];
    int failures;

    if (!mcserver_is_possible())
        return 0;
    test_begin(argc, argv);
    server = mcserver_start("-M");
    proxy = mcserver_proxy(server);
    snprintf(text, sizeof text, "memcached://127.0.0.1:%d?lossy=yes&command_timeout=%d", proxy_port(proxy),
             WAIT_LIMIT_MS);
    url = dm_url_parse(text, reason);
    if (!url)
        fail_msg("%s", reason);
    failures = driver_suite(&bed);
    dm_url_free(url);
    proxy_end(proxy);
    mcserver_end(server);
    return failures;
}
