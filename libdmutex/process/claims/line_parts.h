/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The pieces of a line that line.c, join.c, leave.c and steps.c share.  State lock held; the word of a claim that is
 * given is closed.
 */
#ifndef DM_PROCESS_CLAIMS_LINE_PARTS_H
#define DM_PROCESS_CLAIMS_LINE_PARTS_H

#include "process/calls/wait.h"
#include "process/claims/fast.h"

void dm_line_sit_down(struct dm_line *line, struct dm_seat *seat);
void dm_line_stand_up(struct dm_line *line, struct dm_seat *seat);

/* The first seat, if any, is awake from here on, until its thread has looked. */
void dm_line_wake_first(struct dm_line *line);

/* True if a thread with such an object takes part in lines at all. */
bool dm_line_may_join(const struct dm_target *target);

/* The longest linger time that any thread has asked for counts; a robust mutex keeps nothing. */
void dm_line_note_linger(struct dm_claim *claim, const struct dm_target *target);

/* The idle hold is the thread's from here on, with a new token. */
void dm_line_enter(struct dm_claim *claim, uint64_t thread);

/* Lets threads in and out again, as far as they may. */
void dm_line_publish(struct dm_claim *claim);

/* The same at the end of a section that has closed the word, unless the hold is to be given back. */
enum dm_line_next dm_line_reopen(struct dm_claim *claim);

/* A lease that was asked back too soon after it was kept is not kept the next times. */
void dm_line_note_asked_back(struct dm_claim *claim);

/* The thread is inside from here on; 0: nobody. */
void dm_line_set_inside(struct dm_claim *claim, uint64_t thread, int64_t now_ns);

/* True if the claim is the line's, not beside it. */
static inline bool dm_line_has(const struct dm_claim *claim)
{
    return claim->name->line.claim == claim;
}

#endif
