/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Reads, swaps and lists.
 *
 * A swap is one statement that compares the version and the epoch; the rows that it has changed tell whether it took
 * effect.  If it did not, a second exchange reads the row.
 *
 * A row is locked from the statement of a swap to its commit.  If somebody swaps it as fast as possible, a swap of ours
 * waits for that commit, is refused, and the next one of the other process is always there before ours.  So the read
 * after a refusal locks the row, too, for which the server lets us wait in line; the client's next swap, which follows
 * within the same turn, ends that transaction.
 *
 * What is asked for while an exchange is under way waits, and then goes together.  Swaps that go together are one
 * transaction: the server writes its log once.  If one of them fails, none has taken effect, and each goes again,
 * alone.  The rows of a group are locked in the order of their keys, so groups do not deadlock.
 */
#include <mysqld_error.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "stores/mariadb/parts.h"

/* After a connection was lost with a row reserved, perhaps because we were too slow, none is reserved for so long. */
#define UNRESERVED_NS (60 * DM_NS_PER_S)

/* The server's clock, at the moment of its evaluation and not of the statement's begin, in microseconds since 1970. */
#define CLOCK "CAST(UNIX_TIMESTAMP(SYSDATE(6)) * 1000000 AS SIGNED)"

/* ---- statements -------------------------------------------------------------------------- */

static void add_hex(struct dm_bytes *text, const void *bytes, size_t size)
{
    static const char digits[] = "0123456789abcdef";
    const uint8_t *from = bytes;
    char pairs[128];
    size_t length = 0;

    dm_bytes_add(text, "x'", 2);
    for (size_t i = 0; i < size; i++) {
        pairs[length++] = digits[from[i] >> 4];
        pairs[length++] = digits[from[i] & 15];
        if (length == sizeof pairs || i + 1 == size) {
            dm_bytes_add(text, pairs, length);
            length = 0;
        }
    }
    dm_bytes_add(text, "'", 1);
}

static void add_version(struct dm_bytes *text, const struct dm_reg_version *version)
{
    add_hex(text, version->bytes, sizeof version->bytes);
}

/* Statements are separated, and not ended. */
static void begin_statement(struct dm_bytes *text)
{
    if (text->size)
        dm_bytes_add(text, ";", 1);
}

/* No key has a character that ends or changes a text of SQL. */
static void add_where(const struct dm_maria *maria, struct dm_bytes *text, const struct dm_maria_item *item)
{
    dm_bytes_print(text, " WHERE name = '%s' AND version = ", item->key);
    add_version(text, &item->version);
    dm_bytes_print(text, " AND EXISTS (SELECT 1 FROM `%s_epoch` WHERE id = x'%s')", maria->url->prefix, maria->epoch);
}

static void add_swap(const struct dm_maria *maria, struct dm_bytes *text, const struct dm_maria_item *item)
{
    const char *prefix = maria->url->prefix;
    const uint8_t *value = item->value;
    bool is_new = dm_reg_version_is_absent(&item->version);

    begin_statement(text);
    if (item->size == 0) {
        dm_bytes_print(text, "DELETE FROM `%s_registers`", prefix);
        add_where(maria, text, item);
        return;
    }
    if (is_new)
        dm_bytes_print(text, "INSERT INTO `%s_registers` (name, version, value, written, server) SELECT '%s', ", prefix,
                       item->key);
    else
        dm_bytes_print(text, "UPDATE `%s_registers` SET version = ", prefix);
    add_hex(text, value, DM_REG_VERSION_SIZE);
    dm_bytes_print(text, is_new ? ", " : ", value = ");
    add_hex(text, value + DM_REG_VERSION_SIZE, item->size - DM_REG_VERSION_SIZE);
    dm_bytes_print(text, is_new ? ", " CLOCK ", %u" : ", written = " CLOCK ", server = %u", maria->server);
    if (is_new)
        dm_bytes_print(text,
                       " FROM `%s_epoch` WHERE id = x'%s' ON DUPLICATE KEY UPDATE `%s_registers`.name = "
                       "`%s_registers`.name",
                       prefix, maria->epoch, prefix, prefix);
    else
        add_where(maria, text, item);
}

/* No row: the data are others. */
static void add_read(const struct dm_maria *maria, struct dm_bytes *text, const char *key,
                     const struct dm_reg_version *known)
{
    begin_statement(text);
    dm_bytes_print(text, "SELECT r.version, IF(r.version = ");
    add_version(text, known);
    dm_bytes_print(text,
                   ", NULL, r.value), r.written, r.server, " CLOCK " FROM `%s_epoch` e LEFT JOIN `%s_registers` r ON "
                   "r.name = '%s' WHERE e.id = x'%s'",
                   maria->url->prefix, maria->url->prefix, key, maria->epoch);
}

/* Locks the row, and not that of the epoch.  No row: it is absent, or the data are others. */
static void add_reservation(const struct dm_maria *maria, struct dm_bytes *text, const char *key)
{
    begin_statement(text);
    dm_bytes_print(text,
                   "SELECT version, value, written, server, " CLOCK " FROM `%s_registers` WHERE name = '%s' AND EXISTS "
                   "(SELECT 1 FROM `%s_epoch` WHERE id = x'%s') FOR UPDATE",
                   maria->url->prefix, key, maria->url->prefix, maria->epoch);
}

/* All bytes of a key are below 0x7f. */
static void add_list(const struct dm_maria *maria, struct dm_bytes *text, const struct dm_maria_item *item)
{
    begin_statement(text);
    dm_bytes_print(text,
                   "SELECT name FROM `%s_registers` WHERE name >= '%s' AND name < CONCAT('%s', x'7f') AND name > '%s' "
                   "ORDER BY name LIMIT %d",
                   maria->url->prefix, item->key, item->key, item->after, item->most + 1);
}

static void add_word(struct dm_bytes *text, const char *word)
{
    begin_statement(text);
    dm_bytes_add(text, word, strlen(word));
}

/* ---- rows -------------------------------------------------------------------------------- */

/* A row's value, with its version before it. */
struct row {
    struct dm_reg_reply reply;
    uint8_t *value; /* allocated, or NULL */
};

/*
 * Another server's clock may be another one, so an age counts only if this server has written the row.  A clock that
 * was set back makes ages too low, or negative: then none is known.
 */
static int64_t age_of(const struct dm_maria *maria, MYSQL_ROW fields)
{
    int64_t age_us = strtoll(dm_maria_field(fields, 4), NULL, 10) - strtoll(dm_maria_field(fields, 2), NULL, 10);

    return strtoul(dm_maria_field(fields, 3), NULL, 10) == maria->server && age_us >= 0 ? age_us / 1000 : -1;
}

static void refuse_row(struct dm_reg_reply *reply)
{
    reply->outcome = DM_REG_REFUSED;
    reply->has_value = false;
    reply->reason = "this row of the table of registers has been changed by hand: delete it if nobody holds the lock";
}

/* The answer to a read or a reservation.  False: there is no row, or no memory, and then the connection is doomed. */
static bool read_row(struct dm_maria *maria, MYSQL_RES *result, struct row *row)
{
    MYSQL_ROW fields = dm_maria_row(result, 5);
    unsigned long *lengths = fields ? mysql_fetch_lengths(result) : NULL;
    struct dm_reg_reply *reply = &row->reply;

    *row = (struct row){ .reply = { .outcome = DM_REG_DONE, .age_ms = -1 } };
    if (!fields)
        return false;
    reply->clock_us = strtoll(dm_maria_field(fields, 4), NULL, 10);
    reply->has_value = true;
    if (!fields[0])
        return true;
    if (lengths[0] != DM_REG_VERSION_SIZE) {
        refuse_row(reply);
        return true;
    }
    memcpy(reply->version.bytes, fields[0], DM_REG_VERSION_SIZE);
    reply->age_ms = age_of(maria, fields);
    if (!fields[1]) {
        reply->outcome = DM_REG_SAME;
        reply->has_value = false;
        return true;
    }
    row->value = malloc(DM_REG_VERSION_SIZE + lengths[1]);
    if (!row->value) {
        dm_maria_doom(maria, false, "out of memory");
        return false;
    }
    memcpy(row->value, fields[0], DM_REG_VERSION_SIZE);
    memcpy(row->value + DM_REG_VERSION_SIZE, fields[1], lengths[1]);
    reply->value = row->value;
    reply->size = DM_REG_VERSION_SIZE + lengths[1];
    return true;
}

/* The version that a swap wants to write. */
static struct dm_reg_version version_after(const struct dm_maria_item *item)
{
    struct dm_reg_version version = { { 0 } };

    if (item->size)
        memcpy(version.bytes, item->value, sizeof version.bytes);
    return version;
}

/* ---- what an item needs ------------------------------------------------------------------ */

static bool is_swap(const struct dm_maria_item *item)
{
    return item->kind == DM_MARIA_SWAP && !item->is_refused;
}

/* A read, or a swap that has changed no row. */
static bool is_look(const struct dm_maria_item *item)
{
    return item->kind == DM_MARIA_READ || (item->kind == DM_MARIA_SWAP && item->is_refused);
}

/* ---- exchanges --------------------------------------------------------------------------- */

/* An exchange, which ends a transaction of ours that has failed.  NULL: the connection is doomed. */
static struct dm_maria_exchange *begin(struct dm_maria *maria,
                                       void (*finish)(struct dm_maria *, struct dm_maria_exchange *))
{
    struct dm_maria_exchange *exchange = dm_maria_exchange_new(finish);

    if (!exchange) {
        dm_maria_doom(maria, false, "out of memory");
        return NULL;
    }
    if (maria->must_roll_back) {
        add_word(&exchange->text, "ROLLBACK");
        exchange->skipped++;
        maria->must_roll_back = false;
    }
    return exchange;
}

/* Statements around those of the items, before them. */
static void skip(struct dm_maria_exchange *exchange, const char *word)
{
    add_word(&exchange->text, word);
    exchange->skipped++;
}

static struct dm_maria_item *take_item(struct dm_maria_exchange *exchange, int i)
{
    struct dm_maria_item *item = exchange->items[i];

    exchange->items[i] = NULL;
    return item;
}

/* What is not answered waits again, before all else, in the same order. */
static void put_back(struct dm_maria *maria, struct dm_maria_exchange *exchange)
{
    for (int i = exchange->count - 1; i >= 0; i--) {
        if (exchange->items[i] && !exchange->items[i]->is_answered)
            dm_maria_items_prepend(&maria->waiting, take_item(exchange, i));
    }
}

/* Once for each connection: it may go on for hours. */
static void warn_of_lock(struct dm_maria *maria, unsigned error)
{
    char text[DM_REG_REASON_ROOM];

    if (maria->is_warned || error != ER_LOCK_WAIT_TIMEOUT)
        return;
    maria->is_warned = true;
    snprintf(text, sizeof text,
             "another session of MariaDB keeps a row or the table %s_registers locked "
             "(information_schema.INNODB_TRX tells which): locks cannot be taken or given back until it ends its "
             "transaction",
             maria->url->prefix);
    maria->client.on_warning(maria->client.user, text);
}

/* The statement about an item that was alone has failed, and has changed nothing. */
static void judge(struct dm_maria *maria, struct dm_maria_item *item, const struct dm_maria_exchange *exchange)
{
    enum dm_maria_failure failure = dm_maria_judge(exchange->error);
    bool is_swap = item->kind == DM_MARIA_SWAP && !item->is_refused;
    char reason[DM_REG_REASON_ROOM];

    dm_maria_explain(exchange->error, exchange->message, reason);
    warn_of_lock(maria, exchange->error);
    if (failure == DM_MARIA_FAILED_TABLE)
        dm_maria_doom(maria, false, "%s", reason);
    else if (failure == DM_MARIA_FAILED_NOW)
        dm_maria_fail(maria, item, item->kind == DM_MARIA_SWAP ? DM_REG_CONFLICT : DM_REG_UNKNOWN, reason);
    else if (failure == DM_MARIA_FAILED_LARGE && is_swap)
        dm_maria_fail(maria, item, DM_REG_TOO_LARGE, reason);
    else
        dm_maria_fail(maria, item, DM_REG_REFUSED, reason);
}

/* Each goes again, alone, if it was not: which one failed is not asked, and a transaction has changed nothing. */
static void take_failure(struct dm_maria *maria, struct dm_maria_exchange *exchange, bool is_transaction)
{
    maria->must_roll_back |= is_transaction;
    if (exchange->count == 1 && !is_transaction) {
        judge(maria, exchange->items[0], exchange);
        return;
    }
    for (int i = 0; i < exchange->count; i++) {
        if (exchange->items[i])
            exchange->items[i]->is_alone = true;
    }
    put_back(maria, exchange);
}

static int by_key(const void *one, const void *other)
{
    const struct dm_maria_item *a = *(struct dm_maria_item *const *)one, *b = *(struct dm_maria_item *const *)other;
    int order = strcmp(a->key, b->key);

    return order ? order : (a->order > b->order) - (a->order < b->order);
}

/* In the order of the keys; swaps of one key keep theirs. */
static void sort(struct dm_maria_exchange *exchange)
{
    for (int i = 0; i < exchange->count; i++)
        exchange->items[i]->order = i;
    qsort(exchange->items, (size_t)exchange->count, sizeof exchange->items[0], by_key);
}

/* ---- looks ------------------------------------------------------------------------------- */

/*
 * The row now: the answer to a read, or to a swap that has changed none.  The version that we wanted to write can be
 * there only by ourselves.
 */
static void answer_by_row(struct dm_maria *maria, struct dm_maria_item *item, struct dm_reg_reply *reply)
{
    if (item->kind == DM_MARIA_SWAP && reply->outcome != DM_REG_REFUSED) {
        reply->outcome = reply->outcome == DM_REG_SAME ? DM_REG_DONE : DM_REG_CONFLICT;
    }
    dm_maria_answer(maria, item, reply);
}

static void finish_looks(struct dm_maria *maria, struct dm_maria_exchange *exchange)
{
    for (int i = 0; i < exchange->count && exchange->skipped + i < exchange->got && !maria->is_doomed; i++) {
        struct row row;

        if (read_row(maria, exchange->results[exchange->skipped + i], &row))
            answer_by_row(maria, exchange->items[i], &row.reply);
        else
            dm_maria_doom(maria, false, "the data of the locks have been replaced");
        free(row.value);
    }
    if (exchange->error && !maria->is_doomed)
        take_failure(maria, exchange, false);
}

static void send_looks(struct dm_maria *maria)
{
    struct dm_maria_exchange *looks = begin(maria, finish_looks);

    while (looks && maria->waiting.first && looks->count < DM_MARIA_GROUP && is_look(maria->waiting.first) &&
           !(looks->count && maria->waiting.first->is_alone)) {
        struct dm_maria_item *item = dm_maria_items_take(&maria->waiting);
        struct dm_reg_version known = item->kind == DM_MARIA_READ ? item->version : version_after(item);

        add_read(maria, &looks->text, item->key, &known);
        looks->items[looks->count++] = item;
        if (item->is_alone)
            break;
    }
    if (looks)
        dm_maria_send(maria, looks);
}

/* ---- reservations ------------------------------------------------------------------------ */

static bool may_reserve(const struct dm_maria *maria, const struct dm_maria_item *item)
{
    return item->reserves && is_look(item) && dm_clock_boot_ns() >= maria->unreserved_ns;
}

/* False: the row is absent, of other data, or what a plain look must explain. */
static bool is_reservable(const struct dm_maria_item *item, const struct dm_reg_reply *reply)
{
    struct dm_reg_version wanted = version_after(item);

    return reply->has_value &&
           (item->kind == DM_MARIA_READ || (!dm_reg_version_equals(&reply->version, &item->version) &&
                                            !dm_reg_version_equals(&reply->version, &wanted)));
}

/* Those without such a row are looked at after the transaction. */
static void finish_reservation(struct dm_maria *maria, struct dm_maria_exchange *exchange)
{
    maria->reserved_count = 0;
    if (exchange->error)
        warn_of_lock(maria, exchange->error);
    for (int i = 0; i < exchange->count && !maria->is_doomed; i++) {
        struct dm_maria_item *item = exchange->items[i];
        struct row row = { .value = NULL };

        item->reserves = false;
        if (!exchange->error && read_row(maria, exchange->results[exchange->skipped + i], &row) &&
            is_reservable(item, &row.reply)) {
            row.reply.is_reserved = true;
            snprintf(maria->reserved[maria->reserved_count++], DM_REG_KEY_MAX + 1, "%s", item->key);
            answer_by_row(maria, item, &row.reply);
        }
        free(row.value);
    }
    maria->is_reserved = maria->has_block = maria->reserved_count > 0;
    maria->must_roll_back = !maria->has_block;
    if (!maria->is_doomed)
        put_back(maria, exchange);
}

/* No other exchange begins until the client has gone on. */
static void send_reservation(struct dm_maria *maria)
{
    struct dm_maria_exchange *exchange = begin(maria, finish_reservation);

    if (!exchange)
        return;
    skip(exchange, "START TRANSACTION");
    while (maria->waiting.first && exchange->count < DM_MARIA_RESERVED_MOST && may_reserve(maria, maria->waiting.first))
        exchange->items[exchange->count++] = dm_maria_items_take(&maria->waiting);
    sort(exchange);
    for (int i = 0; i < exchange->count; i++)
        add_reservation(maria, &exchange->text, exchange->items[i]->key);
    maria->has_block = true;
    dm_maria_send(maria, exchange);
}

/* ---- swaps ------------------------------------------------------------------------------- */

/* has_block: the last statement was the commit, which has succeeded. */
static void finish_swaps(struct dm_maria *maria, struct dm_maria_exchange *exchange)
{
    bool is_transaction = maria->has_block;

    maria->has_block = false;
    if (exchange->error) {
        take_failure(maria, exchange, is_transaction);
        return;
    }
    for (int i = 0; i < exchange->count; i++) {
        struct dm_maria_item *item = exchange->items[i];
        struct dm_reg_reply reply = { .outcome = DM_REG_DONE, .age_ms = -1, .version = version_after(item) };

        item->is_refused = exchange->changed[exchange->skipped + i] != 1;
        if (!item->is_refused)
            dm_maria_answer(maria, item, &reply);
    }
    put_back(maria, exchange);
}

/* Sends the swaps of an exchange.  One is a transaction by itself, if none has been begun. */
static void send_swaps_of(struct dm_maria *maria, struct dm_maria_exchange *exchange)
{
    for (int i = 0; i < exchange->count; i++)
        add_swap(maria, &exchange->text, exchange->items[i]);
    if (maria->has_block)
        add_word(&exchange->text, "COMMIT");
    dm_maria_send(maria, exchange);
}

static void send_swaps(struct dm_maria *maria)
{
    struct dm_maria_exchange *exchange = begin(maria, finish_swaps);
    struct dm_maria_item *item;
    size_t size = 0;

    while (exchange && (item = maria->waiting.first) && exchange->count < DM_MARIA_GROUP && is_swap(item)) {
        if (exchange->count && (item->is_alone || size + item->size > maria->driver.can.value_max))
            break;
        exchange->items[exchange->count++] = dm_maria_items_take(&maria->waiting);
        size += item->size;
        if (item->is_alone)
            break;
    }
    if (!exchange)
        return;
    sort(exchange);
    maria->has_block = exchange->count > 1;
    if (maria->has_block)
        skip(exchange, "START TRANSACTION");
    send_swaps_of(maria, exchange);
}

static bool take_key(struct dm_maria *maria, const char *key)
{
    for (int i = 0; i < maria->reserved_count; i++) {
        if (strcmp(maria->reserved[i], key) != 0)
            continue;
        memmove(maria->reserved[i], maria->reserved[--maria->reserved_count], sizeof maria->reserved[i]);
        return true;
    }
    return false;
}

static void finish_roll_back(struct dm_maria *maria, struct dm_maria_exchange *exchange)
{
    if (exchange->error)
        dm_maria_doom(maria, false, "%s", exchange->message);
}

/* One swap of each reserved key goes; the others stay in their order. */
void dm_maria_let_go(struct dm_reg_driver *driver)
{
    struct dm_maria *maria = (struct dm_maria *)driver;
    struct dm_maria_items waiting = maria->waiting;
    struct dm_maria_exchange *exchange;
    struct dm_maria_item *item;

    if (!maria->is_reserved)
        return;
    maria->is_reserved = false;
    exchange = begin(maria, finish_swaps);
    if (!exchange)
        return;
    maria->waiting = (struct dm_maria_items){ 0 };
    while ((item = dm_maria_items_take(&waiting))) {
        if (is_swap(item) && take_key(maria, item->key))
            exchange->items[exchange->count++] = item;
        else
            dm_maria_items_append(&maria->waiting, item);
    }
    if (exchange->count) {
        send_swaps_of(maria, exchange);
        return;
    }
    maria->has_block = false;
    exchange->finish = finish_roll_back;
    add_word(&exchange->text, "ROLLBACK");
    dm_maria_send(maria, exchange);
}

/* The connection is gone: we may have been too slow. */
void dm_maria_lose_reservation(struct dm_maria *maria)
{
    if (maria->has_block)
        maria->unreserved_ns = dm_clock_boot_ns() + UNRESERVED_NS;
    maria->has_block = maria->is_reserved = maria->must_roll_back = false;
}

/* ---- lists ------------------------------------------------------------------------------- */

static void tell_list(struct dm_maria *maria, struct dm_maria_item *item, MYSQL_RES *result)
{
    int rows = (int)mysql_num_rows(result), count = rows > item->most ? item->most : rows;
    const char **keys = calloc((size_t)count + 1, sizeof *keys);
    MYSQL_ROW fields;

    if (!keys) {
        dm_maria_fail(maria, item, DM_REG_UNKNOWN, "out of memory");
        return;
    }
    for (int i = 0; i < count && (fields = dm_maria_row(result, 1)); i++)
        keys[i] = dm_maria_field(fields, 0);
    item->is_answered = true;
    maria->client.on_list(maria->client.user, item->ticket, keys, count, rows <= item->most, NULL);
    free(keys);
}

static void finish_list(struct dm_maria *maria, struct dm_maria_exchange *exchange)
{
    if (exchange->error)
        take_failure(maria, exchange, false);
    else if (exchange->results[exchange->skipped])
        tell_list(maria, exchange->items[0], exchange->results[exchange->skipped]);
}

static void send_list(struct dm_maria *maria)
{
    struct dm_maria_exchange *exchange = begin(maria, finish_list);

    if (!exchange)
        return;
    exchange->items[exchange->count++] = dm_maria_items_take(&maria->waiting);
    add_list(maria, &exchange->text, exchange->items[0]);
    dm_maria_send(maria, exchange);
}

/* ---- the operations ---------------------------------------------------------------------- */

void dm_maria_send_next(struct dm_maria *maria)
{
    const struct dm_maria_item *first = maria->waiting.first;

    if (!first || maria->exchange || maria->is_reserved || maria->is_finishing || maria->is_doomed ||
        maria->phase != DM_MARIA_READY)
        return;
    if (first->kind == DM_MARIA_LIST)
        send_list(maria);
    else if (is_swap(first))
        send_swaps(maria);
    else if (may_reserve(maria, first))
        send_reservation(maria);
    else
        send_looks(maria);
}

static bool is_usable(struct dm_maria *maria)
{
    return maria->phase == DM_MARIA_READY && !maria->is_doomed && dm_maria_check_socket(maria);
}

/* The largest value is at most half of what the server takes in one piece: its text has two digits for a byte. */
static bool is_too_large(const struct dm_maria *maria, const struct dm_maria_item *item)
{
    return item->kind == DM_MARIA_SWAP &&
           (item->size > maria->driver.can.value_max || (item->size && item->size < DM_REG_VERSION_SIZE));
}

static bool ask(struct dm_reg_driver *driver, uint64_t ticket, const struct dm_reg_item *items, int count,
                enum dm_maria_kind kind)
{
    struct dm_maria *maria = (struct dm_maria *)driver;
    struct dm_maria_items made;
    struct dm_maria_item *item;

    if (!is_usable(maria) || !dm_maria_items_make(&made, ticket, items, count, kind))
        return false;
    while ((item = dm_maria_items_take(&made)))
        dm_maria_items_append(is_too_large(maria, item) ? &maria->due : &maria->waiting, item);
    dm_maria_send_next(maria);
    return true;
}

bool dm_maria_read(struct dm_reg_driver *driver, uint64_t ticket, const struct dm_reg_item *items, int count)
{
    return ask(driver, ticket, items, count, DM_MARIA_READ);
}

bool dm_maria_swap(struct dm_reg_driver *driver, uint64_t ticket, const struct dm_reg_item *items, int count)
{
    return ask(driver, ticket, items, count, DM_MARIA_SWAP);
}

bool dm_maria_list(struct dm_reg_driver *driver, uint64_t ticket, const char *prefix, const char *after, int most)
{
    struct dm_maria *maria = (struct dm_maria *)driver;
    const struct dm_reg_item from = { .key = prefix };
    struct dm_maria_items made;

    if (!is_usable(maria) || !dm_maria_items_make(&made, ticket, &from, 1, DM_MARIA_LIST))
        return false;
    made.first->most = most;
    memcpy(made.first->after, after, strnlen(after, sizeof made.first->after - 1));
    dm_maria_items_append(&maria->waiting, made.first);
    dm_maria_send_next(maria);
    return true;
}

void dm_maria_answer_due(struct dm_maria *maria)
{
    struct dm_maria_item *item;

    while (!maria->is_doomed && (item = dm_maria_items_take(&maria->due))) {
        dm_maria_fail(maria, item, DM_REG_TOO_LARGE, NULL);
        dm_maria_item_free(item);
    }
}
