/* SPDX-License-Identifier: BSD-2-Clause */
#include "runtime/settings.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/log.h"
#include "runtime/local.h"

static bool is_env(const char *name, const char *value)
{
    const char *found = secure_getenv(name);

    return found && strcmp(found, value) == 0;
}

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
        dm_log_error("DMUTEX_ONLOST=%s is none of log, abort and signal:NAME; a lost hold is only logged", value);
}

void dm_settings_read(struct dm_settings *ret_settings)
{
    memset(ret_settings, 0, sizeof *ret_settings);
    if (is_env("DMUTEX_SYNC_UNLOCK", "1"))
        ret_settings->sync_unlock = DM_SYNC_ALWAYS;
    else if (is_env("DMUTEX_SYNC_UNLOCK", "0"))
        ret_settings->sync_unlock = DM_SYNC_NEVER;
    ret_settings->fails_when_down = is_env("DMUTEX_ONDOWN", "fail");
    read_on_lost(ret_settings);
}

static bool place_local(struct dm_url *url, char *ret_reason)
{
    return url->kind != DM_URL_LOCAL || dm_local_place(url, ret_reason);
}

int dm_settings_url(const char *configured, struct dm_url **ret_url)
{
    const char *environment = secure_getenv("DMUTEX_URL");
    const char *text = configured ? configured : environment;
    char reason[DM_REASON_ROOM];
    struct dm_url *url;
    bool is_memory_out;

    if (!text || !*text) {
        dm_log_warn("no server is configured: falling back to \"local:\"; set DMUTEX_URL to share mutexes with other hosts");
        text = "local:";
    }
    url = dm_url_parse(text, reason);
    if (url && place_local(url, reason)) {
        *ret_url = url;
        return 0;
    }
    is_memory_out = errno == ENOMEM;
    dm_url_free(url);
    return is_memory_out ? dm_fail(DM_FAIL_NO_MEMORY, NULL) : dm_fail(DM_FAIL_BAD_ENV_URL, "%s", reason);
}
