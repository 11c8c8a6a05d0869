/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The calls of all threads of all processes, in memory shared with the test; the memory outlives killed processes.
 *
 * Each call is one record, in the order in which the calls began: made before the call, finished after the call.
 * An unfinished record belongs to a killed thread, or to a thread that still waits.
 * Times are true nanoseconds of CLOCK_BOOTTIME, also in a process with wrong clocks.
 */
#ifndef CHAOS_HISTORY_H
#define CHAOS_HISTORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define HISTORY_OPS (1 << 20)
#define HISTORY_TRACKS 1024

/* The mutexes; each process uses all mutexes. */
enum name {
    NAME_NORMAL,
    NAME_RECURSIVE,
    NAME_CHECKED, /* errorcheck, robust */
    NAME_APART,   /* robust, in a separate group */
    NAME_TABLE,   /* robust; the conditions' mutex */
    NAMES
};

struct mutex_kind {
    const char *name;
    int type;
    bool is_robust;
};
extern const struct mutex_kind mutex_kinds[NAMES];

enum op_kind {
    OP_NONE, /* the thread was killed before the record's kind was written */
    OP_LOCK,
    OP_TRYLOCK,
    OP_TIMEDLOCK,
    OP_UNLOCK,
    OP_CONSISTENT,
    OP_WAIT,
    OP_TIMEDWAIT,
    OP_SIGNAL,
    OP_BROADCAST,
    OP_TOUCH, /* a wish to the resource: 0, or EACCES if the caller has no token, or too low a token */
    OP_KINDS
};

struct op {
    int64_t began_ns;
    int64_t ended_ns;   /* 0: not finished */
    int64_t certain_ns; /* until when the library said, after the call, that the hold is certain; 0: not certain */
    int64_t told_ns;    /* when the library had said so; long after ended_ns on a busy machine */
    int64_t left_ns;    /* after ETIMEDOUT: the time left until the deadline, by the caller's clock */
    uint64_t token;     /* of the hold after the call, 0: none */
    int32_t result;
    uint16_t track;
    uint8_t kind;
    uint8_t name;
    uint8_t depth; /* after the call */
};

/* A thread. */
struct track {
    int process, thread;
    int64_t killed_ns;   /* 0: not killed */
    unsigned not_robust; /* a set of bits: names that are robust by the table, and not by the thread's objects */
};

struct history {
    uint32_t op_count; /* may exceed HISTORY_OPS: calls beyond are not recorded */
    uint32_t track_count;
    char surprise[256]; /* the library's sentence about an unexpected result */
    bool may_forget;    /* faults that lose the server's data: a death may be forgotten */
    bool may_be_untold; /* several servers grant: a hold may be lost before its token is known, and has token 0 */
    struct track tracks[HISTORY_TRACKS];
    struct op ops[HISTORY_OPS];
};

/* Makes an empty history, shared with children forked later. */
struct history *history_make(void);
void history_clear(struct history *history);
void history_free(struct history *history);

/* Returns the number of a new track. */
unsigned history_add_track(struct history *history, int process, int thread);

/* Begins a record.  NULL if there is no room left; the thread should make no more calls. */
struct op *history_begin(struct history *history, unsigned track, enum op_kind kind, enum name name);

/* Finishes a record; the caller has filled in all other fields before. */
void history_end(struct op *op, int result, int64_t ended_ns);

/* Returns the number of records. */
size_t history_size(const struct history *history);

bool op_is_lock(const struct op *op);
bool op_is_wait(const struct op *op);
const char *op_name(const struct op *op);

/* Returns the true time of CLOCK_BOOTTIME, the clock of all records. */
int64_t history_now_ns(void);

/* Prints the calls on a name between two moments, and all unfinished calls of living threads. */
void history_print(const struct history *history, enum name name, int64_t from_ns, int64_t until_ns);

#endif
