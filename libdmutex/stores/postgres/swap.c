/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Reads, swaps and lists.
 *
 * A swap is one statement that compares the version and the epoch.  If it is refused, a second transaction reads the
 * row.  They cannot be one: a statement that is refused would read the row in its own old snapshot, and bring the
 * version that it was refused for.
 *
 * A row is locked from the statement of a swap to its commit.  If somebody swaps it as fast as possible, a swap of
 * ours waits for that commit, is refused, and the next one of the other process is always there before ours.  So the
 * read after a refusal locks the row, too, for which the server lets us wait in line; the client's next swap, which
 * follows within the same turn, ends that transaction.  Nobody can be refused twice in a row.  The server ends the
 * connection of a process that is stopped meanwhile.
 *
 * Swaps that come while others are under way wait for these, and then go together in one transaction: the server
 * writes its log once for all of them.  If one statement of a group fails, none has taken effect, and the others are
 * sent again, each alone.  The rows of a group are locked in the order of their keys, so groups do not deadlock.
 *
 * Notices go in a transaction of their own behind the swap.  In the swap's own, they would make all commits of the
 * server wait for each other.  The swap notes in a setting of the session that it has taken effect; the note is rolled
 * back with the swap, and the next statement sends the notice if it finds the note.  Where commits do not wait for the
 * disk, the swap of a row that is there sends its only notice itself.
 */
#include <endian.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/minmax.h"
#include "stores/postgres/parts.h"
#include "stores/postgres/schema.h"

enum { BYTEA = 17, INT8 = 20, INT4 = 23, TEXT = 25, UUID = 2950 };

/* 2000-01-01, where PostgreSQL's time begins, since 1970. */
#define PG_EPOCH_US INT64_C(946684800000000)

/* After a connection was lost with a row reserved, perhaps because we were too slow, none is reserved for so long. */
#define UNRESERVED_NS (60 * DM_NS_PER_S)

/* The next group waits for the swaps that are expected for this part of the last time, and no longer than this. */
#define GATHER_PART 4
#define GATHER_MOST_NS DM_NS_PER_MS

/* A row that is absent before and after an insertion may have come and gone meanwhile, but not so often in a row. */
#define UNWRITTEN_MOST 4

/* ---- statements -------------------------------------------------------------------------- */

/* $1 name, $2 expected version, $3 new version, $4 value, $5 epoch, $6 timeline, $7 and $8 the note, or the notice. */
#define EQUALS " OPERATOR(pg_catalog.=) "
#define IF_EPOCH "EXISTS (SELECT FROM @.epoch WHERE id" EQUALS "$5)"
#define UPDATE                                                                                           \
    "UPDATE @.registers SET version = $3, value = $4, written = pg_catalog.clock_timestamp(), timeline " \
    "= $6 WHERE name" EQUALS "$1 AND version" EQUALS "$2 AND " IF_EPOCH
#define INSERT                                                                              \
    "INSERT INTO @.registers (name, version, value, written, timeline) SELECT $1, $3, $4, " \
    "pg_catalog.clock_timestamp(), $6 WHERE " IF_EPOCH " ON CONFLICT DO NOTHING"
#define REMOVE "DELETE FROM @.registers WHERE name" EQUALS "$1 AND version" EQUALS "$2 AND " IF_EPOCH
#define RETURNING " RETURNING pg_catalog.clock_timestamp()"
#define NOTIFY_TOO RETURNING ", pg_catalog.pg_notify($7, $8)"
#define NOTE RETURNING ", pg_catalog.set_config($7, $8, false)"

/* $1 name, $2 known version, $3 epoch.  No row: another epoch. */
#define READ                                                                                              \
    "SELECT r.version, CASE WHEN r.version" EQUALS "$2 THEN NULL ELSE r.version OPERATOR(pg_catalog.||) " \
    "r.value END, r.written, r.timeline, pg_catalog.clock_timestamp() FROM @.epoch e LEFT JOIN "          \
    "@.registers r ON r.name" EQUALS "$1 WHERE e.id" EQUALS "$3"
/* $1 name, $2 epoch.  No row: it is absent, or the epoch is another one. */
#define RESERVE                                                                                                 \
    "SELECT version, version OPERATOR(pg_catalog.||) value FROM @.registers WHERE name" EQUALS "$1 AND EXISTS " \
    "(SELECT FROM @.epoch WHERE id" EQUALS "$2) FOR NO KEY UPDATE"
/* $1 prefix, $2 its end, $3 after, $4 how many. */
#define LIST                                                                       \
    "SELECT name FROM @.registers WHERE name OPERATOR(pg_catalog.>=) $1 AND name " \
    "OPERATOR(pg_catalog.<) $2 AND name OPERATOR(pg_catalog.>) $3 ORDER BY name LIMIT $4"
/* $1 the note's name, $2 its value, $3 channel, $4 payload. */
#define TELL                                                                                               \
    "SELECT pg_catalog.set_config('synchronous_commit', 'off', true), pg_catalog.pg_notify($3, $4) WHERE " \
    "pg_catalog.current_setting($1, true)" EQUALS "$2"

static const Oid swap_types[] = { BYTEA, BYTEA, BYTEA, BYTEA, UUID, INT4, TEXT, TEXT };
static const Oid read_types[] = { BYTEA, BYTEA, UUID };
static const Oid reserve_types[] = { BYTEA, UUID };
static const Oid list_types[] = { BYTEA, BYTEA, BYTEA, INT8 };
static const Oid tell_types[] = { TEXT, TEXT, TEXT, TEXT };

/* Only statements that are executed again and again are prepared. */
static const struct {
    const char *form;
    const Oid *types;
    int count;
    const char *name;
} forms[DM_PG_STATEMENTS] = {
    [DM_PG_UPDATE] = { UPDATE RETURNING, swap_types, 6, "dmutex_update" },
    [DM_PG_INSERT] = { INSERT RETURNING, swap_types, 6, "dmutex_insert" },
    [DM_PG_REMOVE] = { REMOVE RETURNING, swap_types, 6, NULL },
    [DM_PG_UPDATE_TOLD] = { UPDATE NOTE, swap_types, 8, "dmutex_update_told" },
    [DM_PG_UPDATE_TELLING] = { UPDATE NOTIFY_TOO, swap_types, 8, "dmutex_update_telling" },
    [DM_PG_INSERT_TOLD] = { INSERT NOTE, swap_types, 8, NULL },
    [DM_PG_REMOVE_TOLD] = { REMOVE NOTE, swap_types, 8, NULL },
    [DM_PG_READ] = { READ, read_types, 3, "dmutex_read" },
    [DM_PG_RESERVE] = { RESERVE, reserve_types, 2, "dmutex_reserve" },
    [DM_PG_LIST] = { LIST, list_types, 4, NULL },
    [DM_PG_TELL] = { TELL, tell_types, 4, "dmutex_tell" },
    [DM_PG_BEGIN] = { "BEGIN", NULL, 0, "dmutex_begin" },
    [DM_PG_COMMIT] = { "COMMIT", NULL, 0, "dmutex_commit" },
    [DM_PG_ROLLBACK] = { "ROLLBACK", NULL, 0, NULL },
};

bool dm_pg_statements_make(struct dm_pg_statement statements[DM_PG_STATEMENTS], const char *schema)
{
    bool are_all = true;

    for (int i = 0; i < DM_PG_STATEMENTS; i++) {
        statements[i] = (struct dm_pg_statement){ .text = dm_pg_fill(forms[i].form, schema, ""),
                                                  .types = forms[i].types,
                                                  .count = forms[i].count,
                                                  .name = forms[i].name };
        are_all &= statements[i].text != NULL;
    }
    return are_all;
}

void dm_pg_statements_free(struct dm_pg_statement statements[DM_PG_STATEMENTS])
{
    for (int i = 0; i < DM_PG_STATEMENTS; i++)
        free(statements[i].text);
}

/* ---- items ------------------------------------------------------------------------------- */

static struct dm_pg_item *item_new(uint64_t ticket, int index, const char *key)
{
    struct dm_pg_item *item = calloc(1, sizeof *item);

    if (!item)
        return NULL;
    item->ticket = ticket;
    item->index = index;
    memcpy(item->key, key, strnlen(key, sizeof item->key - 1));
    return item;
}

/* A payload is text. */
static char *hex(const void *bytes, size_t size)
{
    const uint8_t *from = bytes;
    char *text = malloc(2 * size + 1);

    for (size_t i = 0; text && i < size; i++)
        sprintf(text + 2 * i, "%02x", from[i]);
    if (text)
        text[2 * size] = '\0';
    return text;
}

static bool copy_tells(struct dm_pg_item *item, const struct dm_reg_item *from)
{
    item->tells = from->tell_count ? calloc((size_t)from->tell_count, sizeof *item->tells) : NULL;
    if (from->tell_count && !item->tells)
        return false;
    for (; item->tell_count < from->tell_count; item->tell_count++) {
        const struct dm_reg_tell *tell = &from->tells[item->tell_count];

        dm_pg_channel(tell->inbox, item->tells[item->tell_count].channel);
        item->tells[item->tell_count].payload = hex(tell->text, tell->size);
        if (!item->tells[item->tell_count].payload)
            return false;
    }
    return true;
}

static bool copy_value(struct dm_pg_item *item, const struct dm_reg_item *from)
{
    item->size = from->size;
    item->value = from->size ? malloc(from->size) : NULL;
    if (from->size && !item->value)
        return false;
    if (from->size)
        memcpy(item->value, from->value, from->size);
    return true;
}

/* ---- reading ----------------------------------------------------------------------------- */

static int64_t int64_at(const PGresult *result, int column)
{
    uint64_t number;

    if (PQgetisnull(result, 0, column) || PQgetlength(result, 0, column) != 8)
        return 0;
    memcpy(&number, PQgetvalue(result, 0, column), 8);
    return (int64_t)be64toh(number);
}

static int32_t int32_at(const PGresult *result, int column)
{
    uint32_t number;

    if (PQgetisnull(result, 0, column) || PQgetlength(result, 0, column) != 4)
        return -1;
    memcpy(&number, PQgetvalue(result, 0, column), 4);
    return (int32_t)be32toh(number);
}

/*
 * The clock of an earlier primary may have been another one, so an age counts only within a timeline.  A clock that was
 * set back makes ages too low, or negative: then none is known.
 */
static int64_t age_of(const struct dm_postgres *postgres, const PGresult *result)
{
    int64_t age_us = int64_at(result, 4) - int64_at(result, 2);

    return int32_at(result, 3) == postgres->timeline && age_us >= 0 ? age_us / 1000 : -1;
}

/*
 * The answer to READ.  False if it cannot be one: the epoch is another one, or the row is not of our making; then the
 * connection is doomed, or the reply a refusal.
 */
static bool read_row(struct dm_postgres *postgres, const PGresult *result, struct dm_reg_reply *reply)
{
    *reply = (struct dm_reg_reply){ .outcome = DM_REG_DONE, .age_ms = -1 };
    if (PQntuples(result) == 0) {
        dm_pg_doom(postgres, false, "the data of the locks have been replaced");
        return false;
    }
    reply->clock_us = int64_at(result, 4) + PG_EPOCH_US;
    reply->has_value = true;
    if (PQgetisnull(result, 0, 0))
        return true;
    if (PQgetlength(result, 0, 0) != DM_REG_VERSION_SIZE) {
        reply->outcome = DM_REG_REFUSED;
        reply->has_value = false;
        reply->reason = "this row of the table registers has been changed by hand: delete it if nobody holds the lock";
        return true;
    }
    memcpy(reply->version.bytes, PQgetvalue(result, 0, 0), DM_REG_VERSION_SIZE);
    reply->age_ms = age_of(postgres, result);
    if (PQgetisnull(result, 0, 1)) {
        reply->outcome = DM_REG_SAME;
        reply->has_value = false;
        return true;
    }
    reply->value = PQgetvalue(result, 0, 1);
    reply->size = (size_t)PQgetlength(result, 0, 1);
    return true;
}

/* The statement that reads an item's key, unless its version is the known one. */
static bool send_read(struct dm_postgres *postgres, struct dm_pg_exchange *exchange, struct dm_pg_item *item,
                      const void *known)
{
    struct dm_pg_param params[] = {
        { item->key, (int)strlen(item->key) },
        { known, DM_REG_VERSION_SIZE },
        { postgres->epoch, sizeof postgres->epoch },
    };

    return dm_pg_send(postgres, exchange, item, &postgres->statements[DM_PG_READ], params);
}

/* A statement about the item has failed, and is rolled back. */
static void judge(struct dm_postgres *postgres, struct dm_pg_item *item, const PGresult *error)
{
    enum dm_pg_failure failure = dm_pg_judge(error);

    item->state = DM_PG_JUDGED;
    item->outcome = failure == DM_PG_FAILED_NOW     ? DM_REG_CONFLICT
                    : failure == DM_PG_FAILED_LARGE ? DM_REG_TOO_LARGE
                                                    : DM_REG_REFUSED;
    dm_pg_explain(error, postgres->settings.schema, item->reason);
    if (failure == DM_PG_FAILED_TABLE)
        dm_pg_doom(postgres, false, "%s", item->reason);
}

static void finish_reads(struct dm_postgres *postgres, struct dm_pg_exchange *exchange)
{
    for (int i = 0; i < exchange->count; i++) {
        struct dm_reg_reply reply;

        if (exchange->error) {
            judge(postgres, exchange->items[i], exchange->error);
            reply = (struct dm_reg_reply){ .outcome = DM_REG_UNKNOWN, .age_ms = -1 };
            if (exchange->items[i]->outcome == DM_REG_REFUSED)
                reply.outcome = DM_REG_REFUSED;
            reply.reason = exchange->items[i]->reason;
        }
        if (postgres->is_doomed)
            return; /* the rest is given up */
        if (exchange->error || read_row(postgres, exchange->results[i], &reply))
            dm_pg_answer(postgres, exchange->items[i], &reply);
    }
}

/* New items of a call; all or none. */
static struct dm_pg_item **make_items(uint64_t ticket, const struct dm_reg_item *items, int count, bool is_swap)
{
    struct dm_pg_item **made = calloc((size_t)count + 1, sizeof *made);
    int i = 0;

    for (; made && i < count; i++) {
        made[i] = item_new(ticket, i, items[i].key);
        if (made[i]) {
            made[i]->reserves = items[i].reserves;
            made[i]->is_read = !is_swap;
            made[i]->version = items[i].version;
        }
        if (!made[i] || (is_swap && (!copy_value(made[i], &items[i]) || !copy_tells(made[i], &items[i]))))
            break;
    }
    if (made && i == count)
        return made;
    for (i = 0; made && made[i]; i++)
        dm_pg_item_free(made[i]);
    free(made);
    return NULL;
}

/* ---- notices ----------------------------------------------------------------------------- */

/* A notice may get lost. */
static void ignore(struct dm_postgres *postgres, struct dm_pg_exchange *exchange)
{
    (void)postgres;
    (void)exchange;
}

/* The note that an item of the group leaves in the session, and what it says. */
struct note {
    char name[24], text[24];
};

static struct note note_of(const struct dm_postgres *postgres, int place)
{
    struct note note;

    snprintf(note.name, sizeof note.name, "dmutex.swap%d", place);
    snprintf(note.text, sizeof note.text, "%" PRIu64, postgres->group_number);
    return note;
}

/* The server sends it if it finds the note. */
static void send_tell(struct dm_postgres *postgres, struct dm_pg_exchange *exchange, const struct dm_pg_told *told,
                      const struct note *note)
{
    struct dm_pg_param params[] = {
        { note->name, (int)strlen(note->name) },
        { note->text, (int)strlen(note->text) },
        { told->channel, (int)strlen(told->channel) },
        { told->payload, (int)strlen(told->payload) },
    };

    dm_pg_send(postgres, exchange, NULL, &postgres->statements[DM_PG_TELL], params);
}

/* True of a swap that sends its notice itself: nobody waits for long for a commit that does not wait for the disk. */
static bool tells_itself(const struct dm_postgres *postgres, const struct dm_pg_item *item)
{
    return postgres->commits_at_once && item->tell_count == 1 && item->size &&
           !dm_reg_version_is_absent(&item->version);
}

/* The notices of a group, behind its swaps. */
static void send_tells(struct dm_postgres *postgres, struct dm_pg_item *const *items, int count)
{
    struct dm_pg_exchange *exchange = NULL;

    for (int i = 0; i < count; i++) {
        struct note note = note_of(postgres, i);

        if (tells_itself(postgres, items[i]))
            continue;
        for (int j = 0; j < items[i]->tell_count; j++) {
            if (exchange && exchange->count == DM_PG_GROUP) {
                dm_pg_sync(postgres, exchange);
                exchange = NULL;
            }
            if (!exchange)
                exchange = dm_pg_exchange_new(ignore);
            if (exchange)
                send_tell(postgres, exchange, &items[i]->tells[j], &note);
        }
    }
    if (exchange)
        dm_pg_sync(postgres, exchange);
}

/* ---- swaps ------------------------------------------------------------------------------- */

static const uint8_t absent[DM_REG_VERSION_SIZE];

/* The version of the new value. */
static const void *version_after(const struct dm_pg_item *item)
{
    return item->size ? item->value : absent;
}

static void send_swap(struct dm_postgres *postgres, struct dm_pg_exchange *exchange, struct dm_pg_item *item)
{
    uint32_t timeline = htobe32((uint32_t)postgres->timeline);
    bool is_told = item->tell_count > 0;
    struct note note = is_told ? note_of(postgres, exchange->count) : (struct note){ .name = "" };
    struct dm_pg_param params[] = {
        { item->key, (int)strlen(item->key) },
        { item->version.bytes, DM_REG_VERSION_SIZE },
        { version_after(item), DM_REG_VERSION_SIZE },
        { item->size ? (const char *)item->value + DM_REG_VERSION_SIZE : "",
          item->size ? (int)(item->size - DM_REG_VERSION_SIZE) : 0 },
        { postgres->epoch, sizeof postgres->epoch },
        { &timeline, sizeof timeline },
        { note.name, (int)strlen(note.name) },
        { note.text, (int)strlen(note.text) },
    };
    enum dm_pg_statement_kind kind;

    if (item->size == 0)
        kind = is_told ? DM_PG_REMOVE_TOLD : DM_PG_REMOVE;
    else if (dm_reg_version_is_absent(&item->version))
        kind = is_told ? DM_PG_INSERT_TOLD : DM_PG_INSERT;
    else
        kind = is_told ? DM_PG_UPDATE_TOLD : DM_PG_UPDATE;
    if (tells_itself(postgres, item)) {
        kind = DM_PG_UPDATE_TELLING;
        params[6] = (struct dm_pg_param){ item->tells->channel, (int)strlen(item->tells->channel) };
        params[7] = (struct dm_pg_param){ item->tells->payload, (int)strlen(item->tells->payload) };
    }
    dm_pg_send(postgres, exchange, item, &postgres->statements[kind], params);
}

/* All have been rolled back.  The one that failed is judged; the others did not have their turn. */
static void judge_group(struct dm_postgres *postgres, struct dm_pg_exchange *exchange)
{
    int count = exchange->count - exchange->is_block;

    for (int i = 0; i < count; i++) {
        if (i == exchange->error_at || count == 1)
            judge(postgres, exchange->items[i], exchange->error);
        else
            exchange->items[i]->state = DM_PG_SET_ASIDE;
    }
}

static void finish_looks(struct dm_postgres *postgres, struct dm_pg_exchange *exchange);

/* A look at the row of each item that is not answered, which owns the item from now on. */
static void send_looks(struct dm_postgres *postgres, struct dm_pg_item **items, int count)
{
    struct dm_pg_exchange *looks = dm_pg_exchange_new(finish_looks);

    if (!looks) {
        dm_pg_doom(postgres, false, "out of memory");
        return;
    }
    looks->owns_items = true;
    for (int i = 0; i < count; i++) {
        if (!items[i] || items[i]->state == DM_PG_ANSWERED)
            continue;
        send_read(postgres, looks, items[i], version_after(items[i]));
        items[i] = NULL;
    }
    if (looks->count)
        dm_pg_sync(postgres, looks);
    else
        dm_pg_exchange_free(looks);
}

/* The same of items that are reads.  What cannot be sent is given up with the connection. */
static void send_reads(struct dm_postgres *postgres, struct dm_pg_item **items, int count)
{
    struct dm_pg_exchange *reads = dm_pg_exchange_new(finish_reads);

    if (reads)
        reads->owns_items = true;
    else
        dm_pg_doom(postgres, false, "out of memory");
    for (int i = 0; i < count; i++) {
        if (!items[i] || !items[i]->is_read || items[i]->state == DM_PG_ANSWERED)
            continue;
        if (reads)
            send_read(postgres, reads, items[i], items[i]->version.bytes);
        else
            dm_pg_items_append(&postgres->due, items[i]);
        items[i] = NULL;
    }
    if (reads && reads->count)
        dm_pg_sync(postgres, reads);
    else if (reads)
        dm_pg_exchange_free(reads);
}

/* ---- reservations ------------------------------------------------------------------------ */

static void roll_back(struct dm_postgres *postgres)
{
    struct dm_pg_exchange *exchange = dm_pg_exchange_new(ignore);

    postgres->has_block = false;
    if (!exchange) {
        dm_pg_doom(postgres, false, "out of memory");
        return;
    }
    dm_pg_send(postgres, exchange, NULL, &postgres->statements[DM_PG_ROLLBACK], NULL);
    dm_pg_sync(postgres, exchange);
}

/* False: the row is absent, of other data, or what a plain look must explain. */
static bool take_reserved(const struct dm_pg_item *item, const PGresult *result, struct dm_reg_reply *reply)
{
    *reply = (struct dm_reg_reply){
        .outcome = item->is_read ? DM_REG_DONE : DM_REG_CONFLICT, .has_value = true, .is_reserved = true, .age_ms = -1
    };
    if (PQntuples(result) != 1 || PQgetlength(result, 0, 0) != DM_REG_VERSION_SIZE)
        return false;
    memcpy(reply->version.bytes, PQgetvalue(result, 0, 0), DM_REG_VERSION_SIZE);
    reply->value = PQgetvalue(result, 0, 1);
    reply->size = (size_t)PQgetlength(result, 0, 1);
    return item->is_read || (!dm_reg_version_equals(&reply->version, &item->version) &&
                             memcmp(reply->version.bytes, version_after(item), DM_REG_VERSION_SIZE) != 0);
}

static void finish_reservation(struct dm_postgres *postgres, struct dm_pg_exchange *exchange)
{
    if (exchange->error) { /* others have kept a row locked for too long */
        roll_back(postgres);
        postgres->has_group = false;
    } else {
        postgres->is_reserved = true;
        postgres->reserved_count = 0;
    }
    for (int i = 1; i < exchange->count && !exchange->error && !postgres->is_doomed; i++) {
        struct dm_pg_item *item = exchange->items[i];
        struct dm_reg_reply reply;

        if (!take_reserved(item, exchange->results[i], &reply))
            continue;
        snprintf(postgres->reserved[postgres->reserved_count++], DM_REG_KEY_MAX + 1, "%s", item->key);
        dm_pg_answer(postgres, item, &reply);
    }
    if (postgres->is_doomed)
        return;
    send_reads(postgres, exchange->items, exchange->count);
    send_looks(postgres, exchange->items, exchange->count);
}

static bool may_reserve(const struct dm_pg_item *item)
{
    return item && item->reserves && (item->is_read ? item->state == DM_PG_ASKED : item->state == DM_PG_REFUSED);
}

/* Takes over items whose client goes on at once.  No other swap is sent until the client has done so. */
static void reserve(struct dm_postgres *postgres, struct dm_pg_item **items, int count)
{
    struct dm_pg_exchange *exchange = NULL;

    if (dm_clock_boot_ns() < postgres->unreserved_ns)
        return;
    for (int i = 0; i < count && !(exchange && exchange->count > DM_PG_RESERVED_MOST); i++) {
        struct dm_pg_param params[] = {
            { items[i] ? items[i]->key : "", items[i] ? (int)strlen(items[i]->key) : 0 },
            { postgres->epoch, sizeof postgres->epoch },
        };

        if (!may_reserve(items[i]))
            continue;
        if (!exchange) {
            exchange = dm_pg_exchange_new(finish_reservation);
            if (!exchange)
                return;
            exchange->owns_items = true;
            dm_pg_send(postgres, exchange, NULL, &postgres->statements[DM_PG_BEGIN], NULL);
        }
        dm_pg_send(postgres, exchange, items[i], &postgres->statements[DM_PG_RESERVE], params);
        items[i] = NULL;
    }
    if (!exchange)
        return;
    postgres->has_group = postgres->has_block = true;
    dm_pg_sync(postgres, exchange);
}

static int by_key(const void *one, const void *other)
{
    return strcmp((*(struct dm_pg_item *const *)one)->key, (*(struct dm_pg_item *const *)other)->key);
}

/* Plain reads go in transactions of up to DM_PG_GROUP.  Rows are locked in the order of their keys, as by groups. */
bool dm_pg_read(struct dm_reg_driver *driver, uint64_t ticket, const struct dm_reg_item *items, int count)
{
    struct dm_postgres *postgres = (struct dm_postgres *)driver;
    struct dm_pg_item **made = dm_pg_is_open(postgres) ? make_items(ticket, items, count, false) : NULL;

    if (!made)
        return false;
    qsort(made, (size_t)count, sizeof *made, by_key);
    if (!postgres->has_group && !postgres->waiting.first)
        reserve(postgres, made, count);
    for (int i = 0; i < count; i += DM_PG_GROUP)
        send_reads(postgres, made + i, count - i < DM_PG_GROUP ? count - i : DM_PG_GROUP);
    free(made);
    return true;
}

/* ---- answers ----------------------------------------------------------------------------- */

/* The rows that the statements have returned are true now: the server has committed. */
static int answer_group(struct dm_postgres *postgres, struct dm_pg_exchange *exchange)
{
    int refused = 0;

    for (int i = 0; i < exchange->count - exchange->is_block; i++) {
        const PGresult *result = exchange->results[i];
        struct dm_reg_reply reply = { .outcome = DM_REG_DONE, .age_ms = -1 };

        if (PQntuples(result) != 1) {
            exchange->items[i]->state = DM_PG_REFUSED;
            refused++;
            continue;
        }
        postgres->unwritten = 0;
        memcpy(reply.version.bytes, version_after(exchange->items[i]), DM_REG_VERSION_SIZE);
        reply.clock_us = int64_at(result, 0) + PG_EPOCH_US;
        dm_pg_answer(postgres, exchange->items[i], &reply);
    }
    return refused;
}

static int count_waiting(const struct dm_postgres *postgres)
{
    int count = 0;

    for (const struct dm_pg_item *item = postgres->waiting.first; item && count < DM_PG_GROUP; item = item->next)
        count++;
    return count;
}

/*
 * Threads that lock and unlock as fast as they can ask again at once.  If the first of them went alone, all others
 * would wait for its commit.
 */
static void expect_group(struct dm_postgres *postgres, const struct dm_pg_exchange *last)
{
    int64_t now_ns = dm_clock_boot_ns();

    postgres->expected = last->count - last->is_block + count_waiting(postgres);
    if (postgres->expected > DM_PG_GROUP)
        postgres->expected = DM_PG_GROUP;
    postgres->gather_ns = now_ns + dm_min64((now_ns - last->sent_ns) / GATHER_PART, GATHER_MOST_NS);
}

/* After an error the next group waits for the looks, behind the items that are set aside. */
static void finish_swaps(struct dm_postgres *postgres, struct dm_pg_exchange *exchange)
{
    int refused;

    postgres->has_group = exchange->error != NULL;
    if (!exchange->error)
        expect_group(postgres, exchange);
    if (exchange->is_block && exchange->error)
        roll_back(postgres);
    postgres->has_block = false;
    if (exchange->error)
        judge_group(postgres, exchange);
    refused = exchange->error ? exchange->count : answer_group(postgres, exchange);
    if (postgres->is_doomed || !refused)
        return;
    reserve(postgres, exchange->items, exchange->count);
    send_looks(postgres, exchange->items, exchange->count);
}

/* Once for each connection: it may go on for hours. */
static void warn_of_lock(struct dm_postgres *postgres, const struct dm_pg_item *item)
{
    char text[DM_REG_REASON_ROOM];

    if (postgres->is_warned || !strstr(item->reason, "55P03"))
        return;
    postgres->is_warned = true;
    snprintf(text, sizeof text,
             "another session of PostgreSQL keeps a row or the table \"%s\".registers locked (pg_locks tells which): "
             "locks cannot be taken or given back until it ends its transaction",
             postgres->settings.schema);
    postgres->client.on_warning(postgres->client.user, text);
}

/*
 * True if the row still has the version that the swap expected.  Versions never come back, so nobody else has written:
 * something in the database keeps rows from being written, and would do so each time that the swap is repeated.
 */
static bool is_unwritten(struct dm_postgres *postgres, struct dm_pg_item *item, const struct dm_reg_reply *reply)
{
    if (reply->outcome != DM_REG_DONE || !dm_reg_version_equals(&reply->version, &item->version))
        return false;
    if (dm_reg_version_is_absent(&item->version) && ++postgres->unwritten < UNWRITTEN_MOST)
        return false;
    snprintf(
        item->reason, sizeof item->reason,
        "a trigger or row security of the table \"%s\".registers keeps rows from being written: an admin must drop it",
        postgres->settings.schema);
    return true;
}

/*
 * The row now, for a swap that has not taken effect.  The version that we wanted to write can be there only by
 * ourselves.
 */
static void answer_refused(struct dm_postgres *postgres, struct dm_pg_item *item, const PGresult *row)
{
    struct dm_reg_reply reply = { .age_ms = -1 };

    if (row && !read_row(postgres, row, &reply))
        return;
    if (item->state == DM_PG_REFUSED && reply.outcome == DM_REG_SAME) {
        reply.outcome = DM_REG_DONE;
    } else if (row && item->state == DM_PG_REFUSED && is_unwritten(postgres, item, &reply)) {
        reply.outcome = DM_REG_REFUSED;
        reply.reason = item->reason;
    } else if (reply.outcome != DM_REG_REFUSED) {
        reply.outcome = item->state == DM_PG_JUDGED ? item->outcome : DM_REG_CONFLICT;
    }
    if (reply.outcome != DM_REG_CONFLICT)
        reply.has_value = false;
    if (item->state == DM_PG_JUDGED)
        reply.reason = item->reason;
    dm_pg_answer(postgres, item, &reply);
}

/* Those that are set aside come first, in their old order, since later swaps of their keys may wait behind. */
static void finish_looks(struct dm_postgres *postgres, struct dm_pg_exchange *exchange)
{
    struct dm_pg_items aside = { 0 };

    for (int i = 0; i < exchange->count && !postgres->is_doomed; i++) {
        struct dm_pg_item *item = exchange->items[i];

        if (item->state == DM_PG_SET_ASIDE || item->state == DM_PG_JUDGED)
            postgres->has_group = false;
        if (item->state == DM_PG_SET_ASIDE) {
            item->state = DM_PG_ASKED;
            item->is_alone = true;
            exchange->items[i] = NULL;
            dm_pg_items_append(&aside, item);
        } else if (item->state != DM_PG_ANSWERED) {
            warn_of_lock(postgres, item);
            answer_refused(postgres, item, exchange->error ? NULL : exchange->results[i]);
        }
    }
    if (aside.first) {
        if (postgres->waiting.first)
            aside.last->next = postgres->waiting.first;
        else
            postgres->waiting.last = aside.last;
        postgres->waiting.first = aside.first;
    }
}

/* Takes the next group, in the order of the keys; swaps of one key keep theirs. */
static int take_group(struct dm_postgres *postgres, struct dm_pg_item *group[DM_PG_GROUP])
{
    int count = 0;

    while (postgres->waiting.first && count < DM_PG_GROUP && !(count && postgres->waiting.first->is_alone) &&
           !(count && group[0]->is_alone)) {
        struct dm_pg_item *item = dm_pg_items_take(&postgres->waiting);
        int place = count++;

        for (; place > 0 && strcmp(group[place - 1]->key, item->key) > 0; place--)
            group[place] = group[place - 1];
        group[place] = item;
    }
    return count;
}

/* is_block: the rows are reserved, in a transaction that ends with this. */
static void send_group(struct dm_postgres *postgres, struct dm_pg_item *const *group, int count, bool is_block)
{
    struct dm_pg_exchange *swaps = dm_pg_exchange_new(finish_swaps);

    if (!swaps) {
        for (int i = 0; i < count; i++)
            dm_pg_items_append(&postgres->waiting, group[i]);
        dm_pg_doom(postgres, false, "out of memory");
        return;
    }
    postgres->has_group = true;
    postgres->group_number++;
    swaps->owns_items = true;
    swaps->is_block = is_block;
    for (int i = 0; i < count; i++)
        send_swap(postgres, swaps, group[i]);
    if (is_block)
        dm_pg_send(postgres, swaps, NULL, &postgres->statements[DM_PG_COMMIT], NULL);
    dm_pg_sync(postgres, swaps);
    send_tells(postgres, group, count);
}

int64_t dm_pg_swaps_due_ns(const struct dm_postgres *postgres)
{
    if (postgres->has_group || !postgres->waiting.first)
        return DM_NEVER;
    return count_waiting(postgres) < postgres->expected ? postgres->gather_ns : 0;
}

void dm_pg_send_swaps(struct dm_postgres *postgres)
{
    struct dm_pg_item *group[DM_PG_GROUP] = { NULL };

    if (dm_pg_swaps_due_ns(postgres) <= dm_clock_boot_ns() && dm_pg_is_open(postgres))
        send_group(postgres, group, take_group(postgres, group), false);
}

static bool take_key(struct dm_postgres *postgres, const char *key)
{
    for (int i = 0; i < postgres->reserved_count; i++) {
        if (strcmp(postgres->reserved[i], key) != 0)
            continue;
        memmove(postgres->reserved[i], postgres->reserved[--postgres->reserved_count], sizeof postgres->reserved[i]);
        return true;
    }
    return false;
}

/* One swap of each reserved key goes; the others stay in their order. */
static int take_reserved_group(struct dm_postgres *postgres, struct dm_pg_item *group[DM_PG_RESERVED_MOST])
{
    struct dm_pg_items waiting = postgres->waiting;
    struct dm_pg_item *item;
    int count = 0;

    postgres->waiting = (struct dm_pg_items){ 0 };
    while ((item = dm_pg_items_take(&waiting))) {
        if (take_key(postgres, item->key))
            group[count++] = item;
        else
            dm_pg_items_append(&postgres->waiting, item);
    }
    return count;
}

void dm_pg_let_go(struct dm_reg_driver *driver)
{
    struct dm_postgres *postgres = (struct dm_postgres *)driver;
    struct dm_pg_item *group[DM_PG_RESERVED_MOST];
    int count;

    if (!postgres->is_reserved)
        return;
    postgres->is_reserved = false;
    if (!dm_pg_is_open(postgres))
        return;
    count = take_reserved_group(postgres, group);
    if (count) {
        send_group(postgres, group, count, true);
        return;
    }
    roll_back(postgres);
    postgres->has_group = false;
    dm_pg_send_swaps(postgres);
}

/* The connection is gone: we may have been too slow. */
void dm_pg_lose_reservation(struct dm_postgres *postgres)
{
    if (postgres->has_block)
        postgres->unreserved_ns = dm_clock_boot_ns() + UNRESERVED_NS;
    postgres->has_block = postgres->is_reserved = false;
}

/* False if the store cannot keep it: the answer is due without the server. */
static bool is_small(struct dm_pg_item *item)
{
    if (item->size <= DM_PG_VALUE_MAX && (item->size == 0 || item->size >= DM_REG_VERSION_SIZE))
        return true;
    item->state = DM_PG_JUDGED;
    item->outcome = DM_REG_TOO_LARGE;
    return false;
}

bool dm_pg_swap(struct dm_reg_driver *driver, uint64_t ticket, const struct dm_reg_item *items, int count)
{
    struct dm_postgres *postgres = (struct dm_postgres *)driver;
    struct dm_pg_item **made = dm_pg_is_open(postgres) ? make_items(ticket, items, count, true) : NULL;

    for (int i = 0; made && i < count; i++)
        dm_pg_items_append(is_small(made[i]) ? &postgres->waiting : &postgres->due, made[i]);
    if (made)
        dm_pg_send_swaps(postgres);
    free(made);
    return made != NULL;
}

void dm_pg_answer_due(struct dm_postgres *postgres)
{
    struct dm_pg_item *item;

    while (!postgres->is_doomed && (item = dm_pg_items_take(&postgres->due))) {
        struct dm_reg_reply reply = { .outcome = item->outcome, .age_ms = -1 };

        dm_pg_answer(postgres, item, &reply);
        dm_pg_item_free(item);
    }
}

/* ---- lists ------------------------------------------------------------------------------- */

static void finish_list(struct dm_postgres *postgres, struct dm_pg_exchange *exchange)
{
    struct dm_pg_item *item = exchange->items[0];
    const PGresult *result = exchange->results[0];
    int count = exchange->error ? -1 : PQntuples(result);
    bool is_last = count <= item->most;
    char(*keys)[DM_REG_KEY_MAX + 1] = NULL;
    const char **list = NULL;

    if (exchange->error)
        judge(postgres, item, exchange->error);
    if (postgres->is_doomed)
        return;
    if (count > item->most)
        count = item->most;
    if (count > 0) {
        keys = calloc((size_t)count, sizeof *keys);
        list = calloc((size_t)count, sizeof *list);
    }
    if (count > 0 && (!keys || !list))
        count = -1;
    for (int i = 0; i < count; i++) {
        snprintf(keys[i], sizeof keys[i], "%.*s", PQgetlength(result, i, 0), PQgetvalue(result, i, 0));
        list[i] = keys[i];
    }
    item->state = DM_PG_ANSWERED;
    postgres->client.on_list(postgres->client.user, item->ticket, list, count, is_last,
                             exchange->error ? item->reason : NULL);
    free(keys);
    free(list);
}

/* All bytes of a key are below 0x7f. */
bool dm_pg_list(struct dm_reg_driver *driver, uint64_t ticket, const char *prefix, const char *after, int most)
{
    struct dm_postgres *postgres = (struct dm_postgres *)driver;
    struct dm_pg_item *item = dm_pg_is_open(postgres) ? item_new(ticket, 0, prefix) : NULL;
    struct dm_pg_exchange *exchange = item ? dm_pg_exchange_new(finish_list) : NULL;
    uint64_t limit = htobe64((uint64_t)most + 1);
    char end[DM_REG_KEY_MAX + 2];
    struct dm_pg_param params[] = {
        { prefix, (int)strlen(prefix) },
        { end, snprintf(end, sizeof end, "%.250s\x7f", prefix) },
        { after, (int)strlen(after) },
        { &limit, sizeof limit },
    };

    if (!exchange) {
        free(item);
        return false;
    }
    item->is_list = true;
    item->most = most;
    exchange->owns_items = true;
    dm_pg_send(postgres, exchange, item, &postgres->statements[DM_PG_LIST], params);
    dm_pg_sync(postgres, exchange);
    return true;
}
