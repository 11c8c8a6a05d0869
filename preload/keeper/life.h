/* SPDX-License-Identifier: BSD-2-Clause */
/* The keeper lives while there is a reason for it, and half a second longer. Main loop only. */
#ifndef DM_PRELOAD_KEEPER_LIFE_H
#define DM_PRELOAD_KEEPER_LIFE_H

/* Serves until there is no reason left; after that no process finds this keeper. name: of the socket. */
void life_run(const char *name);

/* Adds a reason, a caller or a hold; the second removes one. */
void life_add(void);
void life_remove(void);

#endif
