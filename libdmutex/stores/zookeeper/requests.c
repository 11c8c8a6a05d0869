/* SPDX-License-Identifier: BSD-2-Clause */
/* What all requests have: a place in the queue of those that wait for an answer, paths, and parts of a multi. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "stores/zookeeper/parts.h"

const struct dm_url_host *dm_zk_host(const struct dm_zk *zk)
{
    return &zk->url->hosts[zk->host];
}

struct dm_place_text dm_zk_place(const struct dm_zk *zk)
{
    return dm_url_place(dm_zk_host(zk)->host, dm_zk_host(zk)->port);
}

void dm_zk_doom(struct dm_zk *zk, bool is_final, const char *format, ...)
{
    va_list arguments;

    if (zk->is_doomed)
        return;
    va_start(arguments, format);
    vsnprintf(zk->doom, sizeof zk->doom, format, arguments);
    va_end(arguments);
    dm_text_clean(zk->doom);
    zk->is_doomed = true;
    zk->is_final = is_final;
}

/* ---- the queue of those that wait --------------------------------------------------------- */

struct dm_zk_item *dm_zk_item_add(struct dm_zk *zk, int kind)
{
    struct dm_zk_item *item = calloc(1, sizeof *item);

    if (!item)
        return NULL;
    item->kind = kind;
    item->xid = zk->last_xid = zk->last_xid == INT32_MAX ? 1 : zk->last_xid + 1;
    item->sent_ns = dm_clock_boot_ns();
    *zk->items_end = item;
    zk->items_end = &item->next;
    return item;
}

void dm_zk_item_free(struct dm_zk_item *item)
{
    free(item->prefix);
    free(item->key);
    free(item);
}

struct dm_zk_item *dm_zk_item_take(struct dm_zk *zk)
{
    struct dm_zk_item *item = zk->items;

    if (!item)
        return NULL;
    zk->items = item->next;
    if (!zk->items)
        zk->items_end = &zk->items;
    return item;
}

/* ---- paths --------------------------------------------------------------------------------- */

size_t dm_zk_begin_path(const struct dm_zk *zk, struct dm_bytes *to)
{
    size_t begin = dm_jute_begin(to);

    dm_bytes_print(to, "/%s", zk->url->prefix);
    return begin;
}

void dm_zk_add_path(const struct dm_zk *zk, struct dm_bytes *to, const char *format, ...)
{
    size_t begin = dm_zk_begin_path(zk, to);
    char text[2 * DM_REG_KEY_MAX];
    va_list arguments;

    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    dm_bytes_print(to, "%s", text);
    dm_jute_end(to, begin);
}

/* ---- requests ------------------------------------------------------------------------------ */

bool dm_zk_sync(struct dm_zk *zk)
{
    struct dm_zk_item *item = dm_zk_item_add(zk, DM_ZK_ITEM_SYNC);
    size_t begin;

    if (!item)
        return false;
    begin = dm_zk_begin(&zk->wire, item->xid, DM_ZK_SYNC);
    dm_zk_add_path(zk, &zk->wire.out, "%s", "");
    return dm_zk_end(&zk->wire, begin);
}

/* ---- multi --------------------------------------------------------------------------------- */

void dm_zk_add_op(struct dm_bytes *to, int32_t type)
{
    dm_jute_add_int(to, type);
    dm_jute_add_bool(to, false);
    dm_jute_add_int(to, -1);
}

void dm_zk_add_end(struct dm_bytes *to)
{
    dm_jute_add_int(to, -1);
    dm_jute_add_bool(to, true);
    dm_jute_add_int(to, -1);
}

struct dm_zk_multi dm_zk_read_multi(struct dm_jute *answer)
{
    struct dm_zk_multi multi = { 0 };
    size_t size;

    for (int part = 0; !answer->is_bad; part++) {
        int32_t type = dm_jute_int(answer);
        bool is_end = dm_jute_bool(answer);
        int32_t error = dm_jute_int(answer);

        if (is_end)
            break;
        if (type == -1) {
            error = dm_jute_int(answer);
            if (error && error != DM_ZK_AFTER_ERROR && !multi.error) {
                multi.error = error;
                multi.part = part;
            }
        } else if (type == DM_ZK_CREATE || type == DM_ZK_CREATE2) {
            dm_jute_bytes(answer, &size);
        } else if (type != DM_ZK_SET && type != DM_ZK_DELETE && type != DM_ZK_CHECK) {
            answer->is_bad = true;
        }
        if (type == DM_ZK_SET || type == DM_ZK_CREATE2) {
            multi.stat = dm_jute_stat(answer);
            multi.has_stat = true;
        }
    }
    return multi;
}
