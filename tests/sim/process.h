/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Processes and their threads.
 *
 * What is real: the library's core, redis/ but for the connection, and of runtime/ all that decides:
 * acquire, release, condition, steps, schedule, registry, inbox, loss, ending, lifetime.  What stands here in
 * the place of the library's own:
 *
 *      base/clock.c, base/self.c, base/log.c    clocks and threads of a simulated process
 *      runtime/runtime.c, runtime/loop.c        the making of a runtime; the loop thread
 *      redis/conn*.c, redis/socket.c            the connection (conn.c), on a made-up network
 */
#ifndef SIM_PROCESS_H
#define SIM_PROCESS_H

#include "runtime/runtime.h"

struct fiber;
struct thread;

struct dm_loop {
    struct process *process;
    int64_t due_ns;
    bool is_nudged;
};

struct process {
    struct process *next; /* of all of this run, the oldest first */
    int number;
    bool is_alive, is_stopped;
    struct thread *ender; /* it exits, by this thread */
    int64_t clock_ns;  /* CLOCK_BOOTTIME at the beginning of the run */
    int64_t rate_ppm;  /* how fast it goes: 1000000 is right */
    struct dm_runtime runtime;
    struct dm_url url;
    struct dm_loop loop;
    uint64_t last_serial;
    struct thread *threads, *loop_thread;
    struct delivery *deliveries, **last_delivery; /* what came while it was stopped */
};

struct thread {
    struct dm_self self; /* first: the library knows only this */
    struct thread *next; /* of its process, the newest first */
    struct process *process;
    struct fiber *fiber; /* NULL: it has ended */
    void (*run)(struct thread *thread);
    int posts;
    bool is_waiting;
    bool is_late;      /* it would run, but its process is stopped */
    uint64_t turn;     /* only what was planned for this turn makes it run */
    bool is_cancellable, is_cancelled;
    struct job *job;   /* work.c */
};

/* ---- the run's processes ----------------------------------------------------------------- */

void processes_begin(void);
void processes_end(void);
struct process *processes(void);

/* What the URL of all processes to come says. */
void process_set_grace(bool has_grace);

/* A process with an own clock; it has no thread yet. */
struct process *process_new(void);
struct thread *thread_new(struct process *process, void (*run)(struct thread *thread));

/* SIGKILL, SIGSTOP, SIGCONT. */
void process_kill(struct process *process);
void process_stop(struct process *process);
void process_go_on(struct process *process);

/* exit(): all claims are given back, answers are awaited, other threads are parked in their next call.  By a thread of it. */
void process_exit(void);

/* The calling thread ends here, with whatever it holds. */
void thread_end(void);

/* pthread_cancel(). */
void thread_cancel(struct thread *thread);

/* ---- who runs ---------------------------------------------------------------------------- */

struct process *process_current(void);
struct thread *thread_current(void);

/* Something is done in the name of a process by no thread of ours; returns who was current before. */
struct process *process_enter(struct process *process);
void process_leave(struct process *before);

/* Later, and when it is not stopped; in the order of the calls. */
void process_deliver(struct process *process, void (*what)(void *object, uint64_t number), void *object);

/* The calling thread waits until it is woken or its process's clock has come to `until_ns`. */
void thread_wait(int64_t until_ns);
void thread_wake(struct thread *thread);

/* The calling thread is busy for a while. */
void thread_pass(int64_t ns);

/* Somebody else may run here. */
void thread_preempt(void);

/* When a process's clock will show this, in true time. */
int64_t process_true_ns(const struct process *process, int64_t local_ns);
int64_t process_local_ns(const struct process *process);

/* ---- conn.c ------------------------------------------------------------------------------ */

/* The process is gone, or goes on after it was stopped. */
void conn_forget(struct dm_conn *conn);
void conn_look(struct dm_conn *conn);
struct link *conn_link(struct dm_conn *conn);

#endif
