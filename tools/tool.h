/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The words of dmutex(1), `dmutex WORD ...`.  Each word is a file of this folder, which defines one struct word; the
 * table of all words is in dmutex.c.
 */
#ifndef DM_TOOLS_TOOL_H
#define DM_TOOLS_TOOL_H

#include <getopt.h>
#include <stdbool.h>

/* Exit statuses: those of sysexits(3), of a shell, and TOOL_NO for the answer "no". */
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

struct word {
    const char *name;
    const char *arguments; /* behind the name in the usage line */
    const char *purpose;   /* one line */
    const char *options;   /* lines about the options; "" */
    /* argv[0] is "dmutex WORD".  Returns the exit status. */
    int (*run)(int argc, char **argv);
};

extern const struct word word_acl, word_break, word_doctor, word_list, word_local, word_names, word_run, word_show,
    word_token, word_top, word_wait;

/*
 * The next option, as getopt_long(), -1 behind the last.  '?': getopt has complained already, and the caller returns
 * TOOL_USAGE.  Options end at the first other argument.
 */
int tool_option(int argc, char **argv, const char *letters, const struct option *options);

/* Complains of the usage in one sentence.  Returns TOOL_USAGE. */
int tool_misused(char **argv, const char *format, ...) __attribute__((format(printf, 2, 3)));

/*
 * Finds the server: DMUTEX_URL, else dmutex.conf(5); never falls back to local:.  Returns 0, or TOOL_CONFIG and has
 * complained.
 */
int tool_configure(void);

struct dm_url;

/* The same server, as the parts of its URL; freed by dm_url_free(). */
int tool_find_url(struct dm_url **ret_url);

/* True if a server is named, by the variable or by a file. */
bool tool_has_url(void);

/*
 * For a word with one argument, a name, behind the options: checks the name and the number of arguments, and finds the
 * server.  The name is argv[optind].  Returns 0, or the exit status and has complained.
 */
int tool_take_name(int argc, char **argv);

/* The same for a word that has no option but --json. */
int tool_only_name(int argc, char **argv, bool *ret_is_json);

/* Reads a number of seconds, perhaps with a fraction. */
bool tool_read_seconds(const char *text, double *ret_seconds);

/* Says that the server's data of the name are not the library's.  Returns TOOL_UNREACHABLE. */
int tool_foreign(const char *name);

/* The status for a failure with that sentence: TOOL_DENIED if a person must mend login or rights, TOOL_UNREACHABLE. */
int tool_status_of(const char *sentence);

/*
 * Says that the library's last call about `name` failed, and why; NULL: about the server.  An empty name stands in no
 * sentence.  Returns tool_status_of().
 */
int tool_failed(const char *name);

/* The same of a list of all names, with the right that a list needs. */
int tool_failed_list(void);

#endif
