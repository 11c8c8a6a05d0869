/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The distributed locks that are held or waited for, each by its own thread, because a mutex is owned by a thread. Main
 * loop only.
 */
#ifndef DM_PRELOAD_KEEPER_HOLDS_H
#define DM_PRELOAD_KEEPER_HOLDS_H

#include <glib.h>
#include <stdbool.h>

#include "wish.h"

struct caller;

void holds_begin(void);

/* Answers the caller once the request is decided. */
void holds_ask(struct caller *caller, const struct wish *wish);

/* A program has unlocked some file, and does not wait: checks soon. */
void holds_on_unlock(void);

/* Gives back the locks that the kernel no longer lists. False if there is nothing left to watch. */
bool holds_look(void);

/* Appends a line NAME PATH PID PROGRAM for each held lock, naming the process that has it, not the keeper. */
void holds_list(GString *to);

/* Says whether this keeper holds the name: for this file, in which case the kernel decides, or for another file. */
enum holds_owner { HOLDS_NOTHING, HOLDS_FOR_FILE, HOLDS_FOR_OTHER };
enum holds_owner holds_who(const char *name, const char *path);

#endif
