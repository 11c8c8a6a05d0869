/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the files of the driver share.
 *
 * settings.c reads the URL; connect.c opens a connection in a thread of its own; sentence.c says what failed;
 * requests.c has what is asked until it is answered; exchange.c sends statements and collects their results; swap.c
 * reads, swaps and lists; greeting.c prepares a new connection; driver.c is the state machine above them.  A file calls
 * only those before it.
 */
#ifndef DM_POSTGRES_PARTS_H
#define DM_POSTGRES_PARTS_H

#include <libpq-fe.h>

#include "base/fileid.h"
#include "link/retry.h"
#include "registers/driver.h"
#include "stores/postgres/open.h"

/* ---- settings.c -------------------------------------------------------------------------- */

#define DM_PG_PLACE_ROOM 280

struct dm_pg_settings {
    PQconninfoOption *options; /* of libpq: from the URL; the others have no value */
    char *schema;
    unsigned connect_timeout_ms, command_timeout_ms;
    char place[DM_PG_PLACE_ROOM];
};

/* False with the reason, which quotes nothing that may be secret. */
bool dm_pg_settings_read(struct dm_pg_settings *settings, const struct dm_reg_place *place,
                         char ret_reason[DM_REASON_ROOM]);
void dm_pg_settings_free(struct dm_pg_settings *settings);

/* ---- connect.c --------------------------------------------------------------------------- */

struct dm_pg_connect;

/*
 * Begins to connect, in a thread.  The n-th try begins with the n-th host of the URL, so a host that does not answer
 * at all delays the others only once.  NULL without memory, descriptors or a thread.
 */
struct dm_pg_connect *dm_pg_connect_begin(const struct dm_pg_settings *settings, unsigned try_number);
/* Readable once the thread has finished. */
int dm_pg_connect_fd(const struct dm_pg_connect *connect);
/*
 * False while the thread works.  Then the connection is the caller's, open, failed or not finished in time, or NULL
 * without memory; `connect` is freed.
 */
bool dm_pg_connect_take(struct dm_pg_connect *connect, PGconn **ret_connection);
/* Frees `connect` and its connection, as soon as the thread lets go. */
void dm_pg_connect_abandon(struct dm_pg_connect *connect);
/* In a forked child, which has no such thread: closes the descriptors. */
void dm_pg_connect_forget(struct dm_pg_connect *connect);

/* ---- sentence.c -------------------------------------------------------------------------- */

#define DM_PG_STATE_ROOM 6 /* of an SQLSTATE */

/* Writes why the connection failed.  True: waiting does not help.  *ret_is_crowded: the server has too many clients. */
bool dm_pg_explain_connect(const PGconn *connection, const char *place, char ret_reason[DM_REG_REASON_ROOM],
                           bool *ret_is_crowded);

/* What a failed statement means for the item that it was about. */
enum dm_pg_failure {
    DM_PG_FAILED_NOW,   /* rolled back, and may work when repeated: another transaction was in the way, or an admin */
    DM_PG_FAILED_LARGE, /* rolled back: the value is too large */
    DM_PG_FAILED,       /* rolled back, and a person must mend something */
    DM_PG_FAILED_TABLE, /* rolled back: the tables are not what they were when we connected */
    DM_PG_LOST          /* the connection is gone, or of no use */
};

enum dm_pg_failure dm_pg_judge(const PGresult *result);
/* A sentence about a failed statement. */
void dm_pg_explain(const PGresult *result, const char *schema, char ret_reason[DM_REG_REASON_ROOM]);

/* ---- requests.c -------------------------------------------------------------------------- */

struct dm_postgres;

/* The channel of an inbox: "dm_" and 32 hexadecimal digits. */
#define DM_PG_CHANNEL_ROOM 36
void dm_pg_channel(const char *inbox, char ret_channel[DM_PG_CHANNEL_ROOM]);

enum dm_pg_state {
    DM_PG_ASKED,
    DM_PG_REFUSED,   /* the version was another one: the look behind the swap tells which */
    DM_PG_SET_ASIDE, /* another item of its group has failed: to be sent again, alone */
    DM_PG_JUDGED,    /* the statement has failed */
    DM_PG_ANSWERED
};

struct dm_pg_told {
    char channel[DM_PG_CHANNEL_ROOM];
    char *payload; /* hexadecimal */
};

/* One item of a call, until it is answered. */
struct dm_pg_item {
    struct dm_pg_item *next;
    uint64_t ticket;
    int index;
    enum dm_pg_state state;
    bool is_list, is_read, is_alone, reserves;
    char key[DM_REG_KEY_MAX + 1];
    struct dm_reg_version version;
    void *value; /* swap: of `size` bytes; 0 deletes */
    size_t size;
    struct dm_pg_told *tells;
    int tell_count;
    int most;                    /* list */
    enum dm_reg_outcome outcome; /* JUDGED */
    char reason[DM_REG_REASON_ROOM];
};

struct dm_pg_items {
    struct dm_pg_item *first, *last;
};

void dm_pg_item_free(struct dm_pg_item *item);
void dm_pg_items_append(struct dm_pg_items *items, struct dm_pg_item *item);
struct dm_pg_item *dm_pg_items_take(struct dm_pg_items *items); /* the first; NULL: none */
/* Tells the client. */
void dm_pg_answer(struct dm_postgres *postgres, struct dm_pg_item *item, const struct dm_reg_reply *reply);
/* Answers an item with UNKNOWN, unless it is answered: the connection is gone. */
void dm_pg_give_up(struct dm_postgres *postgres, struct dm_pg_item *item, const char *reason);

/* Closes the connection as soon as that is safe, and reports the reason. */
void dm_pg_doom(struct dm_postgres *postgres, bool is_final, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* False: the program has closed the descriptor, and may have it for a file of its own. */
bool dm_pg_has_socket(const struct dm_postgres *postgres);
/* The same, asked for at most once in a millisecond: false if the connection is doomed, too. */
bool dm_pg_check_socket(struct dm_postgres *postgres);
/* True if statements can be sent. */
bool dm_pg_is_open(struct dm_postgres *postgres);

/* ---- exchange.c -------------------------------------------------------------------------- */

/* The most statements of one transaction. */
#define DM_PG_GROUP 64

/* The most rows that are reserved at once. */
#define DM_PG_RESERVED_MOST 16

/* The largest value, with its version. */
#define DM_PG_VALUE_MAX ((size_t)1 << 20)

/*
 * Statements up to a Sync: one transaction of the server.  The results are kept until the Sync has been answered,
 * because the server commits only then: an error can still follow rows that have arrived.
 */
struct dm_pg_exchange {
    struct dm_pg_exchange *next;
    void (*finish)(struct dm_postgres *postgres, struct dm_pg_exchange *exchange);
    struct dm_pg_item *items[DM_PG_GROUP]; /* the first `count`; NULL for statements of our own */
    PGresult *results[DM_PG_GROUP];
    PGresult *error; /* the first one; NULL: committed */
    int error_at;    /* the statement; `count`: the commit itself */
    int count, got;
    bool owns_items;
    bool is_block; /* its last statement is the COMMIT of a reservation */
    int64_t sent_ns;
};

struct dm_pg_exchange *dm_pg_exchange_new(void (*finish)(struct dm_postgres *, struct dm_pg_exchange *));
void dm_pg_exchange_free(struct dm_pg_exchange *exchange);

/* In binary. */
struct dm_pg_param {
    const void *value;
    int size;
};

#define DM_PG_PARAMS 8

struct dm_pg_statement {
    char *text;
    const Oid *types; /* of the parameters */
    int count;
    const char *name; /* the server plans it once for each connection, under this name; NULL: each time */
};

/*
 * Sends one statement of the exchange; results come in binary.  False: the connection is of no use, which the next turn
 * notices.
 */
bool dm_pg_send(struct dm_postgres *postgres, struct dm_pg_exchange *exchange, struct dm_pg_item *item,
                const struct dm_pg_statement *statement, const struct dm_pg_param *params);
/*
 * Sends the texts of statements that have a name.  They are planned anew with each execution until the server has them,
 * and for good if it refuses.
 */
void dm_pg_prepare(struct dm_postgres *postgres);
/* Writes as much as the socket takes. */
void dm_pg_flush(struct dm_postgres *postgres);
/* Ends the exchange with a Sync, and appends it to those under way. */
void dm_pg_sync(struct dm_postgres *postgres, struct dm_pg_exchange *exchange);
/* Takes what the server has sent, and finishes exchanges. */
void dm_pg_receive(struct dm_postgres *postgres);

/* ---- swap.c ------------------------------------------------------------------------------ */

bool dm_pg_read(struct dm_reg_driver *driver, uint64_t ticket, const struct dm_reg_item *items, int count);
bool dm_pg_swap(struct dm_reg_driver *driver, uint64_t ticket, const struct dm_reg_item *items, int count);
bool dm_pg_list(struct dm_reg_driver *driver, uint64_t ticket, const char *prefix, const char *after, int most);
void dm_pg_let_go(struct dm_reg_driver *driver);
/* The connection is closed. */
void dm_pg_lose_reservation(struct dm_postgres *postgres);
/* When the swaps that wait are to be sent; DM_NEVER: when the group under way is answered, or there are none. */
int64_t dm_pg_swaps_due_ns(const struct dm_postgres *postgres);
/* Sends them if that is now. */
void dm_pg_send_swaps(struct dm_postgres *postgres);
/* Answers items that needed no server. */
void dm_pg_answer_due(struct dm_postgres *postgres);
/* The statements, for the schema.  False without memory. */
enum dm_pg_statement_kind {
    DM_PG_UPDATE, /* a swap */
    DM_PG_INSERT,
    DM_PG_REMOVE,
    DM_PG_UPDATE_TOLD, /* a swap that notes for the next statement that it has taken effect */
    DM_PG_INSERT_TOLD,
    DM_PG_REMOVE_TOLD,
    DM_PG_UPDATE_TELLING, /* a swap that sends its notice in its own transaction */
    DM_PG_READ,
    DM_PG_RESERVE, /* a look at a row, which it locks */
    DM_PG_LIST,
    DM_PG_TELL,
    DM_PG_BEGIN,
    DM_PG_COMMIT,
    DM_PG_ROLLBACK,
    DM_PG_STATEMENTS
};
bool dm_pg_statements_make(struct dm_pg_statement statements[DM_PG_STATEMENTS], const char *schema);
void dm_pg_statements_free(struct dm_pg_statement statements[DM_PG_STATEMENTS]);

/* ---- greeting.c -------------------------------------------------------------------------- */

void dm_pg_greet(struct dm_postgres *postgres);
/* Asks whether an old snapshot slows down all swaps; warns. */
void dm_pg_look_for_snapshots(struct dm_postgres *postgres);

/* ---- driver.c ---------------------------------------------------------------------------- */

enum dm_pg_phase {
    DM_PG_RESTING,
    DM_PG_PAUSING, /* until retry.due_ns */
    DM_PG_CONNECTING,
    DM_PG_GREETING,
    DM_PG_READY,
    DM_PG_ENDED
};

struct dm_postgres {
    struct dm_reg_driver driver; /* first */
    struct dm_reg_client client;
    struct dm_pg_settings settings;
    struct dm_pg_statement statements[DM_PG_STATEMENTS];
    enum dm_pg_phase phase;

    struct dm_retry retry;
    unsigned tries, crowded; /* failures; in a row for lack of room on the server */
    int64_t not_before_ns;   /* the next try, whatever `retry` says */
    struct dm_pg_connect *connect;
    PGconn *connection;
    struct dm_fileid socket; /* the program may have closed it */
    int64_t owned_ns;        /* when that was last asked for */
    bool must_flush;
    bool is_prepared; /* the server has the statements with a name */

    struct dm_pg_exchange *first, *last; /* under way, in the order of sending */
    struct dm_pg_items waiting;          /* swaps that wait for the group under way */
    struct dm_pg_items due;              /* JUDGED, to be answered by the next turn */
    bool has_group;
    int expected;      /* swaps of the next group: as many as were there at the end of the last one */
    int64_t gather_ns; /* for so long they are waited for */
    char reserved[DM_PG_RESERVED_MOST][DM_REG_KEY_MAX + 1]; /* the keys of rows that we keep locked */
    int reserved_count;
    bool is_reserved; /* until let_go() */

    /* of this connection: */
    bool is_greeted; /* to be used from the next turn on */
    bool has_made;   /* we have tried to make the tables */
    bool is_warned;  /* of a row that somebody keeps locked */
    bool is_doomed;  /* to be closed, for the reason, as soon as no result is being looked at */
    bool is_final;
    char doom[DM_REG_REASON_ROOM];
    int unwritten;   /* how many insertions in a row have left no row */
    bool has_block;  /* a transaction of ours locks rows, or is about to */
    bool has_looked; /* for old snapshots */
    int64_t looked_ns;
    uint8_t epoch[16];
    int32_t timeline;
    bool may_forget;      /* a crash may lose commits that were acknowledged */
    bool commits_at_once; /* synchronous_commit is off */
    char system[21], recovered[21];
    char identity[DM_REG_IDENTITY_ROOM]; /* epoch, system, timeline, and the last recovery if it may forget */
    uint64_t group_number;

    uint8_t told[DM_REG_TELL_MAX]; /* the notice that is being told */

    /* of the process: */
    int64_t unreserved_ns; /* no row is reserved until then */
    char inbox[DM_REG_KEY_MAX + 1], channel[DM_PG_CHANNEL_ROOM];
    char newest_data[60]; /* epoch and system of the highest timeline that we have seen */
    int32_t newest_timeline;
};

#endif
