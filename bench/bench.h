/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the benchmarks share: a server of their own, time, and medians.
 *
 * A benchmark prints ratios of the library to a bare loop in the same run; absolute figures move
 * from machine to machine.  Rounds of the two alternate, so that what else the machine does hits
 * both alike.
 */
#ifndef DM_BENCH_H
#define DM_BENCH_H

#include <hiredis.h>
#include <sys/types.h>

/* A private server in a temporary directory, gone with the benchmark. */
struct bench_server {
    pid_t pid;
    char directory[64];
    char socket[80];
    char url[96]; /* for DMUTEX_URL */
};

/* Starts it; ends the program with a message if that is not possible. */
struct bench_server bench_server_start(void);
void bench_server_stop(struct bench_server *server);

/* A connection to it. */
redisContext *bench_connect(const struct bench_server *server);

/* A command whose reply is not an error; the program ends if it is. */
redisReply *bench_command(redisContext *context, int count, const char **words);

/* Commands that clients have sent since the server's counters were reset, scripts' own left out. */
long long bench_commands_sent(redisContext *context);

double bench_now(void); /* seconds */
double bench_median(double *values, int count);

/* Puts a process (0: the calling thread) on one core; -1: anywhere.  False where that is not possible. */
int bench_pin(pid_t pid, int core);
int bench_cores(void);

#endif
