/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A process, as the store on registers sees it: a store of its own on one server in memory, a loop thread, and threads
 * that ask and wait as the library's do.  Several are in one test.
 */
#ifndef TESTS_REGISTERS_PROCESS_H
#define TESTS_REGISTERS_PROCESS_H

#include <pthread.h>

#include "memory.h"
#include "registers/store.h"
#include "store/calls.h"

#define PROCESS_LEASE_MS 1000
#define PROCESS_PATIENCE_MS 60000 /* only a defect takes so long */
#define PROCESSES 4

/* A thread that waits for the grant of its attempt. */
struct process_waiter {
    struct process_waiter *next;
    uint64_t attempt;
    struct dm_self *self;
    bool is_granted, must_ask, is_lost;
    struct dm_answer answer;
};

struct process {
    struct dm_store *store;
    struct dm_ident ident;
    struct dm_place *place;     /* of the mutex "group/leaf" */
    struct dm_place *other;     /* of the mutex "group/other" */
    struct dm_place *condition; /* "group/condition" */
    struct dm_place *anonymous; /* an anonymous condition of the group */
    pthread_t loop;
    bool has_loop, is_over; /* is_over: atomic */
    bool is_idle;           /* atomic: needs no connection */
    int bell;
    pthread_mutex_t lock;
    struct process_waiter *waiters;
    uint64_t last_attempt;
};

/* The server; process_begin() and process_end() are a test's setup and teardown. */
extern struct memory *process_memory;
int process_begin(void **state);
int process_end(void **state);

/* Sets the server's clock forward. */
void process_jump(int64_t ns);

/* Other drivers than those of the server in memory.  NULL: these. */
extern dm_reg_make_fn *process_driver;

struct process *process_start(int number, bool has_loop);
/* Nothing of the process goes on, and nothing is given back. */
void process_kill(struct process *process);

/* ---- what a thread does ------------------------------------------------------------------- */

uint64_t process_next_attempt(struct process *process);
struct dm_question process_question(struct process *process, enum dm_op op, uint64_t attempt);
struct dm_answer process_ask(struct process *process, const struct dm_question *question);

/* Between the two, news about the attempt wake the thread. */
void process_enter_list(struct process *process, struct process_waiter *waiter);
void process_leave_list(struct process *process, struct process_waiter *waiter);

/* True if the waiter has news; *ret_is_granted: and the lock. */
bool process_has_news(struct process *process, const struct process_waiter *waiter, bool *ret_is_granted);

/* Acquires, waiting as the process would: for a message, and asking again now and then. */
struct dm_answer process_acquire(struct process *process, uint64_t attempt);
struct dm_answer process_try(struct process *process, uint64_t attempt);
enum dm_verdict process_release(struct process *process, uint64_t attempt);

#endif
