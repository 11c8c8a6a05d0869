/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Tools for the workloads: processes, placement, time, and medians.
 *
 * A workload prints figures of the library next to those of a bare limit from the same run, because absolute figures
 * differ from machine to machine. Rounds of the two alternate, so that other work on the machine affects both alike.
 * Any failure ends the program with a message.
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

/* The places of this machine. On two cores, placement matters more than code. */
const struct bench_place *bench_places(void);

/* Pins a process (0: the calling thread, and threads that it starts later) to a core; -1: any core. */
void bench_pin(pid_t pid, int core);

/* ---- workloads ------------------------------------------------------------------- */

/* The conditions under which a workload measures. */
struct bench_scene {
    struct bench_server *server; /* for this scene only, at its place */
    const struct bench_place *place;
    int rounds;
    double seconds; /* of each measurement in a round */
};

/*
 * Runs work(user) in a separate process, at the clients' place and with DMUTEX_URL set, because the library reads its
 * settings only once. The process ends with the benchmark at the latest.
 */
pid_t bench_begin(const struct bench_scene *scene, void (*work)(void *), void *user);

/* Waits for the process, which must succeed. */
void bench_await(pid_t pid);

/* Kills the process. */
void bench_kill(pid_t pid);

/* The budget of a figure: one for Redis, another for stores on registers. */
const char *bench_budget(const struct bench_scene *scene, const char *on_redis, const char *on_registers);

/* Calls measure(scene) in a separate process, and waits for its end. */
void bench_apart(const struct bench_scene *scene, void (*measure)(const struct bench_scene *));

/* ---- figures --------------------------------------------------------------------- */

double bench_now(void); /* seconds */
void bench_pause(double seconds);
double bench_median(double *values, int count);

/* The value at a fraction, such as 0.99, of sorted values. */
double bench_quantile(double *values, int count, double part);

/* Resident memory of a process, in bytes; `kind` names the line of /proc/PID/status. */
double bench_memory(pid_t pid, const char *kind);

/* Zeroed memory that forked children share; freed by munmap(). */
void *bench_share(size_t size);

/* The path of a file next to this program; static. */
const char *bench_path(const char *file);

/* ---- errors ---------------------------------------------------------------------- */

/* For calls of the library that must return 0. */
void bench_must(int error);
void bench_die(const char *what) __attribute__((noreturn));

#endif
