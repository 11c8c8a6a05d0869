/* SPDX-License-Identifier: BSD-2-Clause */
/* How a thread leaves the hold of a line (line.h).  All functions: state lock held; they may free the claim. */
#ifndef DM_PROCESS_CLAIMS_LEAVE_H
#define DM_PROCESS_CLAIMS_LEAVE_H

#include <stdbool.h>

struct dm_claim;
struct dm_name;
struct dm_runtime;

/*
 * The thread inside unlocks its last level.  True if the hold stays with the process; false if it is to be given back.
 */
bool dm_line_leave(struct dm_runtime *runtime, struct dm_claim *claim);

/* The claim's hold may have been idle for its linger time: gives it back, or checks again later. */
void dm_line_look(struct dm_runtime *runtime, struct dm_claim *claim);

/* Gives back what the process keeps of a name, or of all names, while no thread is inside. */
void dm_line_end_keeping(struct dm_runtime *runtime, struct dm_name *name);
void dm_line_end_all_keeping(struct dm_runtime *runtime);

/* Takes the calling thread out of a tenure that it has entered by mistake. */
void dm_line_put_back(struct dm_runtime *runtime);

#endif
