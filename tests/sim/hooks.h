/* SPDX-License-Identifier: BSD-2-Clause */
/* Between the library and the core: parts of the core that a negative control takes out. */
#ifndef SIM_HOOKS_H
#define SIM_HOOKS_H

#include <stdbool.h>

enum core_defect {
    CORE_IS_WHOLE,
    CORE_TRUSTS_ANY_GRANT, /* a message counts from the newest request, with any request in the message */
    CORE_HAS_NO_MARGIN,    /* certain for the whole lease, not for 0.8 of it */
    CORE_KEEPS_ALL,        /* a released mutex counts as held */
    SERVER_HAS_NO_GRACE,   /* not the core's: a new server grants at once */
    SERVER_HAS_GHOSTS,     /* not the core's: bytes of a closed connection are executed late */
    INBOX_BELIEVES_ANY     /* the connection's: any grant counts as sent by the inbox's server */
};

void hooks_set(enum core_defect defect);
bool hooks_has(enum core_defect defect);

#endif
