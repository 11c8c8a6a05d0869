/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The sessions of other processes, watched until they change or are dead.  One table for a process; it belongs to the
 * data of one identity.
 *
 * Pure, like session.h: each watched session wants a READ or a KILL now and then.
 *
 * S2. A session is dead if and only if somebody has swapped it to dead.  One may, after seeing one version for a whole
 *     lease, by one's own clock and counted from the return of the first read that showed it; or if the store says that
 *     the version is a lease old.  The swap expects the version that was watched, so a beat in between defeats it.
 * S3. Absent is a version like any other, and no death.  Only where sessions expire by themselves may an absent one be
 *     killed at once.
 * N9. A waiter watches those before it, from the nearest one back to the first that has changed since its last look,
 *     and at each look up to twice as many as at the last.
 */
#ifndef DM_REGISTERS_WATCH_H
#define DM_REGISTERS_WATCH_H

#include "registers/value.h"

enum dm_reg_watch_want {
    DM_REG_WATCH_NOTHING,
    DM_REG_WATCH_READ,
    DM_REG_WATCH_KILL /* swap `version` for dead */
};

/* One session of another process. */
struct dm_reg_watched {
    struct dm_reg_watched *next; /* in its bucket */
    struct dm_reg_session_id id;
    bool is_seen; /* something of the following is known */
    bool is_dead;
    bool may_kill;
    struct dm_reg_version version;
    int64_t since_ns;   /* the return of the first read that showed this version */
    int64_t changed_ns; /* the return of the first read that showed a change; 0: none has */
    int64_t young_ns;   /* the return of the last read that showed a version younger than a lease, as the store says */
    int64_t read_ns;    /* when to read, perhaps again */
    int64_t heard_ns;   /* the last answer, of any kind; 0: none */
    int64_t alive_ns;   /* by its age, nobody may kill it before; 0: the age is not known */
    int64_t wanted_ns;  /* when somebody last asked for it */
    enum dm_reg_watch_want under_way;
    char label[DM_LABEL_ROOM]; /* for people; "": not seen */
};

#define DM_REG_WATCH_BUCKETS 64

struct dm_reg_watch {
    bool expires; /* sessions that nobody renews disappear, after three leases at least */
    unsigned count;
    struct dm_reg_watched *buckets[DM_REG_WATCH_BUCKETS];
};

enum dm_reg_watch_event_kind {
    DM_REG_WATCH_EV_FOUND,    /* `version`, `is_dead`, `age_ms` */
    DM_REG_WATCH_EV_ABSENT,   /* `age_ms` is not known */
    DM_REG_WATCH_EV_SAME,     /* the version is still the known one; `age_ms` */
    DM_REG_WATCH_EV_KILLED,   /* the swap has taken effect */
    DM_REG_WATCH_EV_CONFLICT, /* it has not */
    DM_REG_WATCH_EV_UNKNOWN   /* no answer */
};

struct dm_reg_watch_event {
    enum dm_reg_watch_event_kind kind;
    bool is_dead;
    struct dm_reg_version version;
    int64_t age_ms;    /* the version's, by the store's clock, at least; -1: not known */
    const char *label; /* FOUND: the value's; NULL: none */
};

void dm_reg_watch_init(struct dm_reg_watch *watch, bool expires);

/* Forgets everything: other data. */
void dm_reg_watch_clear(struct dm_reg_watch *watch);

/* Forgets those that nobody has asked for since `before_ns` and that no request is about. */
void dm_reg_watch_forget(struct dm_reg_watch *watch, int64_t before_ns);

/* Watches the session from now on.  NULL without memory. */
struct dm_reg_watched *dm_reg_watch_add(struct dm_reg_watch *watch, const struct dm_reg_session_id *id, int64_t now_ns);

/* NULL if it is not watched. */
struct dm_reg_watched *dm_reg_watch_find(const struct dm_reg_watch *watch, const struct dm_reg_session_id *id);

/* True if the session is known to be dead. */
bool dm_reg_watch_is_dead(const struct dm_reg_watch *watch, const struct dm_reg_session_id *id);

enum dm_reg_watch_want dm_reg_watch_wants(const struct dm_reg_watched *watched, int64_t now_ns);

/*
 * True if a look at the session now would show nothing new: it is younger than its lease, or has been read since
 * `asked_ns` and is still not dead.  Else it is read, and perhaps killed, at the next occasion.
 */
bool dm_reg_watch_has_looked(struct dm_reg_watched *watched, int64_t asked_ns, int64_t now_ns);

/* When it wants something at the latest; DM_NEVER while a request is under way, and of the dead. */
int64_t dm_reg_watch_due_ns(const struct dm_reg_watched *watched);

/* Call it just before the wanted request is sent. */
void dm_reg_watch_send(struct dm_reg_watched *watched, enum dm_reg_watch_want want);

/* True if the session is newly known to be dead. */
bool dm_reg_watch_step(const struct dm_reg_watch *watch, struct dm_reg_watched *watched,
                       const struct dm_reg_watch_event *event, int64_t now_ns);

/* The looks of one waiter at those before it. */
struct dm_reg_looks {
    int64_t last_ns; /* 0: none yet */
    unsigned most;   /* how many the next look may watch */
};

/* N9: one look.  `before` are the sessions before the waiter, the holder first.  False without memory. */
bool dm_reg_watch_look(struct dm_reg_watch *watch, struct dm_reg_looks *looks, const struct dm_reg_session_id *before,
                       unsigned count, int64_t now_ns);

#endif
