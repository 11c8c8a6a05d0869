/* SPDX-License-Identifier: BSD-2-Clause */
/* The server: the choice of a server, and a check that the server answers. */
#ifndef DM_RUN_ASK_H
#define DM_RUN_ASK_H

#include <stdbool.h>

#include <glib.h>

#include "plan.h"

/* Refuses (78) when no server is configured: exclusion of other hosts never falls back to `local:`. */
bool ask_configure(struct plan *plan, GError **error);

/*
 * Asks the server about the first rule's mutex, or without rules about any mutex. Refuses (69) when the server does not
 * answer, or does not serve us.
 */
bool ask_server(const struct plan *plan, GError **error);

/* True if a rule says that the lock is to fail without a server. */
bool ask_is_needed(const struct plan *plan);

/* True if the URL has a password. */
bool ask_is_secret(const char *url);

/* The URL without the password, for people. The caller frees the text. */
char *ask_describe(const char *url);

#endif
