/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A bad network: a process that stands between clients and a server and passes on whole commands and replies, late, not
 * at all, or in pieces, as the test says.
 *
 *     struct proxy *proxy = proxy_start(the_server);
 *     struct actor *a = actor_start_at(proxy_url(proxy));
 *
 *     actor_do(a, "0", "trylock t/warm");
 *     proxy_break(proxy, PROXY_SWALLOW_AND_CUT, PROXY_COMMANDS, "lock:x", 1);
 *     actor_do(a, "0", "lock t/x");          // the reply is lost with the connection
 *     assert_int_equal(proxy_hits(proxy), 1);
 *
 * An order holds from the next command or reply on that the proxy reads. Of several proxies in one test each has
 * separate orders.
 */
#ifndef TEST_PROXY_H
#define TEST_PROXY_H

#include <stdbool.h>
#include <stdint.h>

#include "server.h"

struct proxy;

/* The connections concerned: connections that have sent SUBSCRIBE, or connections that have not. */
enum proxy_side { PROXY_COMMANDS = 1, PROXY_INBOX = 2, PROXY_ALL = 3 };

/* The fault of a matching command, or of the reply. */
enum proxy_fault {
    PROXY_NONE,
    PROXY_SWALLOW_REPLY,   /* a message alone; or a reply and all behind: the server has acted, no client hears */
    PROXY_SWALLOW_AND_CUT, /* the same, and the connection is closed */
    PROXY_CUT_MID_REPLY,   /* half of the reply arrives, then the connection is closed */
    PROXY_HOLD_REPLY,      /* the reply and all behind wait until proxy_pass() */
    PROXY_SWALLOW_COMMAND, /* the server never hears the command, nor anything behind */
    PROXY_CUT_COMMAND,     /* the server never hears, and the connection is closed */
    PROXY_CUT_MID_COMMAND  /* the server hears half, and the connection is closed */
};

enum proxy_way { PROXY_TO_SERVER = 1, PROXY_TO_CLIENT = 2, PROXY_BOTH_WAYS = 3 };

/* Listens in the server's folder and on a port of 127.0.0.1; ends with the test program. */
struct proxy *proxy_start(const struct server *server);

/*
 * The same for bytes of any protocol, as TLS, to a port of 127.0.0.1: bytes pass as they come.  Of the faults none is
 * possible, and all connections are PROXY_COMMANDS.
 */
struct proxy *proxy_start_raw(const struct server *server, int port);

void proxy_end(struct proxy *proxy);
const char *proxy_url(const struct proxy *proxy);
const char *proxy_tcp_url(const struct proxy *proxy);

/*
 * The next `times` commands that contain `match` ("": any) suffer the fault. For pub/sub messages (PROXY_INBOX) the
 * message itself is looked at, and the first three faults are possible. Replaces an earlier order.
 */
void proxy_break(struct proxy *proxy, enum proxy_fault fault, enum proxy_side side, const char *match, int times);

/*
 * The number of commands that have suffered the fault since proxy_break(); replies count when the fault has happened.
 */
int proxy_hits(const struct proxy *proxy);

/* Nothing passes in these ways until proxy_pass(); arriving data is kept, also beyond a close. */
void proxy_hold(struct proxy *proxy, enum proxy_way ways, enum proxy_side side);

/* Held data passes: no fault, no hold, no cut; connections are accepted. Delays and trickles stay. */
void proxy_pass(struct proxy *proxy);

/* All data read from now on takes so long, in each of the ways. */
void proxy_delay(struct proxy *proxy, enum proxy_way ways, int ms);

/* Each connection is closed after this many more bytes in this way, until proxy_pass(). */
void proxy_cut_after(struct proxy *proxy, enum proxy_way way, int64_t bytes);

/* Of each connection no more than so many bytes pass in a millisecond; 0: all at once. */
void proxy_trickle(struct proxy *proxy, enum proxy_way ways, int bytes);

/* Closes all connections, and leads the next connections to this server. */
void proxy_lead_to(struct proxy *proxy, const struct server *server);

/* Leads the next connections to this server; open connections stay. */
void proxy_lead_new_to(struct proxy *proxy, const struct server *server);

/* Closes all connections before the return. Held data in the connections is gone. */
void proxy_cut(struct proxy *proxy);

/* Connections are closed as soon as they are accepted, until proxy_pass(). */
void proxy_refuse(struct proxy *proxy);

/* Connections that are open now; the second: all accepted so far. */
int proxy_open(const struct proxy *proxy);
int proxy_accepted(const struct proxy *proxy);

/* The proxy's side: serves on the inherited descriptors. test_begin() calls the function. */
void proxy_serve(void) __attribute__((__noreturn__));

#endif
