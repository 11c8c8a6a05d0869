/* SPDX-License-Identifier: BSD-2-Clause */
/* A private server, which ends with the benchmark, and blocking connections to Redis. */
#ifndef DM_BENCH_SERVER_H
#define DM_BENCH_SERVER_H

#include <hiredis.h>
#include <sys/types.h>

/* Only Redis is reached in both ways. */
enum bench_way { BENCH_UNIX, BENCH_TCP, BENCH_WAYS };
extern const char *const bench_way_names[BENCH_WAYS];

struct bench_store;

struct bench_server {
    const struct bench_store *store;
    pid_t pid;
    char directory[64]; /* temporary */
    char socket[80];    /* in the directory; of Redis */
    int port;           /* on 127.0.0.1; of Redis and etcd */
    enum bench_way way; /* how the library and bench_connect() reach it */
    char url[192];      /* for DMUTEX_URL */
    unsigned lease_ms;  /* of bare locks that end by themselves */
};

/* A port of 127.0.0.1 that is currently free. */
int bench_free_port(void);

/*
 * Starts a server on a core, -1 for any, with BENCH_UNIX.  Redis is the program that DMUTEX_TEST_SERVER names;
 * PostgreSQL is that of PATH, or else the newest one in /usr/lib/postgresql; etcd is that of PATH.
 */
struct bench_server bench_server_start(const struct bench_store *store, int core);
void bench_server_stop(struct bench_server *server);

/* Sets how processes started from now on reach the server. */
void bench_server_use(struct bench_server *server, enum bench_way way);

/* ---- Redis ----------------------------------------------------------------------- */

/* A connection to the server. */
redisContext *bench_connect(const struct bench_server *server);

/* A command with a reply that is not an error. */
redisReply *bench_command(redisContext *context, int count, const char **words);

/* The same; drops the reply. */
void bench_run(redisContext *context, int count, const char **words);

/* The same; returns the number in the reply. */
long long bench_ask(redisContext *context, const char *command, const char *key);

/* Loads a script into the server. Returns its SHA-1, which the caller frees. */
char *bench_load(redisContext *context, const char *script);

/* Copies a field of INFO, such as "redis_version"; "" if there is none. */
void bench_info(redisContext *context, const char *field, char *buf, size_t size);

/* Resets the counters. The second function returns the count of a command since then: "calls" or "usec". */
void bench_stats_reset(redisContext *context);
double bench_stat(redisContext *context, const char *command, const char *field);

/* Script calls by clients; the library sends nothing else. Commands called by a script do not count. */
double bench_scripts_sent(redisContext *context);

#endif
