/* SPDX-License-Identifier: BSD-2-Clause */
/* URLs: a URL that is taken can be used; a URL that is not taken is refused in a sentence without secrets. */
#include <string.h>
#include <sys/un.h>

#include "config/url.h"
#include "fuzz.h"

#define SECRET "s3cret"
#define SECRET_ENCODED "s3%63ret"

static const char *const seeds[] = {
    "redis+sentinel://user:s3cret@s1,s2:26380,[::1]/mymaster/2?sentinel_user=x&switch=6000&wait=1",
    "redis-sentinel://s1:26379,s2/0?sentinelMasterId=m",
    "redis+cluster://user:s3cret@n1,n2:7001,[::1]?switch=6000&wait=1&tls=yes",
    "redis-cluster://n1,n2/0",
    "redis://host?wait=2&command_timeout=100",
    "redis://host",
    "redis://user:s3cret@host:7000/3?connect_timeout=100&command_timeout=200",
    "redis://:s3cret@[::1]:6379",
    "redis://%75ser:s3%63ret@h",
    "unix:///run/redis/s",
    "unix://user:s3cret@/run/s?db=2&prefix=other&grace=off",
    "local:",
    "local:?eviction=allow",
    "redis://h?password_file=/dev/null",
    "rediss://h",
    "rediss://h?cacert=/dev/null&cert=/dev/null&key=/dev/null&servername=a&verify=none",
    "unix:///run/redis/s?tls=yes&servername=a&user_file=/dev/null",
    "redis://:s3cret?@h",
    "redis://a,b",
    "redis://user:s3cret",
    "redis://h?password_file=s3cret",
    NULL,
};

static const char *const words[] = {
    "redis://",
    "unix://",
    "local:",
    "rediss://",
    "redis+sentinel://",
    "redis-sentinel://",
    "redis+cluster://",
    "addr=",
    "sentinel_user=",
    "sentinel_password_file=",
    "switch=",
    "wait=",
    ",[::1]:26379",
    "/mymaster",
    "@",
    ":",
    "/",
    "?",
    "&",
    "=",
    "[",
    "]",
    "%",
    "%2",
    "%00",
    "%41",
    "s3cret",
    "s3cret@",
    ":s3cret@",
    "s3%63ret",
    "db=",
    "prefix=",
    "grace=on",
    "grace=off",
    "eviction=allow",
    "connect_timeout=",
    "command_timeout=",
    "password_file=",
    "user_file=",
    "cacert=",
    "cert=",
    "key=",
    "servername=",
    "tls=yes",
    "verify=none",
    ",",
    "#",
    NULL,
};

const struct fuzzer fuzzer = { "url", seeds, words, 60000, 8000000 };

/* True if the reason contains the name of an option, which follows any login: after an '@', or if there is no colon. */
static bool tells_option(const char *text, const char *reason)
{
    size_t address = strcspn(text, "?"), scheme = strcspn(text, ":") + 1;
    const char *login_end = strrchr(text, '@');
    char name[50];

    if (sscanf(reason, "option %*d, \"%49[^\"]\",", name) != 1)
        return false;
    must(strstr(login_end ? login_end : text + address, name));
    must(memchr(text, '@', address) || !memchr(text + scheme, ':', address - scheme));
    return true;
}

/*
 * The secret may be anywhere in the URL, and is printed nowhere, except for the path of a file, which begins with a
 * slash and follows any login, and for the name of an option.
 */
static void must_be_silent(const char *text, const char *reason)
{
    const char *login_end = strrchr(text, '@');

    static const char *const files[] = { "password_file", "user_file", "cacert", "cert", "key" };

    for (size_t i = 0; i < sizeof files / sizeof files[0]; i++) {
        size_t length = strlen(files[i]);

        if (strncmp(reason, files[i], length) != 0 || strncmp(reason + length, " \"", 2) != 0)
            continue;
        must(reason[length + 2] == '/');
        must(strstr(login_end ? login_end : text, files[i]));
        return;
    }
    must(tells_option(text, reason) || (!strstr(reason, SECRET) && !strstr(reason, SECRET_ENCODED)));
}

static void must_be_usable(const struct dm_url *url)
{
    char text[DM_REASON_ROOM];

    must(url->prefix && strlen(url->prefix) <= 64 && !strpbrk(url->prefix, "{} \r\n"));
    must(url->connect_timeout_ms >= 1 && url->command_timeout_ms >= 1);
    must(!url->password || strlen(url->password) < 100000);
    if (url->kind == DM_URL_SENTINEL)
        must(url->host_count >= 1 && url->host_count <= DM_URL_HOSTS_MOST && url->master && *url->master &&
             url->switch_ms >= url->command_timeout_ms);
    if (url->kind == DM_URL_CLUSTER)
        must(url->host_count >= 1 && url->host_count <= DM_URL_HOSTS_MOST && !url->master && url->db == 0 &&
             url->switch_ms >= url->command_timeout_ms);
    must((url->switch_ms != 0) == (url->host_count > 0));
    if (url->kind == DM_URL_TCP)
        must(url->host && *url->host && atoi(url->port) >= 1 && atoi(url->port) <= 65535);
    if (url->kind == DM_URL_UNIX)
        must(url->path[0] == '/' && strlen(url->path) < sizeof((struct sockaddr_un *)0)->sun_path);
    dm_url_describe(url, text, sizeof text);
    dm_url_describe(url, text, 2);
    must(strlen(text) <= 1);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length)
{
    const char *text = fuzz_text(bytes, length);
    char reason[DM_REASON_ROOM] = "";
    struct dm_url *url = dm_url_parse(text, reason);

    if (url)
        must_be_usable(url);
    else
        must(reason[0] && strlen(reason) < DM_REASON_ROOM);
    if (!url)
        must_be_silent(text, reason);
    dm_url_free(url);
    return 0;
}
