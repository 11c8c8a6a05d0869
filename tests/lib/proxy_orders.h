/* SPDX-License-Identifier: BSD-2-Clause */
/* Shared by the test and the proxy process: one page, read and written atomically. */
#ifndef TEST_PROXY_ORDERS_H
#define TEST_PROXY_ORDERS_H

#include <stdint.h>

/* Descriptors of the proxy process. */
enum {
    PROXY_FD_ORDERS = 3,
    PROXY_FD_UNIX,
    PROXY_FD_TCP,
    PROXY_FD_BELL /* a byte: read the orders; end of file: the test is over */
};

struct proxy_orders {
    /* The fault; the rest is written while `times` is 0. */
    int times; /* left */
    int hits;
    int fault;
    int side;
    char match[128];

    int hold[2]; /* by direction, 0 to the server, 1 to the client: a set of enum proxy_side */
    int delay_ms[2];
    int64_t cut_after[2]; /* -1: not */
    int trickle[2];       /* bytes per millisecond and connection; 0: no limit */
    char servers[2][108]; /* paths; `server` says which one leads to the server */
    int server;
    int port; /* raw: the server's port, instead of the path; 0: not raw */
    int is_postgres;
    int cut_order; /* counted up by the test ... */
    int is_refusing;
    int pass_order;

    int cut_done; /* ... and copied by the proxy */
    int pass_done;
    int open;
    int accepted;
};

#define proxy_get(field) __atomic_load_n(&(field), __ATOMIC_ACQUIRE)
#define proxy_set(field, value) __atomic_store_n(&(field), value, __ATOMIC_RELEASE)

#endif
