/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The answers that a lock store can give about an attempt.  The core knows a store only by these; stores/redis/ is one
 * store.
 */
#ifndef DM_CORE_ANSWER_H
#define DM_CORE_ANSWER_H

#include <stdbool.h>
#include <stdint.h>

enum dm_verdict {
    DM_SAYS_NOTHING,         /* no answer: the connection is broken, or the store is not ready */
    DM_SAYS_AGAIN,           /* not executed: the request may be chosen and sent again at once */
    DM_SAYS_UNSUPPORTED,     /* this store cannot do that */
    DM_SAYS_REFUSED,         /* the store will go on refusing until a person fixes something */
    DM_SAYS_NO_MEMORY,       /* the store has no room for a new lock */
    DM_SAYS_OWNED,           /* the attempt owns the lock, for a whole lease */
    DM_SAYS_BUSY,            /* another attempt owns the lock */
    DM_SAYS_QUEUED,          /* the attempt waits */
    DM_SAYS_WAITING,         /* the attempt waits on a condition */
    DM_SAYS_UNKNOWN,         /* the attempt neither owns nor waits */
    DM_SAYS_FULL,            /* too many wait */
    DM_SAYS_NOT_RECOVERABLE, /* nobody can own the lock again */
    DM_SAYS_NOT_OWNER,       /* the hold to be released no longer exists */
    DM_SAYS_BOUND,           /* the condition is waited on with another mutex */
    DM_SAYS_DONE             /* the request is done */
};

struct dm_answer {
    enum dm_verdict verdict;
    bool is_owner_dead; /* OWNED: an earlier owner died */
    bool is_wanted;     /* a free lock whose waiters a poll must serve */
    bool has_waiter;    /* OWNED by a renewal: another attempt waits; a hint if the hold is not marked */
    bool is_partial;    /* OWNED: one of several servers does not have the hold, but could: renew soon */
    bool is_signalled;  /* of a cond_cancel: a signal came first */
    bool has_left;      /* of a cond_signal, DONE: some of the waiters are still to be signalled */
    bool is_token_soft; /* OWNED: the token is not decided, or a later hold may still get it; a renewal makes it firm */
    uint64_t token;     /* OWNED: the store's token */
    uint64_t position;  /* QUEUED: 1 is the head */
    uint64_t arrival;   /* QUEUED: the place in the queue, which later requests repeat; 0: not reported */
    int64_t remaining_ms; /* QUEUED, BUSY: of the owner's lease */
    int64_t grace_ms;     /* BUSY: the lock is free, but the store is new and grants nothing for this long */
    int64_t store_us;     /* the store's clock; 0: not reported */
    int64_t since_us; /* of a posted acquire or renewal: since when the store is new, by its clock; 0: not reported */
    int64_t from_ns;  /* OWNED: the lease counts from here, overriding what was known before; 0: from the sending */
};

#endif
