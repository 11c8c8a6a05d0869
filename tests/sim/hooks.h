/* SPDX-License-Identifier: BSD-2-Clause */
/* Between the library and the core: parts of the core that a negative control takes out. */
#ifndef SIM_HOOKS_H
#define SIM_HOOKS_H

#include <stdbool.h>

enum core_defect {
    CORE_IS_WHOLE,
    CORE_TRUSTS_ANY_GRANT,   /* a message counts from the newest request, with any request in the message */
    CORE_HAS_NO_MARGIN,      /* certain for the whole lease, not for 0.8 of it */
    CORE_KEEPS_ALL,          /* a released mutex counts as held */
    CORE_DROPS_LATE_UNKNOWN, /* "unknown" is no news to an attempt that has sent another request since */
    CORE_RENEWS_ONCE,        /* a renewal without an answer is not repeated */
    CORE_RELEASES_ONCE,      /* a release without an answer is not repeated */
    SERVER_HAS_NO_GRACE,     /* not the core's: a new server grants at once */
    SERVER_HAS_GHOSTS,       /* not the core's: bytes of a closed connection are executed late */
    INBOX_BELIEVES_ANY,      /* the connection's: any grant counts as sent by the inbox's server */
    RELEASES_NAME_CALLERS,   /* the runtime's: a release names the hold by the calling thread */
    WAITS_NAME_CALLERS,      /* the runtime's: a wait on a condition names the hold by the calling thread */
    FAST_IGNORES_TIME,       /* the fast path's: a thread enters a hold whose end has come */
    LINE_NEVER_LOOKS,        /* the runtime's: no end of a linger time is planned */
    LINE_TAKES_NONE_BACK,    /* the runtime's: at exit() a hold that was passed to a seat is the seat's */
    STORE_TELLS_NOBODY,      /* of the plain store: no holder of a marked hold is notified of a waiter */
    STORE_TELLS_EACH_TIME,   /* of the plain store: such a holder is notified of every waiter */
    STORE_FORGETS_MARKS,     /* the plain store's: the end of a marked hold's lease is a death, whatever the mark */
    STORE_TELLS_NO_DEATH,    /* the plain store's: no end of a lease is a death */
    MEMORY_BRINGS_OLD,       /* the driver's: a conflict brings the value that was expected */
    MEMORY_READS_OLD,        /* the driver's: a read may be older than what the process has seen */
    MEMORY_REPEATS_VERSIONS, /* the driver's: versions begin again after a deletion */
    MEMORY_KEEPS_IDENTITY,   /* the driver's: an older copy comes back under the same identity */
    MEMORY_IS_NOT_ATOMIC,    /* the driver's: some swaps do not look at the version */
    REGISTERS_SIGNAL_NOBODY, /* of the store on registers: a signal moves no sleeper */
    REGISTERS_DROP_SIGNALS,  /* of the store on registers: a signal dies with its receiver */
    WORDS_COUNT_FOR_EVER,    /* the master watch's: a master is believed until the connection ends */
    SENTINELS_TELL_NO_EPOCH, /* failovers are not distinguished */
    LINK_AWAITS_NO_REPLICA,  /* the link's: with wait=N, a reply counts whatever WAIT has said */
    LINK_AWAITS_NO_IDENTITY  /* the link's: requests wait for no answer that the server is the same */
};

struct dm_store;

void hooks_set(enum core_defect defect);
bool hooks_has(enum core_defect defect);

/* Puts the defects of the runtime's requests between the runtime and the store. */
void hooks_put(struct dm_store *store);

#endif
