/* SPDX-License-Identifier: BSD-2-Clause */
/* Runs work in the main loop, in the order of the requests. Any thread. */
#ifndef DM_PRELOAD_KEEPER_ERRAND_H
#define DM_PRELOAD_KEEPER_ERRAND_H

void errand_send(void (*run)(void *user), void *user);

#endif
