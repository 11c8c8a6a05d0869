/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The command line of dmutex-run.
 */
#ifndef DM_RUN_OPTIONS_H
#define DM_RUN_OPTIONS_H

#include <stdbool.h>

#include <glib.h>

/* What to do with the command. */
enum action { ACTION_RUN, ACTION_LIST, ACTION_CHECK, ACTION_DRY_RUN, ACTION_HOLDERS, ACTION_HELP, ACTION_VERSION };

struct options {
    enum action action;
    const char *config; /* --config; NULL */
    const char *output; /* --output; NULL */
    GPtrArray *map;     /* every -e, in the order of the command line */
    char **command;     /* the arguments after the options, ended by NULL */
};

/* Refuses unknown options, and a missing command. The texts belong to argv. */
bool options_read(int argc, char **argv, struct options *ret_options, GError **error);
void options_clear(struct options *options);

void options_print_help(void);

#endif
