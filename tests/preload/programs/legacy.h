/* SPDX-License-Identifier: BSD-2-Clause */
/* The parts of legacy.c share a call, and the meaning of the call's words. */
#ifndef LEGACY_H
#define LEGACY_H

#include <stddef.h>
#include <time.h>

#define ROOM 1024
#define WORDS 8

struct call {
    char line[ROOM];
    char *words[WORDS + 1];
    char answer[ROOM];
};

struct command {
    const char *name;
    void (*work)(struct call *call);
};

/* The tables of legacy_calls.c and legacy_around.c; the last entry has no name. */
extern const struct command calls[], around[];

/* Further places of objects: the module that was opened last, and the mapping. */
extern void *module;
extern char *mapped;

/* The object that a word of the call names, or NULL. */
void *object_of(const struct call *call, int word);
int has_word(const struct call *call, const char *word);

/* The answer: a result, or "0" and a number. */
void answer(struct call *call, int result);
void answer_number(struct call *call, long number);

/* The time `word` milliseconds from now. */
struct timespec in_ms(clockid_t clock, const char *word);

#endif
