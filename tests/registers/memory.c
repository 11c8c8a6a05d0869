/* SPDX-License-Identifier: BSD-2-Clause */
#include "memory.h"

#include <ctype.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/descriptor.h"
#include "base/units.h"

#define KEY_ROOM (DM_REG_KEY_MAX + 1)

/* ---- memory ------------------------------------------------------------------------------- */

/* All memory of a store is freed with the store: a request may outlive whoever sent it. */
struct piece {
    struct piece *next;
    int64_t bytes[];
};

struct entry {
    struct entry *next; /* by key */
    char key[KEY_ROOM];
    struct dm_reg_version version;
    uint64_t number; /* of the store's own; see repeats_versions */
    int64_t written_ns;
    uint8_t *value, *before; /* before: for reads_old */
    size_t size, before_size;
};

struct event {
    struct event *next; /* by time */
    int64_t when_ns;
    void (*what)(void *object, uint64_t number);
    void *object;
    uint64_t number;
};

enum kind { READ, SWAP, LIST };

struct item {
    char key[KEY_ROOM];
    struct dm_reg_version version;
    uint8_t *value;
    size_t size;
    struct tell *tells;
    int tell_count;
    bool is_late;

    struct dm_reg_reply reply;
};

struct tell {
    char inbox[KEY_ROOM];
    uint8_t *text;
    size_t size;
};

struct request {
    struct request *next; /* of the driver's, without an answer */
    struct driver *driver;
    enum kind kind;
    uint64_t ticket, connection, epoch;
    bool is_answered; /* or will not be */
    int count;
    struct item *items;
    char after[KEY_ROOM]; /* LIST; the prefix is the first item's key */
    int most;
    const char **keys;
    int key_count;
    bool is_last;
};

/* What has come for a driver, until its turn. */
struct arrival {
    struct arrival *next;
    enum { READY, DOWN, REPLY, TELL } kind;
    struct request *request;
    struct tell tell;
    uint64_t connection;
};

struct driver {
    struct dm_reg_driver driver; /* first */
    struct driver *next;
    struct memory *memory;
    struct dm_reg_client client;
    char inbox[KEY_ROOM];
    bool is_wanted, is_opening, is_ended;
    uint64_t at_server, at_client; /* the open connection, as each end knows it; 0: none */
    uint64_t epoch;                /* of the data that it was opened to */
    int64_t to_server_ns, to_client_ns;
    struct request *unanswered;
    struct arrival *arrivals, **last_arrival;
    int bell; /* rings while something has come */
};

struct memory {
    pthread_mutex_t lock; /* recursive: drivers of several threads share the store */
    struct memory_world world;
    struct memory_faults faults;
    struct memory_counts counts;
    struct piece *pieces;
    struct entry *entries, *copy;
    struct driver *drivers;
    struct event *events;
    uint64_t epoch, epochs, connections, numbers;
    int64_t down_until_ns, stalled_until_ns;
    uint64_t chance;
    void (*on_swap)(void *user, const char *key, const void *old_value, size_t old_size, const void *value,
                    size_t size);
    void *swap_user;
};

static void *take(struct memory *memory, size_t size)
{
    struct piece *piece = calloc(1, sizeof *piece + size);

    if (!piece)
        abort();
    piece->next = memory->pieces;
    memory->pieces = piece;
    return piece->bytes;
}

static uint8_t *take_copy(struct memory *memory, const void *bytes, size_t size)
{
    uint8_t *copy = take(memory, size + 1);

    if (size)
        memcpy(copy, bytes, size);
    return copy;
}

static struct driver *driver_of(struct dm_reg_driver *driver)
{
    return (struct driver *)(void *)driver;
}

/* The order of locks is that of calls: a client's own lock comes first. */
static void lock(struct memory *memory)
{
    pthread_mutex_lock(&memory->lock);
}

static void unlock(struct memory *memory)
{
    pthread_mutex_unlock(&memory->lock);
}

/* ---- time and chance ---------------------------------------------------------------------- */

static int64_t now_ns(const struct memory *memory)
{
    return memory->world.now_ns ? memory->world.now_ns() : dm_clock_boot_ns();
}

static bool happens(struct memory *memory, unsigned one_in)
{
    if (one_in == 0)
        return false;
    if (memory->world.chance)
        return memory->world.chance() % one_in == 0;
    memory->chance ^= memory->chance << 13;
    memory->chance ^= memory->chance >> 7;
    memory->chance ^= memory->chance << 17;
    return (memory->chance >> 16) % one_in == 0;
}

/* Without a world, events wait for the turn of any driver. */
static void plan(struct memory *memory, int64_t when_ns, void (*what)(void *object, uint64_t number), void *object)
{
    struct event **at = &memory->events, *event;

    if (memory->world.at) {
        memory->world.at(when_ns, what, object, 0);
        return;
    }
    event = take(memory, sizeof *event);
    *event = (struct event){ .when_ns = when_ns, .what = what, .object = object };
    while (*at && (*at)->when_ns <= when_ns)
        at = &(*at)->next;
    event->next = *at;
    *at = event;
}

static void run_events(struct memory *memory)
{
    while (memory->events && memory->events->when_ns <= now_ns(memory)) {
        struct event *event = memory->events;

        memory->events = event->next;
        event->what(event->object, event->number);
    }
}

/* One direction of a connection keeps its order. */
static int64_t arrival_ns(struct memory *memory, int64_t *last_ns)
{
    int64_t when_ns = now_ns(memory) + (memory->world.delay_ns ? memory->world.delay_ns() : 0);

    *last_ns = when_ns > *last_ns ? when_ns : *last_ns;
    return *last_ns;
}

/* ---- data --------------------------------------------------------------------------------- */

static void fold(const struct memory *memory, const char *key, char ret_key[KEY_ROOM])
{
    snprintf(ret_key, KEY_ROOM, "%s", key);
    for (char *at = ret_key; *at && memory->faults.folds_keys; at++)
        *at = (char)tolower((unsigned char)*at);
}

/* The key's entry, or where it would stand. */
static struct entry **find(struct memory *memory, const char *key)
{
    struct entry **at = &memory->entries;

    while (*at && strcmp((*at)->key, key) < 0)
        at = &(*at)->next;
    return at;
}

static struct entry *get(struct memory *memory, const char *key)
{
    struct entry *entry = *find(memory, key);

    return entry && strcmp(entry->key, key) == 0 ? entry : NULL;
}

static struct dm_reg_version version_of(const struct memory *memory, const struct entry *entry)
{
    struct dm_reg_version version = { 0 };

    if (!entry || !memory->faults.repeats_versions)
        return entry ? entry->version : version;
    memcpy(version.bytes, &entry->number, sizeof entry->number);
    return version;
}

static void write_entry(struct memory *memory, struct item *item)
{
    struct entry **at = find(memory, item->key), *entry = get(memory, item->key);

    if (memory->on_swap)
        memory->on_swap(memory->swap_user, item->key, entry ? entry->value : NULL, entry ? entry->size : 0, item->value,
                        item->size);
    if (item->size == 0) {
        if (entry)
            *at = entry->next;
        return;
    }
    if (!entry) {
        entry = take(memory, sizeof *entry);
        snprintf(entry->key, sizeof entry->key, "%s", item->key);
        entry->next = *at;
        *at = entry;
    }
    entry->before = entry->value;
    entry->before_size = entry->size;
    entry->value = item->value;
    entry->size = item->size;
    entry->number++;
    entry->written_ns = now_ns(memory);
    memcpy(entry->version.bytes, item->value, sizeof entry->version.bytes);
}

/* ---- execution ---------------------------------------------------------------------------- */

static void show(struct memory *memory, struct item *item, const struct entry *entry,
                 const struct dm_reg_version *known)
{
    struct dm_reg_reply *reply = &item->reply;
    bool is_old = memory->faults.reads_old && entry && entry->before && happens(memory, 3);

    reply->version = version_of(memory, entry);
    reply->clock_us = INT64_C(1790000000000000) + now_ns(memory) / 1000;
    reply->age_ms = entry ? (now_ns(memory) - entry->written_ns) / DM_NS_PER_MS : -1;
    if (memory->faults.has_no_ages)
        reply->age_ms = -1;
    if (entry && memory->faults.has_high_ages)
        reply->age_ms += 1000;
    if (known && !is_old && dm_reg_version_equals(&reply->version, known) && !dm_reg_version_is_absent(known)) {
        reply->outcome = DM_REG_SAME;
        return;
    }
    reply->has_value = true;
    reply->value = !entry ? NULL : is_old ? entry->before : entry->value;
    reply->size = !entry ? 0 : is_old ? entry->before_size : entry->size;
    if (is_old)
        memcpy(reply->version.bytes, entry->before, sizeof reply->version.bytes);
}

static void come(struct driver *driver, struct arrival *arrival);

static void tell_comes(void *object, uint64_t number)
{
    struct arrival *arrival = object;
    struct driver *driver = arrival->request->driver;

    (void)number;
    for (driver = driver->memory->drivers; driver; driver = driver->next) {
        if (strcmp(driver->inbox, arrival->tell.inbox) == 0 && driver->at_server == arrival->connection) {
            struct arrival *copy = take(driver->memory, sizeof *copy);

            *copy = *arrival;
            copy->next = NULL;
            come(driver, copy);
        }
    }
}

static void tell_one(struct memory *memory, struct request *request, const struct tell *tell)
{
    int times = happens(memory, memory->faults.tell_lost) ? 0 : happens(memory, memory->faults.tell_doubled) ? 2 : 1;

    for (struct driver *to = memory->faults.has_no_tells ? NULL : memory->drivers; to; to = to->next) {
        if (!to->at_server || strcmp(to->inbox, tell->inbox) != 0)
            continue;
        for (int i = 0; i < times; i++) {
            struct arrival *arrival = take(memory, sizeof *arrival);

            *arrival = (struct arrival){ .kind = TELL, .request = request, .tell = *tell, .connection = to->at_server };
            memory->counts.tells++;
            plan(memory, arrival_ns(memory, &to->to_client_ns), tell_comes, arrival);
        }
    }
}

static void swap_item(struct memory *memory, struct request *request, struct item *item)
{
    struct entry *entry = get(memory, item->key);
    struct dm_reg_version version = version_of(memory, entry);
    const struct memory_faults *faults = &memory->faults;
    bool is_other_data = request->epoch != memory->epoch && !faults->is_not_bound;
    bool fits = dm_reg_version_equals(&version, &item->version) || (faults->is_not_atomic && happens(memory, 5));

    memory->counts.swaps++;
    if (is_other_data) {
        item->reply.outcome = DM_REG_UNKNOWN;
        return;
    }
    if (item->size > MEMORY_VALUE_MAX) {
        item->reply.outcome = DM_REG_TOO_LARGE;
        return;
    }
    if (faults->is_full && item->size > 0) {
        item->reply.outcome = DM_REG_REFUSED;
        item->reply.reason = "the memory is full";
        return;
    }
    item->reply.outcome = fits ? DM_REG_DONE : DM_REG_CONFLICT;
    if (fits) {
        write_entry(memory, item);
        version = version_of(memory, get(memory, item->key));
        item->reply.version = version;
    } else {
        memory->counts.conflicts++;
        if (!happens(memory, faults->poor))
            show(memory, item, entry, NULL);
        if (faults->brings_old && entry && entry->before) {
            item->reply.value = entry->before;
            item->reply.size = entry->before_size;
            memcpy(item->reply.version.bytes, entry->before, sizeof item->reply.version.bytes);
        }
        item->reply.outcome = DM_REG_CONFLICT;
    }
    for (int i = 0; i < item->tell_count && (fits || faults->tells_always); i++)
        tell_one(memory, request, &item->tells[i]);
}

static void execute_late(void *object, uint64_t number)
{
    struct request *request = object;
    struct memory *memory = request->driver->memory;

    (void)number;
    for (int i = 0; i < request->count; i++) {
        if (request->items[i].is_late) {
            request->items[i].is_late = false;
            swap_item(memory, request, &request->items[i]);
        }
    }
}

static bool may_be_late(const struct memory_faults *faults, const struct item *item)
{
    return !faults->late_of || strncmp(item->key, faults->late_of, strlen(faults->late_of)) == 0;
}

/* A swap may be late alone: the others of its request are executed in their order. */
static void execute_item(struct memory *memory, struct request *request, struct item *item)
{
    const struct memory_faults *faults = &memory->faults;

    item->reply.age_ms = -1;
    if (request->kind == READ) {
        memory->counts.reads++;
        item->reply.outcome = DM_REG_DONE;
        show(memory, item, get(memory, item->key), &item->version);
    } else if (may_be_late(faults, item) && happens(memory, faults->late)) {
        struct request *late = take(memory, sizeof *late);

        *late = *request;
        late->items = take(memory, sizeof *late->items);
        late->items[0] = *item;
        late->items[0].is_late = true;
        late->count = 1;
        late->is_answered = true;
        memory->counts.late++;
        plan(memory,
             now_ns(memory) + (int64_t)(memory->world.chance ? memory->world.chance() : 1) % faults->late_most_ns,
             execute_late, late);
        item->reply.outcome = DM_REG_UNKNOWN;
    } else if (happens(memory, faults->lost)) {
        item->reply.outcome = DM_REG_UNKNOWN;
    } else {
        swap_item(memory, request, item);
    }
    if (happens(memory, faults->unanswered))
        item->reply = (struct dm_reg_reply){ .outcome = DM_REG_UNKNOWN, .age_ms = -1 };
    memory->counts.unknown += item->reply.outcome == DM_REG_UNKNOWN;
}

static void list_keys(struct memory *memory, struct request *request)
{
    const char *prefix = request->items[0].key;
    size_t length = strlen(prefix);

    request->keys = take(memory, (size_t)(request->most + 1) * sizeof request->keys[0]);
    request->is_last = true;
    for (const struct entry *entry = memory->entries; entry; entry = entry->next) {
        if (strncmp(entry->key, prefix, length) != 0 || strcmp(entry->key, request->after) <= 0)
            continue;
        if (request->key_count == request->most) {
            request->is_last = false;
            return;
        }
        request->keys[request->key_count++] = (char *)take_copy(memory, entry->key, strlen(entry->key));
    }
}

static void reply_comes(void *object, uint64_t number)
{
    struct request *request = object;
    struct driver *driver = request->driver;
    struct arrival *arrival;

    (void)number;
    if (driver->at_server != request->connection)
        return;
    arrival = take(driver->memory, sizeof *arrival);
    *arrival = (struct arrival){ .kind = REPLY, .request = request, .connection = request->connection };
    come(driver, arrival);
}

/* After a break, what is still on its way is executed or not, by chance, and in any case not answered. */
static void execute(void *object, uint64_t number)
{
    struct request *request = object;
    struct memory *memory = request->driver->memory;

    (void)number;
    if (now_ns(memory) < memory->stalled_until_ns) {
        plan(memory, memory->stalled_until_ns, execute, request);
        return;
    }
    if (request->driver->at_server != request->connection && happens(memory, 2))
        return;
    for (int i = 0; request->kind != LIST && i < request->count; i++)
        execute_item(memory, request, &request->items[i]);
    if (request->kind == LIST)
        list_keys(memory, request);
    plan(memory, arrival_ns(memory, &request->driver->to_client_ns), reply_comes, request);
}

/* ---- the driver: what comes ---------------------------------------------------------------- */

static void come(struct driver *driver, struct arrival *arrival)
{
    *driver->last_arrival = arrival;
    driver->last_arrival = &arrival->next;
    if (driver->bell >= 0)
        dm_bell_ring(&driver->bell);
}

static void take_out(struct request *request)
{
    struct request **at = &request->driver->unanswered;

    while (*at && *at != request)
        at = &(*at)->next;
    if (*at)
        *at = request->next;
}

static void answer(struct request *request, bool is_broken)
{
    struct driver *driver = request->driver;
    const struct dm_reg_reply unknown = { .outcome = DM_REG_UNKNOWN, .age_ms = -1, .reason = "the connection broke" };

    if (request->is_answered)
        return;
    request->is_answered = true;
    take_out(request);
    if (request->kind == LIST) {
        driver->client.on_list(driver->client.user, request->ticket, request->keys, is_broken ? -1 : request->key_count,
                               request->is_last, is_broken ? unknown.reason : NULL);
        return;
    }
    for (int i = 0; i < request->count; i++) {
        for (int times = driver->memory->faults.answers_twice ? 2 : 1; times > 0; times--)
            driver->client.on_reply(driver->client.user, request->ticket, i,
                                    is_broken ? &unknown : &request->items[i].reply);
    }
}

static void write_identity(uint64_t epoch, char ret_identity[DM_REG_IDENTITY_ROOM])
{
    snprintf(ret_identity, DM_REG_IDENTITY_ROOM, "memory-%llu", (unsigned long long)epoch);
}

static void become_ready(struct driver *driver, uint64_t connection)
{
    char identity[DM_REG_IDENTITY_ROOM];

    if (driver->at_server != connection)
        return;
    driver->at_client = connection;
    write_identity(driver->epoch, identity);
    driver->client.on_ready(driver->client.user, identity);
    if (*driver->inbox && driver->driver.can.has_tells)
        driver->client.on_inbox(driver->client.user, true);
}

static void open_again(struct driver *driver);

static void become_down(struct driver *driver)
{
    if (!driver->at_client) { /* it broke before the driver knew that it was open */
        open_again(driver);
        return;
    }
    driver->at_client = 0;
    while (driver->unanswered)
        answer(driver->unanswered, true);
    if (*driver->inbox && driver->driver.can.has_tells)
        driver->client.on_inbox(driver->client.user, false);
    driver->client.on_down(driver->client.user, "the connection to the memory broke", false);
    open_again(driver);
}

static void turn(struct dm_reg_driver *dm_driver)
{
    struct driver *driver = driver_of(dm_driver);

    lock(driver->memory);
    run_events(driver->memory);
    if (driver->bell >= 0)
        dm_bell_answer(&driver->bell);
    while (driver->arrivals) {
        struct arrival *arrival = driver->arrivals;

        driver->arrivals = arrival->next;
        if (!driver->arrivals)
            driver->last_arrival = &driver->arrivals;
        if (arrival->kind == READY)
            become_ready(driver, arrival->connection);
        else if (arrival->kind == DOWN)
            become_down(driver);
        else if (driver->at_client != arrival->connection || driver->is_ended)
            continue;
        else if (arrival->kind == REPLY)
            answer(arrival->request, false);
        else
            driver->client.on_tell(driver->client.user, arrival->tell.text, arrival->tell.size);
    }
    unlock(driver->memory);
}

/* The server's clock may be days ahead of ours. */
static void watch(struct dm_reg_driver *dm_driver, struct dm_watch *watch)
{
    struct driver *driver = driver_of(dm_driver);
    int64_t our_ns = dm_clock_boot_ns();

    lock(driver->memory);
    dm_watch_poll(watch, driver->bell, POLLIN);
    if (driver->memory->events)
        dm_watch_until(watch, our_ns + driver->memory->events->when_ns - now_ns(driver->memory));
    unlock(driver->memory);
}

/* ---- the driver: the connection ------------------------------------------------------------- */

static void opened(void *object, uint64_t number)
{
    struct driver *driver = object;
    struct memory *memory = driver->memory;
    struct arrival *arrival;

    (void)number;
    if (now_ns(memory) < memory->down_until_ns) {
        plan(memory, memory->down_until_ns, opened, driver);
        return;
    }
    driver->is_opening = false;
    if (!driver->is_wanted || driver->is_ended || driver->at_server)
        return;
    driver->at_server = ++memory->connections;
    driver->epoch = memory->epoch;
    arrival = take(memory, sizeof *arrival);
    *arrival = (struct arrival){ .kind = READY, .connection = driver->at_server };
    come(driver, arrival);
}

static void open_again(struct driver *driver)
{
    if (driver->is_opening || driver->at_server || !driver->is_wanted || driver->is_ended)
        return;
    driver->is_opening = true;
    plan(driver->memory, arrival_ns(driver->memory, &driver->to_server_ns), opened, driver);
}

static void want(struct dm_reg_driver *driver)
{
    lock(driver_of(driver)->memory);
    driver_of(driver)->is_wanted = true;
    open_again(driver_of(driver));
    unlock(driver_of(driver)->memory);
}

static void rest(struct dm_reg_driver *dm_driver)
{
    struct driver *driver = driver_of(dm_driver);

    lock(driver->memory);
    driver->is_wanted = false;
    driver->at_server = driver->at_client = 0;
    while (driver->unanswered)
        answer(driver->unanswered, true);
    unlock(driver->memory);
}

static void end(struct dm_reg_driver *dm_driver)
{
    struct driver *driver = driver_of(dm_driver);

    lock(driver->memory);
    driver->is_ended = true;
    driver->is_wanted = false;
    driver->at_server = driver->at_client = 0;
    unlock(driver->memory);
}

/* In a child: the parent goes on with its own copy. */
static void forget(struct dm_reg_driver *dm_driver)
{
    struct driver *driver = driver_of(dm_driver);

    end(dm_driver);
    dm_bell_close(driver->bell);
    driver->bell = -1;
}

/* ---- the driver: requests ------------------------------------------------------------------ */

static struct request *make_request(struct driver *driver, enum kind kind, uint64_t ticket, int count)
{
    struct request *request = take(driver->memory, sizeof *request);

    request->driver = driver;
    request->kind = kind;
    request->ticket = ticket;
    request->connection = driver->at_client;
    request->epoch = driver->epoch;
    request->count = count;
    request->items = take(driver->memory, (size_t)count * sizeof request->items[0]);
    return request;
}

static void send_request(struct request *request)
{
    struct request **at = &request->driver->unanswered;

    while (*at)
        at = &(*at)->next;
    *at = request;
    plan(request->driver->memory, arrival_ns(request->driver->memory, &request->driver->to_server_ns), execute,
         request);
}

static void fill_item(struct memory *memory, struct item *to, const struct dm_reg_item *item)
{
    fold(memory, item->key, to->key);
    to->version = item->version;
    to->value = take_copy(memory, item->value, item->size);
    to->size = item->size;
    to->tell_count = item->tell_count;
    to->tells = take(memory, (size_t)item->tell_count * sizeof to->tells[0]);
    for (int i = 0; i < item->tell_count; i++) {
        snprintf(to->tells[i].inbox, KEY_ROOM, "%s", item->tells[i].inbox);
        to->tells[i].text = take_copy(memory, item->tells[i].text, item->tells[i].size);
        to->tells[i].size = item->tells[i].size;
    }
}

static bool ask(struct dm_reg_driver *dm_driver, enum kind kind, uint64_t ticket, const struct dm_reg_item *items,
                int count)
{
    struct driver *driver = driver_of(dm_driver);
    struct request *request;

    lock(driver->memory);
    if (!driver->at_client) {
        unlock(driver->memory);
        return false;
    }
    driver->memory->counts.calls++;
    request = make_request(driver, kind, ticket, count);
    for (int i = 0; i < count; i++) {
        fill_item(driver->memory, &request->items[i], &items[i]);
        if (kind == READ) {
            request->items[i].size = 0;
            request->items[i].tell_count = 0;
        }
    }
    send_request(request);
    unlock(driver->memory);
    return true;
}

static bool read_items(struct dm_reg_driver *driver, uint64_t ticket, const struct dm_reg_item *items, int count)
{
    return ask(driver, READ, ticket, items, count);
}

static bool swap_items(struct dm_reg_driver *driver, uint64_t ticket, const struct dm_reg_item *items, int count)
{
    return ask(driver, SWAP, ticket, items, count);
}

static bool list(struct dm_reg_driver *dm_driver, uint64_t ticket, const char *prefix, const char *after, int most)
{
    struct driver *driver = driver_of(dm_driver);
    struct request *request;

    lock(driver->memory);
    if (!driver->at_client) {
        unlock(driver->memory);
        return false;
    }
    driver->memory->counts.calls++;
    request = make_request(driver, LIST, ticket, 1);
    fold(driver->memory, prefix, request->items[0].key);
    fold(driver->memory, after, request->after);
    request->most = most;
    send_request(request);
    unlock(driver->memory);
    return true;
}

static bool listen_at(struct dm_reg_driver *driver, const char *inbox)
{
    snprintf(driver_of(driver)->inbox, KEY_ROOM, "%s", inbox);
    return true;
}

static void place(struct dm_reg_driver *driver, char *ret_text, size_t room)
{
    (void)driver;
    snprintf(ret_text, room, "the memory");
}

static void free_unused(struct dm_reg_driver *driver)
{
    end(driver);
}

static size_t stack(const struct dm_reg_driver *driver)
{
    (void)driver;
    return 0;
}

static bool load(struct dm_reg_driver *driver)
{
    (void)driver;
    return true;
}

static const struct dm_reg_driver_ops ops = {
    .want = want,
    .rest = rest,
    .read = read_items,
    .swap = swap_items,
    .list = list,
    .listen = listen_at,
    .watch = watch,
    .turn = turn,
    .stack = stack,
    .load = load,
    .place = place,
    .end = end,
    .forget = forget,
    .free_unused = free_unused,
};

/* ---- the server ---------------------------------------------------------------------------- */

struct memory *memory_new(const struct memory_world *world)
{
    struct memory *memory = calloc(1, sizeof *memory);
    pthread_mutexattr_t recursive;

    if (!memory)
        abort();
    pthread_mutexattr_init(&recursive);
    pthread_mutexattr_settype(&recursive, PTHREAD_MUTEX_RECURSIVE);
    pthread_mutex_init(&memory->lock, &recursive);
    pthread_mutexattr_destroy(&recursive);
    if (world)
        memory->world = *world;
    memory->chance = UINT64_C(0x9e3779b97f4a7c15);
    memory->epoch = memory->epochs = 1;
    memory->faults.late_most_ns = 1;
    return memory;
}

void memory_free(struct memory *memory)
{
    for (const struct driver *driver = memory->drivers; driver; driver = driver->next)
        dm_bell_close(driver->bell);
    pthread_mutex_destroy(&memory->lock);
    while (memory->pieces) {
        struct piece *piece = memory->pieces;

        memory->pieces = piece->next;
        free(piece);
    }
    free(memory);
}

struct memory_faults *memory_faults(struct memory *memory)
{
    return &memory->faults;
}

const struct memory_counts *memory_counts(const struct memory *memory)
{
    return &memory->counts;
}

struct dm_reg_driver *memory_open(struct memory *memory, const struct dm_reg_client *client)
{
    struct driver *driver;

    lock(memory);
    driver = take(memory, sizeof *driver);
    driver->driver.ops = &ops;
    driver->driver.can = (struct dm_reg_abilities){ .has_tells = !memory->faults.has_no_tells,
                                                    .has_ages = !memory->faults.has_no_ages,
                                                    .has_lists = true,
                                                    .value_max = MEMORY_VALUE_MAX,
                                                    .lease_ms_min = 100 };
    driver->memory = memory;
    driver->client = *client;
    driver->last_arrival = &driver->arrivals;
    driver->bell = dm_bell_open();
    driver->next = memory->drivers;
    memory->drivers = driver;
    unlock(memory);
    return &driver->driver;
}

static void cut_one(struct driver *driver)
{
    struct arrival *arrival;

    if (!driver->at_server)
        return;
    driver->at_server = 0;
    arrival = take(driver->memory, sizeof *arrival);
    arrival->kind = DOWN;
    come(driver, arrival);
}

void memory_cut(struct memory *memory, struct dm_reg_driver *driver)
{
    lock(memory);
    for (struct driver *each = memory->drivers; each; each = each->next) {
        if (!driver || each == driver_of(driver))
            cut_one(each);
    }
    unlock(memory);
}

void memory_stall(struct memory *memory, int64_t until_ns)
{
    memory->stalled_until_ns = until_ns;
}

static struct entry *copy_entries(struct memory *memory, const struct entry *entries)
{
    struct entry *copy = NULL, **last = &copy;

    for (; entries; entries = entries->next) {
        *last = take(memory, sizeof **last);
        **last = *entries;
        (*last)->next = NULL;
        last = &(*last)->next;
    }
    return copy;
}

void memory_copy(struct memory *memory)
{
    memory->copy = copy_entries(memory, memory->entries);
}

void memory_restart(struct memory *memory, enum memory_data data, int64_t until_ns)
{
    memory->down_until_ns = until_ns;
    memory->stalled_until_ns = 0;
    memory_cut(memory, NULL);
    if (data == MEMORY_LOSES)
        memory->entries = NULL;
    if (data == MEMORY_BRINGS_COPY)
        memory->entries = copy_entries(memory, memory->copy);
    if (data != MEMORY_KEEPS && !memory->faults.forgets_epoch)
        memory->epoch = ++memory->epochs;
}

void memory_wipe(struct memory *memory)
{
    memory->entries = NULL;
}

void memory_identity(const struct memory *memory, char ret_identity[DM_REG_IDENTITY_ROOM])
{
    write_identity(memory->epoch, ret_identity);
}

void memory_put(struct memory *memory, const char *key, const void *value, size_t size)
{
    struct item item = { .size = size };

    lock(memory);
    snprintf(item.key, sizeof item.key, "%s", key);
    item.value = take_copy(memory, value, size);
    write_entry(memory, &item);
    unlock(memory);
}

void memory_execute_late(struct memory *memory)
{
    for (struct event *event = memory->events; event; event = event->next) {
        if (event->what == execute_late)
            event->what(event->object, 0);
    }
}

void memory_each(struct memory *memory, void (*handler)(void *user, const char *key, const void *value, size_t size),
                 void *user)
{
    lock(memory);
    for (const struct entry *entry = memory->entries; entry; entry = entry->next)
        handler(user, entry->key, entry->value, entry->size);
    unlock(memory);
}

void memory_watch(struct memory *memory,
                  void (*handler)(void *user, const char *key, const void *old_value, size_t old_size,
                                  const void *value, size_t size),
                  void *user)
{
    memory->on_swap = handler;
    memory->swap_user = user;
}
