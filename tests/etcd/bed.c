/* SPDX-License-Identifier: BSD-2-Clause */
/* etcd for the tests of the public functions. */
#include "../registers/bed.h"

#include <stdlib.h>

#include "../lib/testlib.h"
#include "../registers/etcdserver.h"

static struct etcdserver *server;
static char url[160];

bool bed_is_possible(void)
{
    if (!etcdserver_is_possible())
        puts("1..0 # SKIP no etcd is installed (package etcd-server)");
    return etcdserver_is_possible();
}

static void use(struct etcdserver *started)
{
    server = started;
    snprintf(url, sizeof url, "%s?grace=off", server->url);
}

void bed_begin(void)
{
    use(etcdserver_start(1));
}

void bed_begin_with_tls(const char *certificate, const char *key)
{
    use(etcdserver_start_with_tls(certificate, key));
}

void bed_end(void)
{
    etcdserver_end(server);
}

const char *bed_url(void)
{
    return url;
}

const char *bed_url_without_grace(void)
{
    return url;
}

const char *bed_url_with_authority(const char *path)
{
    static char text[256];

    snprintf(text, sizeof text, "%s&cacert=%s", url, path);
    return text;
}

const char *bed_folder(void)
{
    return server->folder;
}

void bed_crash(void)
{
    etcdserver_kill(server, 0);
    etcdserver_restart(server, 0);
}

/* A member has no word for it. */
void bed_cut(void)
{
    bed_crash();
}

void bed_change_data(void)
{
    etcdserver_put(server, "/dmutex/epoch", "0123456789abcdef0123456789abcdef");
}

const char *bed_version_of(const char *key)
{
    char whole[96];

    snprintf(whole, sizeof whole, "/dmutex/r/%s", key);
    return etcdserver_version_of(server, whole);
}

int bed_count_sessions(void)
{
    return etcdserver_count(server, "/dmutex/r/s/");
}

/* For commands, and for the watch of the inbox. */
const int bed_connections_each = 2;

int bed_count_connections(void)
{
    return etcdserver_count_connections(server);
}
