/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the files of the driver share.
 *
 * arrivals.c has what links have brought; list.c collects the keys of a list; requests.c has what is asked until it is
 * answered: it writes commands, and reads replies; driver.c is the state machine above them.
 *
 * The client's lock guards everything but `arrivals`.  Links call their handlers without a lock, and on any thread: a
 * handler only reads the reply into its own request and appends it to `arrivals`; the next turn does the rest.
 */
#ifndef DM_REDIS_REGISTERS_PARTS_H
#define DM_REDIS_REGISTERS_PARTS_H

#include "registers/driver.h"
#include "stores/redis/cluster/groups.h"
#include "stores/redis/registers/open.h"
#include "stores/redis/route.h"
#include "stores/redis/wire/keys.h"
#include "stores/redis/wire/reply.h"

/* The largest value, with its version: a link refuses replies of more than 256 KiB. */
#define DM_RR_VALUE_MAX ((size_t)240 * 1024)

/* The tag of all keys: one slot of a Cluster has them all, since they are one set of data with one identity. */
#define DM_RR_TAG "{~registers}"

#define DM_RR_EPOCH_DIGITS 32

struct dm_rr;

/* ---- what comes from links: arrivals.c ---------------------------------------------------- */

enum dm_rr_came { DM_RR_CAME_REPLY, DM_RR_CAME_TELL };

/* First in what has come. */
struct dm_rr_arrival {
    struct dm_rr_arrival *next;
    enum dm_rr_came came;
};

struct dm_rr_tell {
    struct dm_rr_arrival arrival; /* first */
    size_t size;
    uint8_t bytes[];
};

/* Called by any thread: there is something to do; the same, with what has come. */
void dm_rr_ring(struct dm_rr *rr);
void dm_rr_push(struct dm_rr *rr, struct dm_rr_arrival *arrival);

/* The beginning and the end of work under the client's lock: the thread between them needs no bell. */
void dm_rr_begin_work(struct dm_rr *rr);
void dm_rr_end_work(struct dm_rr *rr);

/* All that has come, the oldest first. */
struct dm_rr_arrival *dm_rr_take_arrivals(struct dm_rr *rr);

/* ---- requests: requests.c ----------------------------------------------------------------- */

enum dm_rr_kind { DM_RR_EPOCH, DM_RR_READ, DM_RR_SWAP, DM_RR_LIST };

/* What a reply means for its request. */
enum dm_rr_meaning {
    DM_RR_ANSWERED, /* `reply` is the answer */
    DM_RR_LOST,     /* no reply: executed or not */
    DM_RR_REPEAT,   /* not executed: to be sent again at once, perhaps by another way */
    DM_RR_WAIT,     /* not executed: the server is not ready, or a slot is moving */
    DM_RR_OTHER     /* not executed: the data have another epoch */
};

struct dm_rr_told {
    char *channel, *text;
};

/* One item of a call, until it is answered and no link has it any more. */
struct dm_rr_request {
    struct dm_rr_arrival arrival; /* first */
    struct dm_rr *rr;
    struct dm_rr_request *next, **link; /* among all under way; link NULL: given up */
    enum dm_rr_kind kind;
    uint64_t ticket;
    int index;
    char *key; /* with the prefix */
    struct dm_reg_version version;
    void *value;
    size_t size;
    struct dm_rr_told *tells;
    int tell_count;

    struct dm_node *node; /* to which it was sent */
    int64_t until_ns;     /* it is not sent again after this */
    bool is_text;         /* the server does not know the script */
    bool is_full;         /* the server's memory is full */
    bool is_under_way;    /* a link has it, and will call the handler; else it waits until resend_ns */
    bool is_given_up;     /* answered already; freed when the link lets go */
    int redirects;

    /* Written by the handler, and read after it. */
    enum dm_rr_meaning meaning;
    struct dm_reg_reply reply;
    char *text;              /* an error's, or the epoch; NULL: none */
    bool is_redirect;        /* to be told to the Cluster */
    bool is_distrusted;      /* the wrong server */
    struct dm_rr_list *list; /* LIST: what has been found so far */
};

/* NULL without memory.  `item` NULL: the request has no key. */
struct dm_rr_request *dm_rr_request_new(struct dm_rr *rr, enum dm_rr_kind kind, uint64_t ticket, int index,
                                        const struct dm_reg_item *item);
void dm_rr_request_free(struct dm_rr_request *request);

/* False: there is no connection, or no memory. */
bool dm_rr_send(struct dm_rr_request *request);

/* The text of a channel; malloc().  NULL without memory. */
char *dm_rr_channel(const struct dm_rr *rr, const char *inbox);

/* A notice as it was sent.  False: it is none of ours. */
bool dm_rr_read_tell(const char *text, uint8_t *ret_bytes, size_t room, size_t *ret_size);

/* ---- lists: list.c ------------------------------------------------------------------------ */

/* The first keys of those that SCAN has found so far. */
struct dm_rr_list {
    char cursor[24];
    char *pattern;
    char after[DM_REG_KEY_MAX + 1];
    size_t skip; /* bytes before a key of ours */
    int most;
    char **keys;
    int count, room;
    bool is_over, is_short_of_memory;
};

struct dm_rr_list *dm_rr_list_new(const struct dm_rr *rr, const char *prefix, const char *after, int most);
void dm_rr_list_free(struct dm_rr_list *list);
bool dm_rr_list_write(const struct dm_rr_list *list, struct dm_args *args);
/* Takes the answer to one SCAN.  False: it is none. */
bool dm_rr_list_take(struct dm_rr_list *list, const struct redisReply *reply);
/* After the last SCAN: the keys in their order, each once; those beyond `most` show that more follow. */
void dm_rr_list_end(struct dm_rr_list *list);

/* ---- driver.c ----------------------------------------------------------------------------- */

enum dm_rr_phase {
    DM_RR_RESTING,
    DM_RR_CONNECTING,
    DM_RR_ASKING, /* for the epoch */
    DM_RR_READY,
    DM_RR_ENDED
};

/* The scripts of which the server may know the hash. */
enum dm_rr_script { DM_RR_SCRIPT_READ, DM_RR_SCRIPT_SWAP, DM_RR_SCRIPT_FULL, DM_RR_SCRIPTS };

struct dm_rr {
    struct dm_reg_driver driver; /* first */
    struct dm_reg_client client;
    struct dm_url *url;
    bool is_clustered, has_route;
    char *prefix, *epoch_key; /* of registers; of the epoch */
    struct dm_route route;
    struct dm_groups *groups; /* in a Cluster */
    struct dm_place place;    /* of the inbox there */
    unsigned slot;
    char inbox[DM_REG_KEY_MAX + 1];
    char *channel;

    enum dm_rr_phase phase;
    struct dm_node *home; /* ASKING, READY: the server that has the data */
    uint64_t opened;      /* the number of its connection */
    char epoch[DM_RR_EPOCH_DIGITS + 1];
    bool knows[DM_RR_SCRIPTS];
    bool is_inbox_open;
    int64_t wanted_ns, ask_again_ns, heard_ns;
    char told[DM_REASON_ROOM]; /* the reason last told by on_down(), until on_ready() */

    struct dm_rr_request *first, **end; /* under way, in the order of the calls */
    int64_t resend_ns;                  /* DM_NEVER: none waits */

    struct dm_rr_arrival *arrivals; /* the newest first.  Atomic */
    int bell;
    bool is_rung, has_inbox_news; /* atomic */
    uintptr_t worker;             /* the thread in a turn, which needs no bell; 0: none.  Atomic */
};

#endif
