/* SPDX-License-Identifier: BSD-2-Clause */
/* Records which rules have matched, for the command's report about the others (shared/used.h). */
#ifndef DM_PRELOAD_MATCHES_H
#define DM_PRELOAD_MATCHES_H

struct rule;

/* Finds the command's memory; called once, by the module's constructor. */
void matches_begin(void);

/* The rule has matched an object or a file. May be called in a signal handler. */
void matches_note(const struct rule *rule);

#endif
