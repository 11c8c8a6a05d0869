/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Tools of the workloads: processes, places to run, time, and medians.
 *
 * A workload prints figures of the library beside a bare limit in the same run; absolute figures move from machine to
 * machine. Rounds of the two alternate, so that other work of the machine hits both alike. Any failure ends the program
 * with a message.
 */
#ifndef DM_BENCH_H
#define DM_BENCH_H

#include <stddef.h>
#include <sys/types.h>

#define BENCH_COUNT(array) (sizeof(array) / sizeof(array)[0])

struct bench_server;

/* ---- places ---------------------------------------------------------------------- */

/* The cores of the server and of the clients; -1: any. */
struct bench_place {
    const char *word; /* for --place; NULL ends the list */
    const char *name;
    int server_core, client_core;
};

/* The places of this machine; on two cores the places matter more than code. */
const struct bench_place *bench_places(void);

/* Pins a process (0: the calling thread and the threads started by the caller) there; -1: anywhere. */
void bench_pin(pid_t pid, int core);

/* ---- workloads ------------------------------------------------------------------- */

/* The circumstances in which a workload measures. */
struct bench_scene {
    struct bench_server *server; /* of this scene alone, at its place */
    const struct bench_place *place;
    int rounds;
    double seconds; /* of each measurement in a round */
};

/*
 * Runs work(user) in a process of its own, at the clients' place and with DMUTEX_URL set: the library reads the
 * settings once. The process ends with the benchmark at the latest.
 */
pid_t bench_begin(const struct bench_scene *scene, void (*work)(void *), void *user);

/* Waits for the end of the process, which must be a success. */
void bench_await(pid_t pid);

/* Kills the process. */
void bench_kill(pid_t pid);

/* Calls measure(scene) in a process of its own, and waits for the end. */
void bench_apart(const struct bench_scene *scene, void (*measure)(const struct bench_scene *));

/* ---- figures --------------------------------------------------------------------- */

double bench_now(void); /* seconds */
void bench_pause(double seconds);
double bench_median(double *values, int count);

/* The value at the given part (0.99) of sorted values. */
double bench_quantile(double *values, int count, double part);

/* Memory of a process that is in RAM, of the kind that a line of /proc/PID/status names; bytes. */
double bench_memory(pid_t pid, const char *kind);

/* Zeroed memory that forked children share; freed by munmap(). */
void *bench_share(size_t size);

/* The path of a file beside this program, static. */
const char *bench_path(const char *file);

/* ---- errors ---------------------------------------------------------------------- */

/* A call of the library that must return 0. */
void bench_must(int error);
void bench_die(const char *what) __attribute__((noreturn));

#endif
