/* SPDX-License-Identifier: BSD-2-Clause */
/* Reports lost holds to the application. */
#ifndef DM_PROCESS_KEEP_LOSS_H
#define DM_PROCESS_KEEP_LOSS_H

#include "process/claims/process.h"

/*
 * Reports each loss that has not been reported, after which the release of the lost hold may be sent.  The loop thread,
 * which holds no lock but the gate.
 */
void dm_loss_tell_all(struct dm_runtime *runtime);

#endif
