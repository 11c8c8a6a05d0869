/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Notes the rules that have matched an object in any process of a command: a rule with a slip of the pen does
 * nothing, and the user would not know.
 *
 * dmutex-run makes a piece of System V's shared memory.  The kernel removes the memory with the last process that
 * has attached it, also if the process is killed.  The process of the command names unmatched rules at its exit.
 */
#ifndef DM_PRELOAD_USED_H
#define DM_PRELOAD_USED_H

#include <stdint.h>

#define USED_VARIABLE "DMUTEX_USED" /* "ID COOKIE" */
#define USED_COOKIE_ROOM 33

/* One mark for each rule: those of DMUTEX_MAP, then those of DMUTEX_RULES. */
enum used_mark {
    USED_NOT,        /* of a configuration, which may have rules for other programs */
    USED_NOT_THOUGH, /* written for this very command */
    USED_YES
};

struct used {
    char cookie[USED_COOKIE_ROOM]; /* tells this memory from later memory with the same number */
    int32_t owner;                 /* the command's pid */
    uint32_t count;
    uint8_t marks[];
};

#endif
