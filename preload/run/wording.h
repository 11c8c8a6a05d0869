/* SPDX-License-Identifier: BSD-2-Clause */
/* Rules in the words of DMUTEX_RULES, as the module reads them (shared/rules.h). */
#ifndef DM_RUN_WORDING_H
#define DM_RUN_WORDING_H

#include <stdbool.h>

#include <glib.h>

#include "shared/rules.h"

/* Adds the text with a backslash before each byte that would end a word. */
void wording_escape(GString *to, const char *text);

/* The rule without name and settings, as --list and messages show rules. The caller frees the text. */
char *wording_of_rule(const struct rule *rule);

/*
 * All rules of the list (of struct planned) as one text, each rule as short as possible. The caller frees the text. The
 * written text was read back, and gives the same rules.
 */
char *wording_of_list(const GArray *list);

#endif
