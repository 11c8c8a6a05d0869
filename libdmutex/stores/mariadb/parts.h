/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the files of the driver share.
 *
 * connect.c opens a connection in a thread of its own; sentence.c says what failed; items.c has what is asked until it
 * is answered; talk.c sends statements and collects their results, without blocking; swap.c reads, swaps and lists;
 * greeting.c prepares a new connection; driver.c is the state machine above them.  A file calls only those before it.
 */
#ifndef DM_MARIADB_PARTS_H
#define DM_MARIADB_PARTS_H

#include <mysql.h>

#include "base/bytes.h"
#include "base/fileid.h"
#include "link/retry.h"
#include "registers/driver.h"
#include "stores/mariadb/open.h"
#include "stores/mariadb/schema.h"

#define DM_MARIA_PORT "3306"

/* ---- connect.c --------------------------------------------------------------------------- */

struct dm_maria_connect;

/*
 * Begins to connect to the n-th server of the URL, in a thread.  NULL without memory, descriptors or a thread.  The URL
 * is needed only during the call.
 */
struct dm_maria_connect *dm_maria_connect_begin(const struct dm_url *url, unsigned n);
/* Readable once the thread has finished. */
int dm_maria_connect_fd(const struct dm_maria_connect *connect);
/*
 * False while the thread works.  Then the connection is the caller's, or NULL without memory; *ret_is_open tells
 * whether it can be used.  `connect` is freed.
 */
bool dm_maria_connect_take(struct dm_maria_connect *connect, MYSQL **ret_connection, bool *ret_is_open);
/* Frees `connect` and its connection, as soon as the thread lets go. */
void dm_maria_connect_abandon(struct dm_maria_connect *connect);
/* In a forked child, which has no such thread: closes the descriptors. */
void dm_maria_connect_forget(struct dm_maria_connect *connect);

/* mysql_close(), without its SIGPIPE. */
void dm_maria_close(MYSQL *connection);

/* Events of poll() for what libmariadb waits for. */
short dm_maria_events(int waits);

/* For a connection, from the sending of statements to the end of their results: 64 values of a megabyte, and more. */
#define DM_MARIA_LEFT ((size_t)80 * 1024 * 1024)
/* While this thread lets libmariadb work for the connection: what the server may still send.  NULL, NULL: no more. */
void dm_maria_limit(const MYSQL *connection, size_t *left);

/* ---- sentence.c -------------------------------------------------------------------------- */

#define DM_MARIA_MESSAGE_ROOM 201 /* of the server's or libmariadb's text */

/* HOST:PORT or the socket, of the n-th server of the URL. */
struct dm_place_text dm_maria_place(const struct dm_url *url, unsigned n);

/* Writes why the connection failed.  True: waiting does not help.  *ret_is_crowded: the server has too many clients. */
bool dm_maria_explain_connect(MYSQL *connection, const char *place, char ret_reason[DM_REG_REASON_ROOM],
                              bool *ret_is_crowded);

/* What a failed statement means for the item that it was about. */
enum dm_maria_failure {
    DM_MARIA_FAILED_NOW,   /* not executed, and may work when repeated: another transaction was in the way */
    DM_MARIA_FAILED_LARGE, /* not executed: the value is too large */
    DM_MARIA_FAILED,       /* not executed, and a person must mend something */
    DM_MARIA_FAILED_TABLE, /* not executed: the tables are not what they were when we connected */
    DM_MARIA_LOST          /* the connection is gone, or of no use */
};

enum dm_maria_failure dm_maria_judge(unsigned error);
/* A sentence about a failed statement. */
void dm_maria_explain(unsigned error, const char *message, char ret_reason[DM_REG_REASON_ROOM]);

/* ---- items.c ----------------------------------------------------------------------------- */

struct dm_maria;

enum dm_maria_kind { DM_MARIA_READ, DM_MARIA_SWAP, DM_MARIA_LIST };

/* One item of a call, until it is answered. */
struct dm_maria_item {
    struct dm_maria_item *next;
    enum dm_maria_kind kind;
    uint64_t ticket;
    int index;
    int most;  /* list */
    int order; /* in its group */
    bool reserves, is_alone, is_answered;
    bool is_refused; /* a swap that has changed no row: a look at the row tells why */
    char key[DM_REG_KEY_MAX + 1], after[DM_REG_KEY_MAX + 1];
    struct dm_reg_version version;
    void *value; /* swap: of `size` bytes; 0 deletes */
    size_t size;
};

struct dm_maria_items {
    struct dm_maria_item *first, *last;
};

/* New items of a call, all or none: a list.  False without memory. */
bool dm_maria_items_make(struct dm_maria_items *ret_items, uint64_t ticket, const struct dm_reg_item *items, int count,
                         enum dm_maria_kind kind);
void dm_maria_item_free(struct dm_maria_item *item);
void dm_maria_items_append(struct dm_maria_items *items, struct dm_maria_item *item);
void dm_maria_items_prepend(struct dm_maria_items *items, struct dm_maria_item *item);
struct dm_maria_item *dm_maria_items_take(struct dm_maria_items *items); /* the first; NULL: none */

/* Tells the client. */
void dm_maria_answer(struct dm_maria *maria, struct dm_maria_item *item, const struct dm_reg_reply *reply);
/* Answers an item without a value, unless it is answered. */
void dm_maria_fail(struct dm_maria *maria, struct dm_maria_item *item, enum dm_reg_outcome outcome, const char *reason);

/* Closes the connection as soon as that is safe, and reports the reason. */
void dm_maria_doom(struct dm_maria *maria, bool is_final, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* False: the program has closed the descriptor, and may have it for a file of its own. */
bool dm_maria_has_socket(const struct dm_maria *maria);
/* The same, asked for at most once in a millisecond: false if the connection is doomed, too. */
bool dm_maria_check_socket(struct dm_maria *maria);

/* ---- talk.c ------------------------------------------------------------------------------ */

#define DM_MARIA_GROUP 64                        /* the most items of one exchange */
#define DM_MARIA_STATEMENTS (DM_MARIA_GROUP + 3) /* with those around them */
#define DM_MARIA_VALUE_MAX ((size_t)1024 * 1024) /* the largest value, with its version; also of a group together */

/* Statements that the server executes one after the other, up to the first that fails. */
struct dm_maria_exchange {
    void (*finish)(struct dm_maria *maria, struct dm_maria_exchange *exchange);
    struct dm_bytes text;
    struct dm_maria_item *items[DM_MARIA_GROUP]; /* owned; the first `count` */
    int count;
    int skipped; /* statements before those of the items */
    MYSQL_RES *results[DM_MARIA_STATEMENTS];
    uint64_t changed[DM_MARIA_STATEMENTS]; /* rows */
    int got;                               /* statements that have succeeded */
    unsigned error;                        /* of the next one; 0: none has failed */
    char message[DM_MARIA_MESSAGE_ROOM];
};

struct dm_maria_exchange *dm_maria_exchange_new(void (*finish)(struct dm_maria *, struct dm_maria_exchange *));
void dm_maria_exchange_free(struct dm_maria_exchange *exchange);
/* Sends it; none may be under way.  Without memory for its text, the connection is doomed.  Calls no client. */
void dm_maria_send(struct dm_maria *maria, struct dm_maria_exchange *exchange);
/* Goes on with the exchange under way, as far as possible without waiting. */
void dm_maria_go_on(struct dm_maria *maria);
/* Ends the exchange under way: nobody knows what has been executed.  Its items become the caller's. */
struct dm_maria_exchange *dm_maria_break_exchange(struct dm_maria *maria);

/* The next row; NULL: there is none, or it has fewer columns, and is not what was asked for. */
MYSQL_ROW dm_maria_row(MYSQL_RES *result, unsigned columns);
/* A field of a row, as text; "" for NULL. */
const char *dm_maria_field(MYSQL_ROW row, int column);

/* ---- swap.c ------------------------------------------------------------------------------ */

bool dm_maria_read(struct dm_reg_driver *driver, uint64_t ticket, const struct dm_reg_item *items, int count);
bool dm_maria_swap(struct dm_reg_driver *driver, uint64_t ticket, const struct dm_reg_item *items, int count);
bool dm_maria_list(struct dm_reg_driver *driver, uint64_t ticket, const char *prefix, const char *after, int most);
void dm_maria_let_go(struct dm_reg_driver *driver);
/* The connection is closed. */
void dm_maria_lose_reservation(struct dm_maria *maria);
/* Sends what waits, unless something is under way. */
void dm_maria_send_next(struct dm_maria *maria);
/* Answers items that needed no server. */
void dm_maria_answer_due(struct dm_maria *maria);

/* ---- greeting.c -------------------------------------------------------------------------- */

void dm_maria_greet(struct dm_maria *maria);

/* ---- driver.c ---------------------------------------------------------------------------- */

enum dm_maria_phase {
    DM_MARIA_RESTING,
    DM_MARIA_PAUSING, /* until retry.due_ns */
    DM_MARIA_CONNECTING,
    DM_MARIA_GREETING,
    DM_MARIA_READY,
    DM_MARIA_ENDED
};

/* What libmariadb does for the exchange under way. */
enum dm_maria_step { DM_MARIA_ASKING, DM_MARIA_STORING, DM_MARIA_TURNING, DM_MARIA_FAILING };

#define DM_MARIA_RESERVED_MOST 16

struct dm_maria {
    struct dm_reg_driver driver; /* first */
    struct dm_reg_client client;
    const struct dm_url *url;
    enum dm_maria_phase phase;

    struct dm_retry retry;
    unsigned tries, crowded; /* failures; in a row for lack of room on the server */
    int64_t not_before_ns;   /* the next try, whatever `retry` says */
    struct dm_maria_connect *connect;
    MYSQL *connection;
    struct dm_fileid socket; /* the program may have closed it */
    int64_t owned_ns;        /* when that was last asked for */

    struct dm_maria_exchange *exchange; /* under way */
    enum dm_maria_step step;
    int waits; /* what libmariadb waits for in this step; 0: it is to be begun */
    int64_t sent_ns;
    size_t left;                   /* what the server may still say to that, in bytes */
    struct dm_maria_items waiting; /* in the order in which they were asked */
    struct dm_maria_items due;     /* values that are too large, to be answered by the next turn */

    char reserved[DM_MARIA_RESERVED_MOST][DM_REG_KEY_MAX + 1]; /* the keys of rows that we keep locked */
    int reserved_count;
    bool is_reserved;      /* until let_go() */
    bool has_block;        /* a transaction of ours locks rows, or is about to */
    bool must_roll_back;   /* one has failed, and the next exchange ends it */
    bool is_finishing;     /* an exchange is: what is asked meanwhile goes after it */
    int64_t unreserved_ns; /* no row is reserved until then */

    /* of this connection: */
    bool is_greeted; /* to be used from the next turn on */
    bool has_made;   /* we have tried to make the tables */
    bool is_warned;  /* of a row that somebody keeps locked */
    bool is_doomed;  /* to be closed, for the reason, as soon as no result is being looked at */
    bool is_final;
    char doom[DM_REG_REASON_ROOM];
    bool is_galera;  /* a node of a cluster */
    bool may_forget; /* a crash may lose commits that were acknowledged */
    char epoch[33];  /* in hexadecimal digits */
    uint32_t server; /* a number for that */
    char identity[DM_REG_IDENTITY_ROOM];
};

/* The server that the connection is to. */
struct dm_place_text dm_maria_here(const struct dm_maria *maria);

#endif
