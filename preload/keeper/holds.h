/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The distributed locks that are held, or waited for, each by a separate thread, because a mutex is owned by a thread.
 * Main loop only.
 */
#ifndef DM_PRELOAD_KEEPER_HOLDS_H
#define DM_PRELOAD_KEEPER_HOLDS_H

#include <glib.h>
#include <stdbool.h>

#include "wish.h"

struct caller;

void holds_begin(void);

/* Answers the caller when the request is decided. */
void holds_ask(struct caller *caller, const struct wish *wish);

/* Gives back the locks that the kernel does not list any more; false if there is nothing to look after. */
bool holds_look(void);

/* Adds a line NAME PATH PID PROGRAM for each held lock: of the process that has the lock, not of the keeper. */
void holds_list(GString *to);

/* Says if this keeper holds the name: for this file, for which the kernel decides then, or for another file. */
enum holds_owner { HOLDS_NOTHING, HOLDS_FOR_FILE, HOLDS_FOR_OTHER };
enum holds_owner holds_who(const char *name, const char *path);

#endif
