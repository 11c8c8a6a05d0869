/* SPDX-License-Identifier: BSD-2-Clause */
/* Decisions of the application, the environment and the configuration files.  Read once, when the runtime starts. */
#ifndef DM_RUNTIME_SETTINGS_H
#define DM_RUNTIME_SETTINGS_H

#include <stdbool.h>
#include <stdint.h>

#include "store/url.h"

enum dm_on_lost { DM_LOST_LOG, DM_LOST_ABORT, DM_LOST_SIGNAL };

struct dm_settings {
    bool fails_when_down;    /* DMUTEX_ONDOWN=fail */
    enum dm_on_lost on_lost; /* DMUTEX_ONLOST */
    int lost_signal;
    uint32_t linger_ms; /* of objects that have no linger time of their own: DMUTEX_LINGER, else 0 */
    uint32_t lease_ms;  /* of objects that have no lease of their own: Lease of dmutex.conf(5), else 0 */
};

void dm_settings_read(struct dm_settings *ret_settings);

/*
 * The server: configured by the application, else by DMUTEX_URL, else by the configuration files, else the local
 * server.  To be freed by dm_url_free().  Notes the lease of the files in *settings.  0, or an errno value, noted.
 */
int dm_settings_url(const char *configured, struct dm_settings *settings, struct dm_url **ret_url);

#endif
