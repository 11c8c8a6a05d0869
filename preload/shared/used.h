/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Records which rules have matched an object in any process of a command: a rule with a typing error does nothing, and
 * the user would not know.
 *
 * dmutex-run makes a piece of System V shared memory. The kernel removes it together with the last process that has
 * attached it, even if that process is killed. When the command's own process exits, it names the rules that have not
 * matched.
 */
#ifndef DM_PRELOAD_USED_H
#define DM_PRELOAD_USED_H

#include <stdint.h>

#define USED_VARIABLE "DMUTEX_USED" /* "ID COOKIE" */
#define USED_COOKIE_ROOM 33

/* One mark for each rule: those of DMUTEX_MAP, then those of DMUTEX_RULES. */
enum used_mark {
    USED_NOT,        /* from a configuration, which may have rules for other programs */
    USED_NOT_THOUGH, /* written for this very command */
    USED_YES
};

struct used {
    char cookie[USED_COOKIE_ROOM]; /* distinguishes this memory from later memory with the same number */
    int32_t owner;                 /* the command's pid */
    uint32_t count;
    uint8_t marks[];
};

#endif
