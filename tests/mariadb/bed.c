/* SPDX-License-Identifier: BSD-2-Clause */
/* MariaDB for the tests of the public functions. */
#include "../registers/bed.h"

#include <stdlib.h>

#include "../lib/testlib.h"
#include "../registers/mariaserver.h"

static struct mariaserver *server;
static char url[128];

bool bed_is_possible(void)
{
    if (!mariaserver_is_possible())
        puts("1..0 # SKIP no MariaDB is installed (package mariadb-server-core)");
    return mariaserver_is_possible();
}

void bed_begin(void)
{
    server = mariaserver_start();
    snprintf(url, sizeof url, "%s&grace=off", server->url);
}

void bed_begin_with_tls(const char *certificate, const char *key)
{
    server = mariaserver_start();
    snprintf(url, sizeof url, "%s?grace=off&tls=yes", mariaserver_use_tls(server, certificate, key));
}

void bed_end(void)
{
    mariaserver_end(server);
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
    mariaserver_kill(server);
    mariaserver_restart(server, NULL);
}

void bed_cut(void)
{
    mariaserver_cut(server);
}

void bed_change_data(void)
{
    mariaserver_sql(server, "UPDATE locks.dmutex_epoch SET id = UNHEX(REPLACE(UUID(), '-', ''))");
}

const char *bed_version_of(const char *key)
{
    return mariaserver_sql(server, "SELECT HEX(version) FROM locks.dmutex_registers WHERE name = '%s'", key);
}

int bed_count_sessions(void)
{
    return atoi(mariaserver_sql(server, "SELECT COUNT(*) FROM locks.dmutex_registers WHERE name LIKE 's/%%'"));
}

const int bed_connections_each = 1;

int bed_count_connections(void)
{
    return atoi(mariaserver_sql(server, "SELECT COUNT(*) FROM information_schema.PROCESSLIST WHERE DB = 'locks'"));
}
