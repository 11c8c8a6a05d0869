/* SPDX-License-Identifier: BSD-2-Clause */
/* Notes the rules that have matched, for the command's report about the others (shared/used.h). */
#ifndef DM_PRELOAD_MATCHES_H
#define DM_PRELOAD_MATCHES_H

struct rule;

/* Finds the memory of the command; called once, by the module's constructor. */
void matches_begin(void);

/* The rule has matched an object or a file. Callable in a signal handler. */
void matches_note(const struct rule *rule);

#endif
