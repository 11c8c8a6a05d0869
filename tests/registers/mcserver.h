/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A private memcached on a port of the loopback interface; it ends with the test program.  $DMUTEX_TEST_MEMCACHED is a
 * program to use instead of Debian's.
 *
 * The functions fail the running test if the work cannot be done.
 */
#ifndef TESTS_REGISTERS_MCSERVER_H
#define TESTS_REGISTERS_MCSERVER_H

#include <stdbool.h>
#include <sys/types.h>

#include "../lib/proxy.h"

struct mcserver {
    char folder[32];
    char url[96]; /* memcached://127.0.0.1:PORT?lossy=yes; options are added with & */
    int port;
    const char *options; /* of the program: words with one blank between them */
    pid_t pid;           /* 0: not running */
};

/* False where no memcached is installed. */
bool mcserver_is_possible(void);

/* "-M", for example; "-Y login": with a login. */
struct mcserver *mcserver_start(const char *options);
/* SIGKILL; and a server that has forgotten everything. */
void mcserver_kill(struct mcserver *server);
void mcserver_restart(struct mcserver *server);
void mcserver_end(struct mcserver *server);

/* A network before it, whose connections can be cut. */
struct proxy *mcserver_proxy(const struct mcserver *server);

/* Sends lines, without the last line end, and returns the answers.  Valid until the next call. */
const char *mcserver_ask(const struct mcserver *server, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Writes small values until there is no memory for more. */
void mcserver_fill(const struct mcserver *server);

/* Changes with each write of the register, and 0 if there is none; how many registers begin so. */
unsigned long mcserver_version_of(const struct mcserver *server, const char *key);
int mcserver_count(const struct mcserver *server, const char *prefix);

#endif
