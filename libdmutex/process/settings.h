/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Settings of the application, the environment and the configuration files.  They are read when a runtime is made, and
 * again for another server; a change of the environment in between has no effect.
 */
#ifndef DM_PROCESS_LIFE_SETTINGS_H
#define DM_PROCESS_LIFE_SETTINGS_H

#include <stdbool.h>
#include <stdint.h>

#include "config/conffile.h"
#include "config/url.h"

struct dm_settings {
    bool fails_when_down;    /* DMUTEX_ONDOWN=fail */
    enum dm_on_lost on_lost; /* DMUTEX_ONLOST */
    int lost_signal;
    uint32_t linger_ms;      /* for objects without a linger time of their own: DMUTEX_LINGER, else 0 */
    uint32_t lease_ms;       /* for objects without a lease of their own: Lease of dmutex.conf(5), else 0 */
    char host[DM_HOST_ROOM]; /* DMUTEX_HOST; "": the host's own name */
    bool has_metrics_names;  /* DMUTEX_METRICS_NAMES=yes */
    bool asks_for_metrics;   /* the path is from DMUTEX_METRICS, not from a file for all users */
    char *metrics; /* DMUTEX_METRICS, with %p; "": no file.  The caller frees it; after a failure it may be NULL */
};

/*
 * Reads the configuration files and the environment.  The server is the one configured by the application, else by
 * DMUTEX_URL, else by the files, else the local server; the caller frees it with dm_url_free().  0, or an errno value,
 * noted.
 */
int dm_settings_read(const char *configured, struct dm_settings *ret_settings, struct dm_url **ret_url);

/*
 * The name of this host for other hosts, from DMUTEX_HOST or the files, else the host's own name; a bad file is
 * ignored.
 */
void dm_settings_host(char ret_host[DM_HOST_ROOM]);

#endif
