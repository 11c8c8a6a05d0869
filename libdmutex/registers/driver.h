/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A register store: named values that can be read, and replaced if they have not changed.  The whole lock protocol
 * stands on these two (registers/store.c), so a database or coordinator becomes a lock store by a driver of a few
 * hundred lines, which knows no locks.
 *
 * What a driver must give:
 *
 * 1. Swaps of one key are linearizable, and as durable as the pages about the store promise.
 *
 * 2. A read is never older than what this process has already read or written of the same key.
 *
 * 3. The identity is another one whenever acknowledged writes may be gone: after a failover that may have lost some,
 *    after a restored backup, after a wipe.  The store keeps a random epoch for this, and compares it in the same
 *    atomic step as the swap, so a swap never takes effect on data of another identity.
 *
 * 4. Nothing is evicted.
 *
 * What it need not give: transactions over several keys, an order between keys, clocks, notices.
 *
 * A driver is a state machine without threads.  The client calls its functions one at a time, under the client's lock.
 * None of them blocks.  A driver calls the client's functions only from inside turn().
 */
#ifndef DM_REGISTERS_DRIVER_H
#define DM_REGISTERS_DRIVER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "registers/version.h"
#include "store/watch.h"

#define DM_REG_KEY_MAX 250 /* bytes, of [A-Za-z0-9._~%/-] */
#define DM_REG_IDENTITY_ROOM 96
#define DM_REG_REASON_ROOM 384

/* A notice for one inbox, sent if and after the swap that carries it has taken effect.  It may get lost. */
struct dm_reg_tell {
    const char *inbox; /* DM_REG_KEY_MAX bytes at most */
    const void *text;  /* any bytes, DM_REG_TELL_MAX at most */
    size_t size;
};
#define DM_REG_TELL_MAX 3000

/*
 * Swaps that are refused again and again, because somebody else swaps the key as fast as it can, make themselves heard:
 * what a refused swap has left at the key's door is told once, to the next swap that listens.  A driver that reserves
 * keys needs no doors.  Without has_doors all swaps pass.
 */
enum dm_reg_door { DM_REG_PASSES, DM_REG_KNOCKS, DM_REG_LISTENS };

/* One key to be read or swapped.  Everything is the caller's, and needed only during the call. */
struct dm_reg_item {
    const char *key;
    struct dm_reg_version version; /* read: known already, so that SAME is enough; swap: expected */
    const void *value;             /* swap: the new value, which begins with its version; size 0 deletes the key */
    size_t size;
    const struct dm_reg_tell *tells; /* swap */
    int tell_count;
    bool reserves; /* whoever asks swaps as soon as the value is here: of a read, or of a conflict */
    enum dm_reg_door door;
};

enum dm_reg_outcome {
    DM_REG_DONE,     /* read: the value follows, or the key is absent; swap: it has taken effect */
    DM_REG_SAME,     /* read: the version is still the known one */
    DM_REG_CONFLICT, /* swap: the version was another one; nothing has changed */
    DM_REG_UNKNOWN,  /* swap: executed, or not, or still to be executed at any later moment; read: no answer */
    DM_REG_REFUSED,  /* not executed, and a person must mend something: see the reason */
    DM_REG_TOO_LARGE /* swap: not executed, the store cannot keep a value of this size */
};

/* The answer to one item.  Everything is the driver's, and valid only during the call. */
struct dm_reg_reply {
    enum dm_reg_outcome outcome;
    bool has_value;                /* read: DONE; CONFLICT: if the driver has read the newer value on the same way */
    bool is_reserved;              /* with a value: nobody else swaps the key before let_go() */
    bool is_knocked;               /* DONE, of a swap that listens: somebody has knocked */
    struct dm_reg_version version; /* of the value; zero: absent */
    const void *value;             /* size 0: absent */
    size_t size;
    int64_t age_ms;     /* the value was written at least so long ago, by the store's clock; -1: not known */
    int64_t clock_us;   /* the store's clock, since 1970; 0: not known */
    const char *reason; /* REFUSED, UNKNOWN: a sentence for people, or NULL */
};

/* What stands above a driver. */
struct dm_reg_client {
    void *user;
    /* The store can be asked, for the first time or again.  From here on `identity` is that of its data. */
    void (*on_ready)(void *user, const char *identity);
    /*
     * The connection is gone; every item under way has been answered UNKNOWN before.  is_final: waiting does not help,
     * a person must mend something.
     */
    void (*on_down)(void *user, const char *reason, bool is_final);
    /* Once for each item of a read or swap, in any order; `index` counts the items from 0. */
    void (*on_reply)(void *user, uint64_t ticket, int index, const struct dm_reg_reply *reply);
    /* Once for each listing: keys in ascending order; is_last: nothing follows.  count -1: no answer, or refused. */
    void (*on_list)(void *user, uint64_t ticket, const char *const *keys, int count, bool is_last, const char *reason);
    /* A notice for our inbox. */
    void (*on_tell)(void *user, const void *text, size_t size);
    /* Notices arrive from now on (true), or may have been missed (false).  False before the first call. */
    void (*on_inbox)(void *user, bool is_open);
    /* A line for the log, about something that people should mend although locking goes on. */
    void (*on_warning)(void *user, const char *text);
};

/* What this store can do; constant once on_ready() has been called. */
struct dm_reg_abilities {
    bool has_tells;   /* notices */
    bool has_doors;   /* swaps that knock, and others that listen */
    bool has_ages;    /* replies have the age of a value */
    bool has_lists;   /* list() */
    bool expires;     /* sessions that nobody renews disappear by themselves, after three leases at least */
    size_t value_max; /* bytes, with the version */
    unsigned lease_ms_min;
};

struct dm_reg_driver {
    const struct dm_reg_driver_ops *ops;
    struct dm_reg_abilities can;
};

struct dm_reg_driver_ops {
    /* Connect, and reconnect after each break with a pause of the driver's, until rest() or end(). */
    void (*want)(struct dm_reg_driver *driver);
    /* Nobody needs the connection: closes it, without on_down(). */
    void (*rest)(struct dm_reg_driver *driver);

    /*
     * Begin to execute the items, each for itself: no transaction.  False: not connected, or no memory; nothing is
     * under way.  Items of one call about one key are executed in their order.
     */
    bool (*read)(struct dm_reg_driver *driver, uint64_t ticket, const struct dm_reg_item *items, int count);
    bool (*swap)(struct dm_reg_driver *driver, uint64_t ticket, const struct dm_reg_item *items, int count);
    /* The first `most` keys after `after` ("": from the first) that begin with `prefix`.  NULL without has_lists. */
    bool (*list)(struct dm_reg_driver *driver, uint64_t ticket, const char *prefix, const char *after, int most);

    /* Which inbox is ours: said once, before the first want(). */
    bool (*listen)(struct dm_reg_driver *driver, const char *inbox);

    /* As load() of store/store.h, for what the driver has not loaded when it was opened. */
    bool (*load)(struct dm_reg_driver *driver);

    /* Adds descriptors and the next moment to what must be waited for. */
    void (*watch)(struct dm_reg_driver *driver, struct dm_watch *watch);
    /* Does all work that can be done now: connects, writes, reads, gives up. */
    void (*turn)(struct dm_reg_driver *driver);
    /*
     * After each turn(): the swaps that follow from its replies have been asked for.  Keys that were reserved, and are
     * not swapped, are free again.  NULL: this driver reserves none.
     */
    void (*let_go)(struct dm_reg_driver *driver);
    /*
     * How many bytes of stack turn(), read(), swap() and list() need now; 0: as little as all of the library.  A thread
     * that has less calls none of them.
     */
    size_t (*stack)(const struct dm_reg_driver *driver);

    /* Writes where the store is, without secrets, for sentences such as "cannot reach PLACE". */
    void (*place)(struct dm_reg_driver *driver, char *ret_text, size_t room);

    /* Closes the connection for good, and answers what is under way with UNKNOWN in no further call. */
    void (*end)(struct dm_reg_driver *driver);
    /* In a forked child: closes the descriptors, and leaks what a client library would use to speak to the server. */
    void (*forget)(struct dm_reg_driver *driver);
    /* Frees a driver that was never wanted. */
    void (*free_unused)(struct dm_reg_driver *driver);
};

#endif
