/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Reads, swaps and lists as requests of ZooKeeper.
 *
 * ZooKeeper's own versions begin at 0 again when a node is deleted and made anew, so a swap that relies on them could
 * pass over that.  Ours does not: the version is the name of the node's only child.  A swap deletes the child of the
 * old version and makes that of the new one, and all its parts are done, or none.
 *
 * A notice is a node that the swap makes and deletes again.  Nobody ever sees it, but whoever has asked for what
 * happens below its inbox is told of the name, which is the text.  Nothing is left behind, and no notice replaces
 * another one.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "stores/zookeeper/parts.h"

#define BY_HAND "this value in ZooKeeper has been changed by hand: delete its node if nobody holds the lock"

/* A clock is kept for so long after the last swap: ours may be faster or slower. */
#define CLOCK_KEPT_NS (600 * DM_NS_PER_S)

#define EVENT_CREATED 1

/* ---- a call that is taken back ------------------------------------------------------------- */

/* Where the queue and the bytes to be sent end: a call that cannot be written whole is taken back. */
struct mark {
    struct dm_zk_item **items_end;
    size_t size;
};

static struct mark mark_end(const struct dm_zk *zk)
{
    return (struct mark){ .items_end = zk->items_end, .size = zk->wire.out.size };
}

static bool take_back(struct dm_zk *zk, struct mark mark)
{
    struct dm_zk_item *item = *mark.items_end;

    while (item) {
        struct dm_zk_item *next = item->next;

        dm_zk_item_free(item);
        item = next;
    }
    *mark.items_end = NULL;
    zk->items_end = mark.items_end;
    zk->wire.out.size = mark.size;
    return false;
}

/* ---- paths --------------------------------------------------------------------------------- */

static void replace(char *bytes, size_t size, char from, char to)
{
    for (size_t i = 0; i < size; i++) {
        if (bytes[i] == from)
            bytes[i] = to;
    }
}

/* All registers have one parent: a key with its slashes as colons is the name of a node. */
static void add_register(const struct dm_zk *zk, struct dm_bytes *to, const char *key,
                         const struct dm_reg_version *version)
{
    size_t begin = dm_zk_begin_path(zk, to), at;

    dm_bytes_print(to, "/r/");
    at = to->size;
    dm_bytes_print(to, "%s", key);
    if (!to->is_short)
        replace(to->at + at, to->size - at, '/', ':');
    if (version) {
        dm_bytes_print(to, "/");
        for (int i = 0; i < DM_REG_VERSION_SIZE; i++)
            dm_bytes_print(to, "%02x", version->bytes[i]);
    }
    dm_jute_end(to, begin);
}

/* ---- requests ------------------------------------------------------------------------------ */

/* What follows the path of a node that is to be made. */
static void add_making(const struct dm_zk *zk, struct dm_bytes *to, const void *value, size_t size)
{
    dm_jute_add_bytes(to, value, size);
    dm_zk_add_acl(to, zk->url->user != NULL);
    dm_jute_add_int(to, 0); /* it stays */
}

static void add_any_version(struct dm_bytes *to)
{
    dm_jute_add_int(to, -1);
}

static void add_delete(const struct dm_zk *zk, struct dm_bytes *to, const char *key,
                       const struct dm_reg_version *version)
{
    dm_zk_add_op(to, DM_ZK_DELETE);
    add_register(zk, to, key, version);
    add_any_version(to);
}

static void add_create(const struct dm_zk *zk, struct dm_bytes *to, const struct dm_reg_item *item)
{
    dm_zk_add_op(to, DM_ZK_CREATE2);
    add_register(zk, to, item->key, NULL);
    add_making(zk, to, item->value, item->size);
}

static void add_version(const struct dm_zk *zk, struct dm_bytes *to, const char *key,
                        const struct dm_reg_version *version)
{
    dm_zk_add_op(to, DM_ZK_CREATE);
    add_register(zk, to, key, version);
    add_making(zk, to, NULL, 0);
}

/* The name of a node may have no slash, and must not be "." */
static void add_notice(const struct dm_zk *zk, struct dm_bytes *to, int32_t type, const struct dm_reg_tell *tell,
                       bool has_text)
{
    size_t begin, at;

    dm_zk_add_op(to, type);
    begin = dm_zk_begin_path(zk, to);
    dm_bytes_print(to, "/i/%s", tell->inbox);
    if (has_text) {
        dm_bytes_print(to, "/t");
        at = to->size;
        dm_bytes_add_base64(to, tell->text, tell->size);
        if (!to->is_short)
            replace(to->at + at, to->size - at, '/', '_');
    }
    dm_jute_end(to, begin);
    if (type == DM_ZK_CREATE)
        add_making(zk, to, NULL, 0);
    else
        add_any_version(to);
}

static bool is_first_of_inbox(const struct dm_reg_item *item, int tell)
{
    for (int i = 0; i < tell; i++) {
        if (strcmp(item->tells[i].inbox, item->tells[tell].inbox) == 0)
            return false;
    }
    return true;
}

/* Notices may get lost, so those that would make the request too long are left out. */
static void add_notices(const struct dm_zk *zk, struct dm_bytes *to, const struct dm_reg_item *item, size_t most)
{
    for (int i = 0; i < item->tell_count && to->size < most; i++) {
        if (!is_first_of_inbox(item, i))
            continue;
        add_notice(zk, to, DM_ZK_CREATE, &item->tells[i], false);
        for (int j = i; j < item->tell_count && to->size < most; j++) {
            if (strcmp(item->tells[i].inbox, item->tells[j].inbox) != 0)
                continue;
            add_notice(zk, to, DM_ZK_CREATE, &item->tells[j], true);
            add_notice(zk, to, DM_ZK_DELETE, &item->tells[j], true);
        }
        add_notice(zk, to, DM_ZK_DELETE, &item->tells[i], false);
    }
}

/* Returns how many parts there are. */
static int add_change(const struct dm_zk *zk, struct dm_bytes *to, const struct dm_reg_item *item,
                      const struct dm_reg_version *next)
{
    if (!dm_reg_version_is_absent(&item->version)) {
        add_delete(zk, to, item->key, &item->version);
        if (!item->size) {
            add_delete(zk, to, item->key, NULL);
            return 2;
        }
        add_version(zk, to, item->key, next);
        dm_zk_add_op(to, DM_ZK_SET);
        add_register(zk, to, item->key, NULL);
        dm_jute_add_bytes(to, item->value, item->size);
        add_any_version(to);
        return 3;
    }
    add_create(zk, to, item);
    if (item->size)
        add_version(zk, to, item->key, next);
    else
        add_delete(zk, to, item->key, NULL); /* it was absent, and is again */
    return 2;
}

static bool write_swap(struct dm_zk *zk, struct dm_zk_item *made, const struct dm_reg_item *item)
{
    struct dm_bytes *out = &zk->wire.out;
    size_t begin;

    if (item->size > DM_ZK_VALUE_MAX) {
        made->kind = DM_ZK_ITEM_LARGE;
        return true;
    }
    if (item->size)
        memcpy(made->version.bytes, item->value, sizeof made->version.bytes);
    begin = dm_zk_begin(&zk->wire, made->xid, DM_ZK_MULTI);
    dm_zk_add_op(out, DM_ZK_CHECK);
    dm_zk_add_path(zk, out, "/epoch/%s", zk->epoch);
    add_any_version(out);
    made->expected = item->version;
    made->key = strdup(item->key);
    out->is_short |= !made->key;
    made->register_ops = 1 + add_change(zk, out, item, &made->version);
    add_notices(zk, out, item, begin + DM_ZK_REQUEST_MAX);
    dm_zk_add_end(out);
    return dm_zk_end(&zk->wire, begin);
}

static bool write_get(struct dm_zk *zk, const struct dm_zk_item *made, const char *key)
{
    size_t begin = dm_zk_begin(&zk->wire, made->xid, DM_ZK_GET);

    add_register(zk, &zk->wire.out, key, NULL);
    dm_jute_add_bool(&zk->wire.out, false);
    return dm_zk_end(&zk->wire, begin);
}

static bool write_read(struct dm_zk *zk, struct dm_zk_item *made, const struct dm_reg_item *item)
{
    made->version = item->version;
    return write_get(zk, made, item->key);
}

/* ---- the clock ----------------------------------------------------------------------------- */

static int32_t leader_of(int64_t zxid)
{
    return (int32_t)(zxid >> 32);
}

/* The leader has just written the time of a change of ours. */
static void note_clock(struct dm_zk *zk, struct dm_jute_stat stat)
{
    zk->clock_leader = leader_of(stat.changed_zxid);
    zk->clock_ms = stat.changed_ms;
    zk->clock_ns = dm_clock_boot_ns();
}

/* How late it is at least by the leader's clock; 0: not known. */
static int64_t now_ms(const struct dm_zk *zk)
{
    int64_t since_ns = dm_clock_boot_ns() - zk->clock_ns;

    return zk->clock_ns && since_ns < CLOCK_KEPT_NS ? zk->clock_ms + since_ns / DM_NS_PER_MS : 0;
}

/* Only of what the same leader has written: another one's clock may show another time. */
static int64_t age_ms(struct dm_zk *zk, struct dm_jute_stat stat)
{
    int64_t ms = now_ms(zk);

    if (ms && leader_of(stat.changed_zxid) > zk->clock_leader)
        ms = zk->clock_ns = 0; /* there is a new leader: with the next read we ask it */
    if (!ms || leader_of(stat.changed_zxid) != zk->clock_leader)
        return -1;
    ms -= stat.changed_ms + 1;
    return ms > 0 ? ms : 0;
}

/* ZooKeeper tells the time of changes alone. */
static bool ask_for_clock(struct dm_zk *zk)
{
    struct dm_zk_item *item = dm_zk_item_add(zk, DM_ZK_ITEM_CLOCK);
    size_t begin;

    if (!item)
        return false;
    begin = dm_zk_begin(&zk->wire, item->xid, DM_ZK_SET);
    dm_zk_add_path(zk, &zk->wire.out, "/i");
    dm_jute_add_bytes(&zk->wire.out, NULL, 0);
    add_any_version(&zk->wire.out);
    return dm_zk_end(&zk->wire, begin);
}

static void take_clock(struct dm_zk *zk, int error, struct dm_jute *answer)
{
    struct dm_jute_stat stat = dm_jute_stat(answer);

    if (!error && !answer->is_bad)
        note_clock(zk, stat);
}

/* ---- calls --------------------------------------------------------------------------------- */

static bool write_items(struct dm_zk *zk, uint64_t ticket, const struct dm_reg_item *items, int count, bool is_swap)
{
    struct mark mark = mark_end(zk);

    if (!is_swap && !((now_ms(zk) || ask_for_clock(zk)) && dm_zk_sync(zk)))
        return take_back(zk, mark);
    for (int i = 0; i < count; i++) {
        struct dm_zk_item *made = dm_zk_item_add(zk, is_swap ? DM_ZK_ITEM_SWAP : DM_ZK_ITEM_READ);

        if (!made || !(is_swap ? write_swap : write_read)(zk, made, &items[i]))
            return take_back(zk, mark);
        made->ticket = ticket;
        made->index = i;
    }
    return true;
}

/* A follower may be behind what others have been told, and a read is answered by it alone: so it asks the leader. */
bool dm_zk_read(struct dm_zk *zk, uint64_t ticket, const struct dm_reg_item *items, int count)
{
    return write_items(zk, ticket, items, count, false);
}

bool dm_zk_swap(struct dm_zk *zk, uint64_t ticket, const struct dm_reg_item *items, int count)
{
    return write_items(zk, ticket, items, count, true);
}

bool dm_zk_list(struct dm_zk *zk, uint64_t ticket, const char *prefix, const char *after, int most)
{
    struct mark mark = mark_end(zk);
    struct dm_zk_item *made = dm_zk_sync(zk) ? dm_zk_item_add(zk, DM_ZK_ITEM_LIST) : NULL;
    size_t begin, length = strlen(prefix) + 1, size = strlen(after) + 1;

    if (!made || !(made->prefix = malloc(length + size)))
        return take_back(zk, mark);
    memcpy(made->prefix, prefix, length);
    made->after = memcpy(made->prefix + length, after, size);
    made->ticket = ticket;
    made->most = most;
    begin = dm_zk_begin(&zk->wire, made->xid, DM_ZK_CHILDREN);
    dm_zk_add_path(zk, &zk->wire.out, "/r");
    dm_jute_add_bool(&zk->wire.out, false);
    return dm_zk_end(&zk->wire, begin) || take_back(zk, mark);
}

/* ---- answers ------------------------------------------------------------------------------- */

void dm_zk_item_fail(struct dm_zk *zk, const struct dm_zk_item *item, enum dm_reg_outcome outcome, const char *reason)
{
    const struct dm_reg_reply reply = { .outcome = outcome, .age_ms = -1, .reason = reason };

    if (item->kind == DM_ZK_ITEM_LIST)
        zk->client.on_list(zk->client.user, item->ticket, NULL, -1, true, reason);
    else if (item->kind == DM_ZK_ITEM_READ || item->kind == DM_ZK_ITEM_SWAP || item->kind == DM_ZK_ITEM_NEWER ||
             item->kind == DM_ZK_ITEM_LARGE)
        zk->client.on_reply(zk->client.user, item->ticket, item->index, &reply);
}

static void refuse(struct dm_zk *zk, const struct dm_zk_item *item, int error)
{
    char reason[DM_REG_REASON_ROOM];

    if (error == DM_ZK_NO_RIGHT)
        snprintf(reason, sizeof reason, "ZooKeeper's ACLs below /%s give us no right: use the login of their creator",
                 zk->url->prefix);
    else
        snprintf(reason, sizeof reason, "ZooKeeper refuses to write: the quota of /%s is used up", zk->url->prefix);
    dm_zk_item_fail(zk, item, DM_REG_REFUSED, reason);
}

static bool is_refusal(int error)
{
    return error == DM_ZK_NO_RIGHT || error == DM_ZK_OVER_QUOTA;
}

static void answer_read(struct dm_zk *zk, const struct dm_zk_item *item, struct dm_jute *answer)
{
    bool is_newer = item->kind == DM_ZK_ITEM_NEWER, is_same;
    struct dm_reg_reply reply = { .outcome = is_newer ? DM_REG_CONFLICT : DM_REG_DONE, .has_value = true };
    struct dm_jute_stat stat;

    reply.value = dm_jute_bytes(answer, &reply.size);
    stat = dm_jute_stat(answer);
    if (answer->is_bad) {
        dm_zk_doom(zk, false, DM_ZK_NOT_WHOLE);
        dm_zk_item_fail(zk, item, DM_REG_UNKNOWN, DM_ZK_NOT_WHOLE);
        return;
    }
    if (reply.size >= DM_REG_VERSION_SIZE)
        memcpy(reply.version.bytes, reply.value, sizeof reply.version.bytes);
    is_same = dm_reg_version_equals(&reply.version, is_newer ? &item->expected : &item->version);
    if (reply.size < DM_REG_VERSION_SIZE || (is_newer && is_same)) {
        dm_zk_item_fail(zk, item, DM_REG_REFUSED, BY_HAND);
        return;
    }
    if (is_same)
        reply = (struct dm_reg_reply){ .outcome = DM_REG_SAME, .version = item->version };
    reply.age_ms = age_ms(zk, stat);
    reply.clock_us = now_ms(zk) * 1000;
    zk->client.on_reply(zk->client.user, item->ticket, item->index, &reply);
}

static void take_read(struct dm_zk *zk, const struct dm_zk_item *item, int error, struct dm_jute *answer)
{
    const struct dm_reg_reply absent = { .outcome = item->kind == DM_ZK_ITEM_NEWER ? DM_REG_CONFLICT : DM_REG_DONE,
                                         .has_value = true,
                                         .age_ms = -1,
                                         .clock_us = now_ms(zk) * 1000 };

    if (!error)
        answer_read(zk, item, answer);
    else if (error == DM_ZK_NO_NODE)
        zk->client.on_reply(zk->client.user, item->ticket, item->index, &absent);
    else if (is_refusal(error))
        refuse(zk, item, error);
    else
        dm_zk_item_fail(zk, item, DM_REG_UNKNOWN, NULL);
}

/* A refused swap that is no conflict: nobody knows more than that nothing was done. */
static void take_odd_refusal(struct dm_zk *zk, const struct dm_zk_item *item, struct dm_zk_multi multi)
{
    char reason[DM_REG_REASON_ROOM];

    if (multi.part == 0 && multi.error == DM_ZK_NO_NODE) {
        dm_zk_doom(zk, false, "the data of the locks have been replaced");
        dm_zk_item_fail(zk, item, DM_REG_UNKNOWN, NULL);
    } else if (is_refusal(multi.error)) {
        refuse(zk, item, multi.error);
    } else if (multi.error == DM_ZK_NODE_EXISTS || multi.error == DM_ZK_NOT_EMPTY) {
        snprintf(reason, sizeof reason, "somebody has made nodes below /%s by hand: delete %s", zk->url->prefix,
                 multi.part < item->register_ops ? "those below the node of this lock" : "the children of its node i");
        dm_zk_item_fail(zk, item, DM_REG_REFUSED, reason);
    } else {
        dm_zk_doom(zk, false, "ZooKeeper says: error %d", multi.error);
        dm_zk_item_fail(zk, item, DM_REG_UNKNOWN, NULL);
    }
}

/* The first part after the check of the epoch decides: the version is there, or the node is absent. */
static bool is_conflict(const struct dm_zk_item *item, struct dm_zk_multi multi)
{
    bool creates = dm_reg_version_is_absent(&item->expected);

    return multi.part == 1 && multi.error == (creates ? DM_ZK_NODE_EXISTS : DM_ZK_NO_NODE);
}

/*
 * The newer value comes with the refusal (V3).  It cannot have the expected version, which never comes back: if it has,
 * the node's child has been changed by hand, and all swaps would be refused for ever.
 */
static void read_newer(struct dm_zk *zk, const struct dm_zk_item *swap)
{
    struct mark mark = mark_end(zk);
    struct dm_zk_item *made = dm_zk_item_add(zk, DM_ZK_ITEM_NEWER);

    if (!made || !write_get(zk, made, swap->key)) {
        take_back(zk, mark);
        dm_zk_item_fail(zk, swap, DM_REG_CONFLICT, NULL);
        return;
    }
    made->expected = swap->expected;
    made->ticket = swap->ticket;
    made->index = swap->index;
}

static void take_swap(struct dm_zk *zk, const struct dm_zk_item *item, int error, struct dm_jute *answer)
{
    struct dm_zk_multi multi = { .error = error };
    struct dm_reg_reply reply = { .outcome = DM_REG_DONE, .age_ms = -1, .version = item->version };

    if (!error)
        multi = dm_zk_read_multi(answer);
    if (answer->is_bad) {
        dm_zk_doom(zk, false, DM_ZK_NOT_WHOLE);
        dm_zk_item_fail(zk, item, DM_REG_UNKNOWN, DM_ZK_NOT_WHOLE);
        return;
    }
    if (multi.error && (error || !is_conflict(item, multi))) {
        take_odd_refusal(zk, item, multi);
        return;
    }
    if (multi.error) {
        read_newer(zk, item);
        return;
    }
    if (multi.has_stat)
        note_clock(zk, multi.stat);
    reply.clock_us = now_ms(zk) * 1000;
    zk->client.on_reply(zk->client.user, item->ticket, item->index, &reply);
}

/* ---- lists --------------------------------------------------------------------------------- */

/* The first keys in their order, of those that have been looked at; one more tells that there are others. */
struct list {
    const char **keys;
    int count;
};

static void put_in_order(struct list *list, int most, const char *key)
{
    int low = 0, high = list->count;

    while (low < high) {
        int middle = (low + high) / 2;

        if (strcmp(list->keys[middle], key) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    if (low == most + 1)
        return;
    if (list->count <= most)
        list->count++;
    memmove(list->keys + low + 1, list->keys + low, (size_t)(list->count - 1 - low) * sizeof *list->keys);
    list->keys[low] = key;
}

/*
 * ZooKeeper gives all children at once, in no order.  Each name is made a text in its place, one byte nearer to the
 * beginning, where its length was.
 */
static void sort_list(const struct dm_zk_item *item, struct list *list, struct dm_jute *answer)
{
    size_t length = strlen(item->prefix), size;

    for (int32_t left = dm_jute_int(answer); left > 0 && !answer->is_bad; left--) {
        char *name = (char *)(uintptr_t)dm_jute_bytes(answer, &size);

        if (answer->is_bad || size > DM_REG_KEY_MAX || size < length || size == 0)
            continue;
        memmove(name - 1, name, size);
        name[size - 1] = '\0';
        replace(--name, size, ':', '/');
        if (strncmp(name, item->prefix, length) == 0 && strcmp(name, item->after) > 0)
            put_in_order(list, item->most, name);
    }
}

static void take_list(struct dm_zk *zk, const struct dm_zk_item *item, int error, struct dm_jute *answer)
{
    struct list list = { .keys = malloc((size_t)(item->most + 1) * sizeof *list.keys) };
    bool is_last;

    if (!error && list.keys)
        sort_list(item, &list, answer);
    if (answer->is_bad)
        dm_zk_doom(zk, false, DM_ZK_NOT_WHOLE);
    if (error || !list.keys || answer->is_bad) {
        dm_zk_item_fail(zk, item, DM_REG_UNKNOWN, error ? "ZooKeeper does not list the locks" : NULL);
    } else {
        is_last = list.count <= item->most;
        zk->client.on_list(zk->client.user, item->ticket, list.keys, is_last ? list.count : item->most, is_last, NULL);
    }
    free(list.keys);
}

void dm_zk_item_answer(struct dm_zk *zk, const struct dm_zk_item *item, int error, struct dm_jute *answer)
{
    switch (item->kind) {
    case DM_ZK_ITEM_READ:
    case DM_ZK_ITEM_NEWER:
        take_read(zk, item, error, answer);
        break;
    case DM_ZK_ITEM_SWAP:
        take_swap(zk, item, error, answer);
        break;
    case DM_ZK_ITEM_LIST:
        take_list(zk, item, error, answer);
        break;
    case DM_ZK_ITEM_CLOCK:
        take_clock(zk, error, answer);
        break;
    default:
        break;
    }
}

/* ---- notices ------------------------------------------------------------------------------- */

/* Whoever may write there may write anything. */
void dm_zk_take_event(struct dm_zk *zk, struct dm_jute *event)
{
    int32_t type = dm_jute_int(event);
    char begin[sizeof zk->inbox + 128];
    size_t size, length;
    const char *path;
    char *text;
    long told;

    dm_jute_int(event); /* the state of the connection */
    path = dm_jute_bytes(event, &size);
    snprintf(begin, sizeof begin, "/%s/i/%s/t", zk->url->prefix, zk->inbox);
    length = strlen(begin);
    if (event->is_bad || type != EVENT_CREATED || size < length || memcmp(path, begin, length) != 0)
        return;
    text = (char *)(uintptr_t)path + length;
    size -= length;
    replace(text, size, '_', '/');
    told = dm_base64_decode(text, size, zk->told, sizeof zk->told);
    if (told >= 0 && told <= DM_REG_TELL_MAX)
        zk->client.on_tell(zk->client.user, zk->told, (size_t)told);
}
