/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The judge: finds results in a history that mutexes, fencing tokens and condition variables cannot give if the
 * promises hold.  Knows no library and no server, only the callers' records.
 *
 * A hold is *certain* from the return of the call that began the hold until the first of three moments: the last
 * moment promised by the library, the call that ended the hold, the death of the process.  After the first of these
 * moments the hold excludes no other hold; the resource's check of tokens protects the data then.
 *
 * A lease that a process keeps is no hold: no thread is inside.  Such a lease, or one that threads have handed on,
 * leaves no death for robust objects of the same name (doc/design/lines.md).  So deaths are judged only where all
 * objects of a name are robust, because a robust mutex is never kept.
 */
#ifndef CHAOS_CHECK_H
#define CHAOS_CHECK_H

#include <stdint.h>

#include "history.h"

enum finding {
    FOUND_OVERLAP,    /* two holds of a name, both certain */
    FOUND_TOKEN,      /* a later hold has no higher token */
    FOUND_DEPTH,      /* a depth not explained by the thread's calls */
    FOUND_RELOCK,     /* a hold with two tokens; a new hold while the old was certain or, if recursive, not unlocked */
    FOUND_NOT_OWNER,  /* success for a thread without a hold, or without a dead owner to report */
    FOUND_LOST,       /* "not yours", said within the promised time */
    FOUND_STALE,      /* the resource had seen a higher token within the promised time */
    FOUND_RESULT,     /* an errno value not allowed for the call */
    FOUND_EARLY,      /* a timeout before the deadline */
    FOUND_UNTOLD,     /* a thread was killed inside a robust mutex, and the next holder got no death */
    FOUND_UNFINISHED, /* a call of a living thread did not return: a lost wake-up */
    FINDINGS
};

struct verdict {
    long found[FINDINGS];
    char first[FINDINGS][256]; /* the first finding in words, "" none */
    /* Name and moment of the first finding of all kinds, for history_print(). */
    enum name name;
    int64_t at_ns;

    long operations; /* returned calls of the library */
    long holds;
    long certain_holds;      /* of the holds: certain for any time at all */
    long local_holds;        /* of the holds: handed on or kept inside a process, by their tokens */
    long dead_owners;        /* killed owners */
    long reported_deaths;    /* EOWNERDEAD */
    long losses;             /* holds ended by EPERM */
    long given_up;           /* of the losses: certain holds, given up by a wait without an answer */
    long waits;              /* on conditions */
    long stale;              /* touches refused by the resource */
    uint64_t highest[NAMES]; /* token */
};

extern const char *const finding_names[FINDINGS];

/* Adds findings to a verdict; a new verdict is all zeros.  Tokens must be higher than the verdict's highest so far. */
void check_history(const struct history *history, struct verdict *verdict);

long verdict_sum(const struct verdict *verdict);

/* Adds the other verdict's counts, and takes the other's highest tokens. */
void verdict_add(struct verdict *verdict, const struct verdict *other);

#endif
