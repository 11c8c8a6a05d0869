/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * One session of this process: a value of its own that it rewrites every third of a lease.  All holds and places in
 * queues that the process has with this lease are alive as long as the session is.
 *
 * Pure: dm_reg_session_step() changes the session, dm_reg_session_wants() says what to send next.  No clock, no I/O.
 *
 *      UNMADE --created--> LIVE --lost, ended--> ENDING --dead--> OVER
 *         |                 |                                      ^
 *         +--not created----|--found dead, absent, older-----------+
 *                           +--other data--> PAST
 *
 * S1. A beat counts from its sending: the session is certain until 0.8 of the lease after the sending of the newest
 *     beat that is known to be executed.
 * S4. One creation.  A session whose creation did not come about is given up with its serial: the creation may still
 *     come about later, and nobody refers to that session then.
 * S6. After a beat without an answer, or with a conflict, the process reads.  One of its beats: executed.  Dead, absent
 *     or an older beat: lost.
 * S7. Lost is lost: if certainty ends while a hold is inside, the process ends the session itself and never beats
 *     again.  One write ends all its holds.
 * S8. Nobody refers to a session before its creation is known.
 * S9. The value of an ended session says that it is dead, or is deleted if nothing of the process can come late.
 * S10. A session that nothing refers to does not beat.  A reference is sent only while the session is certain.
 * D3. A session belongs to the data of one identity.  What was under way there is forgotten with them.
 * D7. A session that was certain and is not as its owner left it proves that the store has lost data.
 */
#ifndef DM_REGISTERS_SESSION_H
#define DM_REGISTERS_SESSION_H

#include "registers/value.h"

enum dm_reg_session_phase {
    DM_REG_SESSION_UNMADE, /* not known to be created */
    DM_REG_SESSION_LIVE,
    DM_REG_SESSION_ENDING, /* ends as soon as the store can be told */
    DM_REG_SESSION_OVER,   /* take another serial */
    DM_REG_SESSION_PAST    /* of data that the store no longer has: certain as before, and never again for longer */
};

enum dm_reg_session_want {
    DM_REG_SESSION_NOTHING,
    DM_REG_SESSION_CREATE, /* swap absent for the next beat */
    DM_REG_SESSION_BEAT,   /* swap `version` for the next beat */
    DM_REG_SESSION_READ,
    DM_REG_SESSION_END /* swap `version` for dead; or delete the key, see may_delete */
};

#define DM_REG_SESSION_KEY_ROOM 64

/* The uuid of its process as a text, which is also the name of its inbox. */
void dm_reg_session_uuid(const struct dm_reg_session_id *id, char ret_uuid[DM_UUID_LENGTH + 1]);

/* "s/<uuid>.<serial>/<lease>": the lease is in the key, so that an absent session can be watched, too. */
void dm_reg_session_key(const struct dm_reg_session_id *id, char ret_key[DM_REG_SESSION_KEY_ROOM]);

/* False if the text is no such key.  The key does not name an identity: it is the caller's. */
bool dm_reg_session_parse_key(const char *key, uint64_t identity, struct dm_reg_session_id *ret_id);

/* A beat whose outcome is not known. */
struct dm_reg_flight {
    uint64_t beat; /* 0: none */
    int64_t sent_ns;
};
#define DM_REG_FLIGHTS 4

struct dm_reg_session {
    struct dm_reg_session_id id;
    enum dm_reg_session_phase phase;
    unsigned references;           /* to the session in names, also those that may come about */
    unsigned holds;                /* of these: a thread is inside, or the process keeps the lease */
    struct dm_reg_version version; /* of the value as the owner last knew it */
    uint64_t sent, proved;         /* beats: the last one sent; the newest one known to be executed */
    int64_t proved_ns;             /* its sending */
    struct dm_reg_flight flights[DM_REG_FLIGHTS];

    enum dm_reg_session_want under_way; /* one request at a time */
    int64_t sent_ns;                    /* of that request */
    int64_t swap_ns, read_ns;           /* no swap, and no read, before: after one that led to nothing */
    int64_t wanted_ns;                  /* somebody awaits a beat that is sent at this moment or later */
    bool must_read;
    bool is_needed;  /* somebody waits for the session to be certain */
    bool may_delete; /* ENDING: nothing of the process can come late, so the key may go */
    bool is_lost;    /* holds ended with the session */
    bool is_proof;   /* of lost data (D7) */
};

enum dm_reg_session_event_kind {
    DM_REG_SESSION_EV_DONE,     /* the swap under way has taken effect; `version` is its own */
    DM_REG_SESSION_EV_CONFLICT, /* it has not */
    DM_REG_SESSION_EV_UNKNOWN,  /* no answer */
    DM_REG_SESSION_EV_FOUND,    /* a value was read; with `value`, which is NULL if it is not a session's */
    DM_REG_SESSION_EV_ABSENT,   /* the read found nothing */
    DM_REG_SESSION_EV_SAME,     /* the read found `version` again */
    DM_REG_SESSION_EV_TIME,     /* only time has passed */
    DM_REG_SESSION_EV_NEEDED,   /* somebody waits for it to be certain */
    DM_REG_SESSION_EV_CLOSED,   /* the process needs it no more; `may_delete` */
    DM_REG_SESSION_EV_MOVED     /* the store has other data now */
};

struct dm_reg_session_event {
    enum dm_reg_session_event_kind kind;
    struct dm_reg_version version; /* DONE */
    const struct dm_reg_session_value *value;
    bool may_delete;
};

/* A session that is not created before `from_ns`: pace those that come to nothing. */
void dm_reg_session_init(struct dm_reg_session *session, const struct dm_reg_session_id *id, int64_t from_ns);

/* What to send now, and when something is due at the latest; DM_NEVER: nothing, or only after an event. */
enum dm_reg_session_want dm_reg_session_wants(const struct dm_reg_session *session, int64_t now_ns);
int64_t dm_reg_session_due_ns(const struct dm_reg_session *session);

/* Call it just before the wanted request is sent.  CREATE and BEAT: returns the number of the beat. */
uint64_t dm_reg_session_send(struct dm_reg_session *session, enum dm_reg_session_want want, int64_t now_ns);

void dm_reg_session_step(struct dm_reg_session *session, const struct dm_reg_session_event *event, int64_t now_ns);

/* Counts references and holds; never below zero. */
void dm_reg_session_refer(struct dm_reg_session *session, int references, int holds);

/* Somebody awaits a beat that is sent at `asked_ns` or later: the session beats at once.  Many await the same one. */
void dm_reg_session_await_beat(struct dm_reg_session *session, int64_t asked_ns, int64_t now_ns);

/* Until when holds are certain; 0: they are not. */
int64_t dm_reg_session_certain_until_ns(const struct dm_reg_session *session);
bool dm_reg_session_is_certain(const struct dm_reg_session *session, int64_t now_ns);

/* True if a reference to it may be sent now. */
bool dm_reg_session_may_refer(const struct dm_reg_session *session, int64_t now_ns);

#endif
