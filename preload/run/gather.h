/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The plan, from all places where rules can be written.
 */
#ifndef DM_RUN_GATHER_H
#define DM_RUN_GATHER_H

#include <stdbool.h>

#include "options.h"
#include "plan.h"

/*
 * Reads -e and DMUTEX_MAP, and the configuration. Without any configuration file the rules that an outer dmutex-run has
 * made (DMUTEX_RULES) go on. *ret_config: the file that --config or DMUTEX_CONF named, as an absolute path to be freed;
 * NULL.
 */
bool gather(struct plan *plan, const struct options *options, char **ret_config, GError **error);

/* Warns of rules with another effect than a reader would expect; is_check: also of what each run need not hear. */
void gather_advise(const struct plan *plan, bool is_check);

#endif
