/* SPDX-License-Identifier: BSD-2-Clause */
/* Rules in the syntax of DMUTEX_RULES, as the module reads them (shared/rules.h). */
#ifndef DM_RUN_WORDING_H
#define DM_RUN_WORDING_H

#include <stdbool.h>

#include <glib.h>

#include "shared/rules.h"

/* Appends the text, with a backslash before each byte that would end a word. */
void wording_escape(GString *to, const char *text);

/* The rule without name and settings, as --list and messages show it. The caller frees it. */
char *wording_of_rule(const struct rule *rule);

/*
 * All rules of the list (of struct planned) as one text, each as short as possible. The caller frees it. The text has
 * been read back, and yields the same rules.
 */
char *wording_of_list(const GArray *list);

#endif
