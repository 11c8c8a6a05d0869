/* SPDX-License-Identifier: BSD-2-Clause */
/* The keeper's life: as long as a reason exists, and half a second more. Main loop only. */
#ifndef DM_PRELOAD_KEEPER_LIFE_H
#define DM_PRELOAD_KEEPER_LIFE_H

/* Serves until no reason is left; then no process finds this keeper any more. name: the socket's. */
void life_run(const char *name);

/* Adds a reason: a caller, a hold. The second takes a reason away. */
void life_add(void);
void life_remove(void);

#endif
