/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What all threads of all processes did, in memory that they share with the test and that outlives
 * whoever is killed.
 *
 * Each call is one record, in the order in which the calls began: made before the call, finished
 * behind it.  One that is not finished belongs to a thread that was killed, or that still waits.
 * Times are true nanoseconds of CLOCK_BOOTTIME, also where a process is shown a wrong clock.
 */
#ifndef CHAOS_HISTORY_H
#define CHAOS_HISTORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define HISTORY_OPS (1 << 20)
#define HISTORY_TRACKS 1024

/* The mutexes, all used by everybody. */
enum name {
    NAME_NORMAL,
    NAME_RECURSIVE,
    NAME_CHECKED, /* errorcheck, robust */
    NAME_APART,   /* robust, in a group of its own */
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
    OP_NONE, /* its thread was killed before it had written more */
    OP_LOCK,
    OP_TRYLOCK,
    OP_TIMEDLOCK,
    OP_UNLOCK,
    OP_CONSISTENT,
    OP_WAIT,
    OP_TIMEDWAIT,
    OP_SIGNAL,
    OP_BROADCAST,
    OP_TOUCH, /* the guarded resource: 0, or EACCES when it refuses the token */
    OP_KINDS
};

struct op {
    int64_t began_ns;
    int64_t ended_ns;   /* 0: not finished */
    int64_t certain_ns; /* until then the hold is certain, as the library said behind the call; 0:
                           no hold */
    int64_t left_ns;    /* timed calls: what the caller's clock had left of its deadline then */
    uint64_t token;     /* of the hold behind the call, 0: none */
    int32_t result;
    uint16_t track;
    uint8_t kind;
    uint8_t name;
    uint8_t depth; /* behind the call */
};

/* A thread. */
struct track {
    int process, thread;
    int64_t killed_ns; /* 0: it was not */
};

struct history {
    uint32_t op_count; /* may be higher than there is room for: what came then is not recorded */
    uint32_t track_count;
    char surprise[256]; /* the library's sentence about one of the results that should not be */
    struct track tracks[HISTORY_TRACKS];
    struct op ops[HISTORY_OPS];
};

/* Shared with children that are forked later; empty. */
struct history *history_make(void);
void history_clear(struct history *history);
void history_free(struct history *history);

/* The number of a new track. */
unsigned history_add_track(struct history *history, int process, int thread);

/* NULL when there is no room; then the thread should do no more. */
struct op *history_begin(struct history *history, unsigned track, enum op_kind kind,
                         enum name name);

/* All but these two is filled in before. */
void history_end(struct op *op, int result, int64_t ended_ns);

/* The records that are there. */
size_t history_size(const struct history *history);

bool op_is_lock(const struct op *op);
bool op_is_wait(const struct op *op);
const char *op_name(const struct op *op);

/* The clock of all records. */
int64_t history_now_ns(void);

/* Prints what concerns a name between two moments, and what is not finished. */
void history_print(const struct history *history, enum name name, int64_t from_ns,
                   int64_t until_ns);

#endif
