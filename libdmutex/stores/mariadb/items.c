/* SPDX-License-Identifier: BSD-2-Clause */
/* Requests until they are answered. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "stores/mariadb/parts.h"

/* For so long a socket counts as ours once it was asked for. */
#define OWN_NS DM_NS_PER_MS

void dm_maria_item_free(struct dm_maria_item *item)
{
    free(item->value);
    free(item);
}

void dm_maria_items_append(struct dm_maria_items *items, struct dm_maria_item *item)
{
    item->next = NULL;
    if (items->first)
        items->last->next = item;
    else
        items->first = item;
    items->last = item;
}

void dm_maria_items_prepend(struct dm_maria_items *items, struct dm_maria_item *item)
{
    item->next = items->first;
    if (!items->first)
        items->last = item;
    items->first = item;
}

struct dm_maria_item *dm_maria_items_take(struct dm_maria_items *items)
{
    struct dm_maria_item *item = items->first;

    if (item)
        items->first = item->next;
    return item;
}

static struct dm_maria_item *make_item(uint64_t ticket, int index, const struct dm_reg_item *from,
                                       enum dm_maria_kind kind)
{
    struct dm_maria_item *item = calloc(1, sizeof *item);

    if (!item)
        return NULL;
    item->kind = kind;
    item->ticket = ticket;
    item->index = index;
    item->reserves = from->reserves;
    item->version = from->version;
    memcpy(item->key, from->key, strnlen(from->key, sizeof item->key - 1));
    if (kind != DM_MARIA_SWAP || from->size == 0)
        return item;
    item->size = from->size;
    item->value = malloc(from->size);
    if (item->value) {
        memcpy(item->value, from->value, from->size);
        return item;
    }
    free(item);
    return NULL;
}

bool dm_maria_items_make(struct dm_maria_items *ret_items, uint64_t ticket, const struct dm_reg_item *items, int count,
                         enum dm_maria_kind kind)
{
    struct dm_maria_item *item;

    *ret_items = (struct dm_maria_items){ 0 };
    for (int i = 0; i < count; i++) {
        item = make_item(ticket, i, &items[i], kind);
        if (item) {
            dm_maria_items_append(ret_items, item);
            continue;
        }
        while ((item = dm_maria_items_take(ret_items)))
            dm_maria_item_free(item);
        return false;
    }
    return true;
}

void dm_maria_answer(struct dm_maria *maria, struct dm_maria_item *item, const struct dm_reg_reply *reply)
{
    item->is_answered = true;
    maria->client.on_reply(maria->client.user, item->ticket, item->index, reply);
}

void dm_maria_fail(struct dm_maria *maria, struct dm_maria_item *item, enum dm_reg_outcome outcome, const char *reason)
{
    const struct dm_reg_reply reply = { .outcome = outcome, .age_ms = -1, .reason = reason };

    if (item->is_answered)
        return;
    if (item->kind != DM_MARIA_LIST) {
        dm_maria_answer(maria, item, &reply);
        return;
    }
    item->is_answered = true;
    maria->client.on_list(maria->client.user, item->ticket, NULL, -1, true, reason);
}

void dm_maria_doom(struct dm_maria *maria, bool is_final, const char *format, ...)
{
    va_list values;

    if (maria->is_doomed)
        return;
    maria->is_doomed = true;
    maria->is_final = is_final;
    va_start(values, format);
    vsnprintf(maria->doom, sizeof maria->doom, format, values);
    va_end(values);
}

bool dm_maria_has_socket(const struct dm_maria *maria)
{
    return dm_fileid_has(&maria->socket, mysql_get_socket(maria->connection));
}

bool dm_maria_check_socket(struct dm_maria *maria)
{
    int64_t now_ns = dm_clock_boot_ns();

    if (now_ns - maria->owned_ns < OWN_NS)
        return !maria->is_doomed;
    maria->owned_ns = now_ns;
    if (!dm_maria_has_socket(maria))
        dm_maria_doom(maria, false, "the program has closed the connection to MariaDB");
    return !maria->is_doomed;
}
