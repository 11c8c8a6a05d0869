/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The rules for distribution, in the syntax of DMUTEX_MAP and DMUTEX_RULES:
 *
 *     rule => name [key=value ...] ; rule => name ...
 *
 * A rule has one of these forms:
 *
 *     sym:MODULE:SYMBOL[+OFFSET]     off:MODULE@build-id:HEX+OFFSET
 *     shm:/NAME+OFFSET               map:/PATH+OFFSET
 *     flock:GLOB                     fcntl:GLOB
 *
 * For a condition variable, `cond:` comes before one of the first four. A backslash makes the byte after it literal.
 * Used by the module, which has neither malloc nor stdio here, and by dmutex-run.
 */
#ifndef DM_PRELOAD_RULES_H
#define DM_PRELOAD_RULES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct text;

enum rule_kind { RULE_SYMBOL, RULE_OFFSET, RULE_SHM, RULE_MAP, RULE_FLOCK, RULE_FCNTL };
enum rule_robust { ROBUST_AS_MADE, ROBUST_NO, ROBUST_YES };
enum rule_on_down { DOWN_BLOCK, DOWN_FAIL, DOWN_LOCAL };

/*
 * What a rule means that finds nothing. AUTO: an error if the rule's module is there but the object is not. YES: the
 * module must be there, too, when dmutex-run checks, and in the rule's own program. NO: a warning.
 */
enum rule_required { REQUIRED_AUTO, REQUIRED_YES, REQUIRED_NO };

struct rule {
    enum rule_kind kind;
    bool is_condition;
    const char *module;   /* path or basename of a module; name or path of a mapping; glob of files */
    const char *symbol;   /* SYMBOL */
    const char *build_id; /* OFFSET; lower-case hex */
    uint64_t offset;
    const char *name; /* of the mutex; % is still to be expanded */

    unsigned lease_ms, linger_ms; /* 0: the library's default */
    enum rule_robust robust;
    enum rule_on_down on_down; /* default for a lock file: DOWN_FAIL */
    int on_lost;               /* 0: log; else a signal */
    enum rule_required required;
    bool is_state_shared;     /* the memory that the mutex guards is shared, too: no warning */
    bool shared_is_exclusive; /* a shared file lock is treated as exclusive */
    const char *program;      /* basename or path of the only program it applies to; NULL: all */
    unsigned number;          /* its position among all rules that the module was given (used.h) */
};

#define RULES_REASON_ROOM 256

/* An upper bound for the number of rules in the text. */
size_t rules_count(const char *text);

/*
 * Reads the text into `rules`, which has room for rules_count() of them and points into the text, which is changed.
 * Returns how many there are, or -1 with a reason.
 */
int rules_parse(char *text, struct rule *rules, char ret_reason[RULES_REASON_ROOM]);

/* Writes the rule as a person would type it, without the name. */
void rules_write(const struct rule *rule, struct text *text);

/* What the % in a name stand for. */
struct rule_words {
    const char *path;    /* %p, and its last part %b: the module, mapping or file */
    const char *program; /* %x: the program's name */
    unsigned uid;        /* %u */
};

/* Expands the name; false if the result does not fit or contains an unknown %. */
bool rules_expand(const struct rule *rule, const struct rule_words *words, char *ret_name, size_t room);

/* True if this rule applies to the program at this path. */
bool rules_is_for(const struct rule *rule, const char *program_path);

/* True if the rule's module, a path or a basename, is the file at this resolved path. */
bool rules_names_file(const char *module, const char *path);

#endif
