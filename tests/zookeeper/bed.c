/* SPDX-License-Identifier: BSD-2-Clause */
/* ZooKeeper for the tests of the public functions. */
#include "../registers/bed.h"

#include <stdlib.h>

#include "../lib/testlib.h"
#include "../registers/zkserver.h"

static struct zkserver *server;
static char url[160];

bool bed_is_possible(void)
{
    if (!zkserver_is_possible())
        puts("1..0 # SKIP no ZooKeeper is installed (package zookeeper)");
    return zkserver_is_possible();
}

static void use(struct zkserver *started)
{
    server = started;
    snprintf(url, sizeof url, "%s?grace=off", server->url);
}

void bed_begin(void)
{
    use(zkserver_start(1));
}

void bed_begin_with_tls(const char *certificate, const char *key)
{
    use(zkserver_start_with_tls(certificate, key));
}

void bed_end(void)
{
    zkserver_end(server);
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
    zkserver_kill(server, 0);
    zkserver_restart(server, 0);
}

/* A server has no word for it. */
void bed_cut(void)
{
    bed_crash();
}

void bed_change_data(void)
{
    zkserver_set_epoch(server, "0123456789abcdef0123456789abcdef");
}

const char *bed_version_of(const char *key)
{
    char whole[96], *at;
    int length = snprintf(whole, sizeof whole, "/dmutex/r/");

    snprintf(whole + length, sizeof whole - (size_t)length, "%s", key);
    for (at = whole + length; *at; at++)
        *at = *at == '/' ? ':' : *at;
    return zkserver_version_of(server, whole);
}

int bed_count_sessions(void)
{
    return zkserver_count(server, "/dmutex/r", "s:");
}

const int bed_connections_each = 1;

int bed_count_connections(void)
{
    return zkserver_count_connections(server);
}
