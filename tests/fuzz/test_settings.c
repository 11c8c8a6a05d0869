/* SPDX-License-Identifier: BSD-2-Clause */
/* The environment, a line NAME=value each: settings that are read can be used, for all values. */
#include <ctype.h>
#include <signal.h>
#include <stdbool.h>
#include <string.h>
#include <sys/un.h>

#include "base/ident.h"
#include "base/log.h"
#include "fuzz.h"
#include "process/settings.h"

static const char *const seeds[] = {
    "DMUTEX_URL=redis://host:1\nDMUTEX_ONLOST=signal:SIGTERM\nDMUTEX_ONDOWN=fail",
    "DMUTEX_LOCAL_DIR=/tmp/x\nDMUTEX_URL=local:\nDMUTEX_HOST=my host",
    "DMUTEX_ONLOST=abort",
    "DMUTEX_ONLOST=signal:USR1\nDMUTEX_HOST=\xc3\xa4",
    "DMUTEX_URL=\nDMUTEX_LOCAL_DIR=",
    NULL,
};

static const char *const words[] = {
    "DMUTEX_URL=",
    "DMUTEX_ONLOST=",
    "DMUTEX_ONDOWN=",
    "DMUTEX_LOCAL=",
    "DMUTEX_LOCAL_DIR=",
    "DMUTEX_HOST=",
    "forbid",
    "signal:",
    "signal:SIG",
    "SIGRTMIN",
    "abort",
    "log",
    "fail",
    "local:",
    "unix:///s",
    "redis://h",
    "\n",
    "=",
    "/0123456789/0123456789/0123456789/0123456789/0123456789/0123456789/0123456789/0123456789/0123456789",
    NULL,
};

const struct fuzzer fuzzer = { "settings", seeds, words, 30000, 2000000 };

static const char *const names[] = { "DMUTEX_URL",   "DMUTEX_ONLOST",    "DMUTEX_ONDOWN",
                                     "DMUTEX_LOCAL", "DMUTEX_LOCAL_DIR", "DMUTEX_HOST" };

/* Leaves out lines with other names, because a line could set PATH. Avoids setenv(), which never frees values. */
static void set_environment(char *lines)
{
    char *line;

    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        unsetenv(names[i]);
    while ((line = strsep(&lines, "\n"))) {
        for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
            size_t length = strlen(names[i]);

            if (strncmp(line, names[i], length) == 0 && line[length] == '=')
                putenv(line);
        }
    }
}

/* Unknown values are reported; here the report is ignored. */
static void ignore(int level, const char *message, void *user)
{
    (void)user;
    must(level > 0 && message);
}

static void check_url(struct dm_url *url)
{
    must(url);
    if (url->kind != DM_URL_TCP)
        must(url->path && strlen(url->path) < sizeof((struct sockaddr_un *)0)->sun_path);
    dm_url_free(url);
}

/* Three words: scripts store a label between blanks. A digit at first: no label looks like a mark of a hold. */
static void check_label(const char *host)
{
    struct dm_ident ident;
    int blanks = 0;

    dm_ident_draw(&ident, host);
    for (const char *at = ident.label; *at; at++) {
        must(isgraph((unsigned char)*at) || *at == ' ');
        blanks += *at == ' ';
    }
    must(isdigit((unsigned char)ident.label[0]));
    must(blanks == 2 && strlen(ident.uuid) == DM_UUID_LENGTH);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length)
{
    static char lines[FUZZ_INPUT_MAX + 1];
    struct dm_settings settings;
    struct dm_url *url = NULL;
    int error;

    if (length > FUZZ_INPUT_MAX)
        return 0;
    strcpy(lines, fuzz_text(bytes, length));
    set_environment(lines);
    dm_log_set(ignore, NULL);
    error = dm_settings_read(NULL, &settings, &url);
    must((settings.on_lost == DM_LOST_SIGNAL) == (settings.lost_signal > 0 && settings.lost_signal < NSIG));
    must(settings.on_lost == DM_LOST_SIGNAL || settings.lost_signal == 0);
    check_label(settings.host);
    if (!error)
        check_url(url);
    free(settings.metrics);
    return 0;
}
