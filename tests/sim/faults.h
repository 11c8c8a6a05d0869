/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The faults of a run: a list made from the seed before the run begins, so that single faults
 * can be left out to find the faults that matter.
 */
#ifndef SIM_FAULTS_H
#define SIM_FAULTS_H

#include <stdbool.h>
#include <stdint.h>

#define FAULT_KINDS(X)                                                                                            \
    X(CUT_REQUESTS, cut_requests, "a connection is cut at some byte to the server")                               \
    X(CUT_REPLIES, cut_replies, "a connection is cut at some byte to the client")                                 \
    X(KILL_CLIENT, kill_client, "a connection is reset by the server")                                            \
    X(HALF_OPEN, half_open, "a connection is dead, and nobody is told")                                           \
    X(SLOW, slow, "the network is slow for a while")                                                              \
    X(STOP, stop, "SIGSTOP, and SIGCONT later")                                                                   \
    X(KILL, kill_process, "SIGKILL")                                                                              \
    X(KILL_HOST, kill_host, "a machine is gone, and the server is not told")                                      \
    X(CANCEL, cancel, "a thread is cancelled")                                                                    \
    X(FORK, fork_one, "a process forks")                                                                          \
    X(STALL, stall, "the server is stopped for a while")                                                          \
    X(LOADING, load, "the server is not ready for a while")                                                       \
    X(FLUSH_SCRIPTS, flush_scripts, "SCRIPT FLUSH")                                                               \
    X(FULL, fill, "the server is out of memory for a while")                                                      \
    X(RESTART, restart, "the server restarts with all data")                                                      \
    X(COPY, copy, "a replica, or a snapshot, has all data of this moment")                                        \
    X(PROMOTE, promote, "the replica is promoted with all data, and no connection ends")                          \
    X(MONITOR, monitor, "somebody subscribes to everything for a while")                                          \
    X(STEP_BACK, step_back, "the server's clock is set back")                                                     \
    X(STEP_LITTLE, step_little, "the server's clock is set forward by less than the margin")                      \
    X(FIRST_UNSAFE, NULL, "")                                                                                     \
    X(RESTART_EMPTY, restart_empty, "the server restarts without data")                                           \
    X(FAIL_OVER, fail_over, "another server takes over, with the data of the last copy")                          \
    X(PROMOTE_OLD, promote_old, "the replica is promoted with the data of the last copy, and no connection ends") \
    X(PROMOTE_BACK, promote_back, "the same, and then the master of before again: nobody has seen the other")     \
    X(FLUSH_DATA, flush_data, "FLUSHALL")                                                                         \
    X(EVICT, evict, "a key is evicted")                                                                           \
    X(STEP_FAR, step_far, "the server's clock is set forward far")

enum fault_kind {
#define X(name, happens, text) FAULT_##name,
    FAULT_KINDS(X)
#undef X
        FAULT_COUNT
};

struct fault {
    int64_t when_ns;
    enum fault_kind kind;
    uint32_t a, b; /* which, how much */
    bool is_left_out;
};

#define FAULTS_MAX 4000

struct fault_plan {
    struct fault faults[FAULTS_MAX];
    int count;
};

/* About one fault in `every_ns`, until `until_ns`; is_unsafe: also faults covered by no promise. */
void faults_plan(struct fault_plan *plan, int64_t every_ns, int64_t until_ns, bool is_unsafe, bool has_steps);

/* The same times; a copy is taken, and the server comes back with the copy within 20 ms, by turns. */
void faults_have_copies(struct fault_plan *plan);

/* Makes the plan's faults happen, each at the time planned.  has_grace: a new server takes no promise away. */
void faults_begin(const struct fault_plan *plan, uint32_t lease_ms, bool has_grace);

/* Ends all lasting faults now. */
void faults_end(void);

const char *fault_name(enum fault_kind kind);
const char *fault_text(enum fault_kind kind);

#endif
