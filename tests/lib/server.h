/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A private server: $DMUTEX_TEST_SERVER or redis-server, on a unix socket in a folder of its own
 * below /tmp, without persistence, DEBUG allowed.  It ends with the test program, however that
 * ends.
 *
 * Functions here fail the running test when they cannot do what they say.
 */
#ifndef TEST_SERVER_H
#define TEST_SERVER_H

#include <sys/types.h>

#include "side.h"

struct server {
    char folder[32];   /* logs, sockets, whatever a test puts there */
    char path[64];     /* of the socket */
    char url[112];     /* unix://...?grace=off: options are added with & */
    char tcp_url[64];  /* redis://127.0.0.1:port, "" without has_tcp */
    int port;          /* 0: none */
    struct side *side; /* a plain connection of the test's own; for one thread at a time */

    pid_t pid; /* 0: not running */
    char *arguments[32];
    int argument_count;
};

/* Starts a server and waits until it answers. */
struct server *server_start(void);

/*
 * The same, listening on a free port of 127.0.0.1 as well if has_tcp, with further arguments: each
 * option and each value one string, at the end NULL.
 *
 *     server_start_with(false, "--appendonly", "yes", NULL);
 */
struct server *server_start_with(int has_tcp, ...) __attribute__((__sentinel__));

/* SIGKILL, and its end is awaited: clients see their connections close. */
void server_kill(struct server *server);

/* SHUTDOWN, with SAVE when it has persistence. */
void server_shutdown(struct server *server);

/* Starts it again, after either of these, at the same addresses. */
void server_restart(struct server *server);

/* What this option, with its dashes, is when it is started again. */
void server_set_argument(struct server *server, const char *option, const char *value);

/* SIGSTOP, SIGCONT: connections stay and nothing is answered. */
void server_stop(struct server *server);
void server_cont(struct server *server);

/* Kills it if it runs, deletes its folder, frees it. */
void server_end(struct server *server);

#endif
