/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A bad network: a process between clients and a server that passes on whole commands and replies late, not at all, or
 * in pieces, as the test says.
 *
 *     struct proxy *proxy = proxy_start(the_server);
 *     struct actor *a = actor_start_at(proxy_url(proxy));
 *
 *     actor_do(a, "0", "trylock t/warm");
 *     proxy_break(proxy, PROXY_SWALLOW_AND_CUT, PROXY_COMMANDS, "lock:x", 1);
 *     actor_do(a, "0", "lock t/x");          // the reply is lost with the connection
 *     assert_int_equal(proxy_hits(proxy), 1);
 *
 * An order takes effect with the next command or reply that the proxy reads. If a test has several proxies, each has
 * its own orders.
 */
#ifndef TEST_PROXY_H
#define TEST_PROXY_H

#include <stdbool.h>
#include <stdint.h>

#include "server.h"

struct proxy;

/* The connections concerned: those that have sent SUBSCRIBE, or those that have not. */
enum proxy_side { PROXY_COMMANDS = 1, PROXY_INBOX = 2, PROXY_ALL = 3 };

/* What happens to a matching command, or to its reply. */
enum proxy_fault {
    PROXY_NONE,
    PROXY_SWALLOW_REPLY,   /* one message; or a reply and all after it: the server has acted, but no client hears */
    PROXY_SWALLOW_AND_CUT, /* the same, and the connection is closed */
    PROXY_CUT_MID_REPLY,   /* half of the reply arrives, then the connection is closed */
    PROXY_HOLD_REPLY,      /* the reply and everything after it wait until proxy_pass() */
    PROXY_SWALLOW_COMMAND, /* the server gets neither the command nor anything after it */
    PROXY_CUT_COMMAND,     /* the server does not get it, and the connection is closed */
    PROXY_CUT_MID_COMMAND  /* the server gets half of it, and the connection is closed */
};

enum proxy_way { PROXY_TO_SERVER = 1, PROXY_TO_CLIENT = 2, PROXY_BOTH_WAYS = 3 };

/* Listens in the server's folder and on a port of 127.0.0.1; ends with the test program. */
struct proxy *proxy_start(const struct server *server);

/*
 * The same for bytes of any protocol, such as TLS, to a port of 127.0.0.1: bytes pass as they come. No fault is
 * possible, and all connections are PROXY_COMMANDS.
 */
struct proxy *proxy_start_raw(const struct server *server, int port);

/*
 * The same for a PostgreSQL whose socket is at `server_path`, without TLS. Listens at `path`, where nobody listens,
 * and on a port. A message of the server is a reply, a notice is a message of an inbox, and what the client sends at
 * once is a command; a connection is for both. PROXY_HOLD_REPLY is not possible.
 */
struct proxy *proxy_start_postgres(const char *path, const char *server_path);
int proxy_port(const struct proxy *proxy);

void proxy_end(struct proxy *proxy);
const char *proxy_url(const struct proxy *proxy);
const char *proxy_tcp_url(const struct proxy *proxy);

/*
 * The next `times` commands that contain `match` ("": any) suffer the fault. For pub/sub messages (PROXY_INBOX) the
 * message itself is compared, and the first three faults are possible. Replaces an earlier order.
 */
void proxy_break(struct proxy *proxy, enum proxy_fault fault, enum proxy_side side, const char *match, int times);

/* How many commands have suffered the fault since proxy_break(). A fault of a reply counts once it has happened. */
int proxy_hits(const struct proxy *proxy);

/* Nothing passes in these directions until proxy_pass(); arriving data is kept, even after a close. */
void proxy_hold(struct proxy *proxy, enum proxy_way ways, enum proxy_side side);

/* Lets held data pass: no fault, no hold, no cut; connections are accepted. Delays and trickles stay. */
void proxy_pass(struct proxy *proxy);

/* All data read from now on is delayed by `ms`, in each of the directions. */
void proxy_delay(struct proxy *proxy, enum proxy_way ways, int ms);

/* Each connection is closed after this many more bytes in this direction, until proxy_pass(). */
void proxy_cut_after(struct proxy *proxy, enum proxy_way way, int64_t bytes);

/* On each connection at most `bytes` pass per millisecond; 0: no limit. */
void proxy_trickle(struct proxy *proxy, enum proxy_way ways, int bytes);

/* Closes all connections, and directs new ones to this server. */
void proxy_lead_to(struct proxy *proxy, const struct server *server);

/* Directs new connections to this server; open ones stay. */
void proxy_lead_new_to(struct proxy *proxy, const struct server *server);
void proxy_lead_new_to_path(struct proxy *proxy, const char *server_path);

/* Closes all connections before it returns. Data held in them is lost. */
void proxy_cut(struct proxy *proxy);

/* Closes connections as soon as they are accepted, until proxy_pass(). */
void proxy_refuse(struct proxy *proxy);

/* How many connections are open now; and how many were ever accepted. */
int proxy_open(const struct proxy *proxy);
int proxy_accepted(const struct proxy *proxy);

/* The proxy's side: serves on the inherited descriptors. test_begin() calls it. */
void proxy_serve(void) __attribute__((__noreturn__));

#endif
