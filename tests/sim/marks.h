/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Marks holds that the runtime leaves unmarked, so that the store's side of marks is tested with all faults.  An
 * attempt's number decides: of six attempts one marks its hold, and one marks it without a death.
 */
#ifndef SIM_MARKS_H
#define SIM_MARKS_H

#include "store/store.h"

/* Puts the marks between the runtime and the store. */
void marks_put(struct dm_store *store);

#endif
