/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * One question of a thread to the store, on the caller's stack.  All questions have one shape:
 *
 *      state lock held                 the hold notes the sending: dm_hold_send()
 *      dm_call_begin()                 describes the question, pins the records, gives up the lock
 *      dm_store_ask()                  waits for the answer, without a lock
 *      dm_call_return()                takes the lock again, unpins
 *      dm_step()                       the answer is an event
 *
 * So a question takes the state lock once more than the decision to ask.
 */
#ifndef DM_PROCESS_CALLS_CALL_H
#define DM_PROCESS_CALLS_CALL_H

#include "process/claims/process.h"

struct dm_call {
    struct dm_runtime *runtime;
    struct dm_name *name;      /* pinned: the places in the question stay until dm_call_return() */
    struct dm_name *condition; /* the same; NULL: none */
    struct dm_question question;
};

/* Begins a question of the claim, and gives up the state lock.  request.serial 0: the request has no number. */
void dm_call_begin(struct dm_call *call, struct dm_runtime *runtime, struct dm_claim *claim, enum dm_op op,
                   struct dm_request request);

/* Takes the state lock.  The claim may be gone by then, unless the thread attends it. */
void dm_call_return(struct dm_call *call);

#endif
