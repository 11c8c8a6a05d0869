/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A private server: $DMUTEX_TEST_SERVER or redis-server, on a unix socket in its own folder below /tmp, without
 * persistence, and with DEBUG allowed.  It ends with the test program, however that ends.
 *
 * The functions fail the running test if they cannot do their work.
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
    struct side *side; /* the test's own plain connection; for one thread at a time */

    pid_t pid; /* 0: not running */
    char *arguments[48];
    int argument_count;
};

/* Starts a server and waits until it answers. */
struct server *server_start(void);

/*
 * The same, also listening on a free port of 127.0.0.1 if has_tcp, with further arguments: each option and each value
 * is one string, and the last is NULL.
 *
 *     server_start_with(false, "--appendonly", "yes", NULL);
 */
struct server *server_start_with(int has_tcp, ...) __attribute__((__sentinel__));

/* A server with TCP, and with these lines in its own file, which it may rewrite; option: "--sentinel", or NULL. */
struct server *server_start_by_file(const char *lines, const char *option);

/* ADDRESS:PORT as in a URL, where IPv6 is in brackets.  Valid until the fourth call after this one. */
const char *server_place(const struct server *server);

/* FOLDER/NAME.  Valid until the fourth call after this one. */
const char *server_file(const struct server *server, const char *name);

/* A port of this machine that no server uses, reserved for this process. */
int server_free_port(void);

/* How many descriptors reserve ports. */
int server_ports_taken(void);

/* SIGKILL, and waits for the end: clients see their connections close. */
void server_kill(struct server *server);

/* SHUTDOWN, with SAVE if the server has persistence. */
void server_shutdown(struct server *server);

/* Starts the server again at the same addresses, after a kill or a shutdown. */
void server_restart(struct server *server);

/* Sets the value of an option, named with its dashes, for the next restart. */
void server_set_argument(struct server *server, const char *option, const char *value);

/* Reopens the plain connection: sentinels close those of a server that they promote or demote. */
void server_reconnect(struct server *server);

/* Makes the server look as if it had run for long, so that there is no grace: writes the library's mark accordingly. */
void server_make_old(const struct server *server);

/* SIGSTOP, SIGCONT: connections stay, and nothing is answered. */
void server_stop(struct server *server);
void server_cont(struct server *server);

/* Kills the server if it runs, deletes its folder, and frees the struct. */
void server_end(struct server *server);

#endif
