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
 * 4. An unlock passes the hold on, leaves it open for the threads that compete, keeps it, or gives it back.  While
 *    another process waits, the hold stays here for a bounded time only (core/tenure.h).
 * 5. A claim that is lost, refused, given back or waiting on a condition is no longer the line's; the first seat makes
 *    another.
 * 6. A seat that was woken looks, or passes the wake-up on before it goes: while the hold is free, a seat is awake.
 *
 * Pure: the caller serialises all steps of a line, and carries out what they say (process/claims/claim.h,
 * process/calls/join.c).  Before each of them it closes the word and tells the hold which thread is inside.
 */
#ifndef DM_CORE_LINE_H
#define DM_CORE_LINE_H

#include "core/tenure.h"

struct dm_claim;
struct dm_self;

/* A waiting thread's place in a line, on the thread's stack. */
struct dm_seat {
    struct dm_self *self;
    struct dm_seat *next;
    int64_t since_ns;
    bool is_awake;          /* was woken, and has not looked yet */
    struct dm_claim *claim; /* was passed to the thread, which owns or leads; the seat is not in the line any more */
};

struct dm_line {
    struct dm_tenure *tenure;     /* of the line's claim; NULL: nobody has asked */
    struct dm_seat *first, *last; /* NULL: none */
    bool is_starving;             /* the first seat was woken in vain for too long: newcomers must sit down */
    unsigned back_off, skip;      /* unlocks that keep nothing after the lease was asked back; are left */
};

/* What comes next, for the thread that looks or unlocks, or for the hold. */
enum dm_next {
    DM_NEXT_ASK,      /* make a claim and ask with it: for the line or, if the line has a claim, for oneself */
    DM_NEXT_ENTER,    /* go inside */
    DM_NEXT_SIT,      /* sit down, or go on sitting */
    DM_NEXT_FAIL,     /* a try fails: another thread of the process is inside */
    DM_NEXT_PASS,     /* the first seat gets the hold: its thread is made the one inside before it is woken */
    DM_NEXT_STAY,     /* the hold stays with the process, for whichever thread is first */
    DM_NEXT_GIVE_BACK /* the hold goes back to the store; a thread that looked asks then, naming the release */
};

/* The end of a section: what the word becomes, and what else is to be done. */
struct dm_settling {
    enum dm_next next;    /* STAY, or GIVE_BACK: then the rest does not count */
    struct dm_seat *wake; /* NULL: none */
    unsigned bits;        /* of the word */
    int64_t until_ns;     /* until when threads may be inside */
};

void dm_line_sit_down(struct dm_line *line, struct dm_seat *seat);
void dm_line_stand_up(struct dm_line *line, struct dm_seat *seat);

/* A thread's object asks to keep the lease for so long.  The longest time counts. */
void dm_line_linger(struct dm_line *line, uint32_t linger_ms);

/*
 * What the thread can do now.  seat NULL: it does not sit yet.  Unless it must sit, it does not sit any more.
 * is_equal: the line has a claim, and the thread's object is equal to it (rule 1).
 */
enum dm_next dm_line_look(struct dm_line *line, struct dm_seat *seat, bool is_equal, bool may_wait, int64_t now_ns);

/* The thread goes on sitting, and the next unlock must wake it again. */
void dm_line_sit_on(struct dm_line *line, struct dm_seat *seat, int64_t now_ns);

/*
 * The thread inside unlocks its last level: PASS, STAY or GIVE_BACK.  is_told: the store can tell the process that
 * another one waits.
 */
enum dm_next dm_line_leave(struct dm_line *line, bool is_told, int64_t now_ns);

/*
 * The end of a section about a claim that has a tenure, whether the claim is still the line's or not.  may_open: as
 * far as the caller knows, threads may enter without the state lock.
 */
struct dm_settling dm_line_settle(struct dm_line *line, struct dm_tenure *tenure, bool may_open, int64_t now_ns);

/* True if the tenure's hold is the line's, and no thread of the process uses it or is about to. */
bool dm_line_is_unused(const struct dm_line *line, const struct dm_tenure *tenure);

/* True if an asker whose deadline has come leaves the claim to the first seat. */
bool dm_line_has_heir(const struct dm_line *line, const struct dm_tenure *tenure);

/* The time to check the hold has come: GIVE_BACK after the linger time, or STAY, to be checked again. */
enum dm_next dm_line_check(struct dm_line *line, struct dm_tenure *tenure, int64_t now_ns);

/* Takes the claim of the tenure out of the line, if it is the line's.  Returns the seat to wake, or NULL. */
struct dm_seat *dm_line_part(struct dm_line *line, const struct dm_tenure *tenure);

#endif
