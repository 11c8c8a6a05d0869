/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Rules in the words of DMUTEX_RULES, as the module reads them (preload/rules.h).
 */
#ifndef DM_RUN_WORDING_H
#define DM_RUN_WORDING_H

#include <stdbool.h>

#include <glib.h>

#include "../rules.h"

/* The text with a backslash before what would end a word. */
void wording_escape(GString *to, const char *text);

/* The rule without name and settings, as --list and messages show it.  The caller frees it. */
char *wording_of_rule(const struct rule *rule);

/*
 * All rules of the list (of struct planned) as one text, each as short as it can be said.  The caller
 * frees it.  What is written was read back, and is the same.
 */
char *wording_of_list(const GArray *list);

#endif
