/* SPDX-License-Identifier: BSD-2-Clause */
/* Turns a store's verdict into the failure that a caller sees; doc/design/errors.md has the whole table. */
#ifndef DM_STORE_VERDICT_H
#define DM_STORE_VERDICT_H

#include "store/store.h"

/*
 * Records the failure for a verdict, and returns its errno value.  The sentence includes `reason` if the verdict alone
 * does not explain enough: no answer, a refusal, no memory.  A verdict that grants or confirms, where the caller
 * expected another, counts as a refusal.
 */
int dm_verdict_fail(struct dm_store *store, enum dm_verdict verdict, const char *reason);

#endif
