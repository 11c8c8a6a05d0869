/* SPDX-License-Identifier: BSD-2-Clause */
/* Telling the application of lost holds. */
#ifndef DM_PROCESS_KEEP_LOSS_H
#define DM_PROCESS_KEEP_LOSS_H

#include "process/claims/process.h"

/* Tells each untold loss, then lets the release of the lost hold go.  The loop thread, no lock but the gate held. */
void dm_loss_tell_all(struct dm_runtime *runtime);

#endif
