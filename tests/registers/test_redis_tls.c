/* SPDX-License-Identifier: BSD-2-Clause */
/* The suite of drivers on the driver of Redis: one server, over TLS. */
#include "redisbed.h"

#include "../lib/tls.h"

static struct tls_server *tls;

static void cut(void *user)
{
    (void)user;
    redisbed_cut(tls->server);
}

static void change_data(void *user)
{
    (void)user;
    server_kill(tls->server);
    server_restart(tls->server);
}

int main(int argc, char **argv)
{
    struct driver_bed bed = { .name = "redis_tls", .open = redisbed_open, .cut = cut, .change_data = change_data };
    int failures;

    test_begin(argc, argv);
    tls_begin();
    tls = tls_server_start("server", "no", NULL);
    bed.user = redisbed_url(tls->url);
    failures = driver_suite(&bed);
    tls_server_end(tls);
    tls_end();
    dm_url_free(bed.user);
    return failures;
}
