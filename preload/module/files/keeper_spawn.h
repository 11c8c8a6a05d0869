/* SPDX-License-Identifier: BSD-2-Clause */
/* The birth of a keeper out of a program that must not notice the birth. Async-signal-safe. */
#ifndef DM_PRELOAD_KEEPER_SPAWN_H
#define DM_PRELOAD_KEEPER_SPAWN_H

/* DMUTEX_KEEPER, for the build tree, or the installed path. */
const char *keeper_program(void);

/*
 * Starts a keeper with a listening socket and the folder with the socket's name; both descriptors stay the caller's.
 * All signals are blocked. Returns 0 or an errno value.
 */
int keeper_spawn(int listening, int folder, const char *socket_path);

#endif
