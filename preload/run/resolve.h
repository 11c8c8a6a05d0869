/* SPDX-License-Identifier: BSD-2-Clause */
/* Checks that each rule finds the rule's object, in the program and the libraries that the program loads. */
#ifndef DM_RUN_RESOLVE_H
#define DM_RUN_RESOLVE_H

#include <glib.h>

#include "plan.h"
#include "program.h"

enum finding {
    FINDING_GOOD,     /* the object is there, or will be found when a file is locked or mapped */
    FINDING_LATER,    /* the rule's module is not there yet, and need not be */
    FINDING_DOUBTFUL, /* the object is not there, and is not required */
    FINDING_SUSPECT,  /* the object is there, and may be of a kind that is not distributed */
    FINDING_BAD       /* the object is required, and is not there */
};

struct resolution {
    enum finding finding;
    char *sentence; /* where the object is, or why the object is missing, and the remedy */
};

/*
 * One resolution for each rule, in the order of plan_at(). `program` is NULL when no command was given. The caller
 * frees the array.
 */
GPtrArray *resolve_all(const struct plan *plan, const struct program *program);

#endif
