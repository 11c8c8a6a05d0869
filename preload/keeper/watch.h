/* SPDX-License-Identifier: BSD-2-Clause */
/* When to check whether locks have ended. Main loop only. */
#ifndef DM_PRELOAD_KEEPER_WATCH_H
#define DM_PRELOAD_KEEPER_WATCH_H

#include <stdbool.h>

/*
 * `look` does the check; it is called as long as it returns that there is more to watch. `closed` is told which files
 * have been closed, by the numbers of watch_file(); -1: any.
 */
void watch_begin(bool (*look)(void), void (*closed)(int number));

/* Something may have changed: checks now, and at first often. */
void watch_soon(void);

/* Closing this file counts as a change. Returns a number for watch_leave(), or -1. */
int watch_file(const char *path);
void watch_leave(int number);

#endif
