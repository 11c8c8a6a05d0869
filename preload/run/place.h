/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Paths of lock files and programs as the kernel knows the paths. The module compares with paths from /proc, where
 * /var/run/crond.pid is /run/crond.pid: a rule that goes through a symbolic link would never match.
 */
#ifndef DM_RUN_PLACE_H
#define DM_RUN_PLACE_H

#include "plan.h"

/* Replaces the rule's paths that lead through symbolic links; new texts belong to the plan. */
void place_resolve(struct plan *plan, struct rule *rule);

#endif
