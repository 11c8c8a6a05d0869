/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the module was told: the rules for this program, read once from DMUTEX_MAP and DMUTEX_RULES.
 */
#ifndef DM_PRELOAD_SETTINGS_H
#define DM_PRELOAD_SETTINGS_H

#include "rules.h"

struct settings {
    const struct rule *rules; /* those for this program only */
    const char **resolved;    /* of each: where its module's path leads, if that is a link; else NULL */
    int count;
    bool has_objects; /* a sym: or off: rule */
    bool has_mappings;
    bool has_flock, has_fcntl;
    const char *list_folder; /* DMUTEX_LIST; NULL */
    const char *report;      /* DMUTEX_REPORT; NULL */
    const char *url;         /* of the server: DMUTEX_URL_FILE's, else DMUTEX_URL; NULL */
    bool is_url_secret;      /* it is DMUTEX_URL_FILE's: libdmutex and the keeper are told it by us */
    const char *url_fault;   /* why DMUTEX_URL_FILE cannot be read; NULL */
    char program[4096];      /* the path of this program */
};

/* Set up by the first call; valid from then on, and never changed. */
const struct settings *settings_get(void);

/* Says that the server is not known, because its file cannot be read. */
void settings_say_url_fault(void);

/* The name that the rule gives to what lies at this path; false, said, if it makes none. */
bool settings_name(const struct rule *rule, const char *path, char *ret_name, size_t room);

#endif
