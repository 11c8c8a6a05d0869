/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Marks holds that the runtime leaves unmarked, so that the store's side of marks is seen with all faults.  A hold is
 * marked by its attempt's number: of six attempts one tells, one tells and leaves no death.
 */
#ifndef SIM_MARKS_H
#define SIM_MARKS_H

#include "store/store.h"

/* Puts the marks between the runtime and the store. */
void marks_put(struct dm_store *store);

#endif
