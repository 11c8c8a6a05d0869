/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * When each claim of the process is due, so that a run of the pump finds the due claims without walking over the
 * others.
 *
 * A claim is in the order of each want that its hold has (dm_hold_due_ns()), except while the want is on the way.  An
 * order may give too early a time, never too late a time: dm_due_plan() follows each change that brings a time forward.
 * All callers hold the state lock, except those of dm_due_clear().
 */
#ifndef DM_PROCESS_CLAIMS_DUE_H
#define DM_PROCESS_CLAIMS_DUE_H

#include "base/order.h"
#include "core/hold.h"

struct dm_claim;
struct dm_registry;

/* The wants of a hold that are not left to its own thread: one order for each. */
#define DM_DUE_WANTS DM_WANTS_ACQUIRE

/* Makes room for `claims` claims.  False without memory. */
bool dm_due_reserve(struct dm_registry *registry, size_t claims);

/* Puts the claim where its hold says.  Returns when the hold next wants something; DM_NEVER: nothing. */
int64_t dm_due_plan(struct dm_registry *registry, struct dm_claim *claim);

/* Takes the claim out, before the claim is freed. */
void dm_due_remove(struct dm_registry *registry, struct dm_claim *claim);

/* The claim that is due first, not later than until_ns; NULL: none. */
struct dm_claim *dm_due_first(struct dm_registry *registry, enum dm_want want, int64_t until_ns);

/* When the first claim is due, or earlier; DM_NEVER: none. */
int64_t dm_due_next_ns(const struct dm_registry *registry, enum dm_want want);

/* True if any claim wants this, at any time. */
bool dm_due_is_any(const struct dm_registry *registry, enum dm_want want);

/* Frees the room of a registry that no thread uses yet or any more. */
void dm_due_clear(struct dm_registry *registry);

#endif
