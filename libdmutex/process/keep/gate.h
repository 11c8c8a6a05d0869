/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The gate: the loop thread holds this lock while it runs GLib's code, and leaves it only in poll() and in callbacks of
 * the application.  fork() takes the gate, so the loop thread holds no lock of GLib then.
 */
#ifndef DM_PROCESS_KEEP_GATE_H
#define DM_PROCESS_KEEP_GATE_H

#include "base/rank.h"

extern struct dm_mutex dm_gate; /* rank GATE */

/* Around a callback of the application; the loop thread, no lock but the gate held. */
void dm_gate_leave(void);
void dm_gate_enter(void);

#endif
