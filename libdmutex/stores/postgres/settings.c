/* SPDX-License-Identifier: BSD-2-Clause */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "stores/postgres/parts.h"

#define KEY_TOLD_MAX 40
#define TIMEOUT_MAX_S 3600

static PQconninfoOption *find(PQconninfoOption *options, const char *keyword)
{
    for (PQconninfoOption *option = options; option->keyword; option++) {
        if (strcmp(option->keyword, keyword) == 0)
            return option;
    }
    return NULL;
}

static const char *value_of(PQconninfoOption *options, const char *keyword)
{
    PQconninfoOption *option = find(options, keyword);

    return option && option->val && option->val[0] ? option->val : NULL;
}

/*
 * libpq's own complaint would quote what it does not understand, which may be half a password.  So its options are
 * looked up here first, and only a key that is certainly none of the login is quoted.
 */
static bool check_keys(const char *url, char *ret_reason)
{
    PQconninfoOption *known = PQconninfoParse("", NULL);
    const char *key = strchr(url, '?');
    char name[KEY_TOLD_MAX + 1];

    for (int number = 1; known && key && key[1]; number++) {
        size_t length = strcspn(++key, "=&");

        if (length <= KEY_TOLD_MAX && strspn(key, "abcdefghijklmnopqrstuvwxyz_") >= length) {
            memcpy(name, key, length);
            name[length] = '\0';
            if (!find(known, name) && strcmp(name, "ssl") != 0) {
                snprintf(ret_reason, DM_REASON_ROOM,
                         "option %d, \"%s\", is neither libpq's nor ours: ours are dmutex.prefix, "
                         "dmutex.command_timeout and dmutex.grace",
                         number, name);
                PQconninfoFree(known);
                return false;
            }
        }
        key = strchr(key, '&');
    }
    PQconninfoFree(known);
    return true;
}

/* Without its @, a login looks like a host and a port, and libpq would quote the port. */
static bool check_port(struct dm_pg_settings *settings, char *ret_reason)
{
    const char *port = value_of(settings->options, "port");

    if (!port || port[strspn(port, "0123456789,")] == '\0')
        return true;
    snprintf(ret_reason, DM_REASON_ROOM, "the port is not a number (a user and password end with an @)");
    return false;
}

/* libpq counts in seconds, 0 and nothing being for ever.  Nobody waits that long for a lock's server. */
static void read_timeout(struct dm_pg_settings *settings)
{
    const char *text = value_of(settings->options, "connect_timeout");
    long seconds = text ? strtol(text, NULL, 10) : 0;

    if (seconds > 0 && seconds <= TIMEOUT_MAX_S)
        settings->connect_timeout_ms = (unsigned)seconds * 1000;
}

/* HOST:PORT/DATABASE of the first host, as far as the URL says it. */
static void describe(struct dm_pg_settings *settings)
{
    const char *host = value_of(settings->options, "host"), *port = value_of(settings->options, "port");
    const char *database = value_of(settings->options, "dbname"), *service = value_of(settings->options, "service");
    const char *address = value_of(settings->options, "hostaddr");

    if (!host)
        host = address;
    if (!host && service)
        snprintf(settings->place, sizeof settings->place, "PostgreSQL, service %.100s", service);
    else
        snprintf(settings->place, sizeof settings->place, "PostgreSQL at %.*s%s%.*s%s%.63s",
                 host ? (int)strcspn(host, ",") : 18, host ? host : "the usual place", port ? ":" : "",
                 port ? (int)strcspn(port, ",") : 0, port ? port : "", database ? "/" : "", database ? database : "");
    dm_text_clean(settings->place);
}

bool dm_pg_settings_read(struct dm_pg_settings *settings, const struct dm_reg_place *place,
                         char ret_reason[DM_REASON_ROOM])
{
    *settings = (struct dm_pg_settings){ .connect_timeout_ms = place->connect_timeout_ms,
                                         .command_timeout_ms = place->command_timeout_ms };
    if (!check_keys(place->url, ret_reason))
        return false;
    snprintf(ret_reason, DM_REASON_ROOM,
             "libpq cannot read the URL: a \"?\", \"@\", \"/\" or \"%%\" in a user name or "
             "password is written %%3F, %%40, %%2F and %%25, and an option name=value");
    settings->options = PQconninfoParse(place->url, NULL);
    settings->schema = strdup(place->prefix);
    if (!settings->options || !settings->schema) {
        dm_pg_settings_free(settings);
        return false;
    }
    if (value_of(settings->options, "replication")) {
        snprintf(ret_reason, DM_REASON_ROOM, "a connection for replication cannot lock: remove the option replication");
        dm_pg_settings_free(settings);
        return false;
    }
    if (!check_port(settings, ret_reason)) {
        dm_pg_settings_free(settings);
        return false;
    }
    read_timeout(settings);
    describe(settings);
    return true;
}

/* PQconninfoFree() does not wipe passwords, and neither do libpq's connections. */
void dm_pg_settings_free(struct dm_pg_settings *settings)
{
    PQconninfoFree(settings->options);
    free(settings->schema);
    settings->options = NULL;
    settings->schema = NULL;
}
