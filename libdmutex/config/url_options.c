/* SPDX-License-Identifier: BSD-2-Clause */
/* The options of a URL, after the question mark. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/text.h"
#include "config/login.h"
#include "config/url_parts.h"

#define PREFIX_MAX 64
#define DB_MAX 999999
#define WAIT_MAX 99
#define KEY_TOLD_MAX 40

/* ASCII only: isalnum() accepts other bytes in some locales, and the keys of a URL must not depend on that. */
static bool is_of_prefix(char byte)
{
    return (byte >= 'a' && byte <= 'z') || (byte >= 'A' && byte <= 'Z') || (byte >= '0' && byte <= '9') ||
           byte == '.' || byte == '_' || byte == '-';
}

/*
 * Checks the bytes before decoding, so escapes are refused, too: a prefix is part of each key, and should look there as
 * it does in the URL.
 */
bool dm_url_set_prefix(struct dm_url *url, struct dm_part value)
{
    if (value.length == 0 || value.length > PREFIX_MAX)
        return false;
    for (size_t i = 0; i < value.length; i++) {
        if (!is_of_prefix(value.text[i]))
            return false;
    }
    return dm_part_set(&url->prefix, value);
}

/* Quotes the path only if it begins with a slash and comes after any login: otherwise it may be the password itself. */
static bool complain_of_file(char *ret_reason, const char *option, const char *path, struct dm_part value,
                             const char *why)
{
    if (path[0] == '/' && !strchr(value.text, '@'))
        snprintf(ret_reason, DM_REASON_ROOM, "%s \"%.120s\": %.120s", option, path, why);
    else
        snprintf(ret_reason, DM_REASON_ROOM, "the %s: %.120s", option, why);
    return false;
}

/* The file is read again later, when the process may have another working directory. */
static char *absolute(const char *path)
{
    char *folder, *joined = NULL;

    if (path[0] == '/')
        return strdup(path);
    folder = getcwd(NULL, 0);
    if (folder && asprintf(&joined, "%s/%s", folder, path) < 0)
        joined = NULL;
    free(folder);
    return joined;
}

/* The first line of the file replaces a text in the URL. */
static bool read_file(char **file, char **text, const char *option, struct dm_part value, char *ret_reason)
{
    char *path = dm_part_decode(value), why[DM_REASON_ROOM] = "its path cannot be decoded", *line;

    free(*file);
    *file = path ? absolute(path) : NULL;
    line = *file ? dm_login_read_line(*file, why) : NULL;
    if (line) {
        dm_login_wipe(*text);
        *text = line;
    } else {
        complain_of_file(ret_reason, option, path ? path : "", value, why);
    }
    free(path);
    return line != NULL;
}

/* Certificates and keys are read for each connection; a path that cannot be read now is an error. */
static bool set_path(char **slot, const char *option, struct dm_part value, char *ret_reason)
{
    free(*slot);
    *slot = dm_part_decode(value);
    if (!*slot || (*slot)[0] != '/')
        return complain_of_file(ret_reason, option, "", value, "it is not an absolute path");
    if (euidaccess(*slot, R_OK) < 0)
        return complain_of_file(ret_reason, option, *slot, value, dm_text_error(errno));
    return true;
}

static bool set_connect_timeout(struct dm_url *url, struct dm_part value)
{
    return dm_part_number(value, 1, DM_URL_TIMEOUT_MAX_MS, &url->connect_timeout_ms);
}

static bool set_command_timeout(struct dm_url *url, struct dm_part value)
{
    return dm_part_number(value, 1, DM_URL_TIMEOUT_MAX_MS, &url->command_timeout_ms);
}

/* Refused for redis://HOST/DB, where the path has the number, so that no URL names two databases. */
static bool set_db(struct dm_url *url, struct dm_part value)
{
    return url->kind == DM_URL_UNIX && dm_part_number(value, 0, DB_MAX, &url->db);
}

/* These have no replicas of Redis, and evict nothing, or say otherwise that they may. */
static bool is_of_other_store(const struct dm_url *url)
{
    return url->kind == DM_URL_ETCD || url->kind == DM_URL_ZOOKEEPER || url->kind == DM_URL_MEMCACHED ||
           url->kind == DM_URL_MARIADB;
}

/* The default, to refuse a server that may evict keys, has no value of its own. */
static bool set_eviction(struct dm_url *url, struct dm_part value)
{
    return !is_of_other_store(url) && (url->may_evict = dm_part_is(value, "allow"));
}

static bool set_grace(struct dm_url *url, struct dm_part value)
{
    url->has_grace = dm_part_is(value, "on");
    url->is_grace_found = false;
    return url->has_grace || dm_part_is(value, "off");
}

/* rediss:// always has TLS. */
static bool set_tls(struct dm_url *url, struct dm_part value)
{
    if (dm_part_is(value, "no"))
        return !url->has_tls;
    url->has_tls = true;
    return dm_part_is(value, "yes");
}

/* "none" turns all checks off; there is nothing in between. */
static bool set_verify(struct dm_url *url, struct dm_part value)
{
    url->is_verified = dm_part_is(value, "full");
    return url->is_verified || dm_part_is(value, "none");
}

/* Only the kinds of URL with a default have this option. */
static bool set_switch(struct dm_url *url, struct dm_part value)
{
    return url->switch_ms && dm_part_number(value, 1, DM_URL_TIMEOUT_MAX_MS, &url->switch_ms);
}

/* A quorum has no such option: its servers already do the work of replicas. */
static bool set_wait(struct dm_url *url, struct dm_part value)
{
    return url->kind != DM_URL_QUORUM && !is_of_other_store(url) && dm_part_number(value, 0, WAIT_MAX, &url->wait);
}

static bool set_sentinel_user(struct dm_url *url, struct dm_part value)
{
    return url->kind == DM_URL_SENTINEL && value.length > 0 && dm_part_set(&url->sentinel_user, value);
}

/* "no" would be refused in any case. */
static bool set_lossy(struct dm_url *url, struct dm_part value)
{
    return url->kind == DM_URL_MEMCACHED && (url->is_lossy = dm_part_is(value, "yes"));
}

/* The kernel's limit is checked by who connects. */
static bool set_socket(struct dm_url *url, struct dm_part value)
{
    return url->kind == DM_URL_MARIADB && dm_part_set(&url->path, value) && url->path[0] == '/';
}

static bool set_servername(struct dm_url *url, struct dm_part value)
{
    return value.length > 0 && dm_part_set(&url->servername, value);
}

/*
 * Options for which the error lists the good values. The errors of file options say more: set_file().
 *
 * A prefix has no colon: rights on a prefix, "~billing:*", would also cover the prefix "billing:other".
 */
static const struct option {
    const char *name, *values;
    bool (*set)(struct dm_url *, struct dm_part value);
} options[] = {
    { "connect_timeout", "1..3600000 milliseconds", set_connect_timeout },
    { "command_timeout", "1..3600000 milliseconds", set_command_timeout },
    { "db", "0..999999, of unix:// alone (redis://host/DB has it in the path)", set_db },
    { "prefix", "1..64 letters, digits, \".\", \"_\" and \"-\"", dm_url_set_prefix },
    { "eviction", "\"allow\" (not of etcd://, zookeeper://, memcached:// and mariadb://)", set_eviction },
    { "grace", "\"on\" or \"off\"", set_grace },
    { "tls", "\"yes\" or \"no\" (rediss:// always has it)", set_tls },
    { "verify", "\"full\" or \"none\"", set_verify },
    { "servername", "the name in the server's certificate", set_servername },
    { "switch", "1..3600000 milliseconds, of redis+sentinel:// and redis+cluster:// alone", set_switch },
    { "wait", "0..99 replicas (not of redis+quorum://, etcd://, zookeeper://, memcached:// and mariadb://)", set_wait },
    { "lossy", "\"yes\", of memcached:// alone", set_lossy },
    { "socket", "an absolute path, of mariadb:// alone", set_socket },
    { "sentinel_user", "a user name, of redis+sentinel:// alone", set_sentinel_user },
};

/* True if the key names a file; *ret_is_good says whether the file can be used. */
static bool set_file(struct dm_url *url, struct dm_part key, struct dm_part value, char *ret_reason, bool *ret_is_good)
{
    if (dm_part_is(key, "password_file"))
        *ret_is_good = read_file(&url->password_file, &url->password, "password_file", value, ret_reason);
    else if (dm_part_is(key, "sentinel_password_file"))
        *ret_is_good = read_file(&url->sentinel_password_file, &url->sentinel_password, "sentinel_password_file", value,
                                 ret_reason);
    else if (dm_part_is(key, "user_file"))
        *ret_is_good = read_file(&url->user_file, &url->user, "user_file", value, ret_reason);
    else if (dm_part_is(key, "cacert"))
        *ret_is_good = set_path(&url->cacert, "cacert", value, ret_reason);
    else if (dm_part_is(key, "cert"))
        *ret_is_good = set_path(&url->cert, "cert", value, ret_reason);
    else if (dm_part_is(key, "key"))
        *ret_is_good = set_path(&url->key, "key", value, ret_reason);
    else
        return false;
    return true;
}

/* Our form of an option with which other clients list servers; NULL for other keys. */
static const char *meant(struct dm_part key)
{
    static const struct {
        const char *key, *sentence;
    } others[] = {
        { "sentinelMasterId", DM_URL_SENTINEL_FORM }, { "master_name", DM_URL_SENTINEL_FORM },
        { "master", DM_URL_SENTINEL_FORM },           { "sentinels", DM_URL_SENTINEL_FORM },
        { "sentinel_master", DM_URL_SENTINEL_FORM },  { "addr", DM_URL_LIST_FORMS },
        { "cluster", DM_URL_CLUSTER_FORM },           { "redis_cluster", DM_URL_CLUSTER_FORM },
    };

    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++) {
        if (dm_part_is(key, others[i].key))
            return others[i].sentence;
    }
    return NULL;
}

/* Without a login before it, the key may be part of the password: redis://me:1?secret=1 lacks the login's '@'. */
static bool may_be_told(struct dm_part key, bool is_behind_login)
{
    for (size_t i = 0; i < key.length; i++) {
        if (!is_of_prefix(key.text[i]))
            return false;
    }
    return is_behind_login && key.length && key.length <= KEY_TOLD_MAX && !strchr(key.text, '@');
}

/* number: 1 is the first option. */
static bool complain_of_key(int number, struct dm_part key, bool is_behind_login, char *ret_reason)
{
    char name[KEY_TOLD_MAX + 8] = "";

    if (may_be_told(key, is_behind_login))
        snprintf(name, sizeof name, ", \"%.*s\",", (int)key.length, key.text);
    snprintf(
        ret_reason, DM_REASON_ROOM,
        "option %d%s is not one of connect_timeout, command_timeout, db, prefix, user_file, password_file, eviction, "
        "grace, tls, cacert, cert, key, servername, verify, switch, wait, lossy, socket, sentinel_user and "
        "sentinel_password_file",
        number, name);
    return false;
}

/* False with the reason; for an unknown key the caller sets it. */
static bool set_option(struct dm_url *url, struct dm_part key, struct dm_part value, char *ret_reason,
                       bool *ret_is_known)
{
    bool is_good;

    *ret_is_known = true;
    if (set_file(url, key, value, ret_reason, &is_good))
        return is_good;
    for (size_t i = 0; i < sizeof options / sizeof options[0]; i++) {
        if (!dm_part_is(key, options[i].name))
            continue;
        if (options[i].set(url, value))
            return true;
        snprintf(ret_reason, DM_REASON_ROOM, "the option %s is not %s", options[i].name, options[i].values);
        return false;
    }
    *ret_is_known = meant(key) != NULL;
    return *ret_is_known && dm_url_complain(ret_reason, meant(key));
}

/* An empty option is refused, as one without '='; a '&' at the very end is accepted. */
bool dm_url_read_options(struct dm_url *url, struct dm_part left, bool is_behind_login, char *ret_reason)
{
    bool found, is_known;

    for (int number = 1; left.length; number++) {
        struct dm_part option = dm_part_cut(&left, '&', &found);
        struct dm_part key = dm_part_cut(&option, '=', &found);

        if (!found)
            return dm_url_complain(ret_reason, "an option is written name=value");
        if (!set_option(url, key, option, ret_reason, &is_known))
            return !is_known && complain_of_key(number, key, is_behind_login, ret_reason);
    }
    return true;
}
