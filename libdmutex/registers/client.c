/* SPDX-License-Identifier: BSD-2-Clause */
/* What the driver calls: from inside its turn(), so the store's lock is held. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "registers/store_parts.h"

/* ---- replies ----------------------------------------------------------------------------- */

static void note_clock(struct dm_registers *registers, int64_t clock_us)
{
    if (!clock_us)
        return;
    registers->clock_us = clock_us;
    registers->clock_ns = dm_clock_boot_ns();
}

/* Answers come in the order of asking, mostly, so the first is the one. */
static struct dm_reg_request *take_request(struct dm_registers *registers, uint64_t ticket, int index)
{
    struct dm_reg_request **at = &registers->requests, *request;

    while (*at && ((*at)->ticket != ticket || (*at)->index != index))
        at = &(*at)->next;
    request = *at;
    if (!request)
        return NULL;
    *at = request->next;
    if (!*at)
        registers->last_request = at;
    return request;
}

/* A mean of the last ones, for pauses. */
static void note_round_trip(struct dm_registers *registers, int64_t took_ns)
{
    registers->round_trip_ns += (took_ns - registers->round_trip_ns) / 8;
}

static void replied(struct dm_registers *registers, const struct dm_reg_request *request,
                    const struct dm_reg_reply *reply)
{
    switch (request->asked) {
    case DM_REG_ASKED_NAME:
        dm_registers_name_replied(registers, request, reply);
        break;
    case DM_REG_ASKED_OWN:
        dm_registers_own_replied(registers, request, reply);
        break;
    case DM_REG_ASKED_WATCHED:
        dm_registers_watched_replied(registers, request, reply);
        break;
    case DM_REG_ASKED_MARK:
        dm_registers_mark_replied(registers, request, reply);
        break;
    case DM_REG_ASKED_NOTE:
        dm_registers_note_replied(registers, request, reply);
        break;
    case DM_REG_ASKED_LOOK:
        dm_registers_look_replied(request, reply);
        break;
    case DM_REG_ASKED_SWEEP:
        break;
    }
}

static void on_reply(void *user, uint64_t ticket, int index, const struct dm_reg_reply *reply)
{
    struct dm_registers *registers = user;
    struct dm_reg_request *request = take_request(registers, ticket, index);

    if (!request)
        return;
    if (reply->outcome != DM_REG_UNKNOWN)
        note_round_trip(registers, dm_clock_boot_ns() - request->sent_ns);
    note_clock(registers, reply->clock_us);
    if (reply->outcome == DM_REG_REFUSED && reply->reason)
        snprintf(registers->down_reason, sizeof registers->down_reason, "%s", reply->reason);
    replied(registers, request, reply);
    free(request);
}

void dm_registers_answer_failed(struct dm_registers *registers)
{
    const struct dm_reg_reply unknown = { .outcome = DM_REG_UNKNOWN, .age_ms = -1 };
    struct dm_reg_request **at = &registers->requests;

    while (registers->has_failed && *at) {
        struct dm_reg_request *request = *at;

        if (!request->has_failed) {
            at = &request->next;
            continue;
        }
        *at = request->next;
        if (!*at)
            registers->last_request = at;
        replied(registers, request, &unknown);
        free(request);
    }
    registers->has_failed = false;
}

/* ---- the connection ---------------------------------------------------------------------- */

/* D1, D2: nobody asks anything before the mark has been read. */
static void on_ready(void *user, const char *identity)
{
    struct dm_registers *registers = user;
    bool has_moved = registers->identity_number && strcmp(registers->identity, identity) != 0;

    registers->traffic.reconnects += registers->identity_number != 0 && !registers->is_resting;
    registers->is_resting = false;
    registers->is_connected = true;
    registers->down_reason[0] = '\0';
    snprintf(registers->identity, sizeof registers->identity, "%s", identity);
    registers->identity_number = dm_reg_identity_number(identity);
    if (has_moved) {
        dm_registers_sessions_moved(registers);
        dm_registers_names_moved(registers);
        dm_registers_sweep_moved(registers);
    }
    dm_reg_mark_begin(&registers->mark, identity);
}

static void on_down(void *user, const char *reason, bool is_final)
{
    struct dm_registers *registers = user;

    registers->is_connected = registers->is_ready = false;
    registers->is_final = is_final;
    snprintf(registers->down_reason, sizeof registers->down_reason, "%s", reason ? reason : "");
    dm_registers_names_down(registers);
    registers->tells_change = true;
    dm_registers_wake_all(registers);
}

static void on_inbox(void *user, bool is_open)
{
    struct dm_registers *registers = user;

    registers->is_inbox_open = is_open;
    registers->tells_inbox = registers->tells_inbox || (is_open && registers->is_ready);
    dm_registers_wake_all(registers);
}

static void on_tell(void *user, const void *text, size_t size)
{
    struct dm_registers *registers = user;
    struct dm_reg_notice notice;

    registers->traffic.messages++;
    if (dm_registers_read_notice(text, size, &notice))
        dm_registers_hear_notice(registers, &notice);
}

static void on_list(void *user, uint64_t ticket, const char *const *keys, int count, bool is_last, const char *reason)
{
    struct dm_registers *registers = user;
    struct dm_reg_request *request = take_request(registers, ticket, 0);

    if (request)
        dm_registers_look_listed(request->look, keys, count, is_last, reason);
    free(request);
}

static void on_warning(void *user, const char *text)
{
    (void)user;
    dm_log_warn("%s", text);
}

struct dm_reg_client dm_registers_client(struct dm_registers *registers)
{
    return (struct dm_reg_client){ .user = registers,
                                   .on_ready = on_ready,
                                   .on_down = on_down,
                                   .on_reply = on_reply,
                                   .on_list = on_list,
                                   .on_tell = on_tell,
                                   .on_inbox = on_inbox,
                                   .on_warning = on_warning };
}
