/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Processes and their threads.
 *
 * Real are the library's core, link/, stores/redis/, and all deciding parts of process/:
 * acquire, release, condition, steps, call, pump, registry, inbox, loss, ending, lifetime.  Here
 * the simulator replaces files of the library:
 *
 *      base/clock.c, base/self.c                      clocks and threads of a simulated process
 *      base/poll.c, link/stream.c, link/race.c        the kernel (sockets.c), on a made-up network
 *      process/life/runtime.c, process/keep/loop.c    the making of a runtime; the loop thread
 */
#ifndef SIM_PROCESS_H
#define SIM_PROCESS_H

#include "process/claims/alarm.h"
#include "process/life/runtime.h"
#include "server.h"

struct dm_link;
struct fiber;
struct thread;

/* Replaces the loop thread's: the alarm comes first, because the library only has a pointer to that. */
struct loop {
    struct dm_alarm alarm;
    struct process *process;
};

#define NAMES_MAX 4
#define LINKS_MAX 32 /* two to each server; to a sentinel as many, and again when it is learned */

struct process {
    struct process *next; /* of all of this run, the oldest first */
    int number;
    bool is_alive, is_stopped;
    struct thread *ender; /* the thread that exits the process */
    bool are_questions_over;
    int64_t clock_ns; /* CLOCK_BOOTTIME at the beginning of the run */
    int64_t rate_ppm; /* speed of the clock: 1000000 is right */
    struct dm_runtime runtime;
    struct dm_url url;
    struct loop loop;
    struct dm_link *links[LINKS_MAX];
    int link_count;
    uint64_t last_serial;
    struct thread *threads, *loop_thread;
    struct delivery *deliveries, **last_delivery; /* arrived while the process was stopped */
};

struct thread {
    struct dm_self self; /* first member: the library knows only `self` */
    struct thread *next; /* of its process, the newest first */
    struct process *process;
    struct fiber *fiber; /* NULL: the thread has ended */
    void (*run)(struct thread *thread);
    int posts;
    bool is_waiting;
    struct pollfd *polled; /* in dm_poll(), the first `polled_count` */
    unsigned polled_count;
    bool is_late;  /* due to run, but the process is stopped */
    uint64_t turn; /* only an event planned for this turn runs the thread */
    bool is_cancellable, is_cancelled;
    __pthread_unwind_buf_t *cleanup; /* the newest handler of pthread_cleanup_push() */
    unsigned locks;                  /* how often the thread has taken the state lock */
    unsigned locks_awake;            /* since its last wait */
    struct dm_self_fast fast;        /* dm_self_fast, while another thread runs */
    bool is_fast;                    /* on the fast path, where each reading of the clock may yield */
    bool is_entering;                /* by the fast path */
    bool has_looked;                 /* has read the clock, so it is after the swap */
    uint64_t misled_token;           /* the thread has found itself inside this hold by mistake, not lost then; 0: no */
    int misled_name;                 /* the hold's */
    bool is_seen_inside;             /* by mistake: another thread closed the word before the thread could go out */
    int levels[NAMES_MAX]; /* of each name x0, x1 ...: how often calls have returned with it, without unlocks */
    struct job *job;       /* work.c */
};

/* ---- the run's processes ----------------------------------------------------------------- */

void processes_begin(void);
void processes_end(void);
struct process *processes(void);

/* Sets the grace that the URL of all later processes asks for. */
void process_set_grace(bool has_grace);

/* Makes the runtime of a new process, which is current. */
void process_make_runtime(struct process *process);

/* Makes a process with its own clock, without a thread yet. */
struct process *process_new(void);
struct thread *thread_new(struct process *process, void (*run)(struct thread *thread));

/* SIGKILL, SIGSTOP, SIGCONT. */
void process_kill(struct process *process);
void process_stop(struct process *process);
void process_go_on(struct process *process);

/*
 * exit(): releases all claims, awaits answers, parks other threads in the next call of each.  Called by a thread of
 * the process.
 */
void process_exit(void);

/* Ends the calling thread here, with all its holds. */
void thread_end(void);

/* pthread_cancel(). */
void thread_cancel(struct thread *thread);

/* ---- the running thread ------------------------------------------------------------------ */

struct process *process_current(void);
struct thread *thread_current(void);

/* Makes a process current, without a thread; returns the process that was current before. */
struct process *process_enter(struct process *process);
void process_leave(struct process *before);

/* Calls `what` later, and while the process is not stopped; in the order of the deliveries. */
void process_deliver(struct process *process, void (*what)(void *object, uint64_t number), void *object);

/* Waits until another thread wakes the calling thread or the process's clock has come to `until_ns`. */
void thread_wait(int64_t until_ns);
void thread_wake(struct thread *thread);

/* The calling thread is busy for a while. */
void thread_pass(int64_t ns);

/* Somebody else may run here. */
void thread_preempt(void);

/* Returns the true time at which a process's clock will show `local_ns`. */
int64_t process_true_ns(const struct process *process, int64_t local_ns);
int64_t process_local_ns(const struct process *process);

/* Ends the calling thread here if it is cancelled, and may be. */
void thread_heed_cancel(void);

#endif
