/* SPDX-License-Identifier: BSD-2-Clause */
#include "asker.h"

#include <poll.h>
#include <stdlib.h>
#include <string.h>

#include "../lib/testlib.h"
#include "base/clock.h"
#include "base/poll.h"
#include "config.h"

dm_reg_open_fn *asker_driver;

/* ---- what the driver tells --------------------------------------------------------------- */

static void on_ready(void *user, const char *identity)
{
    struct asker *asker = user;

    asker->ready++;
    snprintf(asker->identity, sizeof asker->identity, "%s", identity);
    asker->is_up = true;
}

static void on_down(void *user, const char *reason, bool is_final)
{
    struct asker *asker = user;

    asker->down++;
    asker->is_final = is_final;
    snprintf(asker->reason, sizeof asker->reason, "%s", reason);
    asker->is_up = false;
}

static void on_reply(void *user, uint64_t ticket, int index, const struct dm_reg_reply *reply)
{
    struct asker *asker = user;
    struct asked *asked = &asker->asked[index + (int)(ticket - asker->first_ticket)];

    assert_true(ticket >= asker->first_ticket && ticket <= asker->tickets);
    assert_false(asked->is_answered);
    asked->is_answered = true;
    asked->reply = *reply;
    asker->answered++;
    if (reply->has_value && reply->size) {
        assert_true(reply->size >= DM_REG_VERSION_SIZE);
        assert_memory_equal(reply->value, reply->version.bytes, DM_REG_VERSION_SIZE);
        snprintf(asked->value, sizeof asked->value, "%.*s", (int)(reply->size - DM_REG_VERSION_SIZE),
                 (const char *)reply->value + DM_REG_VERSION_SIZE);
    }
    if (reply->reason)
        snprintf(asked->reason, sizeof asked->reason, "%s", reply->reason);
}

static void forget_keys(struct asker *asker)
{
    for (int i = 0; i < asker->key_count; i++)
        free(asker->keys[i]);
    free(asker->keys);
    asker->keys = NULL;
    asker->key_count = 0;
}

static void on_list(void *user, uint64_t ticket, const char *const *keys, int count, bool is_last, const char *reason)
{
    struct asker *asker = user;

    (void)reason;
    assert_int_equal(ticket, asker->tickets);
    forget_keys(asker);
    asker->keys = count > 0 ? calloc((size_t)count, sizeof *asker->keys) : NULL;
    for (int i = 0; i < count; i++)
        asker->keys[i] = strdup(keys[i]);
    asker->key_count = count > 0 ? count : 0;
    asker->is_listed = count >= 0;
    asker->is_last = is_last;
    asker->answered++;
}

static void on_tell(void *user, const void *text, size_t size)
{
    struct asker *asker = user;

    asker->tells++;
    asker->told_size = size;
    memcpy(asker->told, text, size);
    asker->told[size] = '\0';
}

static void on_inbox(void *user, bool is_open)
{
    ((struct asker *)user)->has_inbox = is_open;
}

static void on_warning(void *user, const char *text)
{
    struct asker *asker = user;

    snprintf(asker->warning, sizeof asker->warning, "%s", text);
}

/* ---- the driver -------------------------------------------------------------------------- */

struct asker *asker_open(const char *url, const char *prefix, unsigned command_timeout_ms)
{
    struct asker *asker = calloc(1, sizeof *asker);
    struct dm_reg_place place = { .url = url,
                                  .prefix = prefix,
                                  .connect_timeout_ms = 20000,
                                  .command_timeout_ms = command_timeout_ms ? command_timeout_ms : 20000 };
    struct dm_reg_client client = { asker, on_ready, on_down, on_reply, on_list, on_tell, on_inbox, on_warning };
    char reason[DM_REASON_ROOM];

    assert_non_null(asker);
    assert_true(dm_watch_init(&asker->watch));
    dm_reg_writer_init(&asker->writer);
    asker->driver = asker_driver(PACKAGE_VERSION, &place, &client, reason);
    if (!asker->driver)
        snprintf(asker->reason, sizeof asker->reason, "%s", reason);
    return asker;
}

struct asker *asker_start(const char *url, const char *inbox)
{
    struct asker *asker = asker_open(url, "dmutex", 0);

    assert_non_null(asker->driver);
    if (inbox)
        assert_true(asker->driver->ops->listen(asker->driver, inbox));
    asker->driver->ops->want(asker->driver);
    asker_until(asker, asker->ready);
    return asker;
}

void asker_end(struct asker *asker)
{
    if (asker->driver) {
        asker->driver->ops->end(asker->driver);
        asker->driver->ops->free_unused(asker->driver); /* no thread can be about to use it */
    }
    forget_keys(asker);
    dm_watch_free(&asker->watch);
    free(asker);
}

void asker_turn(struct asker *asker)
{
    int64_t left_ns;

    dm_watch_clear(&asker->watch);
    asker->driver->ops->watch(asker->driver, &asker->watch);
    left_ns = asker->watch.due_ns - dm_clock_boot_ns();
    if (left_ns > 5 * DM_NS_PER_MS)
        left_ns = 5 * DM_NS_PER_MS;
    if (left_ns > 0)
        dm_poll(asker->watch.polled, (unsigned)asker->watch.count, left_ns);
    asker->driver->ops->turn(asker->driver);
}

/* ---- calls ------------------------------------------------------------------------------- */

const void *asker_value(struct asker *asker, const char *text, size_t *ret_size)
{
    static char values[64][DM_REG_VERSION_SIZE + 64];
    static int last;
    struct dm_reg_version version = dm_reg_writer_next(&asker->writer);

    last = (last + 1) % 64;
    memcpy(values[last], version.bytes, sizeof version.bytes);
    memcpy(values[last] + DM_REG_VERSION_SIZE, text, strlen(text));
    *ret_size = DM_REG_VERSION_SIZE + strlen(text);
    return values[last];
}

void asker_post(struct asker *asker, const struct dm_reg_item *items, int count, bool is_swap)
{
    const struct dm_reg_driver_ops *ops = asker->driver->ops;

    memset(asker->asked, 0, sizeof asker->asked);
    asker->answered = 0;
    asker->first_ticket = ++asker->tickets;
    assert_true(is_swap ? ops->swap(asker->driver, asker->tickets, items, count)
                        : ops->read(asker->driver, asker->tickets, items, count));
}

void asker_post_more(struct asker *asker, const struct dm_reg_item *item, bool is_swap)
{
    const struct dm_reg_driver_ops *ops = asker->driver->ops;

    asker->tickets++;
    assert_true(is_swap ? ops->swap(asker->driver, asker->tickets, item, 1)
                        : ops->read(asker->driver, asker->tickets, item, 1));
}

static const struct asked *ask(struct asker *asker, const struct dm_reg_item *item, bool is_swap)
{
    asker_post(asker, item, 1, is_swap);
    asker_until(asker, asker->answered == 1);
    return &asker->asked[0];
}

const struct asked *asker_read(struct asker *asker, const char *key, const struct dm_reg_version *known)
{
    struct dm_reg_item item = { .key = key };

    if (known)
        item.version = *known;
    return ask(asker, &item, false);
}

static const struct asked *swap(struct asker *asker, struct dm_reg_item *item, struct dm_reg_version *version)
{
    const struct asked *asked;

    item->version = *version;
    item->door = asker->door;
    asked = ask(asker, item, true);
    if (asked->reply.outcome == DM_REG_DONE) {
        assert_memory_equal(asked->reply.version.bytes, item->value, DM_REG_VERSION_SIZE);
        *version = asked->reply.version;
    }
    return asked;
}

const struct asked *asker_swap(struct asker *asker, const char *key, struct dm_reg_version *version, const char *text)
{
    struct dm_reg_item item = { .key = key };

    item.value = asker_value(asker, text, &item.size);
    return swap(asker, &item, version);
}

void asker_swap_surely(struct asker *asker, const char *key, struct dm_reg_version *version, int number)
{
    char text[16];
    const struct asked *asked;

    snprintf(text, sizeof text, "%d", number);
    for (;;) {
        asker_until(asker, asker->is_up);
        asked = asker_swap(asker, key, version, text);
        if (asked->reply.outcome == DM_REG_DONE)
            return;
        asker_until(asker, asker->is_up);
        asked = asker_read(asker, key, NULL);
        if (asked->reply.outcome != DM_REG_DONE)
            continue;
        *version = asked->reply.version;
        if (strcmp(asked->value, text) == 0)
            return;
    }
}

const struct asked *asker_swap_and_tell(struct asker *asker, const char *key, struct dm_reg_version *version,
                                        const char *text, const char *inbox, const char *told)
{
    struct dm_reg_tell tell = { inbox, told, strlen(told) };
    struct dm_reg_item item = { .key = key, .tells = &tell, .tell_count = 1 };

    item.value = asker_value(asker, text, &item.size);
    return swap(asker, &item, version);
}

const struct asked *asker_delete(struct asker *asker, const char *key, const struct dm_reg_version *version)
{
    struct dm_reg_item item = { .key = key, .version = *version };

    return ask(asker, &item, true);
}

void asker_check(const struct asked *asked, enum dm_reg_outcome wanted, int line)
{
    if (asked->reply.outcome != wanted)
        fail_msg("line %d: the outcome is %d and not %d: %s", line, (int)asked->reply.outcome, (int)wanted,
                 asked->reason);
}
