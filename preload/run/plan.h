/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What is to be distributed, and by which server: the rules of DMUTEX_MAP and of the configuration,
 * each with the place where it was written.
 */
#ifndef DM_RUN_PLAN_H
#define DM_RUN_PLAN_H

#include <stdbool.h>

#include <glib.h>

#include "../rules.h"

/* One rule.  Its texts belong to the plan. */
struct planned {
    struct rule rule;
    const char *origin; /* "FILE: [lock NAME] Match", "DMUTEX_MAP" */
};

struct plan {
    GArray *map;    /* of struct planned: -e, then DMUTEX_MAP */
    GArray *rules;  /* of struct planned: the configuration's */
    char *url;      /* of the server; NULL: none is configured */
    char *url_from; /* where it was written */
    char *url_file; /* the file that it is in; NULL: it came from a variable */
    GPtrArray *texts; /* what rules and origins point into */
};

#define PLAN_NAME_ROOM 256

struct plan *plan_new(void);
void plan_free(struct plan *plan);

/*
 * Reads rules in the words of DMUTEX_MAP to the end of the list, which is one of the plan's.  Refuses
 * a text that is no rule and a name that no mutex can have.
 */
bool plan_read(struct plan *plan, GArray *list, const char *text, const char *origin, GError **error);

/* Keeps a copy of the text for as long as the plan. */
const char *plan_keep(struct plan *plan, const char *text);

/* How many rules there are, and the one at that place: those of the map come first. */
unsigned plan_count(const struct plan *plan);
const struct planned *plan_at(const struct plan *plan, unsigned index);

/* From now on that rule need not be there. */
void plan_excuse(struct plan *plan, unsigned index);

/* A name that the rule can give: its %-words have some value.  False if they cannot be expanded. */
bool plan_example_name(const struct rule *rule, char ret_name[PLAN_NAME_ROOM]);

#endif
