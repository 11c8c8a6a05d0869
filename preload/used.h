/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Which rules have matched something, in any process of a command: a rule with a slip of the pen would do nothing, and
 * nobody would know.
 *
 * dmutex-run makes a piece of System V's shared memory, which is gone with the last process that has it,
 * however that ends.  The process that becomes the command says at its exit what has not matched.
 */
#ifndef DM_PRELOAD_USED_H
#define DM_PRELOAD_USED_H

#include <stdint.h>

#define USED_VARIABLE "DMUTEX_USED" /* "ID COOKIE" */
#define USED_COOKIE_ROOM 33

/* One mark for each rule: those of DMUTEX_MAP, then those of DMUTEX_RULES. */
enum used_mark {
    USED_NOT,         /* of a configuration, which may have rules for other programs */
    USED_NOT_THOUGH,  /* was written for this very command */
    USED_YES
};

struct used {
    char cookie[USED_COOKIE_ROOM]; /* so that other memory with the same number is not taken for this */
    int32_t owner;                 /* the command's pid */
    uint32_t count;
    uint8_t marks[];
};

struct rule;

/* In the module.  All may be called in a signal handler, but used_begin(). */
void used_begin(void);
void used_note(const struct rule *rule);

#endif
