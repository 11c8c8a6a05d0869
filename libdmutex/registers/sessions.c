/* SPDX-License-Identifier: BSD-2-Clause */
/* Sends what sessions, watched sessions and the mark want, and takes the replies; the rules are theirs. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/minmax.h"
#include "base/units.h"
#include "registers/store_parts.h"

/* A session that could not be made is not followed by another at once. */
#define RETRY_NS (50 * DM_NS_PER_MS)

/* A watched session that nobody has asked for in so many of its leases is forgotten. */
#define WANTED_LEASES 4

/* ---- our sessions ------------------------------------------------------------------------ */

static bool is_usable(const struct dm_registers *registers, const struct dm_reg_own *own)
{
    return own->session.id.identity == registers->identity_number &&
           (own->session.phase == DM_REG_SESSION_UNMADE || own->session.phase == DM_REG_SESSION_LIVE);
}

struct dm_reg_own *dm_registers_own(struct dm_registers *registers, uint32_t lease_ms)
{
    struct dm_reg_own *own = registers->owns;
    struct dm_reg_session_id id = { .lease_ms = lease_ms, .identity = registers->identity_number };

    while (own && (own->session.id.lease_ms != lease_ms || !is_usable(registers, own)))
        own = own->next;
    if (own)
        return own;
    own = calloc(1, sizeof *own);
    if (!own)
        return NULL;
    memcpy(id.uuid, registers->uuid, sizeof id.uuid);
    id.serial = ++registers->last_serial;
    dm_reg_session_init(&own->session, &id, registers->make_ns);
    own->next = registers->owns;
    registers->owns = own;
    return own;
}

bool dm_registers_is_our_living(const struct dm_registers *registers, const struct dm_reg_session_id *id)
{
    const struct dm_reg_own *own = registers->owns;

    while (own && !dm_reg_session_id_equals(&own->session.id, id))
        own = own->next;
    return own && own->session.phase <= DM_REG_SESSION_ENDING;
}

static void step_own(struct dm_reg_own *own, enum dm_reg_session_event_kind kind)
{
    dm_reg_session_step(&own->session, &(struct dm_reg_session_event){ .kind = kind }, dm_clock_boot_ns());
}

void dm_registers_need(struct dm_registers *registers, struct dm_reg_own *own)
{
    (void)registers;
    step_own(own, DM_REG_SESSION_EV_NEEDED);
}

static void send_own(struct dm_registers *registers, struct dm_reg_own *own, enum dm_reg_session_want want)
{
    struct dm_reg_request request = { .asked = DM_REG_ASKED_OWN, .own = own };
    struct dm_reg_session_value *value = &registers->session;
    char key[DM_REG_SESSION_KEY_ROOM];
    struct dm_reg_item item = { .key = key, .version = own->session.version, .value = registers->bytes };

    dm_reg_session_key(&own->session.id, key);
    memset(value, 0, sizeof *value);
    value->lease_ms = own->session.id.lease_ms;
    value->beat = dm_reg_session_send(&own->session, want, dm_clock_boot_ns());
    if (want != DM_REG_SESSION_READ) {
        request.is_swap = true;
        request.next_version = value->version = dm_reg_writer_next(&registers->writer);
        value->is_dead = want == DM_REG_SESSION_END;
        value->dead_us = value->is_dead ? dm_registers_wall_us(registers) : 0;
        snprintf(value->label, sizeof value->label, "%s", registers->ident->label);
        if (want != DM_REG_SESSION_END || !own->session.may_delete)
            item.size = dm_reg_session_encode(value, registers->bytes);
    }
    if (!dm_registers_send(registers, &request, &item))
        step_own(own, DM_REG_SESSION_EV_UNKNOWN);
}

/* Holds that were broken by force: the owner learns of it here at the latest. */
static void take_notes(struct dm_registers *registers, const struct dm_reg_session_value *value)
{
    for (int i = 0; i < value->broken_count; i++) {
        struct dm_reg_attempt *attempt = dm_registers_attempt(registers, value->broken[i]);

        if (attempt)
            attempt->is_broken = true; /* a grant that is still under way comes too late */
        dm_registers_tell(registers, &(struct dm_message){ .kind = DM_MESSAGE_LOST, .attempt = value->broken[i] });
    }
}

static void own_read(struct dm_registers *registers, struct dm_reg_own *own, const struct dm_reg_reply *reply)
{
    struct dm_reg_session_event event = { .kind = DM_REG_SESSION_EV_FOUND };
    struct dm_reg_session_value *value = &registers->session;
    const char *reason;

    if (reply->outcome == DM_REG_SAME) {
        event.kind = DM_REG_SESSION_EV_SAME;
    } else if (reply->outcome != DM_REG_DONE) {
        event.kind = DM_REG_SESSION_EV_UNKNOWN;
    } else if (reply->size == 0) {
        event.kind = DM_REG_SESSION_EV_ABSENT;
    } else if (dm_reg_session_decode(reply->value, reply->size, value, &reason) == 0) {
        event.value = value;
        take_notes(registers, value);
    }
    dm_reg_session_step(&own->session, &event, dm_clock_boot_ns());
}

/* V5: a store that is too full for the word "dead" may still delete; S3 makes that as good. */
static void own_swapped(struct dm_reg_own *own, const struct dm_reg_request *request, const struct dm_reg_reply *reply)
{
    struct dm_reg_session_event event = { .kind = DM_REG_SESSION_EV_UNKNOWN, .version = request->next_version };

    if (reply->outcome == DM_REG_DONE)
        event.kind = DM_REG_SESSION_EV_DONE;
    if (reply->outcome == DM_REG_CONFLICT)
        event.kind = DM_REG_SESSION_EV_CONFLICT;
    if (reply->outcome == DM_REG_REFUSED && own->session.under_way == DM_REG_SESSION_END)
        own->session.may_delete = true;
    dm_reg_session_step(&own->session, &event, dm_clock_boot_ns());
}

void dm_registers_own_replied(struct dm_registers *registers, const struct dm_reg_request *request,
                              const struct dm_reg_reply *reply)
{
    struct dm_reg_own *own = request->own;
    bool was_proof = own->session.is_proof;

    if (request->is_swap)
        own_swapped(own, request, reply);
    else
        own_read(registers, own, reply);
    if (own->session.is_proof && !was_proof)
        dm_log_warn("the store has lost data: a session of this process is not as the process left it");
}

/* True if the session can be forgotten. */
static bool run_own(struct dm_registers *registers, struct dm_reg_own *own, int64_t now_ns)
{
    enum dm_reg_session_want want;
    bool is_idle = own->session.references == 0 && own->attempts == 0;

    step_own(own, DM_REG_SESSION_EV_TIME);
    if (is_idle && (registers->is_closing || registers->is_idle || own->session.phase == DM_REG_SESSION_PAST))
        dm_reg_session_step(
            &own->session,
            &(struct dm_reg_session_event){ .kind = DM_REG_SESSION_EV_CLOSED, .may_delete = registers->is_settled },
            now_ns);
    want = dm_reg_session_wants(&own->session, now_ns);
    if (registers->is_ready && want != DM_REG_SESSION_NOTHING)
        send_own(registers, own, want);
    if (own->session.phase != DM_REG_SESSION_OVER)
        return false;
    if (!own->is_over && own->session.proved == 0)
        registers->make_ns = now_ns + RETRY_NS;
    own->is_over = true;
    return own->attempts == 0 && own->session.under_way == DM_REG_SESSION_NOTHING;
}

/* Without a connection only the end of certainty can come. */
static int64_t own_due_ns(const struct dm_registers *registers, const struct dm_reg_own *own)
{
    int64_t end_ns = dm_reg_session_certain_until_ns(&own->session);

    if (registers->is_ready)
        return dm_reg_session_due_ns(&own->session);
    return own->session.holds && end_ns ? end_ns : DM_NEVER;
}

static int64_t run_owns(struct dm_registers *registers, int64_t now_ns)
{
    struct dm_reg_own **at = &registers->owns;
    int64_t due_ns = DM_NEVER;

    while (*at) {
        struct dm_reg_own *own = *at;

        if (run_own(registers, own, now_ns)) {
            *at = own->next;
            free(own);
            continue;
        }
        due_ns = dm_min64(due_ns, own_due_ns(registers, own));
        at = &own->next;
    }
    return due_ns;
}

/* ---- watched sessions -------------------------------------------------------------------- */

static void step_watched(struct dm_registers *registers, struct dm_reg_watched *watched,
                         const struct dm_reg_watch_event *event)
{
    if (dm_reg_watch_step(&registers->watch, watched, event, dm_clock_boot_ns()))
        registers->has_dead = true;
}

static void send_watched(struct dm_registers *registers, struct dm_reg_watched *watched, enum dm_reg_watch_want want)
{
    struct dm_reg_request request = { .asked = DM_REG_ASKED_WATCHED, .watched = watched->id };
    struct dm_reg_session_value *value = &registers->session;
    char key[DM_REG_SESSION_KEY_ROOM];
    struct dm_reg_item item = { .key = key, .version = watched->version, .value = registers->bytes };

    dm_reg_session_key(&watched->id, key);
    memset(value, 0, sizeof *value);
    value->is_dead = true;
    value->dead_us = dm_registers_wall_us(registers);
    snprintf(value->label, sizeof value->label, "%s", watched->label);
    dm_reg_watch_send(watched, want);
    if (want == DM_REG_WATCH_KILL) {
        request.is_swap = true;
        request.next_version = value->version = dm_reg_writer_next(&registers->writer);
        item.size = dm_reg_session_encode(value, registers->bytes);
    }
    if (!dm_registers_send(registers, &request, &item))
        step_watched(registers, watched, &(struct dm_reg_watch_event){ .kind = DM_REG_WATCH_EV_UNKNOWN });
}

/* What a read or a conflict shows.  A value that is no session's is nobody's to judge: it is looked at again. */
static void see_watched(struct dm_registers *registers, struct dm_reg_watched *watched,
                        const struct dm_reg_reply *reply)
{
    struct dm_reg_watch_event event = { .kind = DM_REG_WATCH_EV_FOUND,
                                        .version = reply->version,
                                        .age_ms = reply->age_ms };
    struct dm_reg_session_value *value = &registers->session;
    const char *reason;

    if (reply->outcome == DM_REG_SAME)
        event.kind = DM_REG_WATCH_EV_SAME;
    else if (reply->size == 0)
        event.kind = DM_REG_WATCH_EV_ABSENT;
    else if (dm_reg_session_decode(reply->value, reply->size, value, &reason) == 0)
        event.is_dead = value->is_dead, event.label = value->label;
    else
        event.kind = DM_REG_WATCH_EV_UNKNOWN;
    step_watched(registers, watched, &event);
}

void dm_registers_watched_replied(struct dm_registers *registers, const struct dm_reg_request *request,
                                  const struct dm_reg_reply *reply)
{
    struct dm_reg_watched *watched = dm_reg_watch_find(&registers->watch, &request->watched);
    struct dm_reg_watch_event event = { .kind = DM_REG_WATCH_EV_UNKNOWN, .age_ms = -1 };

    if (!watched)
        return;
    if (!request->is_swap && (reply->outcome == DM_REG_DONE || reply->outcome == DM_REG_SAME)) {
        see_watched(registers, watched, reply);
        return;
    }
    if (reply->outcome == DM_REG_DONE)
        event.kind = DM_REG_WATCH_EV_KILLED;
    if (reply->outcome == DM_REG_CONFLICT)
        event.kind = DM_REG_WATCH_EV_CONFLICT;
    step_watched(registers, watched, &event);
    if (reply->outcome == DM_REG_CONFLICT && reply->has_value)
        see_watched(registers, watched, reply);
}

static int64_t run_watched(struct dm_registers *registers, int64_t now_ns)
{
    int64_t due_ns = DM_NEVER;

    for (unsigned i = 0; i < DM_REG_WATCH_BUCKETS && registers->watch.count; i++) {
        for (struct dm_reg_watched *watched = registers->watch.buckets[i]; watched; watched = watched->next) {
            enum dm_reg_watch_want want = dm_reg_watch_wants(watched, now_ns);
            int64_t lease_ns = watched->id.lease_ms * DM_NS_PER_MS;

            if (now_ns - watched->wanted_ns > WANTED_LEASES * lease_ns)
                continue; /* forgotten below */
            if (!registers->is_ready)
                continue;
            if (want != DM_REG_WATCH_NOTHING)
                send_watched(registers, watched, want);
            due_ns = dm_min64(due_ns, dm_reg_watch_due_ns(watched));
        }
    }
    dm_reg_watch_forget(&registers->watch, now_ns - WANTED_LEASES * DM_LEASE_MAX_MS * DM_NS_PER_MS);
    return due_ns;
}

/* ---- the mark ---------------------------------------------------------------------------- */

static void become_ready(struct dm_registers *registers)
{
    if (registers->is_ready || !dm_reg_mark_is_ready(&registers->mark))
        return;
    registers->is_ready = true;
    registers->ready_ns = dm_clock_boot_ns();
    registers->tells_ready = true;
    registers->tells_inbox = registers->tells_inbox || registers->is_inbox_open;
    dm_registers_wake_all(registers);
}

/* A mark that is not ours is nobody's to repair: it is read again, and people are told. */
static void read_mark(struct dm_registers *registers, const struct dm_reg_reply *reply,
                      struct dm_reg_mark_event *ret_event, struct dm_reg_mark_value *ret_value)
{
    const char *reason;

    ret_event->version = reply->version;
    if (reply->outcome == DM_REG_SAME) {
        ret_event->kind = DM_REG_MARK_EV_SAME;
    } else if (reply->outcome == DM_REG_DONE && reply->size == 0) {
        ret_event->kind = DM_REG_MARK_EV_ABSENT;
    } else if (reply->outcome == DM_REG_DONE && dm_reg_mark_decode(reply->value, reply->size, ret_value, &reason)) {
        snprintf(registers->down_reason, sizeof registers->down_reason, "the key m is not ours: %s", reason);
    } else if (reply->outcome == DM_REG_DONE) {
        ret_event->kind = DM_REG_MARK_EV_FOUND;
        ret_event->identity = ret_value->identity;
        ret_event->quiet_ms = ret_value->quiet_ms;
    }
}

void dm_registers_mark_replied(struct dm_registers *registers, const struct dm_reg_request *request,
                               const struct dm_reg_reply *reply)
{
    struct dm_reg_mark_event event = { .kind = DM_REG_MARK_EV_UNKNOWN };
    struct dm_reg_mark_value value;

    if (!request->is_swap)
        read_mark(registers, reply, &event, &value);
    else if (reply->outcome == DM_REG_DONE)
        event = (struct dm_reg_mark_event){ DM_REG_MARK_EV_DONE, .version = request->next_version };
    else if (reply->outcome == DM_REG_CONFLICT)
        event.kind = DM_REG_MARK_EV_CONFLICT;
    dm_reg_mark_step(&registers->mark, &event, dm_clock_boot_ns());
    become_ready(registers);
}

static int64_t run_mark(struct dm_registers *registers, int64_t now_ns)
{
    enum dm_reg_mark_want want = dm_reg_mark_wants(&registers->mark, now_ns);
    struct dm_reg_request request = { .asked = DM_REG_ASKED_MARK, .is_swap = want == DM_REG_MARK_SWAP };
    struct dm_reg_item item = { .key = "m", .version = registers->mark.version, .value = registers->bytes };
    struct dm_reg_mark_value value = { .quiet_ms = 0 };

    if (!registers->is_connected)
        return DM_NEVER;
    if (want == DM_REG_MARK_NOTHING)
        return dm_reg_mark_due_ns(&registers->mark);
    value.quiet_ms = dm_reg_mark_send(&registers->mark, want, now_ns);
    if (want == DM_REG_MARK_SWAP) {
        request.next_version = value.version = dm_reg_writer_next(&registers->writer);
        snprintf(value.identity, sizeof value.identity, "%s", registers->identity);
        item.size = dm_reg_mark_encode(&value, registers->bytes);
    }
    if (!dm_registers_send(registers, &request, &item))
        dm_reg_mark_step(&registers->mark, &(struct dm_reg_mark_event){ .kind = DM_REG_MARK_EV_UNKNOWN }, now_ns);
    return dm_reg_mark_due_ns(&registers->mark);
}

/* ---- all --------------------------------------------------------------------------------- */

int64_t dm_registers_run_sessions(struct dm_registers *registers)
{
    int64_t now_ns = dm_clock_boot_ns(), due_ns = run_mark(registers, now_ns);

    due_ns = dm_min64(due_ns, run_owns(registers, now_ns));
    return dm_min64(due_ns, run_watched(registers, now_ns));
}

/* D3: sessions belong to the data of one identity, and so do those that we watch. */
void dm_registers_sessions_moved(struct dm_registers *registers)
{
    for (struct dm_reg_own *own = registers->owns; own; own = own->next)
        step_own(own, DM_REG_SESSION_EV_MOVED);
    dm_reg_watch_clear(&registers->watch);
}
