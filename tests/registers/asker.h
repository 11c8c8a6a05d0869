/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A process, as a driver on a real server sees it: asks, and keeps what it was told.  Any number of them can be in one
 * test; each is turned only while the test waits for it.
 */
#ifndef TESTS_REGISTERS_ASKER_H
#define TESTS_REGISTERS_ASKER_H

#include <stdbool.h>

#include "registers/driver.h"
#include "stores/postgres/open.h"

#define ASKER_ITEMS 200

struct asked {
    bool is_answered;
    struct dm_reg_reply reply; /* the value is a copy */
    char value[64];            /* the value behind its version, as a text, cut */
    char reason[DM_REG_REASON_ROOM];
};

struct asker {
    struct dm_reg_driver *driver;
    struct dm_watch watch;
    struct dm_reg_writer writer;
    uint64_t tickets, first_ticket;
    struct asked asked[ASKER_ITEMS]; /* of the last call, and of those added to it */
    int answered;
    enum dm_reg_door door; /* of swaps */
    char **keys;           /* of the last list */
    int key_count;
    bool is_listed, is_last;
    int ready, down, tells; /* how often */
    bool is_up, is_final, has_inbox;
    char identity[DM_REG_IDENTITY_ROOM], reason[DM_REG_REASON_ROOM], warning[DM_REG_REASON_ROOM];
    char told[DM_REG_TELL_MAX + 1];
    size_t told_size;
};

/* Opens the driver: set by the program before all else. */
extern dm_reg_open_fn *asker_driver;

/* A driver for the URL.  command_timeout in ms, 0: 20 s. */
struct asker *asker_open(const char *url, const char *prefix, unsigned command_timeout_ms);
/* The same, wanted with the inbox NAME, and connected. */
struct asker *asker_start(const char *url, const char *inbox);
void asker_end(struct asker *asker);

/* Turns the driver once, after at most some ms of sleep. */
void asker_turn(struct asker *asker);

#define asker_until(asker, expression)                          \
    do {                                                        \
        int64_t asker_began_ms = wait_now_ms();                 \
                                                                \
        while (!(expression)) {                                 \
            if (wait_now_ms() > asker_began_ms + WAIT_LIMIT_MS) \
                wait_fail(#expression, __FILE__, __LINE__);     \
            asker_turn(asker);                                  \
        }                                                       \
    } while (0)

/* A new version with this text behind; valid until the next 64 calls. */
const void *asker_value(struct asker *asker, const char *text, size_t *ret_size);

/* Each asks and waits for the answer.  The version of a swap's new value becomes *version if it is done. */
const struct asked *asker_read(struct asker *asker, const char *key, const struct dm_reg_version *known);
const struct asked *asker_swap(struct asker *asker, const char *key, struct dm_reg_version *version, const char *text);
/* Swaps from the version, again and again until the outcome is known. */
void asker_swap_surely(struct asker *asker, const char *key, struct dm_reg_version *version, int number);
const struct asked *asker_delete(struct asker *asker, const char *key, const struct dm_reg_version *version);
const struct asked *asker_swap_and_tell(struct asker *asker, const char *key, struct dm_reg_version *version,
                                        const char *text, const char *inbox, const char *told);

/* Asserts how it ended. */
void asker_check(const struct asked *asked, enum dm_reg_outcome wanted, int line);
#define assert_outcome(call, wanted) asker_check(call, wanted, __LINE__)

/* Without waiting. */
void asker_post(struct asker *asker, const struct dm_reg_item *items, int count, bool is_swap);
/* The same after a call of one item, whose answer may be still to come: the answer of the n-th more is asked[n]. */
void asker_post_more(struct asker *asker, const struct dm_reg_item *item, bool is_swap);

#endif
