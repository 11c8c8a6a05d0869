/* SPDX-License-Identifier: BSD-2-Clause */
/* Calls a store's functions, which are described at struct dm_store_ops. */
#ifndef DM_STORE_CALLS_H
#define DM_STORE_CALLS_H

#include "store/store.h"

static inline struct dm_place *dm_store_place(struct dm_store *store, const char *key)
{
    return store->ops->place(store, key);
}

static inline unsigned dm_store_lane(struct dm_store *store, const struct dm_place *place)
{
    return store->ops->lane(store, place);
}

static inline uint32_t dm_store_spread(struct dm_store *store, const struct dm_place *place)
{
    return store->ops->spread(store, place);
}

static inline bool dm_store_is_able(struct dm_store *store, const struct dm_place *place, enum dm_way way)
{
    return store->ops->is_able(store, place, way);
}

static inline void dm_store_want(struct dm_store *store, const struct dm_place *place, enum dm_way way)
{
    store->ops->want(store, place, way);
}

static inline bool dm_store_await_able(struct dm_store *store, const struct dm_place *place, enum dm_way way,
                                       const struct dm_deadline *deadline)
{
    return store->ops->await_able(store, place, way, deadline);
}

static inline bool dm_store_sleep(struct dm_store *store, const struct dm_place *place, enum dm_way way,
                                  const struct dm_deadline *deadline, int cancel_state)
{
    return store->ops->sleep(store, place, way, deadline, cancel_state);
}

static inline void dm_store_reason(struct dm_store *store, const struct dm_place *place, enum dm_way way,
                                   char ret_reason[DM_REASON_ROOM])
{
    store->ops->reason(store, place, way, ret_reason);
}

/*
 * True if a server has answered lately that the login or a right is missing, and has not been content since: the cause
 * of a failure, for programs.  Quietly.
 */
static inline bool dm_store_is_denied(struct dm_store *store)
{
    return store->ops->is_denied && store->ops->is_denied(store);
}

static inline struct dm_origin dm_store_origin(struct dm_store *store, const struct dm_place *place)
{
    return store->ops->origin(store, place);
}

static inline void dm_store_count(struct dm_store *store, struct dm_traffic *ret_traffic)
{
    store->ops->count(store, ret_traffic);
}

static inline bool dm_store_load(struct dm_store *store)
{
    return store->ops->load(store);
}

static inline struct dm_answer dm_store_ask(struct dm_store *store, const struct dm_question *question,
                                            const struct dm_deadline *deadline, char ret_reason[DM_REASON_ROOM])
{
    return store->ops->ask(store, question, deadline, ret_reason);
}

static inline bool dm_store_submit(struct dm_store *store, const struct dm_question *questions, int count,
                                   dm_answers_fn done, void *user)
{
    return store->ops->submit(store, questions, count, done, user);
}

static inline enum dm_verdict dm_store_view(struct dm_store *store, struct dm_view *view,
                                            const struct dm_deadline *deadline, char ret_reason[DM_REASON_ROOM])
{
    return store->ops->view(store, view, deadline, ret_reason);
}

static inline void dm_store_work(struct dm_store *store)
{
    store->ops->work(store);
}

static inline int64_t dm_store_look(struct dm_store *store)
{
    return store->ops->look(store);
}

static inline void dm_store_watch(struct dm_store *store, struct dm_watch *watch)
{
    store->ops->watch(store, watch);
}

static inline void dm_store_note_look(struct dm_store *store, int64_t look_ns)
{
    store->ops->note_look(store, look_ns);
}

static inline void dm_store_turn(struct dm_store *store)
{
    store->ops->turn(store);
}

static inline void dm_store_drain(struct dm_store *store, const struct dm_deadline *deadline)
{
    store->ops->drain(store, deadline);
}

static inline void dm_store_leave(struct dm_store *store, const struct dm_deadline *deadline)
{
    if (store->ops->leave)
        store->ops->leave(store, deadline);
}

static inline void dm_store_end(struct dm_store *store)
{
    store->ops->end(store);
}

static inline void dm_store_fork_prepare(struct dm_store *store)
{
    for (enum dm_fork_stage stage = 0; stage < DM_FORK_STAGES; stage++)
        store->ops->fork_prepare(store, stage);
}

static inline void dm_store_fork_parent(struct dm_store *store)
{
    for (enum dm_fork_stage stage = DM_FORK_STAGES; stage > 0; stage--)
        store->ops->fork_parent(store, stage - 1);
}

static inline void dm_store_fork_child(struct dm_store *store)
{
    store->ops->fork_child(store);
}

static inline void dm_store_free_unused(struct dm_store *store)
{
    store->ops->free_unused(store);
}

#endif
