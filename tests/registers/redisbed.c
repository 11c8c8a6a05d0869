/* SPDX-License-Identifier: BSD-2-Clause */
#include "redisbed.h"

#include <stdlib.h>

#include "stores/redis/registers/open.h"

struct dm_url *redisbed_url(const char *text)
{
    char reason[DM_REASON_ROOM];
    struct dm_url *url = dm_url_parse(text, reason);

    if (!url) {
        fprintf(stderr, "%s: %s\n", text, reason);
        exit(1);
    }
    url->connect_timeout_ms = url->command_timeout_ms = WAIT_LIMIT_MS;
    return url;
}

/* A driver that was used stays in memory for good: here a checker of leaks finds it. */
static struct opened {
    struct opened *next;
    const struct dm_reg_driver *driver;
} * opened;

struct dm_reg_driver *redisbed_open(void *user, const struct dm_reg_client *client)
{
    char reason[DM_REASON_ROOM];
    struct dm_reg_driver *driver = dm_redis_registers_open(user, client, reason);
    struct opened *entry = malloc(sizeof *entry);

    if (!driver || !entry)
        fail_msg("%s", driver ? "no memory" : reason);
    *entry = (struct opened){ opened, driver };
    opened = entry;
    return driver;
}

void redisbed_cut(struct server *server)
{
    server_reconnect(server);
    side_int(server->side, "CLIENT KILL TYPE normal SKIPME yes");
    side_int(server->side, "CLIENT KILL TYPE pubsub");
}
