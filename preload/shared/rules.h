/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The rules for distribution, in the words of DMUTEX_MAP and DMUTEX_RULES:
 *
 *     rule => name [key=value ...] ; rule => name ...
 *
 * A rule has one of these forms:
 *
 *     sym:MODULE:SYMBOL[+OFFSET]     off:MODULE@build-id:HEX+OFFSET
 *     shm:/NAME+OFFSET               map:/PATH+OFFSET
 *     flock:GLOB                     fcntl:GLOB
 *
 * with `cond:` before one of the first four for a condition variable. A backslash takes the meaning from the byte
 * behind the backslash. Used by the module, which has neither malloc nor stdio here, and by dmutex-run.
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
 * The meaning of a rule that finds nothing. AUTO: an error if the rule's module is there and the object is not; YES:
 * the module must be there too, when dmutex-run looks, and in the rule's own program; NO: a warning.
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

    unsigned lease_ms, linger_ms; /* 0: the library's own */
    enum rule_robust robust;
    enum rule_on_down on_down; /* a lock file's rule that says nothing: DOWN_FAIL */
    int on_lost;               /* 0: log; a signal's number */
    enum rule_required required;
    bool is_state_shared;     /* the memory that the mutex guards is shared too: no warning */
    bool shared_is_exclusive; /* a shared lock of a file is taken for an exclusive lock */
    const char *program;      /* basename or path of the only program that is meant; NULL: all */
    unsigned number;          /* the place among all rules that the module was told (used.h) */
};

#define RULES_REASON_ROOM 256

/* How many rules there can be in the text at most. */
size_t rules_count(const char *text);

/*
 * Reads the text into `rules`, which has room for rules_count() of them and points into the text,
 * which is changed.  Returns how many there are, or -1, with a sentence.
 */
int rules_parse(char *text, struct rule *rules, char ret_reason[RULES_REASON_ROOM]);

/* Writes the rule as a person types the rule, without the name. */
void rules_write(const struct rule *rule, struct text *text);

/* The values of the % words of a name. */
struct rule_words {
    const char *path;    /* %p, and %b the last part: the module, mapping or file */
    const char *program; /* %x: the program's name */
    unsigned uid;        /* %u */
};

/* Expands the words of the name; false if the result does not fit or has an unknown %. */
bool rules_expand(const struct rule *rule, const struct rule_words *words, char *ret_name, size_t room);

/* True if this rule is meant for the program at this path. */
bool rules_is_for(const struct rule *rule, const char *program_path);

/* True if the rule's module, a path or a basename, means the file at this resolved path. */
bool rules_names_file(const char *module, const char *path);

#endif
