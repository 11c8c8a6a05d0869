/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The mark: how long the store has had its data, as far as anybody has seen.  It is one value of the store, "m".
 *
 * Pure, like session.h.
 *
 * D2. Whoever finds the mark of another identity, or none, writes that the present data have been quiet for 0 ms.
 *     Whoever has seen one version of the mark for a time, by his own clock and counted from the return of the first
 *     read that showed it, may write that the data have been quiet for so long.  A lock of a lease is settled in these
 *     data when the mark has been quiet for the lease: whoever held it before is certain no longer.
 *     What is in doubt is settled by a read of the mark that was sent after the name was read.
 *     With grace=off the user says that nobody can hold anything: then the present data count as quiet for ever.
 */
#ifndef DM_REGISTERS_MARK_H
#define DM_REGISTERS_MARK_H

#include "registers/value.h"

enum dm_reg_mark_want {
    DM_REG_MARK_NOTHING,
    DM_REG_MARK_READ,
    DM_REG_MARK_SWAP /* swap `version` for a mark of our identity */
};

struct dm_reg_mark_watch {
    char identity[DM_REG_IDENTITY_ROOM]; /* of the present data */
    struct dm_reg_version version;       /* of the mark, as last seen */
    bool is_known;                       /* it was read since the connection was made */
    bool is_ours;                        /* it names our identity */
    bool is_trusting;                    /* data of another identity need not have been quiet: see D2 */
    uint64_t quiet_ms;                   /* as it says */
    uint64_t wanted_ms;                  /* the longest lease of a name in doubt */
    int64_t since_ns;                    /* the return of the first read that showed this version */
    int64_t retry_ns;                    /* nothing is sent before */
    uint64_t reads, reads_wanted;        /* that have come back; that somebody waits for */
    enum dm_reg_mark_want under_way;
    uint64_t next_quiet_ms; /* of the swap under way */
};

enum dm_reg_mark_event_kind {
    DM_REG_MARK_EV_FOUND,    /* `version`, `identity` and `quiet_ms` were read */
    DM_REG_MARK_EV_ABSENT,   /* there is none */
    DM_REG_MARK_EV_SAME,     /* the version is still the known one */
    DM_REG_MARK_EV_DONE,     /* the swap has taken effect; `version` is its own */
    DM_REG_MARK_EV_CONFLICT, /* it has not */
    DM_REG_MARK_EV_UNKNOWN   /* no answer, or no mark of ours */
};

struct dm_reg_mark_event {
    enum dm_reg_mark_event_kind kind;
    struct dm_reg_version version;
    const char *identity;
    uint64_t quiet_ms;
};

/* A connection to data of this identity has been made. */
void dm_reg_mark_begin(struct dm_reg_mark_watch *mark, const char *identity);

enum dm_reg_mark_want dm_reg_mark_wants(const struct dm_reg_mark_watch *mark, int64_t now_ns);
int64_t dm_reg_mark_due_ns(const struct dm_reg_mark_watch *mark);

/* Call it just before the wanted request is sent.  SWAP: returns what the mark is to say. */
uint64_t dm_reg_mark_send(struct dm_reg_mark_watch *mark, enum dm_reg_mark_want want, int64_t now_ns);

void dm_reg_mark_step(struct dm_reg_mark_watch *mark, const struct dm_reg_mark_event *event, int64_t now_ns);

/* True if names may be asked about: the mark is known, and ours. */
bool dm_reg_mark_is_ready(const struct dm_reg_mark_watch *mark);

/* For how long the data have been quiet, as the mark says; 0: not known. */
uint64_t dm_reg_mark_quiet_ms(const struct dm_reg_mark_watch *mark);

/* A name is in doubt whose leases are up to this long. */
void dm_reg_mark_doubt(struct dm_reg_mark_watch *mark, uint64_t lease_ms);

/* How many reads must have come back, so that one was sent after this call. */
uint64_t dm_reg_mark_next_read(const struct dm_reg_mark_watch *mark);

/* True if so many have; if not, they will be sent. */
bool dm_reg_mark_has_read(struct dm_reg_mark_watch *mark, uint64_t reads);

#endif
