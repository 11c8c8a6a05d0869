/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The line of a name: the threads of this process that want the name by equal objects, and the one claim by which the
 * line asks the store, waits in the store's queue, or owns.
 *
 * Rules:
 * 1. Equals only.  A thread joins the line if its mutex is not fair, and has the lease, the longest hold and the
 *    robustness of the line's claim.  Any other thread, and each waiter of a condition, has a claim of its own.
 * 2. One claim.  The first thread makes the claim and asks (the asker); the other threads sit down, first come first
 *    served, each on a seat on its own stack, without a request to the store.
 * 3. The claim outlives the asker: an asker whose deadline comes leaves the queued claim to the first seat.
 * 4. An unlock passes the hold on, leaves it open for the threads that compete, keeps it, or gives it back to the store
 *    (core/tenure.h); while another process waits, for a bounded time only.
 * 5. A claim that is lost, refused, given back or left for a condition stands beside the line; the first seat begins
 *    with another claim.
 * 6. A seat that was woken looks, or hands the wake-up on before it goes: a seat beside a free hold is awake.
 *
 * All functions: state lock held.
 */
#ifndef DM_PROCESS_CLAIMS_LINE_H
#define DM_PROCESS_CLAIMS_LINE_H

#include <stdbool.h>
#include <stdint.h>

#include "core/hold.h"

struct dm_claim;
struct dm_crowd;
struct dm_name;
struct dm_registry;
struct dm_self;
struct dm_wait;

/* A waiting thread's place in a line, on the thread's stack. */
struct dm_seat {
    struct dm_self *self;
    struct dm_seat *next;
    int64_t since_ns;
    bool is_awake;          /* was woken, and has not looked yet */
    struct dm_claim *claim; /* was passed to the thread, which owns or leads; the seat is not in the line any more */
};

struct dm_line {
    struct dm_claim *claim;       /* NULL: nobody has asked */
    struct dm_seat *first, *last; /* NULL: none */
    bool is_starving;             /* the first seat was woken in vain for too long: newcomers sit down behind */
    unsigned lost;                /* claims, in the line and beside, whose thread has not acknowledged the loss yet */
    unsigned back_off, skip;      /* so many unlocks did not keep after the lease was asked back; are left */
};

/*
 * Joins the line for the call.  DM_GO_ON: the thread has a claim, wait->claim, and is to go on by dm_wait_run(); else
 * the end of the call, 0 or an errno value, noted.  Gives the state lock up while the thread sits.
 */
int dm_line_join(struct dm_wait *wait);

/* True if the asker's claim went to the first seat: wait->claim is NULL then, and the call ends. */
bool dm_line_pass_claim(struct dm_wait *wait);

/* Makes the claim the line's, if the line has none and the call may join; a claim that waited alone owns now. */
void dm_line_adopt(struct dm_wait *wait);

/* What becomes of a hold after a step: the caller gives it back, or the process keeps it. */
enum dm_line_next { DM_LINE_KEEPS, DM_LINE_GIVES_BACK };

/*
 * Around each step of a claim.  dm_line_sync() tells the core of threads that have entered or left without the state
 * lock, and keeps threads from doing so; dm_line_follow() draws the consequences of the step, and lets threads in
 * again unless the hold is to be given back.
 */
void dm_line_sync(struct dm_claim *claim);
enum dm_line_next dm_line_follow(struct dm_claim *claim);

/* Takes the claim, or all claims, out of the line and of the registry, and frees them. */
void dm_line_drop(struct dm_registry *registry, struct dm_claim *claim);
void dm_line_drop_all(struct dm_registry *registry);

/* The process ends: a hold that was passed to a seat is nobody's, if the thread has not come back from its seat. */
void dm_line_take_back(struct dm_claim *claim);

/* The threads that sit in the line of the claim; none if the claim stands beside its line. */
void dm_line_count_seats(const struct dm_claim *claim, int64_t now_ns, struct dm_crowd *ret_crowd);

/* Sets how often the thread inside must unlock. */
void dm_line_set_depth(struct dm_claim *claim, unsigned depth);

#endif
