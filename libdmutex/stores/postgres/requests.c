/* SPDX-License-Identifier: BSD-2-Clause */
/* Requests until they are answered, and whether there is a connection for them. */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "stores/postgres/parts.h"

/* For so long a socket counts as ours once it was asked for. */
#define OWN_NS DM_NS_PER_MS

/* ---- items ------------------------------------------------------------------------------- */

void dm_pg_item_free(struct dm_pg_item *item)
{
    for (int i = 0; i < item->tell_count; i++)
        free(item->tells[i].payload);
    free(item->tells);
    free(item->value);
    free(item);
}

void dm_pg_items_append(struct dm_pg_items *items, struct dm_pg_item *item)
{
    item->next = NULL;
    if (items->first)
        items->last->next = item;
    else
        items->first = item;
    items->last = item;
}

struct dm_pg_item *dm_pg_items_take(struct dm_pg_items *items)
{
    struct dm_pg_item *item = items->first;

    if (item)
        items->first = item->next;
    return item;
}

void dm_pg_answer(struct dm_postgres *postgres, struct dm_pg_item *item, const struct dm_reg_reply *reply)
{
    item->state = DM_PG_ANSWERED;
    postgres->client.on_reply(postgres->client.user, item->ticket, item->index, reply);
}

void dm_pg_give_up(struct dm_postgres *postgres, struct dm_pg_item *item, const char *reason)
{
    struct dm_reg_reply reply = { .outcome = DM_REG_UNKNOWN, .age_ms = -1, .reason = reason };

    if (item->state == DM_PG_ANSWERED)
        return;
    if (item->is_list) {
        item->state = DM_PG_ANSWERED;
        postgres->client.on_list(postgres->client.user, item->ticket, NULL, -1, true, reason);
    } else {
        dm_pg_answer(postgres, item, &reply);
    }
}

/* ---- the connection ---------------------------------------------------------------------- */

void dm_pg_doom(struct dm_postgres *postgres, bool is_final, const char *format, ...)
{
    va_list values;

    if (postgres->is_doomed)
        return;
    postgres->is_doomed = true;
    postgres->is_final = is_final;
    va_start(values, format);
    vsnprintf(postgres->doom, sizeof postgres->doom, format, values);
    va_end(values);
}

bool dm_pg_has_socket(const struct dm_postgres *postgres)
{
    return dm_fileid_has(&postgres->socket, PQsocket(postgres->connection));
}

/* As the links of Redis do (link/session.c): the kernel is asked once in a millisecond, and not for each statement. */
bool dm_pg_check_socket(struct dm_postgres *postgres)
{
    int64_t now_ns = dm_clock_boot_ns();

    if (now_ns - postgres->owned_ns < OWN_NS)
        return true;
    postgres->owned_ns = now_ns;
    if (!dm_pg_has_socket(postgres))
        dm_pg_doom(postgres, false, "the program has closed the connection to PostgreSQL");
    return !postgres->is_doomed;
}

bool dm_pg_is_open(struct dm_postgres *postgres)
{
    return postgres->phase == DM_PG_READY && !postgres->is_doomed && dm_pg_check_socket(postgres);
}

/* ---- inboxes ----------------------------------------------------------------------------- */

/* Inboxes are random; this is no defence against a role of the database, which may notify any channel anyway. */
void dm_pg_channel(const char *inbox, char ret_channel[DM_PG_CHANNEL_ROOM])
{
    uint64_t one = UINT64_C(0xcbf29ce484222325), other = UINT64_C(0x9e3779b97f4a7c15);

    for (; *inbox; inbox++) {
        one = (one ^ (uint8_t)*inbox) * UINT64_C(0x100000001b3);
        other = (other ^ (uint8_t)*inbox) * UINT64_C(0x100000001b3);
        other ^= other >> 29;
    }
    snprintf(ret_channel, DM_PG_CHANNEL_ROOM, "dm_%016" PRIx64 "%016" PRIx64, one, other);
}
