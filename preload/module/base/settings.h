/* SPDX-License-Identifier: BSD-2-Clause */
/* The module's settings: the rules for this program, read once from DMUTEX_MAP and DMUTEX_RULES. */
#ifndef DM_PRELOAD_SETTINGS_H
#define DM_PRELOAD_SETTINGS_H

#include "shared/rules.h"

struct settings {
    const struct rule *rules; /* the rules for this program only */
    const char **resolved;    /* for each rule whose module path is a link: what the link resolves to; else NULL */
    int count;
    bool has_objects; /* a sym: or off: rule */
    bool has_mappings;
    bool has_flock, has_fcntl;
    const char *list_folder; /* DMUTEX_LIST; NULL */
    const char *report;      /* DMUTEX_REPORT; NULL */
    const char *url;         /* of the server: from DMUTEX_URL_FILE, else DMUTEX_URL; NULL */
    bool is_url_secret;      /* the URL is from DMUTEX_URL_FILE: the module passes it to libdmutex and the keeper */
    const char *url_fault;   /* why DMUTEX_URL_FILE cannot be read; NULL */
    char program[4096];      /* the path of this program */
};

/* Set up by the first call; valid and unchanged from then on. */
const struct settings *settings_get(void);

/* Reports that the server is not known because the URL file cannot be read. */
void settings_say_url_fault(void);

/* The rule's name for the object or file at this path; false, reported, if the rule yields none. */
bool settings_name(const struct rule *rule, const char *path, char *ret_name, size_t room);

#endif
