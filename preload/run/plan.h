/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The plan: the rules of DMUTEX_MAP and of the configuration, each with the place where it was written, and the server.
 */
#ifndef DM_RUN_PLAN_H
#define DM_RUN_PLAN_H

#include <stdbool.h>

#include <glib.h>

#include "shared/rules.h"

/* One rule. The texts belong to the plan. */
struct planned {
    struct rule rule;
    const char *origin; /* "FILE: [lock NAME] Match", "DMUTEX_MAP" */
};

struct plan {
    GArray *map;      /* of struct planned: -e, then DMUTEX_MAP */
    GArray *rules;    /* of struct planned: the configuration's */
    char *url;        /* of the server; NULL: none is configured */
    char *url_from;   /* where the URL was written */
    char *url_file;   /* the file that contains the URL; NULL: it came from a variable */
    GPtrArray *texts; /* texts that rules and origins point into */
};

#define PLAN_NAME_ROOM 256

struct plan *plan_new(void);
void plan_free(struct plan *plan);

/*
 * Reads rules in the syntax of DMUTEX_MAP and appends them to one of the plan's lists. Refuses a text that is no rule,
 * and a name that no mutex can have.
 */
bool plan_read(struct plan *plan, GArray *list, const char *text, const char *origin, GError **error);

/* Keeps a copy of the text as long as the plan lives. */
const char *plan_keep(struct plan *plan, const char *text);

/* The number of rules, and the rule at an index; those of the map come first. */
unsigned plan_count(const struct plan *plan);
const struct planned *plan_at(const struct plan *plan, unsigned index);

/* From now on the rule's object may be missing. */
void plan_excuse(struct plan *plan, unsigned index);

/* A name that the rule can produce, with some value for each %. False if it cannot be expanded. */
bool plan_example_name(const struct rule *rule, char ret_name[PLAN_NAME_ROOM]);

#endif
