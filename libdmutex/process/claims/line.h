/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The line of a name: the threads of this process that want the name by equal objects, and the one claim by which they
 * ask the store, wait in its queue, and own the lock.
 *
 * Rules:
 * 1. Equals only.  A thread joins the line if its mutex is not fair, and has the lease, the maximum hold time and the
 *    robustness of the line's claim.  Any other thread, and each waiter on a condition, has a claim of its own.
 * 2. One claim.  The first thread, the asker, makes the claim and asks the store; the others sit down, first come first
 *    served, each on a seat on its own stack, without a request to the store.
 * 3. The claim outlives the asker: an asker whose deadline comes leaves the queued claim to the first seat.
 * 4. An unlock passes the hold on, leaves it open for the threads that compete, keeps it, or gives it back to the store
 *    (core/tenure.h).  While another process waits, the hold stays here for a bounded time only.
 * 5. A claim that is lost, refused, given back or waiting on a condition is no longer the line's; the first seat makes
 *    another.
 * 6. A seat that was woken looks, or passes the wake-up on before it goes: while the hold is free, a seat is awake.
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
struct dm_target;

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
    bool is_starving;             /* the first seat was woken in vain for too long: newcomers must sit down */
    unsigned lost;                /* claims of the name whose thread has not acknowledged the loss yet */
    unsigned back_off, skip;      /* unlocks that keep nothing after the lease was asked back; are left */
};

/* True if the asker's claim went to the first seat: the claim is not the asker's any more, and its call ends. */
bool dm_line_pass_claim(struct dm_claim *claim);

/* Makes the claim the line's, if the line has none and a thread with such an object may join. */
void dm_line_adopt(struct dm_claim *claim, const struct dm_target *target);

/* What becomes of a hold after a step: the caller gives it back, or the process keeps it. */
enum dm_line_next { DM_LINE_KEEPS, DM_LINE_GIVES_BACK };

/*
 * Around each step of a claim.  dm_line_sync() tells the core which threads have entered or left without the state
 * lock, and stops them from doing so; dm_line_follow() draws the consequences of the step, and lets threads in again
 * unless the hold is to be given back.
 */
void dm_line_sync(struct dm_claim *claim);
enum dm_line_next dm_line_follow(struct dm_claim *claim);

/* Takes the claim, or all claims, out of the line and of the registry, and frees them. */
void dm_line_drop(struct dm_registry *registry, struct dm_claim *claim);
void dm_line_drop_all(struct dm_registry *registry);

/* The process ends: a hold that was passed to a seat has no holder if the thread has not come back from the seat. */
void dm_line_take_back(struct dm_claim *claim);

/* The threads that sit in the line of the claim; none if the claim is not the line's. */
void dm_line_count_seats(const struct dm_claim *claim, int64_t now_ns, struct dm_crowd *ret_crowd);

/* Sets how often the thread inside must unlock. */
void dm_line_set_depth(struct dm_claim *claim, unsigned depth);

#endif
