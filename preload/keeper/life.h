/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The keeper's life: as long as there is a reason for it, and half a second.  Main loop only.
 */
#ifndef DM_PRELOAD_KEEPER_LIFE_H
#define DM_PRELOAD_KEEPER_LIFE_H

/* Serves until there is no more reason; then nobody finds this keeper any more.  name: its socket's. */
void life_run(const char *name);

/* A reason more: a caller, a hold.  One less. */
void life_add(void);
void life_remove(void);

#endif
