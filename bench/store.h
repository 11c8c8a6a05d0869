/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The kinds of servers on which workloads run, and the bare locks on each, which are the limits of the library's.
 *
 * A bare lock renews no lease, notices no death, and gives no token.
 */
#ifndef DM_BENCH_STORE_H
#define DM_BENCH_STORE_H

#include <stddef.h>

struct bench_server;

enum bare_kind {
    BARE_NONE,    /* the library's lock */
    BARE_PAIR,    /* the least that a lock and an unlock cost, if nobody else wants the name */
    BARE_CLASSIC, /* two classic scripts; not for names that others want */
    BARE_POLL,    /* home-made: tried each millisecond while another has it */
    BARE_GRANT,   /* the least that a handoff costs: the release grants the lock to the first waiter */
    BARE_ASKED,   /* kept until somebody asks for it */
    /* The session's lock of PostgreSQL, and the same as locking libraries take it, with timeouts set first. */
    BARE_ADVISORY,
    BARE_SESSION,
    BARE_KINDS
};

struct bare {
    const char *name; /* in reports; NULL if the store has no such lock */
    /* A lock as one owner, with a connection of its own, or, if `sibling` is a lock of the same kind, with its. */
    void *(*open)(const struct bench_server *server, const char *name, int owner, void *sibling);
    void (*lock)(void *lock);
    void (*unlock)(void *lock);
};

/* What one figure counts may be unknown to a store: NAN. */
struct bench_counts {
    double commands;  /* that clients sent, or that wrote */
    double messages;  /* to inboxes */
    double server_us; /* in scripts */
};

struct bench_store {
    const char *name;     /* for --store */
    const char *commands; /* what struct bench_counts calls commands, in reports */
    struct bare bare[BARE_KINDS];
    /* Runs the server in this process. */
    void (*serve)(const struct bench_server *server, int core);
    void (*await)(const struct bench_server *server);
    void (*write_url)(struct bench_server *server);
    void (*write_version)(const struct bench_server *server, char *buf, size_t size);
    /* So far. */
    void (*count)(const struct bench_server *server, struct bench_counts *ret_counts);
    /* NULL if the store has none.  The rows, or versions of keys, that locks have written, asked when no client is
     * connected; the size of the table. */
    double (*rows_written)(const struct bench_server *server);
    double (*table_bytes)(const struct bench_server *server);
};

/* NULL ends the list. */
extern const struct bench_store *const bench_stores[];

extern const struct bench_store bench_redis, bench_postgres, bench_postgres_async, bench_etcd;

#endif
