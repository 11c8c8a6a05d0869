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

struct dm_reg_driver *redisbed_open(void *user, const struct dm_reg_client *client)
{
    char reason[DM_REASON_ROOM];
    struct dm_reg_driver *driver = dm_redis_registers_open(user, client, reason);

    if (!driver)
        fail_msg("%s", reason);
    return driver;
}

void redisbed_cut(struct server *server)
{
    server_reconnect(server);
    side_int(server->side, "CLIENT KILL TYPE normal SKIPME yes");
    side_int(server->side, "CLIENT KILL TYPE pubsub");
}
