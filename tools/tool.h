/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The subcommands of dmutex(1), `dmutex SUBCOMMAND ...`.  Each is a file of this folder that defines one struct
 * subcommand; their table is in dmutex.c.
 */
#ifndef DM_TOOLS_TOOL_H
#define DM_TOOLS_TOOL_H

#include <getopt.h>
#include <stdbool.h>

/* Exit statuses: those of sysexits(3) and of a shell, and TOOL_NO for the answer "no". */
enum {
    TOOL_NO = 1,
    TOOL_USAGE = 64,
    TOOL_NO_INPUT = 66,    /* a file cannot be read */
    TOOL_UNREACHABLE = 69, /* the server cannot be used */
    TOOL_OUTPUT = 74,      /* standard output cannot be written */
    TOOL_HELD = 75,        /* the lock was not acquired */
    TOOL_LOST = 76,        /* the lock was lost while the command ran */
    TOOL_DENIED = 77,      /* the server refuses the login, or a right is missing */
    TOOL_CONFIG = 78,
    TOOL_CANNOT_RUN = 126,
    TOOL_NOT_FOUND = 127
};

struct subcommand {
    const char *name;
    const char *arguments; /* after the name in the usage line */
    const char *purpose;   /* one line */
    const char *options;   /* one line per option; "" */
    /* argv[0] is "dmutex SUBCOMMAND".  Returns the exit status. */
    int (*run)(int argc, char **argv);
};

extern const struct subcommand subcommand_acl, subcommand_break, subcommand_doctor, subcommand_list, subcommand_local,
    subcommand_names, subcommand_run, subcommand_show, subcommand_sql, subcommand_token, subcommand_top,
    subcommand_wait;

/*
 * The next option, as in getopt_long(); -1 after the last.  On '?' getopt has reported the error, and the caller
 * returns TOOL_USAGE.  Options end at the first other argument.
 */
int tool_option(int argc, char **argv, const char *letters, const struct option *options);

/* Reports a usage error in one sentence.  Returns TOOL_USAGE. */
int tool_misused(char **argv, const char *format, ...) __attribute__((format(printf, 2, 3)));

/*
 * Finds the server: DMUTEX_URL, else dmutex.conf(5), but never local: as a fallback.  Returns 0, or reports and returns
 * TOOL_CONFIG.
 */
int tool_configure(void);

struct dm_url;

/* Finds the same server, as a parsed URL, which dm_url_free() frees. */
int tool_find_url(struct dm_url **ret_url);

/* True if the variable or a file names a server. */
bool tool_has_url(void);

/*
 * For a subcommand whose only argument is a name: checks the name and the number of arguments, and finds the server.
 * The name is argv[optind].  Returns 0, or reports and returns the exit status.
 */
int tool_take_name(int argc, char **argv);

/* The same for a subcommand whose only option is --json. */
int tool_only_name(int argc, char **argv, bool *ret_is_json);

/* Reads a number of seconds, which may have a fraction. */
bool tool_read_seconds(const char *text, double *ret_seconds);

/* Reports that the data under this name are not the library's.  Returns TOOL_UNREACHABLE. */
int tool_foreign(const char *name);

/* The exit status for a failure: TOOL_DENIED if login or rights must be corrected, else TOOL_UNREACHABLE. */
int tool_status(void);

/*
 * Reports why the library's last call about `name` failed.  A name that is NULL or empty is left out.  Returns
 * tool_status().
 */
int tool_failed(const char *name);

/* The same for a list of all names, with the right that listing needs. */
int tool_failed_list(void);

#endif
