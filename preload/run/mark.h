/* SPDX-License-Identifier: BSD-2-Clause */
/* The memory in which the command's processes record which rules have matched (used.h). */
#ifndef DM_RUN_MARK_H
#define DM_RUN_MARK_H

#include <glib.h>

#include "plan.h"

/*
 * Makes the memory, for a command in this process, and names it in the environment. Returns its number, or -1 without
 * memory.
 */
int mark_begin(const struct plan *plan, char ***environment);

/* The command was not executed. */
void mark_end(int id);

#endif
