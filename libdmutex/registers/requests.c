/* SPDX-License-Identifier: BSD-2-Clause */
/* Requests to the driver: what goes out. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/units.h"
#include "registers/store_parts.h"

/* ---- notices ----------------------------------------------------------------------------- */

#define NOTICE_FORMAT 1
#define NOTICE_SIZE 60

static char *put(char *at, uint64_t number, int bytes)
{
    for (int i = bytes - 1; i >= 0; i--)
        *at++ = (char)(number >> (8 * i));
    return at;
}

static uint64_t get(const uint8_t **at, int bytes)
{
    uint64_t number = 0;

    for (int i = 0; i < bytes; i++)
        number = number << 8 | *(*at)++;
    return number;
}

size_t dm_registers_write_notice(const struct dm_reg_notice *notice, char to[DM_REG_NOTICE_ROOM])
{
    char *at = to;

    *at++ = NOTICE_FORMAT;
    *at++ = (char)notice->news;
    memcpy(at, notice->session.uuid, sizeof notice->session.uuid);
    at = put(at + sizeof notice->session.uuid, notice->session.serial, 4);
    at = put(at, notice->session.lease_ms, 4);
    at = put(at, notice->session.identity, 8);
    at = put(at, notice->attempt, 8);
    at = put(at, notice->token, 8);
    at = put(at, notice->position, 8);
    *at++ = notice->is_owner_dead;
    *at++ = notice->has_waiter;
    return (size_t)(at - to);
}

/* Anybody may send us a notice, so it is read with care, and is a hint (N4). */
bool dm_registers_read_notice(const void *text, size_t size, struct dm_reg_notice *ret_notice)
{
    const uint8_t *at = text;
    struct dm_reg_notice notice = { 0 };

    if (size != NOTICE_SIZE || at[0] != NOTICE_FORMAT || at[1] > DM_REG_NEWS_ASK)
        return false;
    notice.news = (enum dm_reg_news)at[1];
    at += 2;
    memcpy(notice.session.uuid, at, sizeof notice.session.uuid);
    at += sizeof notice.session.uuid;
    notice.session.serial = (uint32_t)get(&at, 4);
    notice.session.lease_ms = (uint32_t)get(&at, 4);
    notice.session.identity = get(&at, 8);
    notice.attempt = get(&at, 8);
    notice.token = get(&at, 8);
    notice.position = get(&at, 8);
    notice.is_owner_dead = at[0] == 1;
    notice.has_waiter = at[1] == 1;
    if (notice.token >= DM_TOKEN_LIMIT)
        return false;
    *ret_notice = notice;
    return true;
}

/* ---- the clock --------------------------------------------------------------------------- */

/* The store's, as far as it tells; else our own. */
int64_t dm_registers_wall_us(const struct dm_registers *registers)
{
    struct timespec now;

    if (registers->clock_us)
        return registers->clock_us + (dm_clock_boot_ns() - registers->clock_ns) / DM_NS_PER_US;
    clock_gettime(CLOCK_REALTIME, &now);
    return (int64_t)now.tv_sec * 1000000 + now.tv_nsec / 1000;
}

/* ---- requests ---------------------------------------------------------------------------- */

static struct dm_reg_request *add_request(struct dm_registers *registers, const struct dm_reg_request *request)
{
    struct dm_reg_request *added = malloc(sizeof *added);

    if (!added)
        return NULL;
    *added = *request;
    added->ticket = 0;
    added->index = 0;
    added->sent_ns = dm_clock_boot_ns();
    added->next = NULL;
    *registers->last_request = added;
    registers->last_request = &added->next;
    registers->traffic.commands++;
    return added;
}

static void remove_request(struct dm_registers *registers, struct dm_reg_request *request)
{
    struct dm_reg_request **at = &registers->requests;

    while (*at != request)
        at = &(*at)->next;
    *at = request->next;
    if (!*at)
        registers->last_request = at;
    free(request);
}

static bool add_read(struct dm_registers *registers, const struct dm_reg_request *request,
                     const struct dm_reg_item *item)
{
    struct dm_reg_read *read;

    if (!registers->is_connected || (registers->read_count == DM_REG_READS_MOST && !dm_registers_flush(registers)))
        return false;
    read = &registers->reads[registers->read_count];
    read->request = add_request(registers, request);
    if (!read->request)
        return false;
    read->version = item->version;
    read->reserves = item->reserves;
    snprintf(read->key, sizeof read->key, "%s", item->key);
    registers->read_count++;
    return true;
}

bool dm_registers_send(struct dm_registers *registers, const struct dm_reg_request *request,
                       const struct dm_reg_item *item)
{
    struct dm_reg_request *sent;

    if (!request->is_swap)
        return add_read(registers, request, item);
    sent = add_request(registers, request);
    if (!sent)
        return false;
    sent->ticket = ++registers->last_ticket;
    if (registers->driver->ops->swap(registers->driver, sent->ticket, item, 1))
        return true;
    remove_request(registers, sent);
    return false;
}

bool dm_registers_send_list(struct dm_registers *registers, const struct dm_reg_request *request, const char *prefix,
                            const char *after, int most)
{
    struct dm_reg_request *sent = add_request(registers, request);

    if (!sent)
        return false;
    sent->ticket = ++registers->last_ticket;
    if (registers->driver->ops->list(registers->driver, sent->ticket, prefix, after, most))
        return true;
    remove_request(registers, sent);
    return false;
}

bool dm_registers_flush(struct dm_registers *registers)
{
    int count = registers->read_count;
    uint64_t ticket = count ? ++registers->last_ticket : 0;

    if (!count)
        return true;
    for (int i = 0; i < count; i++) {
        struct dm_reg_read *read = &registers->reads[i];

        read->request->ticket = ticket;
        read->request->index = i;
        registers->read_items[i] =
            (struct dm_reg_item){ .key = read->key, .version = read->version, .reserves = read->reserves };
    }
    registers->read_count = 0;
    if (registers->driver->ops->read(registers->driver, ticket, registers->read_items, count))
        return true;
    for (int i = 0; i < count; i++)
        registers->reads[i].request->has_failed = true;
    registers->has_failed = true;
    return false;
}
