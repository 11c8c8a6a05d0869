/* SPDX-License-Identifier: BSD-2-Clause */
/* Shared by all subcommands: options, the server, failures. */
#include "tool.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <dmutex/dmutex.h>

#include "api/view.h"
#include "base/attrs.h"
#include "config/conffile.h"
#include "config/url.h"
#include "say.h"
#include "spawn/local.h"

/* "+": options end at the first argument, because a command may follow the name. */
int tool_option(int argc, char **argv, const char *letters, const struct option *options)
{
    int option = getopt_long(argc, argv, letters, options, NULL);

    if (option == '?')
        fprintf(stderr, "try: dmutex help%s\n", argv[0] + sizeof "dmutex" - 1);
    return option;
}

int tool_misused(char **argv, const char *format, ...)
{
    va_list args;

    fprintf(stderr, "%s: ", argv[0]);
    va_start(args, format);
    vfprintf(stderr, format, args);
    va_end(args);
    fprintf(stderr, "; try: dmutex help%s\n", argv[0] + sizeof "dmutex" - 1);
    return TOOL_USAGE;
}

/*
 * When no server is named, the library falls back to local:, a server of this machine.  Here, a look at locks, or a job
 * under a lock, would then concern locks that no other host knows.  So we return NULL and report the error.
 */
static const char *find_text(const char **ret_from)
{
    static struct dm_conffile file;
    const char *environment = getenv("DMUTEX_URL");
    char reason[DM_CONFFILE_REASON_ROOM];

    *ret_from = "DMUTEX_URL";
    if (environment && *environment)
        return environment;
    *ret_from = file.url_from;
    if (!dm_conffile_read_all(&file, reason))
        say("%s", reason);
    else if (*file.url)
        return file.url;
    else
        say("no server is configured: write Url=redis://HOST into [server] of " DM_CONFFILE_SYSTEM
            ", or set DMUTEX_URL; DMUTEX_URL=local: names the private server of this user on this machine");
    return NULL;
}

/* The URL parser's messages do not contain the password. */
int tool_configure(void)
{
    const char *from, *url = find_text(&from);

    if (!url)
        return TOOL_CONFIG;
    if (dmutex_configure_np(url) == 0)
        return 0;
    say("%s: %s", from, dmutex_strerror_np());
    return TOOL_CONFIG;
}

int tool_find_url(struct dm_url **ret_url)
{
    const char *from, *text = find_text(&from);
    char reason[DM_REASON_ROOM];
    struct dm_url *url = text ? dm_url_parse(text, reason) : NULL;

    if (!text)
        return TOOL_CONFIG;
    if (!url || (url->kind == DM_URL_LOCAL && !dm_local_place(url, reason))) {
        say("%s: %s", from, reason);
        return TOOL_CONFIG;
    }
    *ret_url = url;
    return 0;
}

bool tool_has_url(void)
{
    static struct dm_conffile file;
    const char *environment = getenv("DMUTEX_URL");
    char reason[DM_CONFFILE_REASON_ROOM];

    return (environment && *environment) || (dm_conffile_read_all(&file, reason) && *file.url);
}

/*
 * The library has no errno value for a refused login, because a waiting lock cannot tell a password that is being
 * changed from a wrong one.
 */
int tool_status(void)
{
    return dm_view_is_denied() ? TOOL_DENIED : TOOL_UNREACHABLE;
}

int tool_failed(const char *name)
{
    char text[SAY_NAME_ROOM];

    if (name && *name)
        say("%s: %s", say_name(name, text), dmutex_strerror_np());
    else
        say("%s", dmutex_strerror_np());
    if (strstr(dmutex_strerror_np(), "CLUSTERDOWN"))
        say("run dmutex doctor to see which nodes are missing");
    return tool_status();
}

int tool_failed_list(void)
{
    int status = tool_failed(NULL);

    if (status == TOOL_DENIED && dm_view_is_reachable())
        say("listing needs the right +scan: see dmutex acl --ops");
    return status;
}

int tool_foreign(const char *name)
{
    char text[SAY_NAME_ROOM];

    say("%s: the server has data under this name that libdmutex did not write", say_name(name, text));
    return TOOL_UNREACHABLE;
}

/* Init of an object checks the name, and fails with the same sentences as a lock would. */
int tool_take_name(int argc, char **argv)
{
    dmutex_t mutex;

    if (argc - optind != 1)
        return tool_misused(argv, argc > optind ? "give one lock only" : "give the name of a lock");
    if (dmutex_init_np(&mutex, argv[optind], NULL) != 0) {
        tool_failed(argv[optind]);
        return TOOL_USAGE;
    }
    return tool_configure();
}

int tool_only_name(int argc, char **argv, bool *ret_is_json)
{
    static const struct option options[] = { { "json", no_argument, NULL, 'j' }, { NULL, 0, NULL, 0 } };
    int option;

    while ((option = tool_option(argc, argv, "+", options)) != -1) {
        if (option == '?')
            return TOOL_USAGE;
        *ret_is_json = true;
    }
    return tool_take_name(argc, argv);
}

#define SECONDS_MAX 1e9

/* The comparison also rejects NaN. */
bool tool_read_seconds(const char *text, double *ret_seconds)
{
    char *end;
    double seconds = strtod(text, &end);

    if (end == text || *end || !(seconds >= 0 && seconds <= SECONDS_MAX))
        return false;
    *ret_seconds = seconds;
    return true;
}
