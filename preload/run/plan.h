/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The plan: the rules of DMUTEX_MAP and of the configuration, each with the place where the rule was written, and the
 * server.
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
    char *url_file;   /* the file with the URL; NULL: the URL came from a variable */
    GPtrArray *texts; /* texts that rules and origins point into */
};

#define PLAN_NAME_ROOM 256

struct plan *plan_new(void);
void plan_free(struct plan *plan);

/*
 * Reads rules in the words of DMUTEX_MAP to the end of a list of the plan's. Refuses a text that is no rule and a name
 * that no mutex can have.
 */
bool plan_read(struct plan *plan, GArray *list, const char *text, const char *origin, GError **error);

/* Keeps a copy of the text for as long as the plan. */
const char *plan_keep(struct plan *plan, const char *text);

/* The number of rules, and the rule at a place: the rules of the map come first. */
unsigned plan_count(const struct plan *plan);
const struct planned *plan_at(const struct plan *plan, unsigned index);

/* From now on the rule's object need not exist. */
void plan_excuse(struct plan *plan, unsigned index);

/* A name that the rule can give: the %-words have some value. False if the words cannot be expanded. */
bool plan_example_name(const struct rule *rule, char ret_name[PLAN_NAME_ROOM]);

#endif
