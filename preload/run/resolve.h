/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Does each rule find what it names, in the program and what it loads?
 */
#ifndef DM_RUN_RESOLVE_H
#define DM_RUN_RESOLVE_H

#include <glib.h>

#include "plan.h"
#include "program.h"

enum finding {
    FINDING_GOOD,    /* it is there, or will be found when a file is locked or mapped */
    FINDING_LATER,   /* its module is not there yet, and need not be */
    FINDING_DOUBTFUL, /* it is not there, and is not required */
    FINDING_SUSPECT, /* it is there, and may be something that is not distributed */
    FINDING_BAD      /* it is required, and is not there */
};

struct resolution {
    enum finding finding;
    char *sentence; /* where it is, or why not and what to do */
};

/*
 * One resolution for each rule, as plan_at() numbers them.  `program` is NULL when no command was
 * given.  The caller frees the array.
 */
GPtrArray *resolve_all(const struct plan *plan, const struct program *program);

#endif
