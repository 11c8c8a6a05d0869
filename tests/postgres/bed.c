/* SPDX-License-Identifier: BSD-2-Clause */
/* PostgreSQL for the tests of the public functions. */
#include "../registers/bed.h"

#include <stdlib.h>

#include "../lib/testlib.h"
#include "../registers/pgserver.h"

static struct pgserver *server;
static const char *tls_url;

bool bed_is_possible(void)
{
    if (!pgserver_is_possible())
        puts("1..0 # SKIP no PostgreSQL is installed (package postgresql)");
    return pgserver_is_possible();
}

/* All names are in doubt until the data have been there for a lease, which is the only long wait here. */
void bed_begin(void)
{
    struct actor *first;

    server = pgserver_start();
    first = actor_start_at(server->url);
    actor_do(first, "0", "init first lease=1000");
    actor_do(first, "0", "lock first");
    actor_do(first, "0", "unlock first");
    actor_end(first);
}

void bed_begin_with_tls(const char *certificate, const char *key)
{
    server = pgserver_start();
    tls_url = pgserver_use_tls(server, certificate, key);
}

void bed_end(void)
{
    pgserver_end(server);
}

const char *bed_url(void)
{
    return server->url;
}

const char *bed_url_without_grace(void)
{
    static char url[160];

    snprintf(url, sizeof url, "%s&dmutex.grace=off", server->url);
    return url;
}

const char *bed_url_with_authority(const char *path)
{
    static char url[256];

    snprintf(url, sizeof url, "%s&dmutex.grace=off&sslrootcert=%s", tls_url, path);
    return url;
}

const char *bed_folder(void)
{
    return server->folder;
}

void bed_crash(void)
{
    pgserver_kill(server);
    pgserver_restart(server);
}

void bed_cut(void)
{
    pgserver_sql(server,
                 "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name LIKE 'dmutex%%'");
}

void bed_change_data(void)
{
    pgserver_sql(server, "UPDATE dmutex.epoch SET id = gen_random_uuid()");
}

const char *bed_version_of(const char *key)
{
    return pgserver_sql(server, "SELECT encode(version, 'hex') FROM dmutex.registers WHERE name = '%s'", key);
}

int bed_count_sessions(void)
{
    return atoi(pgserver_sql(server, "SELECT count(*) FROM dmutex.registers WHERE name LIKE 's/%%'"));
}

const int bed_connections_each = 1;

int bed_count_connections(void)
{
    return atoi(pgserver_sql(server, "SELECT count(*) FROM pg_stat_activity WHERE application_name LIKE 'dmutex%%'"));
}
