/* SPDX-License-Identifier: BSD-2-Clause */
/* What the processes of visits.c and their test share: a file, mapped by all. */
#ifndef TEST_VISITS_H
#define TEST_VISITS_H

#include <stdatomic.h>

struct book {
    atomic_int inside;   /* how many are in the critical section */
    atomic_int overlaps; /* how often somebody was there already */
    atomic_int leave;    /* set by the test: who stays goes */
    int visits;          /* guarded by the mutex, if that is one for all */
    int turn;            /* the same */
};

#endif
