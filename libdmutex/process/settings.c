/* SPDX-License-Identifier: BSD-2-Clause */
#include "process/settings.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/log.h"
#include "spawn/local.h"

/*
 * Settings come from the files first; an environment variable then overrides its key.  We use secure_getenv(), because
 * a program with more rights than its caller must not take settings from it.
 */

/* An unknown value is logged and changes nothing: a typing error must not end the program at its first loss. */
static void read_on_lost(struct dm_settings *settings)
{
    const char *value = secure_getenv("DMUTEX_ONLOST");

    if (value && !dm_conffile_on_lost(value, &settings->on_lost, &settings->lost_signal))
        dm_log_alarm("DMUTEX_ONLOST=%s is ignored: it must be log, abort or signal:NAME", value);
}

static void read_on_down(struct dm_settings *settings)
{
    const char *value = secure_getenv("DMUTEX_ONDOWN");

    if (value && *value && !dm_conffile_on_down(value, &settings->fails_when_down))
        dm_log_alarm("DMUTEX_ONDOWN=%s is ignored: it must be wait or fail", value);
}

static void read_linger(struct dm_settings *settings)
{
    const char *value = secure_getenv("DMUTEX_LINGER");

    if (value && *value && !dm_conffile_time(value, 0, UINT32_MAX - 1, &settings->linger_ms))
        dm_log_alarm("DMUTEX_LINGER=%s is ignored: it must be a time, such as 500ms, 2s or bare milliseconds", value);
}

static void read_metrics_names(struct dm_settings *settings)
{
    const char *value = secure_getenv("DMUTEX_METRICS_NAMES");

    if (value && *value && !dm_conffile_yes_or_no(value, &settings->has_metrics_names))
        dm_log_alarm("DMUTEX_METRICS_NAMES=%s is ignored: it must be yes or no", value);
}

static const char *value_of(const char *variable, const char *in_file)
{
    const char *value = secure_getenv(variable);

    return value && *value ? value : in_file;
}

/* Sets up the log first, because problems with the other values may be reported there. */
static void take_file(const struct dm_conffile *file, struct dm_settings *ret_settings)
{
    if (*file->log)
        dm_log_set_default(file->log, "Log of dmutex.conf");
    *ret_settings = (struct dm_settings){
        .fails_when_down = file->fails_when_down,
        .on_lost = file->on_lost,
        .lost_signal = file->lost_signal,
        .linger_ms = file->linger_ms,
        .lease_ms = file->lease_ms,
        .has_metrics_names = file->has_metrics_names,
    };
}

static bool take_environment(const struct dm_conffile *file, struct dm_settings *settings)
{
    read_on_down(settings);
    read_on_lost(settings);
    read_linger(settings);
    read_metrics_names(settings);
    snprintf(settings->host, sizeof settings->host, "%s", value_of("DMUTEX_HOST", file->host));
    settings->asks_for_metrics = *value_of("DMUTEX_METRICS", "");
    settings->metrics = strdup(value_of("DMUTEX_METRICS", file->metrics));
    return settings->metrics;
}

/* Checks the folder of a local server when the URL is read, so that the first call reports the error. */
static bool place_local(struct dm_url *url, char *ret_reason)
{
    return url->kind != DM_URL_LOCAL || dm_local_place(url, ret_reason);
}

/* Forbidden by DMUTEX_LOCAL or, without it, by the file; ret_by says which. */
static bool is_local_forbidden(const struct dm_conffile *file, const char **ret_by)
{
    const char *environment = secure_getenv("DMUTEX_LOCAL");

    *ret_by = environment ? "DMUTEX_LOCAL" : file->forbidden_by;
    if (!environment)
        return file->forbids_local;
    if (strcmp(environment, "allow") != 0 && strcmp(environment, "forbid") != 0)
        dm_log_alarm("DMUTEX_LOCAL=%s is taken as forbid: it must be forbid or allow", environment);
    return strcmp(environment, "allow") != 0;
}

/* Reads the URL.  `from` says where it was, for the error text; NULL: DMUTEX_URL, or the application. */
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

/* Only once: children of fork(), and a start that is tried again after a failure, would repeat it. */
static void tell_fallback(void)
{
    static bool is_told;

    if (!__atomic_exchange_n(&is_told, true, __ATOMIC_RELAXED))
        dm_log_alarm("no server is configured: falling back to \"local:\", so that only this user's processes on this "
                     "host exclude each other; set DMUTEX_URL, or Url= in " DM_CONFFILE_SYSTEM);
}

/* Neither the application nor the environment names the server. */
static int read_url_of_file(const struct dm_conffile *file, struct dm_url **ret_url)
{
    const char *by;

    if (*file->url)
        return read_url(file->url, file->url_from, ret_url);
    if (is_local_forbidden(file, &by))
        return dm_fail(DM_FAIL_NO_SERVER, "by %s: set DMUTEX_URL, or Url= of [server] in " DM_CONFFILE_SYSTEM, by);
    tell_fallback();
    return read_url("local:", NULL, ret_url);
}

/*
 * The application's URL overrides the environment's, and both override the file's.  A bad file stops only a process
 * that has no other URL.
 */
int dm_settings_read(const char *configured, struct dm_settings *ret_settings, struct dm_url **ret_url)
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
    if (!is_good)
        memset(file, 0, sizeof *file);
    take_file(file, ret_settings);
    if (*file->passed_over)
        dm_log_info("%s is not read: this user may not enter a folder on its path", file->passed_over);
    if (is_named && !is_good)
        dm_log_alarm("the configuration file is not used: %s", reason);
    if (!take_environment(file, ret_settings))
        error = dm_fail(DM_FAIL_NO_MEMORY, NULL);
    else if (is_named)
        error = read_url(text, NULL, ret_url);
    else
        error = is_good ? read_url_of_file(file, ret_url) : dm_fail(DM_FAIL_BAD_FILE, "%s", reason);
    free(file);
    return error;
}

void dm_settings_host(char ret_host[DM_HOST_ROOM])
{
    char reason[DM_CONFFILE_REASON_ROOM];
    struct dm_conffile *file = malloc(sizeof *file);
    bool is_good = file && dm_conffile_read_all(file, reason);

    dm_ident_host(value_of("DMUTEX_HOST", is_good ? file->host : ""), ret_host);
    free(file);
}
