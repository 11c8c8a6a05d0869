/* SPDX-License-Identifier: BSD-2-Clause */
/* The server: which one, and whether it answers. */
#ifndef DM_RUN_ASK_H
#define DM_RUN_ASK_H

#include <stdbool.h>

#include <glib.h>

#include "plan.h"

/* Refuses (78) if no server is configured: excluding other hosts never falls back to `local:`. */
bool ask_configure(struct plan *plan, GError **error);

/*
 * Asks the server about the first rule's mutex or, without rules, about any mutex. Refuses (69) if the server does not
 * answer, or does not serve us.
 */
bool ask_server(const struct plan *plan, GError **error);

/* True if a rule says that locking must fail without a server. */
bool ask_is_needed(const struct plan *plan);

/* True if the URL has a password. */
bool ask_is_secret(const char *url);

/* The URL without the password, for people. The caller frees it. */
char *ask_describe(const char *url);

#endif
