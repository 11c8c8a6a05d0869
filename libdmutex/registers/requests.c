/* SPDX-License-Identifier: BSD-2-Clause */
/* Requests to the driver: what goes out. */
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

bool dm_registers_send(struct dm_registers *registers, const struct dm_reg_request *request,
                       const struct dm_reg_item *item)
{
    struct dm_reg_request *sent = malloc(sizeof *sent);
    bool is_sent;

    if (!sent)
        return false;
    *sent = *request;
    sent->ticket = ++registers->last_ticket;
    sent->sent_ns = dm_clock_boot_ns();
    sent->next = registers->requests;
    registers->requests = sent;
    registers->traffic.commands++;
    registers->must_turn = true;
    is_sent = request->is_swap ? registers->driver->ops->swap(registers->driver, sent->ticket, item, 1)
                               : registers->driver->ops->read(registers->driver, sent->ticket, item, 1);
    if (!is_sent) {
        registers->requests = sent->next;
        free(sent);
    }
    return is_sent;
}
