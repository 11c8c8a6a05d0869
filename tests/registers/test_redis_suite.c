/* SPDX-License-Identifier: BSD-2-Clause */
/* The suite of drivers on the driver of Redis: one server. */
#include "redisbed.h"

static struct server *server;

static void cut(void *user)
{
    (void)user;
    redisbed_cut(server);
}

/* Killed, and started again without its data. */
static void change_data(void *user)
{
    (void)user;
    server_kill(server);
    server_restart(server);
}

int main(int argc, char **argv)
{
    struct driver_bed bed = { .name = "redis", .open = redisbed_open, .cut = cut, .change_data = change_data };
    int failures;

    test_begin(argc, argv);
    server = server_start();
    bed.user = redisbed_url(server->url);
    failures = driver_suite(&bed);
    server_end(server);
    dm_url_free(bed.user);
    return failures;
}
