/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The world of one simulated run: time, planned events, chance, and the trace of past events.
 * There is one world at a time.  The seed decides everything in the world.
 */
#ifndef SIM_WORLD_H
#define SIM_WORLD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/units.h"

#define MS DM_NS_PER_MS

/* True time, in ns since the beginning; no clock of any process shows it. */
int64_t world_now(void);

/* Calls `what` at a moment, or as soon as possible if the moment is past; later callers come later. */
typedef void (*world_event)(void *object, uint64_t number);
void world_at(int64_t when_ns, world_event what, void *object, uint64_t number);

/* The next event; false if there is none before `until_ns`, which is then the current time. */
bool world_step(int64_t until_ns);

/* ---- chance: one stream for each use, so that one use does not change another ------------------ */

enum chance { CHANCE_NETWORK, CHANCE_THREADS, CHANCE_WORK, CHANCE_FAULTS, CHANCE_STREAMS };

uint64_t chance_word(enum chance which);
uint32_t chance_below(enum chance which, uint32_t limit); /* 0 .. limit-1 */
bool chance_one_in(enum chance which, uint32_t n);

/* Mostly short, seldom up to `most`. */
int64_t chance_delay(enum chance which, int64_t usual, int64_t most);

/* The speed of the processes' clocks in the run, in millionths; 0: each clock has its own speed. */
void world_set_rate(int64_t ppm);
int64_t world_rate(void);

/* ---- trace --------------------------------------------------------------------------------- */

/* Notes one line of the trace: into the hash, and to standard error if a person reads. */
void world_note(const char *format, ...) __attribute__((__format__(__printf__, 1, 2)));
uint64_t world_hash(void);
void world_set_reader(bool is_there);

/* A promise is broken.  The first sentence is kept; the run ends. */
void world_break(const char *format, ...) __attribute__((__format__(__printf__, 1, 2)));
const char *world_breach(void); /* "" none */

/* ---- beginning and end ------------------------------------------------------------------------ */

/* Begins a run with `seed`; bytes, if any, are used up before the seed's own chance. */
void world_begin(uint64_t seed, const uint8_t *bytes, size_t length);
void world_end(void);

/* Memory until the end of the run, zeroed. */
void *world_new(size_t size);

/* Counted over all runs; printed by counters_print(). */
struct counters {
    uint64_t runs, events, operations, holds, waits, signals, scripts, messages, renewals, polls, deaths, losses,
        refusals;
    uint64_t faults, fault_kinds[32];
    uint64_t states, checks;
    uint64_t brief_locks, brief_unlocks;              /* calls that took the state lock twice */
    uint64_t fast_locks, fast_unlocks, fast_mistakes; /* without the state lock; entered in error */
    uint64_t switches;                                /* failovers, with sentinels or of shards */
    uint64_t slot_moves;                              /* in a Cluster */
    uint64_t lies;                                    /* of a server of a quorum */
    uint64_t cleanups;                                /* handlers that cancelled threads have run */
    uint64_t put_back;                                /* holds, by renewals, while others wait on a condition */
    uint64_t confirmed, unconfirmed;                  /* answers to WAIT: enough replicas, or not */
};
extern struct counters counters;

#endif
