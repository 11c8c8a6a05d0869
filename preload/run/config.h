/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The configuration: dmutex-preload(5).
 */
#ifndef DM_RUN_CONFIG_H
#define DM_RUN_CONFIG_H

#include <stdbool.h>

#include <glib.h>

#include "plan.h"

#define CONFIG_SYSTEM_FILE "/etc/dmutex/preload.conf"

/*
 * Reads the files that config_files_find() found into the plan: the rules and the server. A refusal names file,
 * section, key, reason, and remedy.
 */
bool config_read(struct plan *plan, const GPtrArray *paths, GError **error);

#endif
