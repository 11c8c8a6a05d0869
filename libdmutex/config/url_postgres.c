/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * URLs of PostgreSQL.  libpq reads them, and only our options are taken off here: they begin with "dmutex.", as no
 * option of libpq does.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "config/login.h"
#include "config/url_parts.h"

#define OUR_OPTIONS "dmutex."
#define DEFAULT_TIMEOUT_MS 5000 /* a commit may wait for a disk */
#define SCHEMA_MAX 63           /* bytes of a name of PostgreSQL */

bool dm_url_is_postgres(struct dm_part text)
{
    static const char *const schemes[] = { "postgresql://", "postgres://" };

    for (size_t i = 0; i < sizeof schemes / sizeof schemes[0]; i++) {
        if (text.length >= strlen(schemes[i]) && memcmp(text.text, schemes[i], strlen(schemes[i])) == 0)
            return true;
    }
    return false;
}

static char *append(char *to, struct dm_part part)
{
    return mempcpy(to, part.text, part.length);
}

static bool set_grace(struct dm_url *url, struct dm_part value)
{
    url->has_grace = dm_part_is(value, "on");
    return url->has_grace || dm_part_is(value, "off");
}

/* `option` is without the prefix. */
static bool set_option(struct dm_url *url, struct dm_part option, char *ret_reason)
{
    bool found;
    struct dm_part key = dm_part_cut(&option, '=', &found);

    if (dm_part_is(key, "prefix"))
        return (option.length <= SCHEMA_MAX && dm_url_set_prefix(url, option)) ||
               dm_url_complain(ret_reason,
                               "the option dmutex.prefix is not 1..63 letters, digits, \".\", \"_\" and \"-\"");
    if (dm_part_is(key, "command_timeout"))
        return dm_part_number(option, 1, DM_URL_TIMEOUT_MAX_MS, &url->command_timeout_ms) ||
               dm_url_complain(ret_reason, "the option dmutex.command_timeout is not 1..3600000 milliseconds");
    if (dm_part_is(key, "grace"))
        return set_grace(url, option) ||
               dm_url_complain(ret_reason, "the option dmutex.grace is not \"on\" or \"off\"");
    return dm_url_complain(ret_reason,
                           "our options are dmutex.prefix, dmutex.command_timeout and dmutex.grace; all others "
                           "are libpq's");
}

/* What libpq is to read.  The first '?' begins the options, for libpq, too.  The text stays whole, to be wiped. */
static bool read_options(struct dm_url *url, struct dm_part where, struct dm_part options, char *ret_reason)
{
    char *to = append(url->database, where), mark = '?';
    size_t length = strlen(OUR_OPTIONS);
    bool found;

    *to = '\0';
    while (options.length) {
        struct dm_part option = dm_part_cut(&options, '&', &found);

        if (option.length >= length && memcmp(option.text, OUR_OPTIONS, length) == 0) {
            option.text += length;
            option.length -= length;
            if (!set_option(url, option, ret_reason))
                return false;
            continue;
        }
        *to++ = mark;
        to = append(to, option);
        *to = '\0';
        mark = '&';
    }
    return true;
}

bool dm_url_read_postgres(struct dm_url *url, struct dm_part text, char *ret_reason)
{
    bool found;
    struct dm_part options = text;
    struct dm_part where = dm_part_cut(&options, '?', &found);

    url->kind = DM_URL_POSTGRES;
    url->command_timeout_ms = DEFAULT_TIMEOUT_MS;
    url->database = malloc(text.length + 1);
    return url->database && read_options(url, where, options, ret_reason);
}

/*
 * The first host, if there is a login before it or certainly none: without its @, a user and password look like a host
 * and its port.
 */
void dm_url_describe_postgres(const struct dm_url *url, char *buf, size_t size)
{
    const char *place = strstr(url->database, "://") + 3, *end = place + strcspn(place, "/?");
    const char *at = memrchr(place, '@', (size_t)(end - place));
    size_t length;

    if (at)
        place = at + 1;
    length = strcspn(place, ",/?");
    if (length == 0 || length > 255 || (!at && memchr(place, ':', length)))
        snprintf(buf, size, "PostgreSQL");
    else
        snprintf(buf, size, "PostgreSQL at %.*s", (int)length, place);
}
