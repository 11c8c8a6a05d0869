/* SPDX-License-Identifier: BSD-2-Clause */
/* Calls a store's operations, which are described at struct dm_store_ops. */
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

static inline bool dm_store_sleep(struct dm_store *store, const struct dm_place *place,
                                  const struct dm_deadline *deadline, int cancel_state)
{
    return store->ops->sleep(store, place, deadline, cancel_state);
}

static inline void dm_store_reason(struct dm_store *store, const struct dm_place *place, enum dm_way way,
                                   char ret_reason[DM_REASON_ROOM])
{
    store->ops->reason(store, place, way, ret_reason);
}

static inline struct dm_origin dm_store_origin(struct dm_store *store, const struct dm_place *place)
{
    return store->ops->origin(store, place);
}

static inline void dm_store_count(struct dm_store *store, struct dm_traffic *ret_traffic)
{
    store->ops->count(store, ret_traffic);
}

static inline struct dm_answer dm_store_acquire(struct dm_store *store, const struct dm_ask *ask, bool may_queue,
                                                const struct dm_owed *owed, int owed_count,
                                                const struct dm_deadline *deadline, char ret_reason[DM_REASON_ROOM])
{
    return store->ops->acquire(store, ask, may_queue, owed, owed_count, deadline, ret_reason);
}

static inline struct dm_answer dm_store_cancel(struct dm_store *store, const struct dm_ask *ask,
                                               const struct dm_deadline *deadline, char ret_reason[DM_REASON_ROOM])
{
    return store->ops->cancel(store, ask, deadline, ret_reason);
}

static inline struct dm_answer dm_store_release(struct dm_store *store, const struct dm_ask *ask, enum dm_end end,
                                                const struct dm_deadline *deadline, char ret_reason[DM_REASON_ROOM])
{
    return store->ops->release(store, ask, end, deadline, ret_reason);
}

static inline struct dm_answer dm_store_renew(struct dm_store *store, const struct dm_renewal *renewal,
                                              const struct dm_deadline *deadline, char ret_reason[DM_REASON_ROOM])
{
    return store->ops->renew(store, renewal, deadline, ret_reason);
}

static inline enum dm_verdict dm_store_consistent(struct dm_store *store, const struct dm_ask *ask,
                                                  const struct dm_deadline *deadline, char ret_reason[DM_REASON_ROOM])
{
    return store->ops->consistent(store, ask, deadline, ret_reason);
}

static inline enum dm_verdict dm_store_force(struct dm_store *store, const struct dm_place *place,
                                             const struct dm_deadline *deadline, bool *ret_must_serve,
                                             char ret_reason[DM_REASON_ROOM])
{
    return store->ops->force(store, place, deadline, ret_must_serve, ret_reason);
}

static inline enum dm_verdict dm_store_drop(struct dm_store *store, const struct dm_place *place, bool is_anonymous,
                                            const struct dm_deadline *deadline, char ret_reason[DM_REASON_ROOM])
{
    return store->ops->drop(store, place, is_anonymous, deadline, ret_reason);
}

static inline enum dm_verdict dm_store_info(struct dm_store *store, const struct dm_ask *ask,
                                            const struct dm_deadline *deadline, struct dm_info *ret_info,
                                            char ret_reason[DM_REASON_ROOM])
{
    return store->ops->info(store, ask, deadline, ret_info, ret_reason);
}

static inline enum dm_verdict dm_store_view(struct dm_store *store, struct dm_view *view,
                                            const struct dm_deadline *deadline, char ret_reason[DM_REASON_ROOM])
{
    return store->ops->view(store, view, deadline, ret_reason);
}

static inline struct dm_answer dm_store_cond_wait(struct dm_store *store, const struct dm_ask *ask,
                                                  const struct dm_leaving *leaving, const struct dm_deadline *deadline,
                                                  char ret_reason[DM_REASON_ROOM])
{
    return store->ops->cond_wait(store, ask, leaving, deadline, ret_reason);
}

static inline struct dm_answer dm_store_cond_cancel(struct dm_store *store, const struct dm_ask *ask,
                                                    const struct dm_deadline *deadline, bool *ret_is_signalled,
                                                    char ret_reason[DM_REASON_ROOM])
{
    return store->ops->cond_cancel(store, ask, deadline, ret_is_signalled, ret_reason);
}

static inline struct dm_signalled dm_store_cond_signal(struct dm_store *store, const struct dm_signal *signal,
                                                       const struct dm_deadline *deadline,
                                                       char ret_reason[DM_REASON_ROOM])
{
    return store->ops->cond_signal(store, signal, deadline, ret_reason);
}

static inline enum dm_verdict dm_store_cond_drop(struct dm_store *store, const struct dm_place *condition,
                                                 bool is_anonymous, const struct dm_deadline *deadline,
                                                 char ret_reason[DM_REASON_ROOM])
{
    return store->ops->cond_drop(store, condition, is_anonymous, deadline, ret_reason);
}

static inline bool dm_store_post_release(struct dm_store *store, const struct dm_ask *ask, enum dm_end end,
                                         dm_answers_fn handler, void *user)
{
    return store->ops->post_release(store, ask, end, handler, user);
}

static inline bool dm_store_post_poll(struct dm_store *store, const struct dm_ask *asks, int count,
                                      dm_answers_fn handler, void *user)
{
    return store->ops->post_poll(store, asks, count, handler, user);
}

static inline bool dm_store_post_renew(struct dm_store *store, const struct dm_renewal *renewals, int count,
                                       dm_answers_fn handler, void *user)
{
    return store->ops->post_renew(store, renewals, count, handler, user);
}

static inline bool dm_store_post_acquire(struct dm_store *store, const struct dm_ask *ask, bool may_queue,
                                         const struct dm_owed *owed, int owed_count, dm_answers_fn handler, void *user)
{
    return store->ops->post_acquire(store, ask, may_queue, owed, owed_count, handler, user);
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
