/* SPDX-License-Identifier: BSD-2-Clause */
/* What all words share: options, the server, failures. */
#include "tool.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <dmutex/dmutex.h>

#include "base/conffile.h"
#include "say.h"
#include "store/url.h"

/* "+": options end where the arguments begin, because behind a name there may be a command. */
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

/* The sentence of the URL's parser has no password in it. */
static int use(const char *url, const char *from)
{
    if (dmutex_configure_np(url) == 0)
        return 0;
    say("%s: %s", from, dmutex_strerror_np());
    return TOOL_CONFIG;
}

/*
 * The library falls back to local:, a server of this machine, when no server is named.  A person who looks at locks, or
 * runs a job under a lock, would then see, or have, locks that no other host knows.
 */
int tool_configure(void)
{
    static struct dm_conffile file;
    const char *environment = getenv("DMUTEX_URL");
    char reason[DM_CONFFILE_REASON_ROOM];

    if (environment && *environment)
        return use(environment, "DMUTEX_URL");
    if (!dm_conffile_read_all(&file, reason)) {
        say("%s", reason);
        return TOOL_CONFIG;
    }
    if (*file.url)
        return use(file.url, file.url_from);
    say("no server is configured: write Url=redis://HOST into [server] of " DM_CONFFILE_SYSTEM
        ", or set DMUTEX_URL; DMUTEX_URL=local: is the private server of this user on this machine");
    return TOOL_CONFIG;
}

int tool_failed(const char *name)
{
    char text[SAY_NAME_ROOM];

    if (name)
        say("%s: %s", say_name(name, text), dmutex_strerror_np());
    else
        say("%s", dmutex_strerror_np());
    return TOOL_UNREACHABLE;
}
