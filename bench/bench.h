/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Tools of the benchmarks: a private server, places to run, time, and medians.
 *
 * A benchmark prints ratios of the library to a bare loop in the same run; absolute figures move from machine to
 * machine. Rounds of the two alternate, so that other work of the machine hits both alike. Any failure ends the program
 * with a message.
 */
#ifndef DM_BENCH_H
#define DM_BENCH_H

#include <hiredis.h>
#include <stddef.h>
#include <sys/types.h>

#define BENCH_COUNT(array) (sizeof(array) / sizeof(array)[0])

/* ---- server ---------------------------------------------------------------------- */

enum bench_way { BENCH_UNIX, BENCH_TCP, BENCH_WAYS };
extern const char *const bench_way_names[BENCH_WAYS];

/* A private server in a temporary directory, gone with the benchmark. */
struct bench_server {
    pid_t pid;
    char directory[64];
    char socket[80];
    int port;           /* on 127.0.0.1 */
    enum bench_way way; /* of the library and of bench_connect() */
    char url[112];      /* for DMUTEX_URL */
};

/* Starts with BENCH_UNIX. */
struct bench_server bench_server_start(void);
void bench_server_stop(struct bench_server *server);

/* Sets the way on which processes started from now on reach the server. */
void bench_server_use(struct bench_server *server, enum bench_way way);

/* A connection to the server. */
redisContext *bench_connect(const struct bench_server *server);

/* A command with a reply that is not an error. */
redisReply *bench_command(redisContext *context, int count, const char **words);

/* The same; the reply is dropped. */
void bench_run(redisContext *context, int count, const char **words);

/* Makes a script known to the server; returns the SHA-1, the caller's to free. */
char *bench_load(redisContext *context, const char *script);

/* Resets the server's counters; the second returns a count since then: "calls" or "usec" of a command. */
void bench_stats_reset(redisContext *context);
double bench_stat(redisContext *context, const char *command, const char *field);

/* Script calls by clients: the library sends nothing else. Commands called by a script are not counted. */
double bench_scripts_sent(redisContext *context);

/* ---- places ---------------------------------------------------------------------- */

/* Which cores the server and the clients run on; -1: any. */
struct bench_place {
    const char *name; /* NULL ends the list */
    int server_core, client_core;
};

/* The places of this machine; on two cores the places matter more than code. */
const struct bench_place *bench_places(void);

/* Pins a process (0: the calling thread and the threads started by the caller) there; -1: anywhere. */
void bench_pin(pid_t pid, int core);

/* Calls measure(user) in a process of its own, pinned, with DMUTEX_URL set: the library reads the settings once. */
void bench_apart(const struct bench_server *server, int core, void (*measure)(void *), void *user);

/* ---- figures --------------------------------------------------------------------- */

double bench_now(void); /* seconds */
void bench_pause(double seconds);
double bench_median(double *values, int count);

/* Memory of a process that is in RAM, of the kind that a line of /proc/PID/status names; bytes. */
double bench_memory(pid_t pid, const char *kind);

/* Zeroed memory that forked children share. */
void *bench_share(size_t size);

/* ---- errors ---------------------------------------------------------------------- */

/* A call of the library that must return 0. */
void bench_must(int error);
void bench_die(const char *what) __attribute__((noreturn));

#endif
