/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The files of the driver on ZooKeeper:
 *
 *   jute.c      numbers and bytes, as ZooKeeper writes them
 *   wire.c      a connection: frames
 *   requests.c  what all requests have: the queue, paths, parts of a multi
 *   items.c     reads, swaps and lists, and their answers
 *   greet.c     what comes before: session, login, epoch, inbox
 *   driver.c    the connection's life, and the driver's operations
 *
 * Nodes, below the path of the URL: r/KEY a register, with one child whose name is its version; epoch, with one child
 * whose name is the epoch; i, below which notices are for a moment.
 */
#ifndef DM_ZOOKEEPER_PARTS_H
#define DM_ZOOKEEPER_PARTS_H

#include "config/url.h"
#include "link/dial.h"
#include "link/retry.h"
#include "registers/driver.h"
#include "stores/zookeeper/wire.h"

/* ZooKeeper takes requests of a little less than 1 MiB; one with more closes the connection. */
#define DM_ZK_VALUE_MAX (384 * 1024)
#define DM_ZK_REQUEST_MAX ((size_t)900 * 1024)

#define DM_ZK_EPOCH_LENGTH 32
#define DM_ZK_NOT_WHOLE "ZooKeeper's answer is not whole"

enum dm_zk_phase {
    DM_ZK_RESTING,    /* nobody needs the connection */
    DM_ZK_PAUSING,    /* until it is opened again */
    DM_ZK_CONNECTING, /* until it is open */
    DM_ZK_GREETING,   /* until we know which data there are, and hear notices */
    DM_ZK_READY,
    DM_ZK_ENDED
};

/* A request that has not been answered.  ZooKeeper executes and answers those of a session in their order. */
struct dm_zk_item {
    struct dm_zk_item *next;
    enum {
        DM_ZK_ITEM_SYNC, /* what follows sees all that was committed before */
        DM_ZK_ITEM_READ,
        DM_ZK_ITEM_SWAP,
        DM_ZK_ITEM_NEWER, /* a swap that was refused: reads what has refused it */
        DM_ZK_ITEM_LIST,
        DM_ZK_ITEM_CLOCK, /* a write, whose answer has the time */
        DM_ZK_ITEM_LARGE, /* a swap that has not been sent */
        DM_ZK_ITEM_EPOCH, /* the greeting: reads the epoch, */
        DM_ZK_ITEM_LOOK,  /* looks whether a node is there, */
        DM_ZK_ITEM_HEAR,  /* and asks for notices; */
        DM_ZK_ITEM_MAKE,  /* makes a node that is missing, */
        DM_ZK_ITEM_DRAW   /* or an epoch */
    } kind;
    int32_t xid;
    int64_t sent_ns;
    uint64_t ticket;
    int index;
    struct dm_reg_version version;  /* swap: of the new value; zero: the key is deleted.  read: the known one */
    struct dm_reg_version expected; /* swap */
    char *key;                      /* swap */
    int register_ops;               /* swap: those before the notices, with the check of the epoch */
    int most;                       /* list */
    char *prefix, *after;           /* list: one allocation */
};

struct dm_zk {
    struct dm_reg_driver driver;
    struct dm_reg_client client;
    const struct dm_url *url;
    char inbox[DM_REG_KEY_MAX + 1];

    enum dm_zk_phase phase;
    int host; /* of the URL's */
    struct dm_retry retry;
    struct dm_dial *dial; /* CONNECTING */
    struct dm_zk_wire wire;
    int64_t greeted_ns; /* when the greeting began */
    int session_ms;     /* GREETING: 0 before the server has given us a session */
    int64_t sent_ns;    /* when something was last sent: the session lives by it */
    int64_t pinged_ns;  /* a ping that has not been answered, or 0 */
    int32_t last_xid;
    struct dm_zk_item *items, **items_end;

    /* GREETING */
    bool lacks_nodes, lacks_epoch, has_empty_epoch, is_older, is_denied;
    int rounds;

    char epoch[DM_ZK_EPOCH_LENGTH + 1];
    char data[DM_ZK_EPOCH_LENGTH + 1]; /* the epoch of the highest zxid that we have seen */
    int64_t zxid;

    /* The leader's clock, as our last write has shown it; its number is in the upper half of zxids. */
    int64_t clock_ms, clock_ns;
    int32_t clock_leader;

    bool is_doomed, is_final;
    char doom[DM_REG_REASON_ROOM]; /* why the connection ends with this turn */
    uint8_t told[DM_REG_TELL_MAX + 3];
};

/* ---- requests.c ---------------------------------------------------------------------------- */

/* The server that we speak to, also as HOST:PORT. */
const struct dm_url_host *dm_zk_host(const struct dm_zk *zk);
struct dm_place_text dm_zk_place(const struct dm_zk *zk);

/* The connection ends with this turn. */
void dm_zk_doom(struct dm_zk *zk, bool is_final, const char *format, ...) DM_PRINTF(3, 4);

/* Puts an item at the end of those that wait for an answer; NULL without memory. */
struct dm_zk_item *dm_zk_item_add(struct dm_zk *zk, int kind);
void dm_zk_item_free(struct dm_zk_item *item);

/* Takes the first item out; NULL: there is none. */
struct dm_zk_item *dm_zk_item_take(struct dm_zk *zk);

/* Makes what follows see all that was committed before.  False without memory. */
bool dm_zk_sync(struct dm_zk *zk);

/* Begins a path, with the prefix; dm_jute_end() ends it. */
size_t dm_zk_begin_path(const struct dm_zk *zk, struct dm_bytes *to);
/* Adds the path of a node: the prefix, and what is printed. */
void dm_zk_add_path(const struct dm_zk *zk, struct dm_bytes *to, const char *format, ...) DM_PRINTF(3, 4);

/* The parts of a multi, and its end. */
void dm_zk_add_op(struct dm_bytes *to, int32_t type);
void dm_zk_add_end(struct dm_bytes *to);

/* What became of a multi: the first error, and of which part; the stat of the last part that brings one. */
struct dm_zk_multi {
    int error, part;
    bool has_stat;
    struct dm_jute_stat stat;
};
struct dm_zk_multi dm_zk_read_multi(struct dm_jute *answer);

/* ---- greet.c ------------------------------------------------------------------------------- */

/* Takes the first message of the server; and its answer to our login. */
void dm_zk_take_session(struct dm_zk *zk, struct dm_jute *answer);
void dm_zk_take_login(struct dm_zk *zk, int error);

/* Takes the answer to an item of the greeting. */
void dm_zk_take_greeting(struct dm_zk *zk, const struct dm_zk_item *item, int error, int64_t zxid,
                         struct dm_jute *answer);

/* ---- items.c ------------------------------------------------------------------------------- */

/* Writes the requests of a call.  False without memory: nothing is under way. */
bool dm_zk_read(struct dm_zk *zk, uint64_t ticket, const struct dm_reg_item *items, int count);
bool dm_zk_swap(struct dm_zk *zk, uint64_t ticket, const struct dm_reg_item *items, int count);
bool dm_zk_list(struct dm_zk *zk, uint64_t ticket, const char *prefix, const char *after, int most);

/* Answers a read, a swap or a list. */
void dm_zk_item_answer(struct dm_zk *zk, const struct dm_zk_item *item, int error, struct dm_jute *answer);
/* Answers it without an answer.  `reason` may be NULL. */
void dm_zk_item_fail(struct dm_zk *zk, const struct dm_zk_item *item, enum dm_reg_outcome outcome, const char *reason);

/* Takes an event: a notice, if it is one. */
void dm_zk_take_event(struct dm_zk *zk, struct dm_jute *event);

#endif
