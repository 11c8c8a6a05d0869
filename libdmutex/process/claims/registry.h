/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What this process knows: one record per mutex or condition, with the claims of the process's threads.
 *
 * A claim is the core's hold (core/hold.h) with its thread and name.  It lives from the lock call until the store has
 * confirmed the release; then the core says that the record may go.
 *
 * dm_state_lock(), one lock for the whole process, guards everything here.  Sections are short, and nothing blocks
 * inside.
 */
#ifndef DM_PROCESS_CLAIMS_REGISTRY_H
#define DM_PROCESS_CLAIMS_REGISTRY_H

#include "base/self.h"
#include "core/line.h"
#include "process/claims/due.h"
#include "store/calls.h"

struct _GHashTable; /* GLib's GHashTable; only registry.c knows it */
struct dm_claim;

struct dm_name {
    char *key; /* in the table: see dm_registry_name() */
    struct dm_place *place;
    struct dm_claim *claims;
    struct dm_line line;
    uint64_t seen;           /* the highest of the store's tokens that we know of */
    unsigned contested;      /* for this many holds, including the present one, unless a message grants one; 0: no */
    bool is_not_recoverable; /* the store said so last */
    bool wants_inbox;        /* the pump opens the inbox, because a thread must hear of waiters */
    bool must_serve;         /* waiters are left that a poll of ours must serve */
    unsigned pins;           /* by calls and batches that use the place without the lock */
    bool is_forgotten;       /* to be freed with the last pin */
    struct dm_name *mutex;   /* of a condition: the mutex that it was last known to be bound to; pinned */
};

struct dm_claim {
    struct dm_hold hold; /* first: see dm_claim_of(); written by core/ alone */
    struct dm_name *name;
    struct dm_name *condition; /* the condition of a wait or of the last signal; pinned; NULL: none */
    bool has_left;             /* the condition: only an older copy of the data may still have the attempt there */
    struct dm_tenure *tenure;  /* if the claim is or was a line's; NULL: the claim of a single thread */
    bool is_passed;            /* the holder is still on its seat, and has not returned from lock */
    uint64_t holder;           /* the thread that is inside, or in a call about the claim; 0: none */
    int64_t since_ns;          /* when hold since_number was taken under the state lock; 0: none was */
    uint32_t since_number;
    struct dm_self *self; /* the thread in a call about the claim, to be woken; NULL: there is no such call */
    struct dm_moment due[DM_DUE_WANTS];

    struct dm_claim *next_of_name;
    struct dm_claim *next, **link;                     /* all claims */
    struct dm_claim *next_of_thread, **link_of_thread; /* of self; link NULL: the thread has ended */
    struct dm_claim *next_of_serial;                   /* in one of the table's lists */
};

struct dm_registry {
    struct dm_store *store;
    struct _GHashTable *names; /* key -> struct dm_name */
    struct dm_claim **serials; /* lists of claims, by low bits of hold.serial; a GHashTable allocates when filled */
    size_t serial_lists;       /* a power of two, at least claim_count; 0 before the first claim */
    struct dm_claim *claims;
    size_t claim_count;
    struct dm_claim *spare; /* freed claims, by `next`: a usual lock needs no malloc(), see base/block.h */
    size_t spare_count;
    struct dm_order due[DM_DUE_WANTS]; /* of claims */
    uint64_t last_serial;
    unsigned names_to_serve; /* names with must_serve */
    unsigned inboxes_wanted; /* names with wants_inbox */
    unsigned sweep_at;       /* at this many names, idle records are freed before the next one is made */
    int64_t store_us;        /* the store's clock at the last answer */
    uint64_t seen;           /* the highest token of all freed records: a new record begins with it */
    uint64_t holds_inside;   /* holds of the tenures that are over, except the first of each */
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

/* Forgets all names; pinned ones go with their last pin.  There must be no claim left.  State lock held. */
void dm_registry_empty(struct dm_registry *registry);

/*
 * The record of a mutex or a condition, made if there is none; store/store.h describes the key.  NULL without memory.
 * Making a record may free idle ones, so a caller pins any other record that it goes on using.
 */
struct dm_name *dm_registry_name(struct dm_registry *registry, const char *key);

/* The record, or NULL. */
struct dm_name *dm_registry_find(struct dm_registry *registry, const char *key);

/*
 * Calls is_it() for each record, in no particular order, until it returns true.  Returns that record, or NULL.  is_it()
 * must not make or forget records.
 */
struct dm_name *dm_registry_search(const struct dm_registry *registry, bool (*is_it)(struct dm_name *name, void *user),
                                   void *user);

/* Forgets a record that nothing uses any more. */
void dm_registry_forget(struct dm_registry *registry, struct dm_name *name);

/* A pinned record stays, so that its place can be used without the lock. */
void dm_registry_pin(struct dm_name *name);
void dm_registry_unpin(struct dm_registry *registry, struct dm_name *name);

/* A new claim of the calling thread.  NULL without memory. */
struct dm_claim *dm_registry_claim(struct dm_registry *registry, struct dm_name *name, uint32_t lease_ms,
                                   uint32_t maxhold_ms, bool is_robust);

/* From now on the claim belongs to a call of this thread, or to none (NULL). */
void dm_registry_set_self(struct dm_claim *claim, struct dm_self *self);

/* From now on the claim waits on this condition, or on none (NULL). */
void dm_registry_set_condition(struct dm_registry *registry, struct dm_claim *claim, struct dm_name *condition);

/* Sets the mutex that a condition was last seen bound to. */
void dm_registry_bind(struct dm_registry *registry, struct dm_name *condition, struct dm_name *mutex);

/* The claim goes on under a new serial. */
void dm_registry_rename(struct dm_registry *registry, struct dm_claim *claim);

/* The thread ends: none of its claims points to its dm_self any more.  State lock held. */
void dm_registry_part(struct dm_self *self);

/* Ends and frees a claim that is no line's any more; dm_claim_drop() takes it out of the line first. */
void dm_registry_drop(struct dm_registry *registry, struct dm_claim *claim);

/* The claim of an attempt, or NULL. */
struct dm_claim *dm_registry_attempt(struct dm_registry *registry, uint64_t serial);

/* The claim of a tenure; NULL: none. */
static inline struct dm_claim *dm_claim_of(const struct dm_tenure *tenure)
{
    return tenure ? (struct dm_claim *)tenure->hold : NULL;
}

/* True if the claim is its line's. */
static inline bool dm_claim_is_shared(const struct dm_claim *claim)
{
    return claim->tenure && claim->name->line.tenure == claim->tenure;
}

/* True if the thread has locked by the claim, which is HELD or LOST; certain only for the calling thread. */
bool dm_claim_is_inside(const struct dm_claim *claim, uint64_t thread);

/* The fencing token of the present hold. */
uint64_t dm_claim_token(const struct dm_claim *claim);

/* The claim by which the thread has locked, HELD or LOST; NULL: none. */
struct dm_claim *dm_name_hold(struct dm_name *name, uint64_t thread);

#endif
