/* SPDX-License-Identifier: BSD-2-Clause */
/* Makes a store's verdict the failure that a caller sees; doc/design/errors.md has the whole table. */
#ifndef DM_STORE_VERDICT_H
#define DM_STORE_VERDICT_H

#include "store/store.h"

/*
 * Notes the failure that the verdict is, and returns its errno value.  `reason` goes into the sentence if the verdict
 * says nothing by itself: no answer, a refusal, no memory.  A verdict that grants or confirms is a failure, too, where
 * the caller expected another: the store refuses.
 */
int dm_verdict_fail(struct dm_store *store, enum dm_verdict verdict, const char *reason);

#endif
