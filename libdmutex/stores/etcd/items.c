/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Reads, swaps and lists go together in one transaction of etcd, as nested transactions and ranges: each is decided by
 * itself, and all are in one entry of the log.  The outer transaction compares the epoch.
 *
 * A swap compares the version, which is the beginning of the value.  etcd compares whole values only, but also for
 * less and greater: V < value < V + 1 holds for the values that begin with V and are longer, so each has a dot at its
 * end.  No number of etcd's is needed, and nothing has to be remembered between a read and a swap.
 */
#include <stdlib.h>
#include <string.h>

#include "stores/etcd/parts.h"

/* ---- operations ---------------------------------------------------------------------------- */

void dm_etcd_key(const struct dm_etcd *etcd, struct dm_bytes *to, const char *kind, const char *key)
{
    struct dm_bytes whole = { 0 };

    dm_bytes_print(&whole, "%s%s%s", etcd->prefix, kind, key);
    dm_bytes_add(to, "\"", 1);
    dm_bytes_add_base64(to, whole.at, whole.size);
    dm_bytes_add(to, "\"", 1);
    to->is_short |= whole.is_short;
    dm_bytes_free(&whole);
}

static void add_key(const struct dm_etcd *etcd, struct dm_bytes *op, const char *kind, const char *key)
{
    dm_bytes_print(op, "\"key\":");
    dm_etcd_key(etcd, op, kind, key);
}

static void add_value(struct dm_bytes *op, const void *bytes, size_t size)
{
    dm_bytes_print(op, ",\"value\":\"");
    dm_bytes_add_base64(op, bytes, size);
    dm_bytes_print(op, "\"");
}

static void add_compare(const struct dm_etcd *etcd, struct dm_bytes *op, const char *key, const char *result,
                        const struct dm_reg_version *version)
{
    dm_bytes_print(op, "{");
    add_key(etcd, op, "r/", key);
    dm_bytes_print(op, ",\"target\":\"VALUE\",\"result\":\"%s\"", result);
    add_value(op, version->bytes, sizeof version->bytes);
    dm_bytes_print(op, "}");
}

/* The next version in the order of bytes; a version of 0xff alone is never drawn (it has a count of writes). */
static struct dm_reg_version next_version(struct dm_reg_version version)
{
    for (int i = DM_REG_VERSION_SIZE - 1; i >= 0 && ++version.bytes[i] == 0; i--)
        continue;
    return version;
}

/* Whether the key has this version. */
static void add_compares(const struct dm_etcd *etcd, struct dm_bytes *op, const char *key,
                         const struct dm_reg_version *version)
{
    struct dm_reg_version next = next_version(*version);

    dm_bytes_print(op, "\"compare\":[");
    if (dm_reg_version_is_absent(version)) {
        dm_bytes_print(op, "{");
        add_key(etcd, op, "r/", key);
        dm_bytes_print(op, ",\"target\":\"VERSION\",\"result\":\"EQUAL\",\"version\":\"0\"}");
    } else {
        add_compare(etcd, op, key, "GREATER", version);
        dm_bytes_print(op, ",");
        add_compare(etcd, op, key, "LESS", &next);
    }
    dm_bytes_print(op, "]");
}

static void add_range(const struct dm_etcd *etcd, struct dm_bytes *op, const char *key)
{
    dm_bytes_print(op, "{\"request_range\":{");
    add_key(etcd, op, "r/", key);
    dm_bytes_print(op, "}}");
}

static void add_put(const struct dm_etcd *etcd, struct dm_bytes *op, const struct dm_reg_item *item)
{
    struct dm_bytes value = { 0 };

    dm_bytes_print(op, "{\"%s\":{", item->size ? "request_put" : "request_delete_range");
    add_key(etcd, op, "r/", item->key);
    if (item->size) {
        dm_bytes_add(&value, item->value, item->size);
        dm_bytes_add(&value, ".", 1);
        add_value(op, value.at, value.size);
    }
    dm_bytes_print(op, "}}");
    op->is_short |= value.is_short;
    dm_bytes_free(&value);
}

/* What names the lease of a notice. */
static void print_lease(const struct dm_etcd *etcd, struct dm_bytes *to)
{
    dm_bytes_print(to, ",\"lease\":\"%lld\"", (long long)etcd->lease);
}

/* The notices of a swap to one inbox are one value: two bytes with the length before each. */
static void add_tells(const struct dm_etcd *etcd, struct dm_bytes *op, const struct dm_reg_item *item,
                      const char *inbox)
{
    struct dm_bytes value = { 0 };

    for (int i = 0; i < item->tell_count; i++) {
        const struct dm_reg_tell *tell = &item->tells[i];

        if (strcmp(tell->inbox, inbox) != 0)
            continue;
        dm_bytes_add(&value, (const uint8_t[]){ (uint8_t)(tell->size >> 8), (uint8_t)tell->size }, 2);
        dm_bytes_add(&value, tell->text, tell->size);
    }
    dm_bytes_print(op, ",{\"request_put\":{");
    add_key(etcd, op, "i/", inbox);
    add_value(op, value.at, value.size);
    print_lease(etcd, op);
    dm_bytes_print(op, "}}");
    op->is_short |= value.is_short;
    dm_bytes_free(&value);
}

static bool is_first_of_inbox(const struct dm_reg_item *item, int tell)
{
    for (int i = 0; i < tell; i++) {
        if (strcmp(item->tells[i].inbox, item->tells[tell].inbox) == 0)
            return false;
    }
    return true;
}

/* An operation on what is left at the door of a register. */
static void add_door(const struct dm_etcd *etcd, struct dm_bytes *op, const char *kind, const char *key)
{
    dm_bytes_print(op, ",{\"%s\":{", kind);
    add_key(etcd, op, "k/", key);
    dm_bytes_print(op, "}}");
}

static void write_swap(const struct dm_etcd *etcd, struct dm_etcd_item *made, const struct dm_reg_item *item)
{
    struct dm_bytes keys = { 0 };

    dm_bytes_print(&made->op, "{\"request_txn\":{");
    add_compares(etcd, &made->op, item->key, &item->version);
    dm_bytes_print(&made->op, ",\"success\":[");
    add_put(etcd, &made->op, item);
    dm_bytes_print(&keys, "%s\n", item->key);
    made->ops = 2;
    for (int i = 0; i < item->tell_count; i++) {
        if (!is_first_of_inbox(item, i))
            continue;
        add_tells(etcd, &made->tells, item, item->tells[i].inbox);
        dm_bytes_print(&keys, "%s\n", item->tells[i].inbox);
        made->ops++;
    }
    if (item->door == DM_REG_LISTENS || !item->size)
        add_door(etcd, &made->rest, "request_delete_range", item->key);
    dm_bytes_print(&made->rest, "],\"failure\":[");
    add_range(etcd, &made->rest, item->key);
    if (item->door == DM_REG_KNOCKS)
        add_door(etcd, &made->rest, "request_put", item->key);
    made->ops++;
    dm_bytes_print(&made->rest, "]}}");
    made->op.is_short |= made->tells.is_short || made->rest.is_short || keys.is_short;
    made->keys = keys.at;
    if (item->size)
        memcpy(made->version.bytes, item->value, sizeof made->version.bytes);
    made->listens = item->door == DM_REG_LISTENS;
    made->is_large = item->size > DM_ETCD_VALUE_MAX;
}

/* A nested transaction would be written to the log, although it only reads: so the value comes in any case. */
static void write_read(const struct dm_etcd *etcd, struct dm_etcd_item *made, const struct dm_reg_item *item)
{
    made->version = item->version;
    made->ops = 1;
    add_range(etcd, &made->op, item->key);
}

/* ---- items --------------------------------------------------------------------------------- */

static struct dm_etcd_item *item_new(uint64_t ticket, int index)
{
    struct dm_etcd_item *item = calloc(1, sizeof *item);

    if (item) {
        item->ticket = ticket;
        item->index = index;
    }
    return item;
}

void dm_etcd_item_free(struct dm_etcd_item *item)
{
    dm_bytes_free(&item->op);
    dm_bytes_free(&item->tells);
    dm_bytes_free(&item->rest);
    free(item->keys);
    free(item);
}

static void free_items(struct dm_etcd_item *items)
{
    while (items) {
        struct dm_etcd_item *item = items;

        items = item->next;
        dm_etcd_item_free(item);
    }
}

struct dm_etcd_item *dm_etcd_items_new(const struct dm_etcd *etcd, uint64_t ticket, const struct dm_reg_item *items,
                                       int count, bool is_swap)
{
    struct dm_etcd_item *first = NULL, **end = &first;

    for (int i = 0; i < count; i++) {
        struct dm_etcd_item *made = *end = item_new(ticket, i);

        if (made) {
            made->kind = is_swap ? DM_ETCD_SWAP : DM_ETCD_READ;
            (is_swap ? write_swap : write_read)(etcd, made, &items[i]);
            end = &made->next;
        }
        if (!made || made->op.is_short || (is_swap && !made->keys)) {
            free_items(first);
            return NULL;
        }
    }
    return first;
}

/* Keys are in the order of their bytes.  One more than asked for tells whether it was the last. */
void dm_etcd_range(const struct dm_etcd *etcd, struct dm_bytes *to, const char *kind)
{
    struct dm_bytes end = { 0 };

    add_key(etcd, to, kind, "");
    dm_bytes_print(&end, "%s%s", etcd->prefix, kind);
    if (end.size)
        end.at[end.size - 1]++; /* '/' becomes '0' */
    dm_bytes_print(to, ",\"range_end\":\"");
    dm_bytes_add_base64(to, end.at, end.size);
    dm_bytes_print(to, "\"");
    to->is_short |= end.is_short;
    dm_bytes_free(&end);
}

struct dm_etcd_item *dm_etcd_list_new(const struct dm_etcd *etcd, uint64_t ticket, const char *prefix,
                                      const char *after, int most)
{
    struct dm_etcd_item *made = item_new(ticket, 0);
    struct dm_bytes from = { 0 }, end = { 0 };

    if (!made)
        return NULL;
    made->kind = DM_ETCD_LIST;
    made->most = most;
    made->ops = 1;
    dm_bytes_print(&from, "%sr/%s", etcd->prefix, *after && strcmp(after, prefix) >= 0 ? after : prefix);
    dm_bytes_print(&end, "%sr/%s", etcd->prefix, prefix);
    if (!from.is_short && !end.is_short) {
        end.at[end.size - 1]++; /* the prefix ends with a byte of a key, below 0x7f, or with '/' */
        dm_bytes_print(&made->op, "{\"request_range\":{\"key\":\"");
        dm_bytes_add_base64(&made->op, from.at, from.size + (*after != '\0')); /* the NUL: what comes after */
        dm_bytes_print(&made->op, "\",\"range_end\":\"");
        dm_bytes_add_base64(&made->op, end.at, end.size);
        dm_bytes_print(&made->op, "\",\"limit\":\"%d\",\"keys_only\":true}}", most);
    }
    made->op.is_short |= from.is_short || end.is_short;
    dm_bytes_free(&from);
    dm_bytes_free(&end);
    if (!made->op.is_short)
        return made;
    dm_etcd_item_free(made);
    return NULL;
}

/* ---- groups -------------------------------------------------------------------------------- */

static bool writes(const struct dm_etcd_item *item, const char *key, size_t length)
{
    const char *at = item->keys;

    while (at && *at) {
        size_t size = strcspn(at, "\n");

        if (size == length && memcmp(at, key, length) == 0)
            return true;
        at += size + 1;
    }
    return false;
}

/* etcd refuses a transaction that writes a key twice, an inbox as well. */
static bool clashes(const struct dm_etcd *etcd, const struct dm_etcd_item *item)
{
    for (const char *at = item->keys; at && *at; at += strcspn(at, "\n") + 1) {
        for (int i = 0; i < etcd->group_count; i++) {
            if (writes(etcd->group[i], at, strcspn(at, "\n")))
                return true;
        }
    }
    return false;
}

static size_t size_of(const struct dm_etcd_item *item)
{
    return item->op.size + item->tells.size + item->rest.size;
}

/* Items of one call about one key must keep their order: so the first that does not fit ends the group. */
static bool fits(const struct dm_etcd *etcd, const struct dm_etcd_item *item, int ops, size_t size)
{
    if (etcd->group_count == 0)
        return true;
    return etcd->group_count < DM_ETCD_GROUP_MOST && !item->is_large && !item->is_alone && !etcd->group[0]->is_alone &&
           ops + item->ops <= DM_ETCD_OPS_MOST && size + size_of(item) <= DM_ETCD_GROUP_BYTES && !clashes(etcd, item);
}

static void take_items(struct dm_etcd *etcd)
{
    struct dm_etcd_item *item;
    size_t size = 0;
    int ops = 0;

    etcd->group_count = 0;
    while ((item = etcd->waiting) && fits(etcd, item, ops, size)) {
        etcd->group[etcd->group_count++] = item;
        ops += item->ops;
        size += size_of(item);
        etcd->waiting = item->next;
    }
    if (!etcd->waiting)
        etcd->waiting_end = &etcd->waiting;
}

/* Leaves out the lease if it was not granted: no value has a quotation mark in it. */
static void add_tells_of(struct dm_etcd *etcd, struct dm_bytes *body, const struct dm_etcd_item *item)
{
    const char *at = item->tells.at, *found;
    struct dm_bytes lease = { 0 };

    if (!item->tells.size)
        return;
    etcd->is_untidy |= !etcd->is_leased;
    print_lease(etcd, &lease);
    while (!etcd->is_leased && lease.at && (found = strstr(at, lease.at))) {
        dm_bytes_add(body, at, (size_t)(found - at));
        at = found + lease.size;
    }
    dm_bytes_add(body, at, strlen(at));
    dm_bytes_free(&lease);
}

void dm_etcd_group_fill(struct dm_etcd *etcd, struct dm_bytes *body)
{
    take_items(etcd);
    dm_bytes_print(body, "{\"compare\":[{");
    add_key(etcd, body, "epoch", "");
    dm_bytes_print(body, ",\"target\":\"VALUE\",\"result\":\"EQUAL\"");
    add_value(body, etcd->epoch, strlen(etcd->epoch));
    dm_bytes_print(body, "}],\"success\":[");
    for (int i = 0; i < etcd->group_count; i++) {
        const struct dm_etcd_item *item = etcd->group[i];

        if (i)
            dm_bytes_add(body, ",", 1);
        dm_bytes_add(body, item->op.at, item->op.size);
        add_tells_of(etcd, body, item);
        dm_bytes_add(body, item->rest.at, item->rest.size);
    }
    dm_bytes_print(body, "]}");
}

/* ---- answers ------------------------------------------------------------------------------- */

void dm_etcd_item_fail(struct dm_etcd *etcd, const struct dm_etcd_item *item, enum dm_reg_outcome outcome,
                       const char *reason)
{
    const struct dm_reg_reply reply = { .outcome = outcome, .age_ms = -1, .reason = reason };

    if (item->kind == DM_ETCD_LIST)
        etcd->client.on_list(etcd->client.user, item->ticket, NULL, -1, true, reason);
    else
        etcd->client.on_reply(etcd->client.user, item->ticket, item->index, &reply);
}

/* A key and its value, decoded into new memory. */
static uint8_t *decode(struct dm_json text, size_t *ret_size)
{
    size_t size = 0;
    const char *raw = dm_json_raw(text, &size);
    uint8_t *bytes = malloc(size + 1);
    long length = raw && bytes ? dm_base64_decode(raw, size, bytes, size) : -1;

    if (length < 0) {
        free(bytes);
        return NULL;
    }
    bytes[length] = '\0';
    *ret_size = (size_t)length;
    return bytes;
}

static void reply_with_value(struct dm_etcd *etcd, const struct dm_etcd_item *item, enum dm_reg_outcome outcome,
                             struct dm_json range)
{
    struct dm_json response = dm_json_get(range, "response_range");
    struct dm_json kv = dm_json_first(dm_json_get(response, "kvs"));
    struct dm_reg_reply reply = { .outcome = outcome, .age_ms = -1, .has_value = true };
    uint8_t *value = NULL;

    if (!response.at) {
        dm_etcd_item_fail(etcd, item, DM_REG_UNKNOWN, DM_ETCD_NOT_WHOLE);
        return;
    }
    if (kv.at) {
        value = decode(dm_json_get(kv, "value"), &reply.size);
        if (!value || reply.size-- <= DM_REG_VERSION_SIZE) {
            free(value);
            dm_etcd_item_fail(etcd, item, DM_REG_REFUSED,
                              "this value in etcd has been changed by hand: delete it if nobody holds the lock");
            return;
        }
        memcpy(reply.version.bytes, value, sizeof reply.version.bytes);
        reply.value = value;
        if (item->kind == DM_ETCD_READ && dm_reg_version_equals(&reply.version, &item->version))
            reply = (struct dm_reg_reply){ .outcome = DM_REG_SAME, .age_ms = -1, .version = item->version };
    }
    etcd->client.on_reply(etcd->client.user, item->ticket, item->index, &reply);
    free(value);
}

static void reply_to_list(struct dm_etcd *etcd, const struct dm_etcd_item *item, struct dm_json range)
{
    struct dm_json kv = dm_json_first(dm_json_get(range, "kvs"));
    size_t skipped = strlen(etcd->prefix) + strlen("r/"), size;
    const char **keys = calloc((size_t)item->most + 1, sizeof *keys);
    int count = 0;

    for (; keys && kv.at && count < item->most; kv = dm_json_next(kv)) {
        uint8_t *key = decode(dm_json_get(kv, "key"), &size);

        if (key && size > skipped && size - skipped <= DM_REG_KEY_MAX) {
            memmove(key, key + skipped, size - skipped + 1);
            keys[count++] = (char *)key;
        } else {
            free(key);
        }
    }
    if (keys)
        etcd->client.on_list(etcd->client.user, item->ticket, keys, count, !dm_json_is_true(dm_json_get(range, "more")),
                             NULL);
    else
        dm_etcd_item_fail(etcd, item, DM_REG_UNKNOWN, "out of memory");
    for (int i = 0; i < count; i++)
        free((char *)keys[i]);
    free(keys);
}

/* Whoever listens deletes what is at the door with the last operation of its swap. */
static bool is_knocked(const struct dm_etcd_item *item, struct dm_json nested)
{
    struct dm_json last = { NULL };

    for (struct dm_json at = dm_json_first(dm_json_get(nested, "responses")); at.at; at = dm_json_next(at))
        last = at;
    return item->listens && dm_json_int64(dm_json_get(dm_json_get(last, "response_delete_range"), "deleted")) > 0;
}

void dm_etcd_item_answer(struct dm_etcd *etcd, const struct dm_etcd_item *item, struct dm_json answer)
{
    struct dm_json nested = dm_json_get(answer, "response_txn");
    struct dm_reg_reply done = { .outcome = DM_REG_DONE, .age_ms = -1, .version = item->version };

    if (item->kind == DM_ETCD_LIST)
        reply_to_list(etcd, item, dm_json_get(answer, "response_range"));
    else if (item->kind == DM_ETCD_READ)
        reply_with_value(etcd, item, DM_REG_DONE, answer);
    else if (!dm_json_is_true(dm_json_get(nested, "succeeded")))
        reply_with_value(etcd, item, DM_REG_CONFLICT, dm_json_first(dm_json_get(nested, "responses")));
    else {
        done.is_knocked = is_knocked(item, nested);
        etcd->client.on_reply(etcd->client.user, item->ticket, item->index, &done);
    }
}
