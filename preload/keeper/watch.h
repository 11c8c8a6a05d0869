/* SPDX-License-Identifier: BSD-2-Clause */
/* When to look whether locks have ended.  Main loop only. */
#ifndef DM_PRELOAD_KEEPER_WATCH_H
#define DM_PRELOAD_KEEPER_WATCH_H

#include <stdbool.h>

/* The function looks; called as long as the result says that more is to look at. */
void watch_begin(bool (*look)(void));

/* Something may have changed: looks now, and often at first. */
void watch_soon(void);

/* Closing this file is such a change. A number for watch_leave(), or -1. */
int watch_file(const char *path);
void watch_leave(int number);

#endif
