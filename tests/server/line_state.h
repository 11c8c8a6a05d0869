/* SPDX-License-Identifier: BSD-2-Clause */
/* The line of a mutex as this process's library sees the line; for programs that have the library's parts inside. */
#ifndef TEST_LINE_STATE_H
#define TEST_LINE_STATE_H

#include <stdbool.h>
#include <stdint.h>

#include "core/hold.h"

struct line_state {
    bool has_claim; /* the phase counts */
    enum dm_phase phase;
    int seats;
    bool is_starving;
    bool is_bounded; /* another process waits, and the bound counts ... */
    bool is_over;    /* ... and is reached */
};

/* Of a mutex with a name. */
struct line_state line_state_of(const char *name);
int seats_of(const char *name);

#endif
