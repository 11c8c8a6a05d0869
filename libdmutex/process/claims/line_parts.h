/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The pieces of a line that line.c, join.c, leave.c and steps.c share.  All functions: state lock held, and the word of
 * the given claim is closed.
 */
#ifndef DM_PROCESS_CLAIMS_LINE_PARTS_H
#define DM_PROCESS_CLAIMS_LINE_PARTS_H

#include "process/claims/fast.h"
#include "process/claims/process.h"
#include "process/claims/target.h"

void dm_line_sit_down(struct dm_line *line, struct dm_seat *seat);
void dm_line_stand_up(struct dm_line *line, struct dm_seat *seat);

/* Wakes the first seat, if any; it counts as awake until its thread has looked. */
void dm_line_wake_first(struct dm_line *line);

/* True if a thread with such an object takes part in lines at all. */
bool dm_line_may_join(const struct dm_target *target);

/* The longest linger time that any thread has asked for counts.  A robust mutex keeps nothing. */
void dm_line_note_linger(struct dm_claim *claim, const struct dm_target *target);

/* Makes the idle hold the thread's, with a new token. */
void dm_line_enter(struct dm_claim *claim, uint64_t thread);

/* Lets threads in and out again, as far as they may. */
void dm_line_publish(struct dm_claim *claim);

/* The same at the end of a section that has closed the word, unless the hold is to be given back. */
enum dm_line_next dm_line_reopen(struct dm_claim *claim);

/* The kept lease was asked back.  If that was too soon, the next unlocks do not keep it. */
void dm_line_note_asked_back(struct dm_claim *claim);

/* Notes which thread is inside; 0: none. */
void dm_line_set_inside(struct dm_claim *claim, uint64_t thread, int64_t now_ns);

/* True if the claim is its line's. */
static inline bool dm_line_has(const struct dm_claim *claim)
{
    return claim->name->line.claim == claim;
}

#endif
