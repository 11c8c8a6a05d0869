/* SPDX-License-Identifier: BSD-2-Clause */
/* memcached for the tests of the public functions. */
#include "../registers/bed.h"

#include "../lib/testlib.h"
#include "../registers/mcserver.h"

static struct mcserver *server;
static struct proxy *proxy;
static char url[96];

bool bed_is_possible(void)
{
    return mcserver_is_possible();
}

void bed_begin(void)
{
    server = mcserver_start("-M");
    proxy = mcserver_proxy(server);
    snprintf(url, sizeof url, "memcached://127.0.0.1:%d?lossy=yes&grace=off", proxy_port(proxy));
}

void bed_end(void)
{
    proxy_end(proxy);
    mcserver_end(server);
}

const char *bed_url(void)
{
    return url;
}

const char *bed_url_without_grace(void)
{
    return url;
}

const char *bed_folder(void)
{
    return server->folder;
}

/* A server that has been killed has no data: see test_losses.  What is asked in the moment of the cut has no answer. */
void bed_crash(void)
{
    int open = proxy_open(proxy);

    proxy_cut(proxy);
    wait_until(proxy_open(proxy) >= open);
}

void bed_cut(void)
{
    proxy_cut(proxy);
}

void bed_change_data(void)
{
    mcserver_ask(server, "flush_all");
}

const char *bed_version_of(const char *key)
{
    static char text[24];

    snprintf(text, sizeof text, "%lu", mcserver_version_of(server, key));
    return text;
}

int bed_count_sessions(void)
{
    return mcserver_count(server, "s/");
}

const int bed_connections_each = 1;

int bed_count_connections(void)
{
    return proxy_open(proxy);
}
