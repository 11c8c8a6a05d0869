/* SPDX-License-Identifier: BSD-2-Clause */
/* What the application and the environment have decided.  Read once, when the runtime starts. */
#ifndef DM_RUNTIME_SETTINGS_H
#define DM_RUNTIME_SETTINGS_H

#include <stdbool.h>

#include "redis/url.h"

enum dm_sync_unlock { DM_SYNC_ROBUST, DM_SYNC_ALWAYS, DM_SYNC_NEVER };
enum dm_on_lost { DM_LOST_LOG, DM_LOST_ABORT, DM_LOST_SIGNAL };

struct dm_settings {
    enum dm_sync_unlock sync_unlock; /* DMUTEX_SYNC_UNLOCK */
    bool fails_when_down;            /* DMUTEX_ONDOWN=fail */
    enum dm_on_lost on_lost;         /* DMUTEX_ONLOST */
    int lost_signal;
};

void dm_settings_read(struct dm_settings *ret_settings);

/*
 * The server: what the application configured, else DMUTEX_URL, else the local one.  To be freed
 * by dm_url_free().  0, or an errno value, noted.
 */
int dm_settings_url(const char *configured, struct dm_url **ret_url);

#endif
