/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A register store in memory: one server, and a driver for each process.  It is the simplest thing that keeps the
 * contract of registers/driver.h, and it has the faults that real servers have shown.  Threads may share it.
 *
 * A fault of the first kind is allowed by the contract, and the lock protocol must live with it.  A defect is not: the
 * suite of driver.h must find it, and the simulator shows what comes of it.
 */
#ifndef TESTS_REGISTERS_MEMORY_H
#define TESTS_REGISTERS_MEMORY_H

#include "registers/driver.h"

struct memory;

/* Where time, chance and delays come from.  NULL: the real clock, a fixed row of numbers, no delay. */
struct memory_world {
    int64_t (*now_ns)(void); /* of the server */
    uint64_t (*chance)(void);
    int64_t (*delay_ns)(void);
    /* Calls `what` at that moment. */
    void (*at)(int64_t when_ns, void (*what)(void *object, uint64_t number), void *object, uint64_t number);
};

/* Each number n: one in n, by chance; 0: never. */
struct memory_faults {
    unsigned lost;       /* a swap is never executed, and has no answer */
    unsigned unanswered; /* a swap or read is executed, and has no answer */
    unsigned late;       /* a swap has no answer, and is executed at some time within late_most_ns */
    int64_t late_most_ns;
    const char *late_of; /* only swaps of keys that begin so are late; NULL: of all */
    unsigned poor;       /* a conflict does not bring the newer value */
    unsigned tell_lost, tell_doubled;
    bool is_full;                   /* swaps are refused, deletions are not */
    bool has_no_tells, has_no_ages; /* said before the first driver is opened */
    /* Defects. */
    bool brings_old;       /* a conflict brings the value that was expected */
    bool reads_old;        /* a read may show the value before the last swap */
    bool tells_always;     /* after a conflict, too */
    bool repeats_versions; /* numbers of the store's own, which begin again after a deletion */
    bool has_high_ages;
    bool is_not_bound; /* a late swap is executed on other data, too */
    bool answers_twice;
    bool is_not_atomic; /* now and then a swap overwrites a version that it did not expect */
    bool folds_keys;    /* large letters are small ones */
    bool forgets_epoch; /* other data have the same identity */
};

enum memory_data { MEMORY_KEEPS, MEMORY_LOSES, MEMORY_BRINGS_COPY };

struct memory *memory_new(const struct memory_world *world);
void memory_free(struct memory *memory);
struct memory_faults *memory_faults(struct memory *memory);

/* The driver of one process.  Freed with the store. */
struct dm_reg_driver *memory_open(struct memory *memory, const struct dm_reg_client *client);

/* ---- what happens to the server ----------------------------------------------------------- */

/* Breaks the connections of all drivers, or of one.  What is under way is executed now or never, and not answered. */
void memory_cut(struct memory *memory, struct dm_reg_driver *driver);

/* Nothing is executed before that moment. */
void memory_stall(struct memory *memory, int64_t until_ns);

/* All connections break, and nobody connects before that moment.  The data are kept, lost, or the last copy's. */
void memory_restart(struct memory *memory, enum memory_data data, int64_t until_ns);

/* All keys are gone, with the identity as before, and no connection breaks. */
void memory_wipe(struct memory *memory);

/* Keeps a copy of all data as they are now. */
void memory_copy(struct memory *memory);

/* Writes a value by hand, whatever is there. */
void memory_put(struct memory *memory, const char *key, const void *value, size_t size);

/* Executes all late swaps now. */
void memory_execute_late(struct memory *memory);

/* Which data these are, as a driver says at on_ready(). */
void memory_identity(const struct memory *memory, char ret_identity[DM_REG_IDENTITY_ROOM]);

/* ---- looks -------------------------------------------------------------------------------- */

/* Each key that is there.  The value is valid during the call. */
void memory_each(struct memory *memory, void (*handler)(void *user, const char *key, const void *value, size_t size),
                 void *user);

/* Called with each value before and after a swap; size 0: absent. */
void memory_watch(struct memory *memory,
                  void (*handler)(void *user, const char *key, const void *old_value, size_t old_size,
                                  const void *value, size_t size),
                  void *user);

struct memory_counts {
    uint64_t reads, swaps, conflicts, unknown, late, tells;
    uint64_t calls; /* of drivers: to read, swap or list */
};
const struct memory_counts *memory_counts(const struct memory *memory);

/* The most bytes of a value. */
#define MEMORY_VALUE_MAX (256 * 1024)

#endif
