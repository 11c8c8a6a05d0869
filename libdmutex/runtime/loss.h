/* SPDX-License-Identifier: BSD-2-Clause */
/* Telling the application of holds that were lost. */
#ifndef DM_RUNTIME_LOSS_H
#define DM_RUNTIME_LOSS_H

#include "runtime/runtime.h"

/* Tells each loss that is untold, then lets its release go.  The loop thread, no lock but the gate held. */
void dm_loss_tell_all(struct dm_runtime *runtime);

#endif
