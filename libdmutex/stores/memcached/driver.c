/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * One connection to memcached 1.6.  What is asked while a group of commands is under way goes in
 * the next group, in one write.
 *
 * A swap compares the CAS number of memcached, not our version: the driver keeps the numbers of the versions that it
 * has seen on this connection, and else looks first.  A CAS number is good on its connection only, because a server
 * that starts again counts from 1.
 *
 * memcached forgets everything when it ends or is flushed.  So each group ends with a look at the epoch, a random key:
 * if it is still there and the same, no flush was before it, and what the group has read and written was of these data.
 * Else nothing of the group is believed.
 *
 * Keys: PREFIX:r/KEY a register; PREFIX:epoch.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/clock.h"
#include "base/ident.h"
#include "link/dial.h"
#include "link/retry.h"
#include "stores/memcached/answer.h"
#include "stores/memcached/open.h"

#define KEY_MOST 250 /* of memcached */
#define VALUE_MOST ((size_t)384 * 1024)
#define ITEM_MOST_MIN 8192 /* the limit of the server for an item must be no less; with the item's own header: */
#define ITEM_HEADER 1024
#define SESSION_TTL_S 86400 /* sessions are written every third of their lease, an hour at most */
#define GROUP_MOST 32
#define GROUP_BYTES ((size_t)1024 * 1024)
#define RECEIVES_MOST 16
#define BYTES_KEPT ((size_t)64 * 1024)
#define SEEN_COUNT 512
#define LEASE_MIN_MS 1000
#define LOOK_TICK_NS (200 * DM_NS_PER_MS) /* for the thread that connects, if its bell is lost */
#define EPOCH_LENGTH 32

#define NO_MEMORY "out of memory storing object"

/* What comes next on the connection. */
enum phase { RESTING, PAUSING, CONNECTING, GREETING, READY, ENDED };

/* The answer that a greeting waits for; NEW_EPOCH, then EPOCH again, if there is none. */
enum greeting { VERSION, SETTINGS, EPOCH, NEW_EPOCH };

enum verb { GET, ADD, CAS, DELETE };

/* One key to be read or swapped. */
struct item {
    struct item *next;
    uint64_t ticket;
    int index;
    bool is_swap, is_large; /* large: the new value is longer than can.value_max */
    enum verb verb;         /* with which it has been sent */
    uint64_t cas;           /* a look has found that the value is the expected one */
    char key[KEY_MOST + 1];
    struct dm_reg_version version; /* read: known; swap: expected */
    struct dm_bytes value;         /* swap: the new one; of size 0: the key is deleted */
    bool is_written;               /* its first answer has come: */
    enum dm_memcached_code written;
    char refusal[120];
    struct dm_memcached_answer answer; /* the last one */
    struct dm_bytes got;               /* the value in it */
};

/* The CAS number of a version on this connection. */
struct seen {
    struct dm_reg_version version;
    uint64_t cas;
};

struct memcached {
    struct dm_reg_driver driver;
    struct dm_reg_client client;
    const struct dm_url *url;

    enum phase phase;
    enum greeting greeting;
    struct dm_retry retry;
    struct dm_dial *dial;
    struct dm_stream stream;
    struct dm_bytes out, in;
    size_t sent;      /* of `out` */
    int64_t asked_ns; /* when what is under way was sent */
    char epoch[EPOCH_LENGTH + 1];
    bool may_evict, is_warned, has_drawn;

    struct item *waiting, **waiting_end;
    struct item *group[GROUP_MOST]; /* under way, in the order of their answers; the epoch comes after them */
    int group_count, answer_count;

    bool is_doomed, is_final;
    char doom[DM_REG_REASON_ROOM]; /* why the connection ends with this turn */
    struct seen seen[SEEN_COUNT];
    char room[16 * 1024];
};

static struct memcached *memcached_of(struct dm_reg_driver *driver)
{
    return (struct memcached *)(void *)driver;
}

static void describe(const struct memcached *memcached, char *ret_text, size_t room)
{
    dm_url_describe(memcached->url, ret_text, room);
}

static void doom(struct memcached *memcached, bool is_final, const char *format, ...) DM_PRINTF(3, 4);

static void doom(struct memcached *memcached, bool is_final, const char *format, ...)
{
    va_list arguments;

    if (memcached->is_doomed)
        return;
    va_start(arguments, format);
    vsnprintf(memcached->doom, sizeof memcached->doom, format, arguments);
    va_end(arguments);
    dm_text_clean(memcached->doom);
    memcached->is_doomed = true;
    memcached->is_final = is_final;
}

/* ---- versions that have been seen ---------------------------------------------------------- */

/* The number of a version is random but for its end, where a writer counts. */
static struct seen *seen_of(struct memcached *memcached, const struct dm_reg_version *version)
{
    unsigned sum = 0;

    for (int i = 0; i < DM_REG_VERSION_SIZE; i++)
        sum = sum * 31 + version->bytes[i];
    return &memcached->seen[sum % SEEN_COUNT];
}

static void note_cas(struct memcached *memcached, const struct dm_reg_version *version, uint64_t cas)
{
    *seen_of(memcached, version) = (struct seen){ *version, cas };
}

/* 0: not known.  The numbers of different keys differ, too. */
static uint64_t find_cas(struct memcached *memcached, const struct dm_reg_version *version)
{
    const struct seen *seen = seen_of(memcached, version);

    return dm_reg_version_equals(&seen->version, version) ? seen->cas : 0;
}

/* ---- items --------------------------------------------------------------------------------- */

static void free_item(struct item *item)
{
    dm_bytes_free(&item->value);
    dm_bytes_free(&item->got);
    free(item);
}

/* A key that is too long is cut, and ends with two hashes of the whole. */
static void write_key(const struct memcached *memcached, const char *key, char ret_key[KEY_MOST + 1])
{
    int length = snprintf(ret_key, KEY_MOST + 1, "%s:r/%s", memcached->url->prefix, key);
    uint64_t first = dm_reg_identity_number(key), second = first;

    if (length <= KEY_MOST)
        return;
    for (const char *at = key + strlen(key); at > key; at--)
        second = (second ^ (uint8_t)at[-1]) * UINT64_C(0x100000001b3);
    snprintf(ret_key + KEY_MOST - 34, 35, "~~%016" PRIx64 "%016" PRIx64, first, second);
}

static struct item *make_item(const struct memcached *memcached, const struct dm_reg_item *asked, bool is_swap)
{
    struct item *item = calloc(1, sizeof *item);

    if (!item)
        return NULL;
    write_key(memcached, asked->key, item->key);
    item->version = asked->version;
    item->is_swap = is_swap;
    item->is_large = is_swap && asked->size > memcached->driver.can.value_max;
    if (is_swap && !item->is_large)
        dm_bytes_add(&item->value, asked->value, asked->size);
    if (!item->value.is_short)
        return item;
    free_item(item);
    return NULL;
}

static struct item *take_waiting(struct memcached *memcached)
{
    struct item *item = memcached->waiting;

    if (item)
        memcached->waiting = item->next;
    if (!memcached->waiting)
        memcached->waiting_end = &memcached->waiting;
    return item;
}

static void free_items(struct item *items)
{
    while (items) {
        struct item *item = items;

        items = item->next;
        free_item(item);
    }
}

/* The items go out with the next turn.  False: none of them, because there is no connection, or no memory. */
static bool enqueue(struct memcached *memcached, uint64_t ticket, const struct dm_reg_item *items, int count,
                    bool is_swap)
{
    struct item *first = NULL, **end = &first;

    if (memcached->phase != READY || memcached->is_doomed)
        return false;
    for (int i = 0; i < count; i++) {
        struct item *item = make_item(memcached, &items[i], is_swap);

        if (!item) {
            free_items(first);
            return false;
        }
        item->ticket = ticket;
        item->index = i;
        *end = item;
        end = &item->next;
    }
    if (first) {
        *memcached->waiting_end = first;
        memcached->waiting_end = end;
    }
    return true;
}

static void reply(struct memcached *memcached, const struct item *item, enum dm_reg_outcome outcome, const char *reason)
{
    const struct dm_reg_reply answer = { .outcome = outcome, .age_ms = -1, .reason = reason };

    memcached->client.on_reply(memcached->client.user, item->ticket, item->index, &answer);
}

/* ---- the end of the connection ------------------------------------------------------------- */

static void close_connection(struct memcached *memcached)
{
    if (memcached->dial)
        dm_dial_abandon(memcached->dial);
    memcached->dial = NULL;
    if (memcached->stream.fd >= 0)
        dm_stream_close(&memcached->stream);
    dm_bytes_free(&memcached->out);
    dm_bytes_free(&memcached->in);
    memcached->sent = 0;
    memset(memcached->seen, 0, sizeof memcached->seen);
    memcached->is_doomed = false;
}

/* What has been sent may be executed, or still will be. */
static void give_up_items(struct memcached *memcached, const char *reason)
{
    struct item *items[GROUP_MOST], *item;
    int count = memcached->group_count;

    memcpy(items, memcached->group, sizeof items);
    memcached->group_count = memcached->answer_count = 0;
    for (int i = 0; i < count; i++) {
        reply(memcached, items[i], DM_REG_UNKNOWN, reason);
        free_item(items[i]);
    }
    while ((item = take_waiting(memcached))) {
        reply(memcached, item, DM_REG_UNKNOWN, reason);
        free_item(item);
    }
}

static void break_off(struct memcached *memcached)
{
    char reason[DM_REG_REASON_ROOM];

    memcpy(reason, memcached->doom, sizeof reason);
    close_connection(memcached);
    memcached->phase = PAUSING;
    dm_retry_note_failure(&memcached->retry, dm_clock_boot_ns());
    give_up_items(memcached, reason);
    memcached->client.on_down(memcached->client.user, reason, memcached->is_final);
}

/* ---- groups -------------------------------------------------------------------------------- */

/* Items about one key keep their order: nothing overtakes a swap that has to look first. */
static bool must_wait(const struct memcached *memcached, const struct item *item)
{
    for (int i = 0; i < memcached->group_count; i++) {
        const struct item *other = memcached->group[i];

        if (other->is_swap && other->verb == GET && strcmp(other->key, item->key) == 0)
            return true;
    }
    return false;
}

static enum verb choose_verb(struct memcached *memcached, struct item *item)
{
    if (!item->is_swap)
        return GET;
    if (dm_reg_version_is_absent(&item->version))
        return item->value.size ? ADD : GET;
    if (!item->cas)
        item->cas = find_cas(memcached, &item->version);
    if (!item->cas)
        return GET;
    return item->value.size ? CAS : DELETE;
}

/* All keys of sessions begin with "s/": those that nobody renews need not stay. */
static int ttl_of(const struct memcached *memcached, const struct item *item)
{
    return strncmp(item->key + strlen(memcached->url->prefix), ":r/s/", 5) == 0 ? SESSION_TTL_S : 0;
}

/*
 * What is written is read in the same turn: for its CAS number, or for the value that was in the way.  "ms" would tell
 * the number, but it deletes the old value if there is no memory for the new one.
 */
static void write_item(struct memcached *memcached, struct item *item)
{
    struct dm_bytes *out = &memcached->out;

    item->verb = choose_verb(memcached, item);
    item->is_written = false;
    if (item->verb == GET) {
        dm_bytes_print(out, "mg %s v c\r\n", item->key);
    } else if (item->verb == DELETE) {
        dm_bytes_print(out, "md %s C%" PRIu64 "\r\n", item->key, item->cas);
    } else {
        dm_bytes_print(out, "%s %s 0 %d %zu", item->verb == ADD ? "add" : "cas", item->key, ttl_of(memcached, item),
                       item->value.size);
        if (item->verb == CAS)
            dm_bytes_print(out, " %" PRIu64, item->cas);
        dm_bytes_print(out, "\r\n");
        dm_bytes_add(out, item->value.at, item->value.size);
        dm_bytes_print(out, "\r\nmg %s v c\r\n", item->key);
    }
}

static void write_epoch_look(struct memcached *memcached)
{
    dm_bytes_print(&memcached->out, "mg %s:epoch v\r\n", memcached->url->prefix);
    memcached->asked_ns = dm_clock_boot_ns();
    if (memcached->out.is_short)
        doom(memcached, false, "out of memory");
}

static void send_group(struct memcached *memcached)
{
    struct item *item;

    while ((item = memcached->waiting) && memcached->group_count < GROUP_MOST && memcached->out.size < GROUP_BYTES &&
           !must_wait(memcached, item)) {
        take_waiting(memcached);
        if (item->is_large) {
            reply(memcached, item, DM_REG_TOO_LARGE, NULL);
            free_item(item);
            continue;
        }
        write_item(memcached, item);
        memcached->group[memcached->group_count++] = item;
    }
    if (memcached->group_count)
        write_epoch_look(memcached);
}

/* ---- answers ------------------------------------------------------------------------------- */

static void reply_with_value(struct memcached *memcached, const struct item *item, enum dm_reg_outcome outcome)
{
    struct dm_reg_reply answer = { .outcome = outcome, .age_ms = -1, .has_value = true };

    if (item->answer.code == DM_MEMCACHED_VALUE) {
        if (item->got.size < DM_REG_VERSION_SIZE) {
            reply(memcached, item, DM_REG_REFUSED,
                  "this value in memcached has been changed by hand: delete it if nobody holds the lock");
            return;
        }
        memcpy(answer.version.bytes, item->got.at, sizeof answer.version.bytes);
        answer.value = item->got.at;
        answer.size = item->got.size;
        note_cas(memcached, &answer.version, item->answer.cas);
        if (!item->is_swap && dm_reg_version_equals(&answer.version, &item->version))
            answer = (struct dm_reg_reply){ .outcome = DM_REG_SAME, .age_ms = -1, .version = item->version };
    }
    memcached->client.on_reply(memcached->client.user, item->ticket, item->index, &answer);
}

static void reply_done(struct memcached *memcached, const struct item *item)
{
    struct dm_reg_reply answer = { .outcome = DM_REG_DONE, .age_ms = -1 };

    if (item->value.size) {
        memcpy(answer.version.bytes, item->value.at, sizeof answer.version.bytes);
        if (item->got.size >= DM_REG_VERSION_SIZE && memcmp(item->got.at, item->value.at, DM_REG_VERSION_SIZE) == 0)
            note_cas(memcached, &answer.version, item->answer.cas);
    }
    memcached->client.on_reply(memcached->client.user, item->ticket, item->index, &answer);
}

/* True if a look has found the value for which the swap was asked: it goes again, with the value's number. */
static bool goes_again(struct item *item)
{
    if (!item->is_swap || item->verb != GET || item->answer.code != DM_MEMCACHED_VALUE || !item->answer.cas ||
        item->got.size < DM_REG_VERSION_SIZE || memcmp(item->got.at, item->version.bytes, DM_REG_VERSION_SIZE) != 0)
        return false;
    item->cas = item->answer.cas;
    dm_bytes_free(&item->got);
    return true;
}

static void refuse_item(struct memcached *memcached, const struct item *item)
{
    char reason[DM_REG_REASON_ROOM];

    snprintf(reason, sizeof reason, "memcached says: %s%s", item->refusal,
             strstr(item->refusal, NO_MEMORY) ? " (give it more, with -m, or fewer data)" : "");
    dm_text_clean(reason);
    reply(memcached, item, DM_REG_REFUSED, reason);
}

static void answer_item(struct memcached *memcached, const struct item *item)
{
    enum dm_memcached_code code = item->is_written ? item->written : item->answer.code;
    bool is_absent_wanted = item->is_swap && dm_reg_version_is_absent(&item->version);

    if (code == DM_MEMCACHED_REFUSED)
        refuse_item(memcached, item);
    else if (code == DM_MEMCACHED_DONE)
        reply_done(memcached, item);
    else if (item->verb == DELETE)
        reply(memcached, item, DM_REG_CONFLICT, NULL);
    else if (!item->is_swap || (item->verb == GET && is_absent_wanted && code == DM_MEMCACHED_ABSENT))
        reply_with_value(memcached, item, DM_REG_DONE);
    else
        reply_with_value(memcached, item, DM_REG_CONFLICT);
}

/* The group is over before the client is called, which may ask again. */
static void answer_group(struct memcached *memcached)
{
    struct item *items[GROUP_MOST];
    int count = memcached->group_count;

    memcpy(items, memcached->group, sizeof items);
    memcached->group_count = memcached->answer_count = 0;
    for (int i = count - 1; i >= 0; i--) {
        if (!goes_again(items[i]))
            continue;
        if (!memcached->waiting)
            memcached->waiting_end = &items[i]->next;
        items[i]->next = memcached->waiting;
        memcached->waiting = items[i];
        items[i] = NULL;
    }
    for (int i = 0; i < count; i++) {
        if (!items[i])
            continue;
        answer_item(memcached, items[i]);
        free_item(items[i]);
    }
}

/* The answer to a write, after which the value follows; and of a command that has but one. */
static bool is_of_write(const struct item *item)
{
    return (item->verb == ADD || item->verb == CAS) && !item->is_written;
}

/* What could be the next answer to such a command. */
static bool is_fit(const struct item *item, const struct dm_memcached_answer *answer)
{
    switch (answer->code) {
    case DM_MEMCACHED_VALUE:
        return item->verb != DELETE && !is_of_write(item);
    case DM_MEMCACHED_ABSENT:
        return true;
    case DM_MEMCACHED_DONE:
    case DM_MEMCACHED_OTHER:
        return item->verb == DELETE || is_of_write(item);
    case DM_MEMCACHED_REFUSED: /* other errors are about a command line, and then the value is taken for commands */
        return is_of_write(item) && strncmp(answer->line, "SERVER_ERROR", 12) == 0;
    default:
        return false;
    }
}

static void take_item(struct memcached *memcached, const struct dm_memcached_answer *answer)
{
    struct item *item = memcached->group[memcached->answer_count];

    if (!is_fit(item, answer)) {
        doom(memcached, false, "memcached says \"%.100s\" to a command of ours", answer->line);
        return;
    }
    if (is_of_write(item)) {
        item->is_written = true;
        item->written = answer->code;
        snprintf(item->refusal, sizeof item->refusal, "%.110s", answer->line);
        return;
    }
    memcached->answer_count++;
    item->answer = *answer;
    dm_bytes_add(&item->got, answer->value, answer->size);
    if (item->got.is_short)
        doom(memcached, false, "out of memory");
}

static bool is_epoch(const struct memcached *memcached, const struct dm_memcached_answer *answer)
{
    return answer->code == DM_MEMCACHED_VALUE && answer->size == EPOCH_LENGTH &&
           memcmp(answer->value, memcached->epoch, EPOCH_LENGTH) == 0;
}

static void take_answer(struct memcached *memcached, const struct dm_memcached_answer *answer)
{
    if (memcached->answer_count < memcached->group_count)
        take_item(memcached, answer);
    else if (!memcached->group_count)
        doom(memcached, false, "what answers there is no memcached: it speaks before it is asked");
    else if (!is_epoch(memcached, answer))
        doom(memcached, false, "memcached has been flushed, or has lost keys");
    else
        answer_group(memcached);
}

/* ---- the greeting -------------------------------------------------------------------------- */

static void greet(struct memcached *memcached)
{
    memcached->phase = GREETING;
    memcached->greeting = VERSION;
    memcached->may_evict = memcached->has_drawn = false;
    memcached->driver.can.value_max = VALUE_MOST;
    dm_bytes_print(&memcached->out, "version\r\nstats settings\r\n");
    write_epoch_look(memcached);
}

/* Only one process of many succeeds. */
static void draw_epoch(struct memcached *memcached)
{
    uint64_t words[2];

    memcached->greeting = NEW_EPOCH;
    memcached->has_drawn = true;
    dm_ident_random(words, 2);
    dm_bytes_print(&memcached->out, "add %s:epoch 0 0 %d\r\n%016" PRIx64 "%016" PRIx64 "\r\n", memcached->url->prefix,
                   EPOCH_LENGTH, words[0], words[1]);
    write_epoch_look(memcached);
}

static void take_version(struct memcached *memcached, const char *line)
{
    int major, minor, patch;

    memcached->greeting = SETTINGS;
    if (strstr(line, "unauthenticated"))
        doom(memcached, true,
             "memcached wants a login, and memcached:// has none: start it without -Y and -S, and let "
             "nobody else reach it");
    else if (sscanf(line, "VERSION %d.%d.%d", &major, &minor, &patch) != 3)
        doom(memcached, true, "what answers there is no memcached: it says \"%.100s\"", line);
    else if (major * 1000000 + minor * 1000 + patch < 1006018)
        doom(memcached, true, "memcached is %d.%d.%d, and locks need 1.6.18 or later", major, minor, patch);
}

static void take_setting(struct memcached *memcached, const char *line)
{
    unsigned long most;

    if (strcmp(line, "END") == 0)
        memcached->greeting = EPOCH;
    else if (strcmp(line, "STAT evictions on") == 0)
        memcached->may_evict = true;
    else if (strcmp(line, "STAT cas_enabled no") == 0)
        doom(memcached, true, "memcached has no CAS numbers: start it without -C");
    else if (sscanf(line, "STAT item_size_max %lu", &most) == 1 && most < ITEM_MOST_MIN)
        doom(memcached, true, "memcached takes %lu bytes for a value at most: start it with -I 1m", most);
    else if (sscanf(line, "STAT item_size_max %lu", &most) == 1 && most - ITEM_HEADER < VALUE_MOST)
        memcached->driver.can.value_max = most - ITEM_HEADER;
    else if (strncmp(line, "STAT ", 5) != 0)
        doom(memcached, true, "memcached does not tell its settings: it says \"%.100s\"", line);
}

static void take_epoch(struct memcached *memcached, const struct dm_memcached_answer *answer)
{
    char identity[DM_REG_IDENTITY_ROOM], place[200], text[DM_REG_REASON_ROOM];

    snprintf(memcached->epoch, sizeof memcached->epoch, "%.*s", (int)answer->size, answer->size ? answer->value : "");
    if (answer->code == DM_MEMCACHED_ABSENT && !memcached->has_drawn) {
        draw_epoch(memcached);
    } else if (answer->code == DM_MEMCACHED_ABSENT) {
        doom(memcached, false, "memcached has been flushed just now");
    } else if (!is_epoch(memcached, answer)) {
        doom(memcached, true, "the key %s:epoch has been changed by hand: delete it", memcached->url->prefix);
    } else {
        memcached->phase = READY;
        memcached->retry.ready_ns = dm_clock_boot_ns();
        snprintf(identity, sizeof identity, "memcached %s", memcached->epoch);
        memcached->client.on_ready(memcached->client.user, identity);
    }
    if (memcached->phase != READY || !memcached->may_evict || memcached->is_warned)
        return;
    memcached->is_warned = true;
    describe(memcached, place, sizeof place);
    snprintf(text, sizeof text, "%.150s drops locks when its memory is full: start it with -M", place);
    memcached->client.on_warning(memcached->client.user, text);
}

static void take_greeting(struct memcached *memcached, const struct dm_memcached_answer *answer)
{
    if (memcached->greeting == VERSION) {
        take_version(memcached, answer->line);
    } else if (memcached->greeting == SETTINGS) {
        take_setting(memcached, answer->line);
    } else if (memcached->greeting == EPOCH) {
        take_epoch(memcached, answer);
    } else {
        memcached->greeting = EPOCH;
        if (answer->code != DM_MEMCACHED_DONE && answer->code != DM_MEMCACHED_OTHER)
            doom(memcached, false, "memcached cannot begin to keep locks: it says \"%.100s\"", answer->line);
    }
}

/* ---- the connection ------------------------------------------------------------------------ */

static void begin_to_connect(struct memcached *memcached)
{
    const struct dm_url *url = memcached->url;
    const struct dm_dial_options options = {
        .address = { .host = url->host, .port = url->port, .path = url->path },
        .connect_timeout_ms = url->connect_timeout_ms,
        .user_timeout_ms = url->command_timeout_ms,
    };

    memcached->phase = CONNECTING;
    memcached->dial = dm_dial_begin(&options);
    if (!memcached->dial)
        doom(memcached, false, "this process cannot start a thread or open a descriptor for a connection");
}

static void take_dial(struct memcached *memcached)
{
    char reason[DM_REASON_ROOM];

    if (!memcached->dial || !dm_dial_take(memcached->dial, &memcached->stream, reason))
        return;
    memcached->dial = NULL;
    if (memcached->stream.fd < 0)
        doom(memcached, false, "%s", reason);
    else
        greet(memcached);
}

static void doom_for_error(struct memcached *memcached)
{
    doom(memcached, false, "%s", errno ? dm_text_error(errno) : "it has closed the connection");
}

static void send_now(struct memcached *memcached)
{
    struct dm_bytes *out = &memcached->out;
    ssize_t sent = 1;

    while (memcached->sent < out->size && sent > 0) {
        sent = dm_stream_send(&memcached->stream, out->at + memcached->sent, out->size - memcached->sent);
        if (sent > 0)
            memcached->sent += (size_t)sent;
    }
    if (sent < 0)
        doom_for_error(memcached);
    if (memcached->sent < out->size)
        return;
    memcached->sent = out->size = 0;
    if (out->room > BYTES_KEPT)
        dm_bytes_free(out);
}

/* Takes all whole answers. */
static void take_answers(struct memcached *memcached)
{
    struct dm_bytes *in = &memcached->in;
    struct dm_memcached_answer answer;
    size_t taken = 0;

    while (!memcached->is_doomed) {
        dm_memcached_answer_read(in->at + taken, in->size - taken, VALUE_MOST + ITEM_HEADER, &answer);
        if (answer.code == DM_MEMCACHED_MORE)
            break;
        taken += answer.length;
        if (answer.code == DM_MEMCACHED_BAD)
            doom(memcached, memcached->phase == GREETING, "what answers there does not speak as memcached does");
        else if (memcached->phase == GREETING)
            take_greeting(memcached, &answer);
        else
            take_answer(memcached, &answer);
    }
    if (taken)
        dm_bytes_take(in, taken);
    if (!in->size && in->room > BYTES_KEPT)
        dm_bytes_free(in);
}

static void receive(struct memcached *memcached)
{
    for (int i = 0; i < RECEIVES_MOST && !memcached->is_doomed; i++) {
        ssize_t got = dm_stream_receive(&memcached->stream, memcached->room, sizeof memcached->room);

        if (got < 0)
            doom_for_error(memcached);
        if (got <= 0)
            return;
        dm_bytes_add(&memcached->in, memcached->room, (size_t)got);
        if (memcached->in.is_short)
            doom(memcached, false, "out of memory");
        take_answers(memcached);
    }
}

static int64_t patience_ends_ns(const struct memcached *memcached)
{
    if (memcached->phase == READY && !memcached->group_count)
        return DM_NEVER;
    return memcached->asked_ns + memcached->url->command_timeout_ms * DM_NS_PER_MS;
}

static void use_connection(struct memcached *memcached)
{
    if (!dm_stream_is_ours(&memcached->stream)) {
        doom(memcached, false, "the program has closed the connection to memcached");
        return;
    }
    receive(memcached);
    if (memcached->phase == READY && !memcached->is_doomed && !memcached->group_count) {
        dm_retry_note_use(&memcached->retry, dm_clock_boot_ns());
        send_group(memcached);
    }
    if (!memcached->is_doomed)
        send_now(memcached);
    if (dm_clock_boot_ns() >= patience_ends_ns(memcached))
        doom(memcached, false, "memcached has not answered for %u ms", memcached->url->command_timeout_ms);
}

/* ---- the driver's operations --------------------------------------------------------------- */

static void want(struct dm_reg_driver *driver)
{
    struct memcached *memcached = memcached_of(driver);

    if (memcached->phase == RESTING)
        memcached->phase = PAUSING;
}

static void turn(struct dm_reg_driver *driver)
{
    struct memcached *memcached = memcached_of(driver);

    if (memcached->phase == PAUSING && dm_clock_boot_ns() >= memcached->retry.due_ns)
        begin_to_connect(memcached);
    if (memcached->phase == CONNECTING)
        take_dial(memcached);
    if (memcached->phase == GREETING || memcached->phase == READY)
        use_connection(memcached);
    if (memcached->is_doomed)
        break_off(memcached);
}

static size_t stack(const struct dm_reg_driver *driver)
{
    (void)driver;
    return 0;
}

static void watch(struct dm_reg_driver *driver, struct dm_watch *watched)
{
    struct memcached *memcached = memcached_of(driver);

    switch (memcached->phase) {
    case PAUSING:
        dm_watch_until(watched, memcached->retry.due_ns);
        break;
    case CONNECTING:
        dm_watch_poll(watched, dm_dial_fd(memcached->dial), POLLIN);
        dm_watch_until(watched, dm_clock_boot_ns() + LOOK_TICK_NS);
        break;
    case GREETING:
    case READY:
        dm_watch_poll(watched, memcached->stream.fd,
                      dm_stream_events(&memcached->stream, memcached->sent < memcached->out.size));
        dm_watch_until(watched, patience_ends_ns(memcached));
        if (memcached->phase == READY && !memcached->group_count && memcached->waiting)
            dm_watch_until(watched, 0);
        break;
    case RESTING:
    case ENDED:
        break;
    }
}

static bool load(struct dm_reg_driver *driver)
{
    (void)driver;
    return true;
}

static bool read_items(struct dm_reg_driver *driver, uint64_t ticket, const struct dm_reg_item *items, int count)
{
    return enqueue(memcached_of(driver), ticket, items, count, false);
}

static bool swap_items(struct dm_reg_driver *driver, uint64_t ticket, const struct dm_reg_item *items, int count)
{
    return enqueue(memcached_of(driver), ticket, items, count, true);
}

/* There are no notices: a process could die between a swap and its notice, and memcached has none of its own. */
static bool listen_to(struct dm_reg_driver *driver, const char *inbox)
{
    (void)driver;
    (void)inbox;
    return true;
}

static void place(struct dm_reg_driver *driver, char *ret_text, size_t room)
{
    describe(memcached_of(driver), ret_text, room);
}

static void stop(struct memcached *memcached, enum phase phase)
{
    struct item *item;

    if (memcached->phase == ENDED)
        return;
    close_connection(memcached);
    memcached->phase = phase;
    while (memcached->group_count)
        free_item(memcached->group[--memcached->group_count]);
    memcached->answer_count = 0;
    while ((item = take_waiting(memcached)))
        free_item(item);
}

static void rest(struct dm_reg_driver *driver)
{
    stop(memcached_of(driver), RESTING);
}

static void end(struct dm_reg_driver *driver)
{
    stop(memcached_of(driver), ENDED);
}

static void forget(struct dm_reg_driver *driver)
{
    struct memcached *memcached = memcached_of(driver);

    if (memcached->dial)
        dm_dial_forget(memcached->dial);
    memcached->dial = NULL;
    if (memcached->stream.fd >= 0)
        dm_stream_forget(&memcached->stream);
    memcached->phase = ENDED;
}

static void free_unused(struct dm_reg_driver *driver)
{
    free(driver);
}

static const struct dm_reg_driver_ops ops = {
    .want = want,
    .rest = rest,
    .read = read_items,
    .swap = swap_items,
    .listen = listen_to,
    .watch = watch,
    .turn = turn,
    .stack = stack,
    .load = load,
    .place = place,
    .end = end,
    .forget = forget,
    .free_unused = free_unused,
};

struct dm_reg_driver *dm_memcached_driver_open(const struct dm_url *url, const struct dm_reg_client *client,
                                               char ret_reason[DM_REASON_ROOM])
{
    struct memcached *memcached = calloc(1, sizeof *memcached);

    ret_reason[0] = '\0';
    if (!memcached)
        return NULL;
    memcached->driver.ops = &ops;
    memcached->driver.can = (struct dm_reg_abilities){ .value_max = VALUE_MOST, .lease_ms_min = LEASE_MIN_MS };
    memcached->client = *client;
    memcached->url = url;
    memcached->waiting_end = &memcached->waiting;
    memcached->stream = dm_stream_of(-1);
    return &memcached->driver;
}
