/* SPDX-License-Identifier: BSD-2-Clause */
/* The first server of a quorum, when it lies.  It keeps its data as the others do, and says something else. */
#ifndef SIM_LIAR_H
#define SIM_LIAR_H

#include "scripting.h"

enum liar {
    LIAR_IS_NONE,
    LIAR_MISLEADS, /* denies holds, queues and releases, has tokens too high, and announces grants that never were */
    LIAR_GRANTS    /* to everybody, which no quorum survives */
};

void liar_begin(enum liar liar);
bool liar_is_there(void);

/* True if the liar says something instead of running the script. */
bool liar_answers(const char *script, int64_t now_us, struct bytes *reply);

/* After the script: changes what it has said. */
void liar_twists(const char *script, struct bytes *reply);

/* True if it falsely announces a grant to the attempt, by a message: `ret_message`, to be freed. */
bool liar_tells(const char *script, const struct text *arguments, struct bytes *ret_message);

#endif
