/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The gate: the loop thread holds this lock while it runs GLib's code, and releases it only in poll() and in callbacks
 * of the application.  fork() takes the gate, so the loop thread holds none of GLib's locks then.
 */
#ifndef DM_PROCESS_KEEP_GATE_H
#define DM_PROCESS_KEEP_GATE_H

#include "base/rank.h"

extern struct dm_mutex dm_gate; /* rank GATE */

/* Around a callback of the application.  The loop thread, which holds no lock but the gate. */
void dm_gate_leave(void);
void dm_gate_enter(void);

#endif
