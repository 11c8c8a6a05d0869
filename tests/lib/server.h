/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A private server: $DMUTEX_TEST_SERVER or redis-server, on a unix socket in a separate folder below /tmp, without
 * persistence, DEBUG allowed. The server ends with the test program, however the program ends.
 *
 * The functions fail the running test if the work cannot be done.
 */
#ifndef TEST_SERVER_H
#define TEST_SERVER_H

#include <sys/types.h>

#include "side.h"

struct server {
    char folder[32];  /* logs, sockets, any files of a test */
    char path[64];    /* of the socket */
    char url[112];    /* unix://...?grace=off: options are added with & */
    char tcp_url[64]; /* redis://127.0.0.1:port, "" without has_tcp */
    char address[24]; /* 127.0.0.1, or the host's (hosts.h) */
    int host;
    int port;          /* 0: none */
    struct side *side; /* a plain connection of the test's own; for one thread at a time */

    pid_t pid; /* 0: not running */
    char *arguments[48];
    int argument_count;
};

/* Starts a server and waits until the server answers. */
struct server *server_start(void);

/*
 * The same, listening on a free port of 127.0.0.1 as well if has_tcp, with further arguments: each
 * option and each value one string, at the end NULL.
 *
 *     server_start_with(false, "--appendonly", "yes", NULL);
 */
struct server *server_start_with(int has_tcp, ...) __attribute__((__sentinel__));

/* A server by TCP, with these lines in an own file, which the server may rewrite; option: "--sentinel", or NULL. */
struct server *server_start_by_file(const char *lines, const char *option);

/* ADDRESS:PORT, as in a URL, which has IPv6 in brackets.  Valid until the fourth call from now. */
const char *server_place(const struct server *server);

/* FOLDER/NAME.  Valid until the fourth call from now. */
const char *server_file(const struct server *server, const char *name);

/* A port of this machine that no server has, kept for this process. */
int server_free_port(void);

/* How many descriptors keep ports. */
int server_ports_taken(void);

/* SIGKILL, and the end is awaited: clients see their connections close. */
void server_kill(struct server *server);

/* SHUTDOWN, with SAVE if the server has persistence. */
void server_shutdown(struct server *server);

/* Starts the server again, after a kill or a shutdown, at the same addresses. */
void server_restart(struct server *server);

/* Sets the value of an option, with the dashes, for the next restart. */
void server_set_argument(struct server *server, const char *option, const char *value);

/* Opens the plain connection anew: sentinels close those of a server that they promote or demote. */
void server_reconnect(struct server *server);

/* Makes the server look as if running for long, without a grace: the mark that the library writes there says so. */
void server_make_old(const struct server *server);

/* SIGSTOP, SIGCONT: connections stay and nothing is answered. */
void server_stop(struct server *server);
void server_cont(struct server *server);

/* Kills a running server, deletes the folder, frees the struct. */
void server_end(struct server *server);

#endif
