/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The judge: is there anything in a history that mutexes, fencing tokens and condition variables as
 * promised cannot do?  Knows no library and no server, only what callers saw.
 *
 * A hold is *certain* from the return of the call that began it until the last moment that the
 * library promised for it, or the call that ended it, or the death of its process.  What a thread
 * believed beyond that is its own affair, and the resource's, which checks tokens.
 */
#ifndef CHAOS_CHECK_H
#define CHAOS_CHECK_H

#include <stdint.h>

#include "history.h"

enum finding {
    FOUND_OVERLAP,    /* two holds of a name, both certain */
    FOUND_TOKEN,      /* a later hold has no higher token */
    FOUND_DEPTH,      /* a depth that calls of this thread do not explain */
    FOUND_RELOCK,     /* one hold with two tokens, or a new one while the old one was certain */
    FOUND_NOT_OWNER,  /* succeeded for a thread that owned nothing */
    FOUND_LOST,       /* "not yours", said within the promised time */
    FOUND_STALE,      /* the resource had seen a higher token within the promised time */
    FOUND_RESULT,     /* an errno value that this call may not return */
    FOUND_EARLY,      /* timed out before its deadline */
    FOUND_UNFINISHED, /* a call that did not return, of a thread that lives: a lost wake-up */
    FINDINGS
};

struct verdict {
    long found[FINDINGS];
    char first[FINDINGS][256]; /* in words, "" if there is none */
    /* Where the first of all is, for history_print(). */
    enum name name;
    int64_t at_ns;

    long operations; /* calls of the library that returned */
    long holds;
    long certain_holds;   /* of these: certain for any time at all */
    long dead_owners;     /* owners that were killed */
    long reported_deaths; /* EOWNERDEAD */
    long losses;          /* holds that ended by EPERM */
    long given_up;        /* of these: certain, by a wait that did not know */
    long waits;           /* on conditions */
    long stale;           /* what the resource refused */
    uint64_t highest[NAMES]; /* token */
};

extern const char *const finding_names[FINDINGS];

/* Adds to a verdict, which begins as zeros; tokens must be higher than its highest so far. */
void check_history(const struct history *history, struct verdict *verdict);

long verdict_sum(const struct verdict *verdict);

/* Adds another's counts; the highest tokens are then the other's. */
void verdict_add(struct verdict *verdict, const struct verdict *other);

#endif
