/* SPDX-License-Identifier: BSD-2-Clause */
#include "process/claims/registry.h"

#include <glib.h>
#include <stdlib.h>
#include <string.h>

#include "base/rank.h"

/* Idle records are kept up to this number: making a record costs a microsecond, keeping one 330 bytes. */
#define SWEEP_LEAST 1024u

#define SERIAL_LISTS_LEAST 64

/* How many freed claims are kept for later locks. */
#define SPARE_MOST 32

static struct dm_mutex state_lock = DM_MUTEX_INITIALIZER(DM_RANK_STATE);

void dm_state_lock(void)
{
    dm_mutex_lock(&state_lock);
}

void dm_state_unlock(void)
{
    dm_mutex_unlock(&state_lock);
}

void dm_state_fork_child(void)
{
    dm_mutex_reset(&state_lock);
}

void dm_registry_init(struct dm_registry *registry, struct dm_store *store, uint64_t first_serial)
{
    registry->store = store;
    registry->last_serial = first_serial;
    registry->sweep_at = SWEEP_LEAST;
    registry->names = g_hash_table_new(g_str_hash, g_str_equal);
}

static void free_spare(struct dm_registry *registry)
{
    struct dm_claim *claim;

    while ((claim = registry->spare)) {
        registry->spare = claim->next;
        free(claim);
    }
    registry->spare_count = 0;
}

void dm_registry_clear(struct dm_registry *registry)
{
    g_hash_table_destroy(registry->names);
    free(registry->serials);
    registry->serials = NULL;
    registry->serial_lists = 0;
    free_spare(registry);
    dm_due_clear(registry);
}

struct dm_name *dm_registry_find(struct dm_registry *registry, const char *key)
{
    dm_assert_held(DM_RANK_STATE);
    return g_hash_table_lookup(registry->names, key);
}

/* The argument of a search. */
struct search {
    bool (*is_it)(struct dm_name *name, void *user);
    void *user;
};

static gboolean is_found(gpointer key, gpointer value, gpointer user)
{
    const struct search *search = user;

    (void)key;
    return search->is_it(value, search->user);
}

struct dm_name *dm_registry_search(const struct dm_registry *registry, bool (*is_it)(struct dm_name *name, void *user),
                                   void *user)
{
    struct search search = { is_it, user };

    dm_assert_held(DM_RANK_STATE);
    return g_hash_table_find(registry->names, is_found, &search);
}

static void free_name(struct dm_name *name)
{
    free(name->key);
    free(name->place);
    free(name);
}

/* Binds the condition's record to no mutex.  The mutex's record stays, even if this was its last pin. */
static void unbind(struct dm_name *condition)
{
    if (condition->mutex)
        condition->mutex->pins--;
    condition->mutex = NULL;
}

static bool is_unused(const struct dm_name *name)
{
    return !name->claims && !name->pins && !name->must_serve && !name->wants_inbox;
}

/* True if the record is idle and can be made again from its key, the store, and the registry's `seen`. */
static bool can_be_made_again(const struct dm_registry *registry, const struct dm_name *name)
{
    return is_unused(name) && !name->is_not_recoverable &&
           (int64_t)name->seen <= registry->store_us - DM_TOKEN_EPOCH_US;
}

static gboolean free_idle(gpointer key, gpointer value, gpointer user)
{
    struct dm_registry *registry = user;
    struct dm_name *name = value;

    (void)key;
    if (!can_be_made_again(registry, name))
        return FALSE;
    registry->seen = MAX(registry->seen, name->seen);
    unbind(name);
    free_name(name);
    return TRUE;
}

/*
 * All idle records are freed whenever the table has doubled, so that a program that uses each name once does not grow.
 */
static void sweep(struct dm_registry *registry)
{
    if (g_hash_table_size(registry->names) < registry->sweep_at)
        return;
    g_hash_table_foreach_remove(registry->names, free_idle, registry);
    registry->sweep_at = MAX(SWEEP_LEAST, 2 * g_hash_table_size(registry->names));
}

/* Pads the key with zeros, because a tenure compares whole words of the name. */
static char *copy_key(const char *key)
{
    char *copy = calloc(1, 1 + dm_tenure_name_size(key + 1));

    return copy ? strcpy(copy, key) : NULL;
}

struct dm_name *dm_registry_name(struct dm_registry *registry, const char *key)
{
    struct dm_name *name = dm_registry_find(registry, key);

    dm_assert_held(DM_RANK_STATE);
    if (name) {
        name->is_forgotten = false; /* the record is in use again */
        return name;
    }
    sweep(registry);
    name = calloc(1, sizeof *name);
    if (!name)
        return NULL;
    name->seen = registry->seen;
    name->key = copy_key(key);
    name->place = dm_store_place(registry->store, key);
    if (!name->key || !name->place) {
        free_name(name);
        return NULL;
    }
    g_hash_table_insert(registry->names, name->key, name);
    return name;
}

static void free_if_unused(struct dm_registry *registry, struct dm_name *name)
{
    if (!name->is_forgotten || !is_unused(name))
        return;
    g_hash_table_remove(registry->names, name->key);
    dm_registry_bind(registry, name, NULL);
    free_name(name);
}

void dm_registry_bind(struct dm_registry *registry, struct dm_name *condition, struct dm_name *mutex)
{
    struct dm_name *before = condition->mutex;

    dm_assert_held(DM_RANK_STATE);
    if (mutex)
        dm_registry_pin(mutex);
    condition->mutex = mutex;
    if (before)
        dm_registry_unpin(registry, before);
}

void dm_registry_set_condition(struct dm_registry *registry, struct dm_claim *claim, struct dm_name *condition)
{
    struct dm_name *before = claim->condition;

    dm_assert_held(DM_RANK_STATE);
    if (condition)
        dm_registry_pin(condition);
    claim->condition = condition;
    claim->has_left = false;
    if (before)
        dm_registry_unpin(registry, before);
}

void dm_registry_forget(struct dm_registry *registry, struct dm_name *name)
{
    dm_assert_held(DM_RANK_STATE);
    name->is_forgotten = true;
    free_if_unused(registry, name);
}

void dm_registry_pin(struct dm_name *name)
{
    dm_assert_held(DM_RANK_STATE);
    name->pins++;
}

void dm_registry_unpin(struct dm_registry *registry, struct dm_name *name)
{
    dm_assert_held(DM_RANK_STATE);
    name->pins--;
    free_if_unused(registry, name);
}

static void link_to_thread(struct dm_claim *claim)
{
    struct dm_self *self = claim->self;

    if (self->has_ended)
        return;
    claim->next_of_thread = self->claims;
    claim->link_of_thread = &self->claims;
    if (claim->next_of_thread)
        claim->next_of_thread->link_of_thread = &claim->next_of_thread;
    self->claims = claim;
}

static void unlink_from_thread(struct dm_claim *claim)
{
    if (!claim->link_of_thread)
        return;
    *claim->link_of_thread = claim->next_of_thread;
    if (claim->next_of_thread)
        claim->next_of_thread->link_of_thread = claim->link_of_thread;
    claim->link_of_thread = NULL;
}

void dm_registry_set_self(struct dm_claim *claim, struct dm_self *self)
{
    dm_assert_held(DM_RANK_STATE);
    unlink_from_thread(claim);
    claim->self = self;
    if (self)
        link_to_thread(claim);
}

void dm_registry_part(struct dm_self *self)
{
    dm_assert_held(DM_RANK_STATE);
    while (self->claims)
        unlink_from_thread(self->claims);
    self->has_ended = true;
}

/* ---- serials ----------------------------------------------------------------------------- */

static struct dm_claim **list_of(const struct dm_registry *registry, uint64_t serial)
{
    return &registry->serials[serial & (registry->serial_lists - 1)];
}

static void insert_serial(struct dm_registry *registry, struct dm_claim *claim)
{
    struct dm_claim **list = list_of(registry, claim->hold.serial);

    claim->next_of_serial = *list;
    *list = claim;
}

static void remove_serial(struct dm_registry *registry, struct dm_claim *claim)
{
    struct dm_claim **at = list_of(registry, claim->hold.serial);

    while (*at != claim)
        at = &(*at)->next_of_serial;
    *at = claim->next_of_serial;
}

/* Serials rise by one, so the lists stay short while there are at least as many as claims. */
static bool reserve_serials(struct dm_registry *registry, size_t claims)
{
    size_t lists = registry->serial_lists ? registry->serial_lists * 2 : SERIAL_LISTS_LEAST;
    struct dm_claim **more;

    if (claims <= registry->serial_lists)
        return true;
    more = calloc(lists, sizeof *more);
    if (!more)
        return false;
    free(registry->serials);
    registry->serials = more;
    registry->serial_lists = lists;
    for (struct dm_claim *claim = registry->claims; claim; claim = claim->next)
        insert_serial(registry, claim);
    return true;
}

/* ---- claims ------------------------------------------------------------------------------ */

static struct dm_claim *take_spare(struct dm_registry *registry)
{
    struct dm_claim *claim = registry->spare;

    if (!claim)
        return calloc(1, sizeof *claim);
    registry->spare = claim->next;
    registry->spare_count--;
    *claim = (struct dm_claim){ 0 };
    return claim;
}

static void give_spare(struct dm_registry *registry, struct dm_claim *claim)
{
    if (registry->spare_count == SPARE_MOST) {
        free(claim);
        return;
    }
    claim->next = registry->spare;
    registry->spare = claim;
    registry->spare_count++;
}

struct dm_claim *dm_registry_claim(struct dm_registry *registry, struct dm_name *name, uint32_t lease_ms,
                                   uint32_t maxhold_ms, bool is_robust)
{
    size_t claims = registry->claim_count + 1;
    struct dm_claim *claim = NULL;

    dm_assert_held(DM_RANK_STATE);
    if (dm_due_reserve(registry, claims) && reserve_serials(registry, claims))
        claim = take_spare(registry);
    if (!claim)
        return NULL;
    registry->claim_count++;
    claim->self = dm_self_get();
    claim->holder = claim->self->serial;
    claim->name = name;
    dm_hold_init(&claim->hold, ++registry->last_serial, claim->self->serial, lease_ms, maxhold_ms, is_robust);
    claim->next_of_name = name->claims;
    name->claims = claim;
    claim->next = registry->claims;
    claim->link = &registry->claims;
    if (claim->next)
        claim->next->link = &claim->next;
    registry->claims = claim;
    link_to_thread(claim);
    insert_serial(registry, claim);
    return claim;
}

void dm_registry_rename(struct dm_registry *registry, struct dm_claim *claim)
{
    dm_assert_held(DM_RANK_STATE);
    remove_serial(registry, claim);
    dm_hold_rename(&claim->hold, ++registry->last_serial);
    insert_serial(registry, claim);
    dm_due_plan(registry, claim);
}

void dm_registry_drop(struct dm_registry *registry, struct dm_claim *claim)
{
    struct dm_name *name = claim->name;
    struct dm_claim **at = &name->claims;

    dm_assert_held(DM_RANK_STATE);
    dm_registry_pin(name); /* a condition that goes with the claim may have the only other pin */
    while (*at != claim)
        at = &(*at)->next_of_name;
    *at = claim->next_of_name;
    *claim->link = claim->next;
    if (claim->next)
        claim->next->link = claim->link;
    registry->claim_count--;
    dm_due_remove(registry, claim);
    unlink_from_thread(claim);
    remove_serial(registry, claim);
    dm_registry_set_condition(registry, claim, NULL);
    give_spare(registry, claim);
    dm_registry_unpin(registry, name);
}

static bool has_seat(struct dm_name *name, void *user)
{
    (void)user;
    return name->line.first != NULL;
}

/* A line's claim may be idle although there are seats, because the woken seat has not looked yet. */
bool dm_registry_is_in_use(const struct dm_registry *registry)
{
    const struct dm_claim *claim = registry->claims;

    dm_assert_held(DM_RANK_STATE);
    while (claim && !dm_hold_is_in_use(&claim->hold))
        claim = claim->next;
    return claim || dm_registry_search(registry, has_seat, NULL);
}

static void unbind_each(gpointer key, gpointer value, gpointer user)
{
    (void)key;
    (void)user;
    unbind(value);
}

static gboolean forget(gpointer key, gpointer value, gpointer user)
{
    struct dm_name *name = value;

    (void)key;
    (void)user;
    name->must_serve = false;
    name->is_forgotten = true;
    if (name->pins)
        return FALSE;
    free_name(name);
    return TRUE;
}

void dm_registry_empty(struct dm_registry *registry)
{
    dm_assert_held(DM_RANK_STATE);
    g_hash_table_foreach(registry->names, unbind_each, NULL); /* now no record pins another */
    g_hash_table_foreach_remove(registry->names, forget, NULL);
}

struct dm_claim *dm_registry_attempt(struct dm_registry *registry, uint64_t serial)
{
    struct dm_claim *claim = registry->serial_lists ? *list_of(registry, serial) : NULL;

    dm_assert_held(DM_RANK_STATE);
    while (claim && claim->hold.serial != serial)
        claim = claim->next_of_serial;
    return claim;
}

bool dm_claim_is_inside(const struct dm_claim *claim, uint64_t thread)
{
    enum dm_phase phase = claim->hold.phase;

    if (claim->tenure) /* the core may not know of the thread yet */
        return (phase == DM_HELD || phase == DM_LOST) && dm_tenure_inside(claim->tenure) == thread;
    return dm_hold_is_owned(&claim->hold) && claim->holder == thread;
}

uint64_t dm_claim_token(const struct dm_claim *claim)
{
    return claim->hold.token << DM_TOKEN_SHIFT | (claim->tenure ? dm_tenure_number(claim->tenure) : 0);
}

struct dm_claim *dm_name_hold(struct dm_name *name, uint64_t thread)
{
    struct dm_claim *claim = name->claims;

    dm_assert_held(DM_RANK_STATE);
    while (claim && !dm_claim_is_inside(claim, thread))
        claim = claim->next_of_name;
    return claim;
}
