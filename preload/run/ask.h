/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The server: which one it is, and whether it answers.
 */
#ifndef DM_RUN_ASK_H
#define DM_RUN_ASK_H

#include <stdbool.h>

#include <glib.h>

#include "plan.h"

/* Refuses (78) when none is configured: what is to exclude other hosts never falls back to `local:`. */
bool ask_configure(struct plan *plan, GError **error);

/* Asks it about the first rule's mutex, or without rules about any.  Refuses (69) when it does not answer, or does not serve us. */
bool ask_server(const struct plan *plan, GError **error);

/* Does a rule say that its lock is to fail without a server? */
bool ask_is_needed(const struct plan *plan);

/* Is there a password in it? */
bool ask_is_secret(const char *url);

/* The URL without its password, for people.  The caller frees it. */
char *ask_describe(const char *url);

#endif
