/* SPDX-License-Identifier: BSD-2-Clause */
/* Starts a keeper from a program that must not notice it. Async-signal-safe. */
#ifndef DM_PRELOAD_KEEPER_SPAWN_H
#define DM_PRELOAD_KEEPER_SPAWN_H

/* DMUTEX_KEEPER, for the build tree, else the installed path. */
const char *keeper_program(void);

/*
 * Starts a keeper with a listening socket and the folder that contains its name; both descriptors stay the caller's.
 * All signals are blocked. Returns 0 or an errno value.
 */
int keeper_spawn(int listening, int folder, const char *socket_path);

#endif
