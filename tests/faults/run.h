/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Runs one path through the library in a separate process, in which one call fails. The process is forked and has not
 * used the library yet. The process reports errors in memory shared with the test, because only the test may use
 * cmocka's asserts.
 */
#ifndef TEST_FAULTS_RUN_H
#define TEST_FAULTS_RUN_H

#include <sys/types.h>

#include <dmutex/dmutex.h>

#include "fail.h"

struct path {
    const char *name; /* the name used by hand */
    void (*take)(void);
    bool is_tcp;         /* the run's server has a host name, not a socket's path */
    bool is_tls;         /* by TLS, with a client certificate */
    bool is_clustered;   /* at a Cluster of one master */
    bool is_confirmed;   /* at a server with a replica, which confirms all */
    bool is_local;       /* the run has a separate server and folder: without either, ENOLCK */
    bool starts_servers; /* each run starts two servers */
};

/* The state that a run leaves for the test. */
struct outcome {
    struct fail_seen seen;
    char complaint[400]; /* "" none */
    int descriptors;     /* at the end, when all is quiet */
};

struct run {
    const struct path *path;
    enum fail_kind kind;
    unsigned nth;
    const struct outcome *usual; /* of the run without a failure; NULL: the same run */
    struct outcome *outcome;
    char name[48];   /* of all mutexes: the group */
    char folder[96]; /* of the run's local server */
    pid_t pid;
};

/* The servers of the paths with is_tls, is_clustered and is_confirmed. */
extern const char *run_tls_url, *run_cluster_url, *run_confirmed_url;

/* ---- for the test ------------------------------------------------------------------------ */

/* Starts the run; run_end() awaits the end and returns a sentence about the error, or NULL; valid until the next
 * call. */
void run_start(struct run *run);
const char *run_end(struct run *run);

/* ---- for paths --------------------------------------------------------------------------- */

/* The objects of a path, freshly set up: mutex and cond belong together, spare is another mutex. */
extern dmutex_t mutex, spare;
extern dcond_t cond;
void make_objects(void);

/* One call between these two functions fails. */
void arm(void);
void disarm(void);
bool is_failing(enum fail_kind kind);

/* A call that returns the wanted result, also when a call inside fails. */
#define done(call, wanted) run_check(#call, call, wanted, false)

/* A call that returns the wanted result, or a result that the failure excuses; returns the result. */
#define tried(call, wanted) run_check(#call, call, wanted, true)

int run_check(const char *call, int result, int wanted, bool is_excused);
void run_complain(const char *format, ...) __attribute__((format(printf, 1, 2), noreturn));

#define await(expression)                                           \
    do {                                                            \
        int64_t await_began_ms = wait_now_ms();                     \
                                                                    \
        while (!(expression)) {                                     \
            if (wait_now_ms() > await_began_ms + WAIT_LIMIT_MS / 2) \
                run_complain("never: %s", #expression);             \
            wait_pause(await_began_ms);                             \
        }                                                           \
    } while (0)

/* Locks and unlocks the spare, with and without a wait: afterwards both connections are open. */
void warm_up(void);

/* Ends the library's connections, as the server or the network would. */
void cut_connections(void);

/* Another process, in which nothing fails: the peer runs `life`, and must end well. */
struct peer {
    pid_t pid;
    int fd;
};
void peer_start(struct peer *peer, void (*life)(struct peer *peer));
void peer_end(struct peer *peer);

/* Sends an empty message between the two processes. Heard: the message has come, or the other process has ended. */
void peer_say(struct peer *peer);
void peer_hear(struct peer *peer);
bool peer_has_spoken(struct peer *peer);

#endif
