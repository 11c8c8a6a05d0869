/* SPDX-License-Identifier: BSD-2-Clause */
/* Checks that each rule finds its object, in the program and the libraries that it loads. */
#ifndef DM_RUN_RESOLVE_H
#define DM_RUN_RESOLVE_H

#include <glib.h>

#include "plan.h"
#include "program.h"

enum finding {
    FINDING_GOOD,     /* the object exists, or will be found when a file is locked or mapped */
    FINDING_LATER,    /* the rule's module does not exist yet, and need not */
    FINDING_DOUBTFUL, /* the object does not exist, and is not required */
    FINDING_SUSPECT,  /* the object exists, but may be of a kind that is not distributed */
    FINDING_BAD       /* the object is required, but does not exist */
};

struct resolution {
    enum finding finding;
    char *sentence; /* where the object is, or why it is missing and what to do */
};

/*
 * One resolution for each rule, in the order of plan_at(). `program` is NULL if no command was given. The caller frees
 * the array.
 */
GPtrArray *resolve_all(const struct plan *plan, const struct program *program);

#endif
