/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The knowledge of this process: one record per mutex or condition, with the claims of the process's threads.
 *
 * A claim is the core's hold (core/hold.h) with its thread and name.  A claim lives from lock until the store has
 * confirmed the release: then the core says that the record may go.
 *
 * dm_state_lock() guards everything here, one lock for the process: sections are short, and nothing blocks inside.
 */
#ifndef DM_PROCESS_CLAIMS_REGISTRY_H
#define DM_PROCESS_CLAIMS_REGISTRY_H

#include "base/self.h"
#include "core/hold.h"
#include "core/tenure.h"
#include "process/claims/due.h"
#include "process/claims/line.h"
#include "store/calls.h"

struct _GHashTable; /* a GHashTable of GLib, which registry.c alone knows */
struct dm_claim;

struct dm_name {
    char *key; /* in the table: see dm_registry_name() */
    struct dm_place *place;
    struct dm_claim *claims;
    struct dm_line line;
    uint64_t seen;           /* the highest of the store's tokens that we know of */
    unsigned contested;      /* for so many holds, this one too, unless a message grants one; 0: no */
    bool is_not_recoverable; /* the store said so last */
    bool wants_inbox;        /* the pump opens the inbox: a thread is to be told of waiters */
    bool must_serve;         /* waiters are left that a poll of ours is to serve */
    unsigned pins;           /* calls and batches that use the place without the lock */
    bool is_forgotten;       /* to be freed with the last pin */
    struct dm_name *mutex;   /* of a condition: the bound mutex when we last heard; pinned */
};

struct dm_claim {
    struct dm_hold hold; /* written by core/ alone */
    struct dm_name *name;
    struct dm_name *condition; /* the condition of a wait or of the last signal; pinned; NULL: none */
    bool has_left;             /* the condition: only an older copy of the data may have the attempt there yet */
    struct dm_tenure *tenure;  /* of a claim that is or was a line's; NULL: the claim of one thread alone */
    bool is_counted;           /* among line.lost of the name */
    bool is_passed;            /* the holder is on its seat yet, and has not returned from lock */
    uint64_t holder;           /* the thread that is inside, or in a call about the claim; 0: none */
    int64_t since_ns;          /* when the hold since_number was taken by the state lock; 0: none was */
    uint32_t since_number;
    struct dm_self *self; /* the thread, woken while in a call about the claim; NULL: no such call */
    struct dm_moment due[DM_DUE_WANTS];

    struct dm_claim *next_of_name;
    struct dm_claim *next, **link;                     /* all claims */
    struct dm_claim *next_of_thread, **link_of_thread; /* of self; link NULL: the thread has ended */
    struct dm_claim *next_of_serial;                   /* in one of the table's lists */
};

struct dm_registry {
    struct dm_store *store;
    struct _GHashTable *names; /* key -> struct dm_name */
    struct dm_claim *
        *serials;        /* lists of claims by the low bits of hold.serial; no GHashTable, which allocates later */
    size_t serial_lists; /* a power of two, not fewer than claims; 0 before the first claim */
    struct dm_claim *claims;
    size_t claim_count;
    struct dm_claim *spare; /* freed claims, by `next`, so that a usual lock needs no malloc(): see base/block.h */
    size_t spare_count;
    struct dm_order due[DM_DUE_WANTS]; /* of claims */
    uint64_t last_serial;
    unsigned names_to_serve; /* names with must_serve */
    unsigned inboxes_wanted; /* names with wants_inbox */
    unsigned sweep_at;       /* at so many names, idle records are freed before the next record is made */
    int64_t store_us;        /* the store's clock at the last answer */
    uint64_t seen;           /* the highest token of a name that was freed: a new record begins with this token */
    uint64_t holds_inside;   /* of the tenures that are over: holds but the first of each */
};

void dm_state_lock(void);
void dm_state_unlock(void);
void dm_state_fork_child(void);

/* Attempts are numbered from first_serial + 1 on. */
void dm_registry_init(struct dm_registry *registry, struct dm_store *store, uint64_t first_serial);

/* True if a thread holds or waits: by a claim, or on a seat of a line.  State lock held. */
bool dm_registry_is_in_use(const struct dm_registry *registry);

/* Undoes dm_registry_init(), for a registry that is empty. */
void dm_registry_clear(struct dm_registry *registry);

/* Forgets all names; pinned names go with their last pin.  No claim is left.  State lock held. */
void dm_registry_empty(struct dm_registry *registry);

/*
 * The record of a mutex or a condition, made if there is none; store/store.h describes the key.  NULL without memory.
 * To make a record may free idle records: a caller pins any other record that the caller goes on using.
 */
struct dm_name *dm_registry_name(struct dm_registry *registry, const char *key);

/* The record, or NULL. */
struct dm_name *dm_registry_find(struct dm_registry *registry, const char *key);

/*
 * Asks is_it() of each record, in no order, until it says true.  The record, or NULL.  is_it() makes and forgets no
 * record.
 */
struct dm_name *dm_registry_search(const struct dm_registry *registry, bool (*is_it)(struct dm_name *name, void *user),
                                   void *user);

/* Forgets a record that nothing uses any more. */
void dm_registry_forget(struct dm_registry *registry, struct dm_name *name);

/* A pinned record stays, so that the place can be used without the lock. */
void dm_registry_pin(struct dm_name *name);
void dm_registry_unpin(struct dm_registry *registry, struct dm_name *name);

/* A new claim of the calling thread.  NULL without memory. */
struct dm_claim *dm_registry_claim(struct dm_registry *registry, struct dm_name *name, uint32_t lease_ms,
                                   uint32_t maxhold_ms, bool is_robust);

/* The claim belongs to the calls of this thread from here on, or to none (NULL). */
void dm_registry_set_self(struct dm_claim *claim, struct dm_self *self);

/* The claim waits on a condition from here on, or on none (NULL). */
void dm_registry_set_condition(struct dm_registry *registry, struct dm_claim *claim, struct dm_name *condition);

/* Sets the mutex that a condition was last seen bound to. */
void dm_registry_bind(struct dm_registry *registry, struct dm_name *condition, struct dm_name *mutex);

/* The claim goes on under a new serial. */
void dm_registry_rename(struct dm_registry *registry, struct dm_claim *claim);

/* The thread ends: none of the thread's claims points to the dm_self any more.  State lock held. */
void dm_registry_part(struct dm_self *self);

/* Ends and frees a claim that no line has any more; dm_line_drop() does both. */
void dm_registry_drop(struct dm_registry *registry, struct dm_claim *claim);

/* The claim of an attempt, or NULL. */
struct dm_claim *dm_registry_attempt(struct dm_registry *registry, uint64_t serial);

/* True if the thread has locked by the claim, HELD or LOST; certain for the calling thread. */
bool dm_claim_is_inside(const struct dm_claim *claim, uint64_t thread);

/* The fencing token of the present hold. */
uint64_t dm_claim_token(const struct dm_claim *claim);

/* The claim by which the calling thread has locked, HELD or LOST; NULL: none. */
struct dm_claim *dm_name_hold(struct dm_name *name, uint64_t thread);

#endif
