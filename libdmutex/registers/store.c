/* SPDX-License-Identifier: BSD-2-Clause */
/* The wall on registers: questions become tasks (questions.c); answers and messages are delivered without the lock. */
#include "registers/store.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/bug.h"
#include "base/descriptor.h"
#include "base/minmax.h"
#include "base/self.h"
#include "base/units.h"
#include "registers/keys.h"
#include "registers/store_parts.h"
#include "store/ask.h"

/* Before the first answer: how long one may take. */
#define ROUND_TRIP_NS DM_NS_PER_MS

static void lock(struct dm_registers *registers)
{
    dm_mutex_lock(&registers->lock);
}

static void unlock(struct dm_registers *registers)
{
    dm_mutex_unlock(&registers->lock);
}

/* ---- names ------------------------------------------------------------------------------- */

static struct dm_place *place(struct dm_store *store, const char *key)
{
    char written[DM_REG_KEY_MAX + 1];
    struct dm_place *place;
    size_t size;

    (void)store;
    dm_reg_key_write(key, written);
    size = strlen(written) + 1;
    place = malloc(sizeof *place + size);
    if (!place)
        return NULL;
    place->spread = (uint32_t)dm_reg_identity_number(written);
    memcpy(place->key, written, size);
    return place;
}

/* All names are on one server. */
static unsigned lane(struct dm_store *store, const struct dm_place *place)
{
    (void)store;
    (void)place;
    return 0;
}

static uint32_t spread(struct dm_store *store, const struct dm_place *place)
{
    (void)store;
    return place->spread;
}

/* ---- questions --------------------------------------------------------------------------- */

static bool submit(struct dm_store *store, const struct dm_question *questions, int count, dm_answers_fn done,
                   void *user)
{
    static const struct dm_answer nothing = { .verdict = DM_SAYS_NOTHING };
    struct dm_registers *registers = dm_registers_of(store);
    struct dm_reg_batch *batch = calloc(1, sizeof *batch + (size_t)count * sizeof batch->answers[0]);

    if (!batch)
        return false;
    *batch = (struct dm_reg_batch){ .done = done, .user = user, .count = count, .left = count };
    lock(registers);
    dm_registers_note_use(registers);
    if (!registers->is_ready || registers->is_ended) {
        registers->driver->ops->want(registers->driver);
        if (questions->op == DM_OP_RELEASE)
            dm_registers_owe(registers, questions);
        unlock(registers);
        free(batch);
        return false;
    }
    for (int i = 0; i < count; i++) {
        if (!dm_registers_take(registers, &questions[i], batch, i))
            dm_registers_answer(registers, batch, i, &nothing, NULL);
    }
    dm_registers_run(registers);
    unlock(registers);
    return true;
}

/* INFO is a view of one name: two reads, or one if nobody holds, or this process does. */
static struct dm_answer ask(struct dm_store *store, const struct dm_question *question,
                            const struct dm_deadline *deadline, char ret_reason[DM_REASON_ROOM])
{
    if (question->op == DM_OP_INFO)
        return (struct dm_answer){ .verdict =
                                       dm_registers_inform(dm_registers_of(store), question, deadline, ret_reason) };
    return dm_ask_by_submit(store, question, deadline, ret_reason);
}

static enum dm_verdict view(struct dm_store *store, struct dm_view *view, const struct dm_deadline *deadline,
                            char ret_reason[DM_REASON_ROOM])
{
    return dm_registers_view(dm_registers_of(store), view, deadline, ret_reason);
}

/* ---- the way ----------------------------------------------------------------------------- */

/* Without notices the store looks for itself, so a waiter may always ask for a place in the queue. */
static bool is_able(struct dm_store *store, const struct dm_place *place, enum dm_way way)
{
    struct dm_registers *registers = dm_registers_of(store);
    bool is;

    (void)place;
    lock(registers);
    is = registers->is_ready && (way == DM_ASKS || registers->is_inbox_open || !registers->driver->can.has_tells);
    unlock(registers);
    return is;
}

static void want(struct dm_store *store, const struct dm_place *place, enum dm_way way)
{
    struct dm_registers *registers = dm_registers_of(store);

    (void)place;
    (void)way;
    lock(registers);
    dm_registers_note_use(registers);
    registers->driver->ops->want(registers->driver);
    unlock(registers);
}

/* Waiting does not help: a person must mend something. */
static bool is_useless(struct dm_registers *registers)
{
    bool is;

    lock(registers);
    is = registers->is_final;
    unlock(registers);
    return is;
}

static bool await_able(struct dm_store *store, const struct dm_place *place, enum dm_way way,
                       const struct dm_deadline *deadline)
{
    struct dm_registers *registers = dm_registers_of(store);

    want(store, place, way);
    while (!is_able(store, place, way) && dm_deadline_left_ns(deadline) > 0 && !is_useless(registers))
        dm_registers_sleep(registers, deadline, PTHREAD_CANCEL_DISABLE);
    return is_able(store, place, way);
}

static bool sleep_working(struct dm_store *store, const struct dm_place *place, enum dm_way way,
                          const struct dm_deadline *deadline, int cancel_state)
{
    (void)place;
    (void)way;
    return dm_registers_sleep(dm_registers_of(store), deadline, cancel_state);
}

static void reason(struct dm_store *store, const struct dm_place *place, enum dm_way way,
                   char ret_reason[DM_REASON_ROOM])
{
    struct dm_registers *registers = dm_registers_of(store);
    char where[DM_PLACE_ROOM];

    (void)place;
    (void)way;
    lock(registers);
    registers->driver->ops->place(registers->driver, where, sizeof where);
    if (registers->is_ready)
        snprintf(ret_reason, DM_REASON_ROOM, "%.90s gave no answer%s%.200s", where,
                 registers->down_reason[0] ? ": " : "", registers->down_reason);
    else
        snprintf(ret_reason, DM_REASON_ROOM, "%s%.90s%s%.200s", registers->is_final ? "" : "cannot reach ", where,
                 registers->down_reason[0] ? ": " : "", registers->down_reason);
    unlock(registers);
}

/* What a driver takes for final is its login, its rights, or what an admin must change there. */
static bool is_denied(struct dm_store *store)
{
    return is_useless(dm_registers_of(store));
}

/* Other data have another number.  1: there were none yet. */
static struct dm_origin origin(struct dm_store *store, const struct dm_place *place)
{
    struct dm_registers *registers = dm_registers_of(store);
    struct dm_origin origin = { .number = 1 };

    (void)place;
    lock(registers);
    if (registers->identity_number)
        origin.number = registers->identity_number;
    unlock(registers);
    return origin;
}

static void count(struct dm_store *store, struct dm_traffic *ret_traffic)
{
    struct dm_registers *registers = dm_registers_of(store);

    lock(registers);
    *ret_traffic = registers->traffic;
    unlock(registers);
}

/* ---- the loop thread --------------------------------------------------------------------- */

/* What was submitted is under way, and whoever polls must know, although the thread does not wait for the answer. */
static void work(struct dm_store *store)
{
    dm_registers_deliver(dm_registers_of(store));
}

/* The driver learns by itself when the data change. */
static int64_t look(struct dm_store *store)
{
    (void)store;
    return DM_NEVER;
}

static void note_look(struct dm_store *store, int64_t look_ns)
{
    (void)store;
    (void)look_ns;
}

static void watch(struct dm_store *store, struct dm_watch *watch)
{
    struct dm_registers *registers = dm_registers_of(store);
    bool is_needed = registers->host.is_in_need(registers->host.user, NULL);

    lock(registers);
    registers->is_needed = is_needed;
    if (is_needed && !registers->is_connected && !registers->is_ended)
        registers->driver->ops->want(registers->driver);
    dm_registers_watch(registers, watch);
    unlock(registers);
}

static void turn(struct dm_store *store)
{
    struct dm_registers *registers = dm_registers_of(store);

    lock(registers);
    dm_registers_work(registers);
    unlock(registers);
    dm_registers_deliver(registers);
}

/* ---- the end ----------------------------------------------------------------------------- */

/* Waits for what is owed, and with may_close for the end of the sessions. */
static void wait_for_owed(struct dm_registers *registers, const struct dm_deadline *deadline, bool may_close)
{
    bool is_over;

    lock(registers);
    registers->drains++;
    unlock(registers);
    do {
        lock(registers);
        registers->is_closing = may_close;
        dm_registers_run(registers);
        is_over = !registers->is_ready ||
                  (!dm_registers_is_owing(registers) && !(may_close && dm_registers_has_sessions(registers)));
        unlock(registers);
        dm_registers_deliver(registers);
        if (!is_over)
            dm_registers_sleep(registers, deadline, PTHREAD_CANCEL_DISABLE);
    } while (!is_over && dm_deadline_left_ns(deadline) > 0);
    lock(registers);
    registers->is_closing = false;
    registers->drains--;
    unlock(registers);
}

static void drain(struct dm_store *store, const struct dm_deadline *deadline)
{
    wait_for_owed(dm_registers_of(store), deadline, false);
}

/* Sessions that nothing refers to end here. */
static void leave(struct dm_store *store, const struct dm_deadline *deadline)
{
    wait_for_owed(dm_registers_of(store), deadline, true);
}

static void end(struct dm_store *store)
{
    struct dm_registers *registers = dm_registers_of(store);

    lock(registers);
    if (!registers->is_ended) {
        registers->is_connected = registers->is_ready = false;
        dm_registers_names_down(registers);
        registers->driver->ops->end(registers->driver);
        dm_registers_end_looks(registers);
        registers->is_ended = true;
        registers->is_final = true;
        dm_registers_wake_all(registers);
        dm_registers_close_bell(registers);
    }
    unlock(registers);
    dm_registers_deliver(registers);
}

static void fork_prepare(struct dm_store *store, enum dm_fork_stage stage)
{
    if (stage == DM_FORK_STORES)
        lock(dm_registers_of(store));
}

static void fork_parent(struct dm_store *store, enum dm_fork_stage stage)
{
    if (stage == DM_FORK_STORES)
        unlock(dm_registers_of(store));
}

/* The child has a store of its own with the next use; nothing here is touched again. */
static void fork_child(struct dm_store *store)
{
    struct dm_registers *registers = dm_registers_of(store);

    dm_mutex_reset(&registers->lock);
    registers->is_connected = registers->is_ready = false;
    registers->is_ended = registers->is_final = true;
    registers->driver->ops->forget(registers->driver);
    dm_bell_close(registers->bell);
    registers->bell = DM_BELL_GONE;
}

static void free_names(struct dm_registers *registers)
{
    for (unsigned i = 0; i < DM_REG_BUCKETS; i++) {
        while (registers->buckets[i]) {
            struct dm_reg_name *name = registers->buckets[i];

            registers->buckets[i] = name->next;
            while (name->tasks) {
                struct dm_reg_task *task = name->tasks;

                name->tasks = task->next;
                free(task->note);
                free(task->bind);
                free(task);
            }
            while (name->attempts) {
                struct dm_reg_attempt *attempt = name->attempts;

                name->attempts = attempt->next;
                free(attempt);
            }
            dm_reg_name_free_memory(name);
        }
    }
}

static void free_unused(struct dm_store *store)
{
    struct dm_registers *registers = dm_registers_of(store);

    registers->driver->ops->free_unused(registers->driver);
    free_names(registers);
    dm_reg_watch_clear(&registers->watch);
    while (registers->owns) {
        struct dm_reg_own *own = registers->owns;

        registers->owns = own->next;
        free(own);
    }
    while (registers->requests) {
        struct dm_reg_request *request = registers->requests;

        registers->requests = request->next;
        free(request);
    }
    dm_reg_look_free(registers->sweep.look);
    dm_watch_free(&registers->led);
    dm_watch_free(&registers->probe);
    dm_bell_close(registers->bell);
    free(registers);
}

static bool load(struct dm_store *store)
{
    struct dm_reg_driver *driver = dm_registers_of(store)->driver;

    return driver->ops->load(driver);
}

static const struct dm_store_ops ops = {
    .place = place,
    .lane = lane,
    .spread = spread,
    .ask = ask,
    .submit = submit,
    .view = view,
    .is_able = is_able,
    .want = want,
    .await_able = await_able,
    .sleep = sleep_working,
    .reason = reason,
    .is_denied = is_denied,
    .origin = origin,
    .count = count,
    .load = load,
    .work = work,
    .look = look,
    .watch = watch,
    .note_look = note_look,
    .turn = turn,
    .drain = drain,
    .leave = leave,
    .end = end,
    .fork_prepare = fork_prepare,
    .fork_parent = fork_parent,
    .fork_child = fork_child,
    .free_unused = free_unused,
};

/* The process's uuid as bytes. */
static void read_uuid(const char *text, uint8_t ret_uuid[DM_UUID_LENGTH / 2])
{
    for (int i = 0; i < DM_UUID_LENGTH / 2; i++) {
        unsigned byte = 0;

        sscanf(text + 2 * i, "%2x", &byte);
        ret_uuid[i] = (uint8_t)byte;
    }
}

/* NULL, or a store that lacks something. */
static void free_unopened(struct dm_registers *registers)
{
    if (!registers)
        return;
    if (registers->driver)
        registers->driver->ops->free_unused(registers->driver);
    dm_watch_free(&registers->led);
    dm_watch_free(&registers->probe);
    free(registers);
}

struct dm_store *dm_registers_open(const struct dm_ident *ident, const struct dm_host *host, dm_reg_make_fn *make,
                                   void *user, char ret_reason[DM_REASON_ROOM])
{
    struct dm_registers *registers = calloc(1, sizeof *registers);
    struct dm_reg_client client;

    if (!registers || !dm_watch_init(&registers->led) || !dm_watch_init(&registers->probe)) {
        free_unopened(registers);
        ret_reason[0] = '\0';
        return NULL;
    }
    registers->store.ops = &ops;
    registers->store.has_free_renewals = true;
    registers->lock = (struct dm_mutex)DM_MUTEX_INITIALIZER(DM_RANK_REGISTERS);
    registers->ident = ident;
    registers->host = *host;
    registers->bell = -1;
    registers->round_trip_ns = ROUND_TRIP_NS;
    registers->due_ns = registers->loop_due_ns = DM_NEVER;
    registers->last_batch = &registers->batches;
    registers->last_news = &registers->news;
    registers->last_request = &registers->requests;
    dm_reg_writer_init(&registers->writer);
    read_uuid(ident->uuid, registers->uuid);
    registers->chance = dm_reg_identity_number(ident->uuid);
    client = dm_registers_client(registers);
    registers->driver = make(user, &client, ret_reason);
    if (!registers->driver || !registers->driver->ops->listen(registers->driver, ident->uuid)) {
        free_unopened(registers);
        return NULL;
    }
    dm_reg_watch_init(&registers->watch, registers->driver->can.expires);
    return &registers->store;
}

void dm_registers_trust_data(struct dm_store *store)
{
    struct dm_registers *registers = (struct dm_registers *)store;

    registers->mark.is_trusting = true;
}
