/* SPDX-License-Identifier: BSD-2-Clause */
/* Makes URLs of single servers from a URL that has a list. */
#include <stdlib.h>
#include <string.h>

#include "config/login.h"
#include "config/url_parts.h"

/* A NULL text is copied as NULL, and returns true. */
static bool copy(char **slot, const char *text)
{
    *slot = text ? strdup(text) : NULL;
    return *slot || !text;
}

static bool copy_texts(struct dm_url *url, const struct dm_url *list)
{
    return copy(&url->user_file, list->user_file) && copy(&url->password_file, list->password_file) &&
           copy(&url->prefix, list->prefix) && copy(&url->servername, list->servername) &&
           copy(&url->cacert, list->cacert) && copy(&url->cert, list->cert) && copy(&url->key, list->key);
}

/* Leaves out the texts, which would have two owners. */
static struct dm_url *copy_settings(const struct dm_url *list)
{
    struct dm_url *url = calloc(1, sizeof *url);

    if (!url)
        return NULL;
    url->kind = DM_URL_TCP;
    url->db = list->db;
    url->wait = list->wait;
    url->switch_ms = list->switch_ms;
    url->connect_timeout_ms = list->connect_timeout_ms;
    url->command_timeout_ms = list->command_timeout_ms;
    url->may_evict = list->may_evict;
    url->has_grace = list->has_grace;
    url->has_tls = list->has_tls;
    url->is_verified = list->is_verified;
    return url;
}

static struct dm_url *or_nothing(struct dm_url *url, bool is_whole)
{
    if (is_whole)
        return url;
    dm_url_free(url);
    return NULL;
}

struct dm_url *dm_url_of_server(const struct dm_url *list, const char *host, const char *port)
{
    struct dm_url *url = copy_settings(list);

    return url ? or_nothing(url, copy_texts(url, list) && copy(&url->host, host) && copy(&url->port, port) &&
                                     copy(&url->user, list->user) && copy(&url->password, list->password))
               : NULL;
}

struct dm_url *dm_url_of_sentinel(const struct dm_url *list, const char *host, const char *port)
{
    struct dm_url *url = dm_url_of_server(list, host, port);

    if (!url)
        return NULL;
    url->db = 0;
    free(url->user);
    dm_login_wipe(url->password);
    free(url->user_file);
    free(url->password_file);
    url->user = url->password = url->user_file = url->password_file = NULL;
    return or_nothing(url, copy(&url->user, list->sentinel_user) && copy(&url->password, list->sentinel_password) &&
                               copy(&url->password_file, list->sentinel_password_file));
}
