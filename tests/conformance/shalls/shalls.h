/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Every "shall" of the mutex and condition variable pages of POSIX, as a clause that is tried, with its outcome on one
 * line.
 *
 * This is plain pthread source, compiled twice: unchanged, and with -include dmutex/pthread.h. The source states the
 * facts, never the expected result: test_shalls.c compares the two outputs, and `differences` lists where they may
 * differ.
 *
 *     static void relock_errorcheck(void)
 *     {
 *         pthread_mutex_t mutex;
 *
 *         make(&mutex, PTHREAD_MUTEX_ERRORCHECK);
 *         say("lock", pthread_mutex_lock(&mutex));
 *         say("again", pthread_mutex_lock(&mutex));
 *     }
 *
 * prints "2.1-lock-relock-errorcheck a second lock by the owner: lock=0 again=EDEADLK".
 *
 * Each clause runs in its own process, the child of a process without threads that knows no mutex. Anything that it
 * leaves locked, unjoined or blocked ends with the process. Outcomes contain neither times nor addresses; "blocks until
 * ..." is shown by the events before the blocked call returns. What POSIX leaves undefined is no clause.
 */
#ifndef SHALLS_H
#define SHALLS_H

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <time.h>

/* ---- The tables ------------------------------------------------------------------------------ */

/* The id begins with the section of posix-semantics.md: 2.1 mutex, 2.2 attributes, 2.3 cond. */
struct clause {
    const char *id;
    const char *name;
    void (*check)(void);
};

/* The clauses of one file; the last has no id. */
extern const struct clause mutex_init_clauses[];
extern const struct clause mutex_clauses[];
extern const struct clause mutex_time_clauses[];
extern const struct clause mutexattr_clauses[];
extern const struct clause robust_clauses[];
extern const struct clause shared_clauses[];
extern const struct clause cond_wait_clauses[];
extern const struct clause cond_time_clauses[];
extern const struct clause cond_signal_clauses[];
extern const struct clause cond_robust_clauses[];
extern const struct clause cond_shared_clauses[];
extern const struct clause condattr_clauses[];
extern const struct clause cancel_clauses[];
extern const struct clause cond_cancel_clauses[];

/* ---- Output: in the clause's first thread only */

/* "what=EBUSY" */
void say(const char *what, int result);

/* "what=4" */
void say_number(const char *what, long number);

/* "what=yes", "what=no" */
void say_whether(const char *what, bool is_so);

/* "what=seen" */
void say_text(const char *what, const char *seen);

/* ---- Waiting -----------------------------------------------------------------------------------
 */

/* A millisecond's pause between two looks. */
void nap(void);

/* Waits for a condition; if the condition never comes, the clause's outcome is "hangs". */
#define await(expression)     \
    do {                      \
        while (!(expression)) \
            nap();            \
    } while (0)

/* The time `ms` from now (may be negative) by a clock; the second says if the time has come, to the nanosecond. */
struct timespec in_ms(clockid_t clock, int64_t ms);
bool is_reached(clockid_t clock, const struct timespec *time);

/* ---- Threads and processes ----------------------------------------------------------------------
 */

typedef int (*work_fn)(void *with);

#define CANCELLED (-1)
#define KILLED (-2)

/* A thread with work. Zero the struct, or leave that to task_begin(). */
struct task {
    work_fn work;
    void *with;
    pthread_t thread;
    _Atomic pid_t tid;
    _Atomic bool is_over;
};

void task_begin(struct task *task, work_fn work, void *with);
bool task_is_over(struct task *task);

/* Waits until the task sleeps in the kernel, and for a while longer; true if the task is not over. */
bool task_await_sleep(struct task *task);

/* Waits for the task's end, until some seconds after the clause's first such call: only where a "no" is an outcome. */
bool task_ends_soon(struct task *task);

/* The task's result; CANCELLED if cancelled. */
int task_join(struct task *task);

/* The result of something done in a new thread, which ends then. */
int elsewhere(work_fn work, void *with);

/*
 * A child process with work; the result, below 256; KILLED if killed. The process's first thread is awaited as
 * task_await_sleep() awaits a task.
 */
pid_t process_begin(work_fn work, void *with);
void process_await_sleep(pid_t pid);
int process_end(pid_t pid);
int in_process(work_fn work, void *with);

/* Zeroed memory that child processes share; never freed. */
void *shared_memory(size_t size);

/* ---- Signals ------------------------------------------------------------------------------------
 */

/* SIGUSR1 runs a handler, without SA_RESTART, that counts. */
void signals_begin(void);

/* Sends `count` signals to a task, each after the previous one was handled. */
void signals_send(struct task *task, int count);

/* ---- Mutexes ------------------------------------------------------------------------------------
 */

/* One type with one robustness. */
struct kind {
    const char *name;
    int type;
    int robust;
};
#define KINDS 8
extern const struct kind kinds[KINDS];

/* The kinds for which POSIX says that an unlock by another thread than the owner is EPERM. */
bool is_owner_checked(const struct kind *kind);

/* Sets up a mutex; ends the clause on a failure. */
void make(pthread_mutex_t *mutex, int type);
void make_kind(pthread_mutex_t *mutex, const struct kind *kind);
void make_robust(pthread_mutex_t *mutex, int type);
void make_shared(pthread_mutex_t *mutex, const struct kind *kind);

/* Calls on a mutex as work for a task. "_past": until a time that is over. */
int lock_it(void *mutex);
int trylock_it(void *mutex);
int unlock_it(void *mutex);
int timedlock_it_past(void *mutex);
int clocklock_it_past(void *mutex);

/*
 * After a lock whose time was over at the call: true if the call timed out, and began at least ANSWER_MS ago.  dmutex
 * waits so long for the server, so the machine was too busy for an answer.  Such a call says nothing, and is repeated.
 */
bool has_no_answer(int result, const struct timespec *began);
int lock_and_unlock_it(void *mutex);

/* The four ways to lock; a way with a time uses a distant time. */
struct way {
    const char *name;
    work_fn lock;
};
#define WAYS 4
extern const struct way ways[WAYS];

/* The answer of trylock to a new thread; a hold is given back. */
int try_elsewhere(pthread_mutex_t *mutex);

/* A thread locks the mutex and ends. */
void die_holding(pthread_mutex_t *mutex);

/* The number of unlocks by the caller until a refusal. */
int unlock_all(pthread_mutex_t *mutex);

/* Another thread locks until let go, and first says so. */
struct holder {
    pthread_mutex_t *mutex;
    struct task task;
    _Atomic bool holds;
    _Atomic bool may_go;
    _Atomic bool lets_go; /* set just before the unlock */
};
void holder_begin(struct holder *holder, pthread_mutex_t *mutex);
void holder_let_go(struct holder *holder);

/* A caller that blocks in a lock, and the events before the return. */
struct blocked {
    pthread_mutex_t *mutex;
    work_fn lock;
    struct task task;
    _Atomic bool is_released; /* set by the test just before the step that must unblock the caller */
    bool was_released;        /* as the caller saw is_released on return */
};
void blocked_begin(struct blocked *blocked, work_fn lock, pthread_mutex_t *mutex);

/* The caller's result, and if the return was "after" the unblocking step, or "early". */
int blocked_end(struct blocked *blocked);
const char *blocked_when(const struct blocked *blocked);

/* Threads or processes that each add to a number a number of times; only one may add at a time. */
struct torture {
    pthread_mutex_t mutex;
    int rounds;
    long number;
    _Atomic int inside;
    _Atomic int meetings;
};
int torture_add(void *torture);

/* ---- Condition variables ------------------------------------------------------------------------
 */

/* A place to wait.  The numbers are guarded by the mutex. */
struct meeting {
    pthread_mutex_t mutex;
    pthread_cond_t cond;
    int waiting;  /* threads that have begun to wait, and so are blocked when another thread locks */
    int tickets;  /* a waiter takes a ticket and leaves */
    int returned; /* with a ticket */
};

/* A thread that waits by cond_wait() for a ticket and gives the mutex back. */
int wait_for_ticket(void *meeting);

/* With default attributes, by initialisers; then awaits that `count` in all have begun to wait. */
void meeting_make(struct meeting *meeting);
void meeting_await(struct meeting *meeting, int count);

/* Adds tickets; then the caller signals or broadcasts. */
void meeting_add(struct meeting *meeting, int tickets);
int meeting_returned(struct meeting *meeting);

/* Further tickets for `count`, and a broadcast; awaits the tasks. */
void meeting_dismiss(struct meeting *meeting, struct task *tasks, int count);

#endif
