/* SPDX-License-Identifier: BSD-2-Clause */
/* Shared by the processes of visits.c and their test: a file, mapped by all. */
#ifndef TEST_VISITS_H
#define TEST_VISITS_H

#include <stdatomic.h>

struct book {
    atomic_int inside;   /* how many are in the critical section */
    atomic_int overlaps; /* how often somebody was there already */
    atomic_int leave;    /* set by the test: the staying process goes */
    int visits;          /* guarded by the mutex, if the mutex is one for all */
    int turn;            /* the same */
};

#endif
