/* SPDX-License-Identifier: BSD-2-Clause */
#include "runtime/settings.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "base/conffile.h"
#include "base/error.h"
#include "base/log.h"
#include "spawn/local.h"

/* secure_getenv(): a program with more rights than its caller takes no settings from the caller. */
static bool is_env(const char *name, const char *value)
{
    const char *found = secure_getenv(name);

    return found && strcmp(found, value) == 0;
}

/* Checks a variable that has one of two values, or is absent.  Logs any other value. */
static void check_values(const char *name, const char *one, const char *other)
{
    const char *value = secure_getenv(name);

    if (value && *value && strcmp(value, one) != 0 && strcmp(value, other) != 0)
        dm_log_alarm("%s=%s is neither %s nor %s, and is ignored", name, value, one, other);
}

/* sigabbrev_np() knows the names without SIG; 0 is no signal. */
static int signal_by_name(const char *name)
{
    if (strncmp(name, "SIG", 3) == 0)
        name += 3;
    for (int number = 1; number < NSIG; number++) {
        const char *abbreviation = sigabbrev_np(number);

        if (abbreviation && strcmp(abbreviation, name) == 0)
            return number;
    }
    return 0;
}

/* A word that nobody knows is told and changes nothing: a typing error must not end the program at its first loss. */
static void read_on_lost(struct dm_settings *settings)
{
    const char *value = secure_getenv("DMUTEX_ONLOST");

    if (!value || strcmp(value, "log") == 0)
        return;
    if (strcmp(value, "abort") == 0) {
        settings->on_lost = DM_LOST_ABORT;
        return;
    }
    if (strncmp(value, "signal:", 7) == 0)
        settings->lost_signal = signal_by_name(value + 7);
    if (settings->lost_signal)
        settings->on_lost = DM_LOST_SIGNAL;
    else
        dm_log_alarm("DMUTEX_ONLOST=%s is none of log, abort and signal:NAME; a lost hold is only logged", value);
}

/* Whole milliseconds; anything else is logged and ignored. */
static void read_linger(struct dm_settings *settings)
{
    const char *value = secure_getenv("DMUTEX_LINGER");
    char *end;
    unsigned long ms;

    if (!value || !*value)
        return;
    errno = 0;
    ms = strtoul(value, &end, 10);
    if (*value < '0' || *value > '9' || *end || errno || ms >= UINT32_MAX)
        dm_log_alarm("DMUTEX_LINGER=%s is no number of milliseconds, and is ignored", value);
    else
        settings->linger_ms = (uint32_t)ms;
}

/* Read when a runtime is made, and again for another server; a change of the environment in between has no effect. */
void dm_settings_read(struct dm_settings *ret_settings)
{
    memset(ret_settings, 0, sizeof *ret_settings);
    check_values("DMUTEX_ONDOWN", "wait", "fail");
    ret_settings->fails_when_down = is_env("DMUTEX_ONDOWN", "fail");
    read_on_lost(ret_settings);
    read_linger(ret_settings);
}

/* The folder of a local server is checked when the URL is read, so that the sentence comes with the first call. */
static bool place_local(struct dm_url *url, char *ret_reason)
{
    return url->kind != DM_URL_LOCAL || dm_local_place(url, ret_reason);
}

/* Forbidden by DMUTEX_LOCAL or, without DMUTEX_LOCAL, by the file; ret_by says which. */
static bool is_local_forbidden(const struct dm_conffile *file, const char **ret_by)
{
    const char *environment = secure_getenv("DMUTEX_LOCAL");

    *ret_by = environment ? "DMUTEX_LOCAL" : file->forbidden_by;
    if (!environment)
        return file->forbids_local;
    if (strcmp(environment, "allow") != 0 && strcmp(environment, "forbid") != 0)
        dm_log_alarm("DMUTEX_LOCAL=%s is none of forbid and allow; it is taken as forbid", environment);
    return strcmp(environment, "allow") != 0;
}

/* Reads the URL.  `from` says where the URL was, for the sentence; NULL: DMUTEX_URL, or the application. */
static int read_url(const char *text, const char *from, struct dm_url **ret_url)
{
    char reason[DM_REASON_ROOM];
    struct dm_url *url = dm_url_parse(text, reason);
    bool is_memory_out;

    if (url && place_local(url, reason)) {
        *ret_url = url;
        return 0;
    }
    is_memory_out = errno == ENOMEM;
    dm_url_free(url);
    if (is_memory_out)
        return dm_fail(DM_FAIL_NO_MEMORY, NULL);
    return from ? dm_fail(DM_FAIL_BAD_FILE, "%.200s: Url: %s", from, reason)
                : dm_fail(DM_FAIL_BAD_ENV_URL, "%s", reason);
}

/* No call of the application and no variable names the server. */
static int read_url_of_file(const struct dm_conffile *file, struct dm_url **ret_url)
{
    const char *by;

    if (*file->url)
        return read_url(file->url, file->url_from, ret_url);
    if (is_local_forbidden(file, &by))
        return dm_fail(DM_FAIL_NO_SERVER, "by %s: set DMUTEX_URL, or Url= of [server] in " DM_CONFFILE_SYSTEM, by);
    dm_log_warn("no server is configured: falling back to \"local:\"; set DMUTEX_URL, or Url= in " DM_CONFFILE_SYSTEM
                ", to share mutexes with other hosts");
    return read_url("local:", NULL, ret_url);
}

/*
 * The application's URL goes before the environment's, and both before the file's.  The file is read in any case,
 * because it may set the lease; a bad file stops only a process that has no other URL.
 */
int dm_settings_url(const char *configured, struct dm_settings *settings, struct dm_url **ret_url)
{
    const char *environment = secure_getenv("DMUTEX_URL");
    const char *text = configured ? configured : environment;
    bool is_named = text && *text, is_good;
    char reason[DM_CONFFILE_REASON_ROOM];
    struct dm_conffile *file = malloc(sizeof *file);
    int error;

    if (!file)
        return dm_fail(DM_FAIL_NO_MEMORY, NULL);
    is_good = dm_conffile_read_all(file, reason);
    if (is_good)
        settings->lease_ms = file->lease_ms;
    if (is_good && *file->passed_over)
        dm_log_info("%s is not looked at: this user may not enter a folder on the way", file->passed_over);
    if (is_named && !is_good)
        dm_log_alarm("the configuration file is not used: %s", reason);
    if (is_named)
        error = read_url(text, NULL, ret_url);
    else
        error = is_good ? read_url_of_file(file, ret_url) : dm_fail(DM_FAIL_BAD_FILE, "%s", reason);
    free(file);
    return error;
}
