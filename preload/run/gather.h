/* SPDX-License-Identifier: BSD-2-Clause */
/* Gathers the plan from all places where rules can be written. */
#ifndef DM_RUN_GATHER_H
#define DM_RUN_GATHER_H

#include <stdbool.h>

#include "options.h"
#include "plan.h"

/*
 * Reads -e and DMUTEX_MAP, and the configuration. If there is no configuration file, the rules that an outer dmutex-run
 * has made (DMUTEX_RULES) stay in force. *ret_config: the absolute path of the file that --config or DMUTEX_CONF named,
 * to be freed; or NULL.
 */
bool gather(struct plan *plan, const struct options *options, char **ret_config, GError **error);

/*
 * Warns of rules whose effect differs from what a reader would expect; is_check: also of what need not be said in each
 * run.
 */
void gather_advise(const struct plan *plan, bool is_check);

#endif
