/* SPDX-License-Identifier: BSD-2-Clause */
/* Asks the server whether a name is held.  Main loop only. */
#ifndef DM_PRELOAD_KEEPER_PROBE_H
#define DM_PRELOAD_KEEPER_PROBE_H

struct caller;

/* Answers the caller when the server has. */
void probe_start(struct caller *caller, const char *name);

#endif
