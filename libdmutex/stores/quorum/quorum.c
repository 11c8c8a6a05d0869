/* SPDX-License-Identifier: BSD-2-Clause */
/* The messages of the children, and the table of operations. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "store/drivers.h"
#include "stores/quorum/parts.h"

/* After HINTS_AT_ONCE hints of one server to one attempt, further ones count only at this pace. */
#define HINTS_AT_ONCE 8
#define HINT_PACE_NS (10 * DM_NS_PER_MS)

/* ---- answers of the children ------------------------------------------------------------- */

/* The other child that counts for this one's server; -1: none.  A child that is not connected yet has no server. */
static int find_same(const struct dm_quorum_child *child)
{
    const struct dm_quorum_store *all = child->all;

    for (int i = 0; i < all->count && child->run; i++) {
        if (i != child->index && all->children[i].same < 0 && all->children[i].run == child->run)
            return i;
    }
    return -1;
}

static void set_same(struct dm_quorum_child *child, int same)
{
    char reason[DM_REASON_ROOM];

    if (same >= 0 && child->same < 0) {
        dm_quorum_explain_same(child, &child->all->children[same], reason);
        dm_log_warn("a server does not count in the quorum: %s", reason);
    }
    __atomic_store_n(&child->same, same, __ATOMIC_RELAXED);
}

/*
 * A server with two names, or addresses, must not have two votes.  The child that was connected to it first counts,
 * even while its connection is broken, because it may come back at any time.
 */
static void identify(struct dm_quorum_child *child)
{
    struct dm_quorum_store *all = child->all;

    child->run = dm_store_origin(child->store, NULL).run;
    for (int i = 0; i < all->count; i++) {
        if (all->children[i].same == child->index && all->children[i].run != child->run)
            set_same(&all->children[i], find_same(&all->children[i]));
    }
    set_same(child, find_same(child));
}

/* The child may be a new server, without a queue, until an answer gives its birth. */
static void child_ready(void *user)
{
    struct dm_quorum_child *child = user;
    struct dm_quorum_store *all = child->all;

    dm_mutex_lock(&all->lock);
    identify(child);
    child->since_ns = child->url->has_grace ? dm_clock_boot_ns() : 0;
    dm_mutex_unlock(&all->lock);
    all->host.on_ready(all->host.user);
}

static void child_tells(void *user)
{
    struct dm_quorum_store *all = ((struct dm_quorum_child *)user)->all;

    all->host.on_inbox(all->host.user);
}

/*
 * A hint makes the attempt ask all servers.  An honest server rarely sends an attempt a second one.  Endless hints are
 * acted on only now and then, and each server is counted separately, so that one cannot drown the others' hints.
 */
static bool heeds_hint(struct dm_quorum_record *record, int server, int64_t now_ns)
{
    if (record->hints[server].count == HINTS_AT_ONCE && now_ns < record->hints[server].heeded_ns + HINT_PACE_NS)
        return false;
    record->hints[server].count += record->hints[server].count < HINTS_AT_ONCE;
    record->hints[server].heeded_ns = now_ns;
    return true;
}

/*
 * A grant by one server is a hint for a waiting attempt, and means nothing for a hold.  A loss at one server is a loss
 * if no majority is left.  Right after a lock, while answers that may make a majority are still to come, a renewal
 * finds out, because a lying member must not end the hold by being quicker than an honest one.  Not later: servers
 * report only breaks by force in this way, and a renewal would take the lock again where it was broken.
 */
static bool is_news(struct dm_quorum_child *child, struct dm_message *message)
{
    struct dm_quorum_record *record = dm_quorum_find(child->all, message->attempt);
    int64_t now_ns = dm_clock_boot_ns();

    switch (message->kind) {
    case DM_MESSAGE_GRANTED:
        message->request = 0;
        message->answer = (struct dm_answer){ .verdict = DM_SAYS_OWNED };
        return !record || (!record->quorum.is_owned && heeds_hint(record, child->index, now_ns));
    case DM_MESSAGE_ASK:
        return !record || heeds_hint(record, child->index, now_ns);
    case DM_MESSAGE_LOST:
        if (!record || !record->quorum.is_owned)
            return true;
        dm_quorum_lose(&record->quorum, child->index, now_ns);
        if (dm_quorum_is_certain(&record->quorum, now_ns))
            return false;
        if (now_ns - record->owned_ns > DM_QUORUM_PASS_NS ||
            !dm_quorum_may_be_certain(&record->quorum, record->owned_ns, now_ns))
            return true;
        message->kind = DM_MESSAGE_ASK;
        return heeds_hint(record, child->index, now_ns);
    case DM_MESSAGE_SIGNALLED:
        return false;
    default:
        return true;
    }
}

static void child_message(void *user, const struct dm_message *message)
{
    struct dm_quorum_child *child = user;
    struct dm_quorum_store *all = child->all;
    struct dm_message news = *message;
    bool is;

    dm_mutex_lock(&all->lock);
    is = is_news(child, &news);
    dm_mutex_unlock(&all->lock);
    if (is)
        all->host.on_message(all->host.user, &news);
}

static void child_changed(void *user)
{
    struct dm_quorum_store *all = ((struct dm_quorum_child *)user)->all;

    all->host.on_change(all->host.user);
}

static bool child_is_in_need(void *user, unsigned *ret_lease_ms)
{
    struct dm_quorum_store *all = ((struct dm_quorum_child *)user)->all;

    return all->host.is_in_need(all->host.user, ret_lease_ms);
}

/* ---- names and numbers ------------------------------------------------------------------- */

static struct dm_place *place(struct dm_store *store, const char *key)
{
    return dm_store_place(dm_quorum_of(store)->children[0].store, key);
}

/* A batch has a part for each child. */
static unsigned lane(struct dm_store *store, const struct dm_place *place)
{
    (void)store;
    (void)place;
    return 0;
}

static uint32_t spread(struct dm_store *store, const struct dm_place *place)
{
    return dm_store_spread(dm_quorum_of(store)->children[0].store, place);
}

/* The waiting thread reads the inbox where its attempt waits, the loop thread reads the others. */
static bool sleep_reading(struct dm_store *store, const struct dm_place *place, enum dm_way way,
                          const struct dm_deadline *deadline, int cancel_state)
{
    struct dm_quorum_store *all = dm_quorum_of(store);
    int first;

    dm_mutex_lock(&all->lock);
    first = dm_quorum_choose_first(all, place, true);
    dm_mutex_unlock(&all->lock);
    return dm_store_sleep(all->children[first].store, place, way, deadline, cancel_state);
}

/* For the life of the process a quorum counts as one server: servers come and go, and none is believed alone. */
static struct dm_origin origin(struct dm_store *store, const struct dm_place *place)
{
    (void)store;
    (void)place;
    return (struct dm_origin){ .number = 2 };
}

static void count(struct dm_store *store, struct dm_traffic *ret_traffic)
{
    struct dm_quorum_store *all = dm_quorum_of(store);
    struct dm_traffic of;

    *ret_traffic = (struct dm_traffic){ 0 };
    for (int i = 0; i < all->count; i++) {
        dm_store_count(all->children[i].store, &of);
        ret_traffic->commands += of.commands;
        ret_traffic->messages += of.messages;
        ret_traffic->reconnects += of.reconnects;
    }
}

/* All children need the same libraries. */
static bool load(struct dm_store *store)
{
    return dm_store_load(dm_quorum_of(store)->children[0].store);
}

/* ---- questions --------------------------------------------------------------------------- */

/* There are no conditions, because a signal to several servers would wake several waiters. */
static struct dm_answer ask(struct dm_store *store, const struct dm_question *question,
                            const struct dm_deadline *deadline, char ret_reason[DM_REASON_ROOM])
{
    struct dm_quorum_store *all = dm_quorum_of(store);

    switch (question->op) {
    case DM_OP_ACQUIRE:
        return dm_quorum_acquire(all, question, deadline, ret_reason);
    case DM_OP_CANCEL:
    case DM_OP_RELEASE:
        return dm_quorum_leave(all, question, deadline, ret_reason);
    case DM_OP_RENEW:
        return dm_quorum_renew(all, question, deadline, ret_reason);
    case DM_OP_CONSISTENT:
    case DM_OP_FORCE:
    case DM_OP_DROP:
    case DM_OP_INFO:
        return dm_quorum_ask_each(all, question, deadline, ret_reason);
    case DM_OP_COND_DROP:
        return (struct dm_answer){ .verdict = DM_SAYS_DONE }; /* nobody can wait, so there is nothing to delete */
    default:
        return (struct dm_answer){ .verdict = DM_SAYS_UNSUPPORTED };
    }
}

/* ---- the loop thread --------------------------------------------------------------------- */

static void work(struct dm_store *store)
{
    struct dm_quorum_store *all = dm_quorum_of(store);

    for (int i = 0; i < all->count; i++)
        dm_store_work(all->children[i].store);
    dm_quorum_end_batches(all);
}

static int64_t look(struct dm_store *store)
{
    struct dm_quorum_store *all = dm_quorum_of(store);
    int64_t next_ns = DM_NEVER;

    for (int i = 0; i < all->count; i++) {
        int64_t due_ns = dm_store_look(all->children[i].store);

        next_ns = due_ns < next_ns ? due_ns : next_ns;
    }
    return next_ns;
}

static void watch(struct dm_store *store, struct dm_watch *watch)
{
    struct dm_quorum_store *all = dm_quorum_of(store);

    for (int i = 0; i < all->count; i++)
        dm_store_watch(all->children[i].store, watch);
    dm_watch_until(watch, dm_quorum_batches_due_ns(all));
}

static void note_look(struct dm_store *store, int64_t look_ns)
{
    struct dm_quorum_store *all = dm_quorum_of(store);

    for (int i = 0; i < all->count; i++)
        dm_store_note_look(all->children[i].store, look_ns);
}

static void turn(struct dm_store *store)
{
    struct dm_quorum_store *all = dm_quorum_of(store);

    for (int i = 0; i < all->count; i++)
        dm_store_turn(all->children[i].store);
    dm_quorum_end_batches(all);
}

/* ---- start, end, fork ---------------------------------------------------------------- */

/*
 * A child that is down has no requests under way; one that is silent does not make the caller wait until the deadline.
 */
static void drain(struct dm_store *store, const struct dm_deadline *deadline)
{
    struct dm_quorum_store *all = dm_quorum_of(store);

    dm_mutex_lock(&all->lock);
    all->is_drained = true;
    dm_mutex_unlock(&all->lock);
    for (int i = 0; i < all->count; i++) {
        struct dm_deadline soon = dm_deadline_sooner(deadline, DM_QUORUM_LEAVE_NS);

        if (dm_store_is_able(all->children[i].store, NULL, DM_ASKS))
            dm_store_drain(all->children[i].store, &soon);
    }
    dm_quorum_end_late_releases(all);
}

static void end(struct dm_store *store)
{
    struct dm_quorum_store *all = dm_quorum_of(store);

    for (int i = 0; i < all->count; i++)
        dm_store_end(all->children[i].store);
    dm_quorum_end_batches(all);
}

/* Stage by stage, because a lock of an earlier stage must not be taken while one of a later stage is held. */
static void fork_prepare(struct dm_store *store, enum dm_fork_stage stage)
{
    struct dm_quorum_store *all = dm_quorum_of(store);

    if (stage == DM_FORK_STORES)
        dm_mutex_lock(&all->lock);
    for (int i = 0; i < (stage == DM_FORK_SHARED ? 1 : all->count); i++)
        all->children[i].store->ops->fork_prepare(all->children[i].store, stage);
}

static void fork_parent(struct dm_store *store, enum dm_fork_stage stage)
{
    struct dm_quorum_store *all = dm_quorum_of(store);

    for (int i = stage == DM_FORK_SHARED ? 1 : all->count; i > 0; i--)
        all->children[i - 1].store->ops->fork_parent(all->children[i - 1].store, stage);
    if (stage == DM_FORK_STORES)
        dm_mutex_unlock(&all->lock);
}

static void fork_child(struct dm_store *store)
{
    struct dm_quorum_store *all = dm_quorum_of(store);

    all->is_ended = true;
    dm_mutex_reset(&all->lock);
    for (int i = 0; i < all->count; i++)
        dm_store_fork_child(all->children[i].store);
}

static void free_unused(struct dm_store *store)
{
    struct dm_quorum_store *all = dm_quorum_of(store);

    for (int i = 0; i < all->count; i++) {
        if (all->children[i].store)
            dm_store_free_unused(all->children[i].store);
        dm_url_free(all->children[i].url);
    }
    free(all);
}

static const struct dm_store_ops ops = {
    .place = place,
    .lane = lane,
    .spread = spread,
    .ask = ask,
    .submit = dm_quorum_submit,
    .view = dm_quorum_view,
    .is_able = dm_quorum_is_able,
    .want = dm_quorum_want,
    .await_able = dm_quorum_await_able,
    .sleep = sleep_reading,
    .reason = dm_quorum_reason,
    .is_denied = dm_quorum_is_denied,
    .origin = origin,
    .count = count,
    .load = load,
    .work = work,
    .look = look,
    .watch = watch,
    .note_look = note_look,
    .turn = turn,
    .drain = drain,
    .end = end,
    .fork_prepare = fork_prepare,
    .fork_parent = fork_parent,
    .fork_child = fork_child,
    .free_unused = free_unused,
};

/* False as a dm_open_fn returns NULL. */
static bool open_one(struct dm_quorum_child *child, const struct dm_url *list, const struct dm_ident *ident,
                     dm_open_fn *open_child, char *ret_reason)
{
    const struct dm_host host = {
        .user = child,
        .on_ready = child_ready,
        .on_inbox = child_tells,
        .on_message = child_message,
        .on_change = child_changed,
        .is_in_need = child_is_in_need,
    };

    child->url = dm_url_of_server(list, list->hosts[child->index].host, list->hosts[child->index].port);
    if (child->url)
        child->url->is_part = true;
    child->store = child->url ? open_child(child->url, ident, &host, ret_reason) : NULL;
    return child->store != NULL;
}

struct dm_store *dm_quorum_open(struct dm_url *url, const struct dm_ident *ident, const struct dm_host *host,
                                dm_open_fn *open_child, char ret_reason[DM_REASON_ROOM])
{
    struct dm_quorum_store *all = calloc(1, sizeof *all);
    bool is_whole = true;

    ret_reason[0] = '\0';
    if (!all)
        return NULL;
    all->store.ops = &ops;
    all->host = *host;
    all->count = url->host_count;
    all->lock = (struct dm_mutex)DM_MUTEX_INITIALIZER(DM_RANK_QUORUM);
    for (int i = 0; i < all->count && is_whole; i++) {
        all->children[i].all = all;
        all->children[i].index = i;
        all->children[i].same = -1;
        is_whole = open_one(&all->children[i], url, ident, open_child, ret_reason);
    }
    if (is_whole)
        return &all->store;
    free_unused(&all->store);
    return NULL;
}
