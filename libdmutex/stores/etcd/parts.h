/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The files of the driver on etcd:
 *
 *   json.c    reads JSON
 *   http.c    a connection that speaks HTTP/1.1
 *   items.c   reads, swaps and lists as operations of a transaction, and their answers
 *   ask.c     the other requests: login, epoch, lease, watch, alarms
 *   driver.c  the two connections, and the driver's operations
 *
 * Keys, below the path of the URL: r/KEY a register; k/KEY somebody has knocked there; i/INBOX the last
 * notices for a process; epoch.
 */
#ifndef DM_ETCD_PARTS_H
#define DM_ETCD_PARTS_H

#include "config/url.h"
#include "link/dial.h"
#include "link/retry.h"
#include "registers/driver.h"
#include "stores/etcd/http.h"
#include "stores/etcd/json.h"

/* etcd takes requests of 1.5 MiB, and 128 operations in a transaction with those inside it, by default. */
#define DM_ETCD_VALUE_MAX (384 * 1024)
#define DM_ETCD_GROUP_BYTES ((size_t)1024 * 1024)
#define DM_ETCD_GROUP_MOST 32
#define DM_ETCD_OPS_MOST 100

/* Of the answer to a group, where each value may be the largest; and of a line of notices: etcd sends 1000 at once. */
#define DM_ETCD_ANSWER_MOST ((size_t)18 * 1024 * 1024)
#define DM_ETCD_NOTICES_MOST ((size_t)8 * 1024 * 1024)

#define DM_ETCD_TOKEN_ROOM 2048
#define DM_ETCD_NOT_WHOLE "etcd's answer is not whole"

enum dm_etcd_phase {
    DM_ETCD_RESTING,    /* nobody needs the connections */
    DM_ETCD_PAUSING,    /* until they are opened again */
    DM_ETCD_CONNECTING, /* until both are open */
    DM_ETCD_GREETING,   /* until we know which data there are, and hear notices */
    DM_ETCD_READY,
    DM_ETCD_ENDED
};

/* The request that is under way on the connection for commands. */
enum dm_etcd_request {
    DM_ETCD_NONE,
    DM_ETCD_LOGIN,
    DM_ETCD_EPOCH,       /* reads the epoch */
    DM_ETCD_NEW_EPOCH,   /* makes it, if there is none */
    DM_ETCD_OTHER_EPOCH, /* replaces it: the data are older than what we have seen */
    DM_ETCD_LEASE,       /* asks for a lease for the inboxes that we write */
    DM_ETCD_ALARMS,      /* looks whether the quota is used up, */
    DM_ETCD_HISTORY,     /* and whether old versions are kept for ever */
    DM_ETCD_TIDY,        /* deletes notices that were written without a lease */
    DM_ETCD_GROUP
};

/* One key that is to be read, swapped or listed: an operation of a transaction. */
struct dm_etcd_item {
    struct dm_etcd_item *next;
    enum { DM_ETCD_READ, DM_ETCD_SWAP, DM_ETCD_LIST } kind;
    uint64_t ticket;
    int index;
    int most;                      /* of a list */
    struct dm_reg_version version; /* swap: of the new value; zero: the key is deleted.  read: the known one */
    struct dm_bytes op;            /* its JSON, */
    struct dm_bytes tells;         /* puts of notices, without their lease if it was not granted, */
    struct dm_bytes rest;          /* and what comes after these */
    char *keys;                    /* what it writes, "KEY\nINBOX\n…": no two operations may write the same */
    int ops;                       /* how many operations etcd counts */
    bool listens;                  /* swap: the answer tells whether somebody has knocked */
    bool is_alone;                 /* a group with this item was refused */
    bool is_large;                 /* the value is longer than DM_ETCD_VALUE_MAX */
};

struct dm_etcd {
    struct dm_reg_driver driver;
    struct dm_reg_client client;
    const struct dm_url *url;
    char *prefix; /* of all keys: "/locks/" */
    char inbox[DM_REG_KEY_MAX + 1];

    enum dm_etcd_phase phase;
    int host; /* of the URL's */
    struct dm_retry retry;
    struct dm_dial *dials[2]; /* CONNECTING: as below */
    struct dm_http commands, notices;
    int open_count; /* of these */
    enum dm_etcd_request request;
    int64_t sent_ns; /* when the request was sent, or the greeting began */
    bool is_hearing; /* the watch of the inbox has begun */
    bool is_known;   /* the epoch is */
    bool is_renewed; /* the login was, and no group has been answered since */

    char token[DM_ETCD_TOKEN_ROOM]; /* of the login; "": none */
    char epoch[33];
    int64_t revision; /* the highest that we have seen of the data below */
    char data[64];    /* epoch and cluster of `revision` */
    char identity[DM_REG_IDENTITY_ROOM];

    int64_t lease;        /* etcd's, of the inboxes that we write: a random number of ours */
    bool is_leased;       /* it has been granted */
    bool is_untidy;       /* notices have been written without one */
    int64_t lease_due_ns; /* when another one is to be asked for */

    int64_t look_due_ns;           /* of the next look at alarms and history */
    bool is_full, is_history_told; /* what has been warned of */

    struct dm_etcd_item *waiting, **waiting_end;
    struct dm_etcd_item *group[DM_ETCD_GROUP_MOST]; /* under way */
    int group_count;

    bool is_doomed, is_final;
    char doom[DM_REG_REASON_ROOM]; /* why the connections end with this turn */
    uint8_t told[DM_REG_TELL_MAX];
};

/* ---- ask.c -------------------------------------------------------------------------------- */

/* The member that we speak to, also as HOST:PORT. */
const struct dm_url_host *dm_etcd_host(const struct dm_etcd *etcd);
struct dm_place_text dm_etcd_place(const struct dm_etcd *etcd);

/* The connections end with this turn. */
void dm_etcd_doom(struct dm_etcd *etcd, bool is_final, const char *format, ...) DM_PRINTF(3, 4);

/* Sends a request on the connection for commands; takes over the body. */
void dm_etcd_request(struct dm_etcd *etcd, enum dm_etcd_request request, const char *path, struct dm_bytes *body);

/* Each sends a request; the last one two, and one of them on the connection for notices. */
void dm_etcd_log_in(struct dm_etcd *etcd);
void dm_etcd_ask_for_epoch(struct dm_etcd *etcd);
void dm_etcd_ask_for_lease(struct dm_etcd *etcd);
void dm_etcd_ask_for_alarms(struct dm_etcd *etcd);
void dm_etcd_begin_to_ask(struct dm_etcd *etcd);

/* Warns if the quota is used up, once. */
void dm_etcd_note_full(struct dm_etcd *etcd, bool is_full);

/* Draws the number of a lease that has not been granted yet. */
void dm_etcd_draw_lease(struct dm_etcd *etcd);

/* Takes the answer to any request but a group. */
void dm_etcd_take_answer(struct dm_etcd *etcd, enum dm_etcd_request request, struct dm_json answer);

/* An answer of the same data shows what is committed, so its revision never goes back, unless the data are older. */
bool dm_etcd_is_older(struct dm_etcd *etcd, int64_t revision);

/* ---- items.c ------------------------------------------------------------------------------ */

/* Items for a call, in a list; NULL without memory. */
struct dm_etcd_item *dm_etcd_items_new(const struct dm_etcd *etcd, uint64_t ticket, const struct dm_reg_item *items,
                                       int count, bool is_swap);
struct dm_etcd_item *dm_etcd_list_new(const struct dm_etcd *etcd, uint64_t ticket, const char *prefix,
                                      const char *after, int most);
void dm_etcd_item_free(struct dm_etcd_item *item);

/* Moves items from the queue into the group, as many as may go in one transaction, and writes its JSON. */
void dm_etcd_group_fill(struct dm_etcd *etcd, struct dm_bytes *body);

/* Answers an item by the answer to its operation; none: the client learns that nothing is known. */
void dm_etcd_item_answer(struct dm_etcd *etcd, const struct dm_etcd_item *item, struct dm_json answer);
/* Answers it without one.  `reason` may be NULL. */
void dm_etcd_item_fail(struct dm_etcd *etcd, const struct dm_etcd_item *item, enum dm_reg_outcome outcome,
                       const char *reason);

/* The JSON of the key PREFIX/KIND/KEY; and of all keys of a kind. */
void dm_etcd_key(const struct dm_etcd *etcd, struct dm_bytes *to, const char *kind, const char *key);
void dm_etcd_range(const struct dm_etcd *etcd, struct dm_bytes *to, const char *kind);

#endif
