/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * When each claim of the process is due: each run of the schedule finds the due claims, and does not walk past the
 * other claims.
 *
 * A claim stands in the order of each kind that concerns the claim.  An order may name a moment too early, never a
 * moment too late: dm_due_plan() follows each change that brings a moment forward.  State lock held by all callers.
 */
#ifndef DM_RUNTIME_DUE_H
#define DM_RUNTIME_DUE_H

#include "base/order.h"

struct dm_claim;
struct dm_registry;

enum dm_due_kind {
    DM_DUE_END,     /* held: end of certainty or max-hold */
    DM_DUE_RENEWAL, /* held: DM_NEVER while a renewal is on the way */
    DM_DUE_POLL,    /* waits: DM_NEVER while a poll is on the way */
    DM_DUE_RELEASE, /* owed: DM_NEVER while a release is on the way */
    DM_DUE_LOSS,    /* lost: the application is to be told, at once */
    DM_DUE_KINDS
};

/* Makes room for `claims` claims.  False without memory. */
bool dm_due_reserve(struct dm_registry *registry, size_t claims);

/* Puts the claim where the claim's state says. */
void dm_due_plan(struct dm_registry *registry, struct dm_claim *claim);

/* Takes the claim out, before the claim is freed. */
void dm_due_remove(struct dm_registry *registry, struct dm_claim *claim);

/* The claim that is due first, not later than until_ns; NULL: none. */
struct dm_claim *dm_due_first(struct dm_registry *registry, enum dm_due_kind kind, int64_t until_ns);

/* When the first claim is due, or earlier; DM_NEVER: none. */
int64_t dm_due_next_ns(const struct dm_registry *registry, enum dm_due_kind kind);

/* True if the kind concerns any claim. */
bool dm_due_is_any(const struct dm_registry *registry, enum dm_due_kind kind);

/* Frees the room. */
void dm_due_clear(struct dm_registry *registry);

#endif
