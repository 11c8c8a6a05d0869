/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * One path through the library in a process of its own, in which one call fails.
 *
 * The process is a forked one that has not used the library yet.  It says what is wrong in memory
 * that it shares with the test, for cmocka's asserts are the test's alone.
 */
#ifndef TEST_FAULTS_RUN_H
#define TEST_FAULTS_RUN_H

#include <sys/types.h>

#include <dmutex/dmutex.h>

#include "fail.h"

struct path {
    const char *name; /* as it is called by hand */
    void (*take)(void);
    bool is_tcp;    /* its server has a host name, not a socket's path */
    bool is_local;  /* it has a server and a folder of its own: if that cannot be, ENOLCK */
};

/* What a run left behind for the test. */
struct outcome {
    struct fail_seen seen;
    char complaint[400]; /* "" none */
    int descriptors;     /* at the end, when all is quiet */
};

struct run {
    const struct path *path;
    enum fail_kind kind;
    unsigned nth;
    const struct outcome *usual; /* of the run in which nothing fails; NULL: this is it */
    struct outcome *outcome;
    char name[48];   /* of all mutexes: the group */
    char folder[96]; /* of a server of its own */
    pid_t pid;
};

/* ---- for the test ------------------------------------------------------------------------ */

/* Starts it; run_end() awaits its end, with a sentence about what is wrong, or NULL; until the next call. */
void run_start(struct run *run);
const char *run_end(struct run *run);

/* ---- for paths --------------------------------------------------------------------------- */

/* What a path uses, set up anew: mutex and cond belong together, spare is another mutex. */
extern dmutex_t mutex, spare;
extern dcond_t cond;
void make_objects(void);

/* From here to there a call fails. */
void arm(void);
void disarm(void);
bool is_failing(enum fail_kind kind);

/* A call that returns this whatever fails inside. */
#define done(call, wanted) run_check(#call, call, wanted, false)

/* A call that returns this, or what the failure excuses; returns the result. */
#define tried(call, wanted) run_check(#call, call, wanted, true)

int run_check(const char *call, int result, int wanted, bool is_excused);
void run_complain(const char *format, ...) __attribute__((format(printf, 1, 2), noreturn));

#define await(expression)                                     \
    do {                                                      \
        int64_t await_ms = wait_now_ms() + WAIT_LIMIT_MS / 2; \
                                                              \
        while (!(expression)) {                               \
            if (wait_now_ms() > await_ms)                     \
                run_complain("never: %s", #expression);       \
            wait_nap();                                       \
        }                                                     \
    } while (0)

/* Locks and unlocks the spare, with and without a wait: from then on both connections are there. */
void warm_up(void);

/* Ends the library's connections as the server or the network would. */
void cut_connections(void);

/* Another process, in which nothing fails: it lives `life`, and must end well. */
struct peer {
    pid_t pid;
    int fd;
};
void peer_start(struct peer *peer, void (*life)(struct peer *peer));
void peer_end(struct peer *peer);

/* A word between the two, without content.  Heard: it has come, or the other has ended. */
void peer_say(struct peer *peer);
void peer_hear(struct peer *peer);
bool peer_has_spoken(struct peer *peer);

#endif
