/* SPDX-License-Identifier: BSD-2-Clause */
#include "registers/session.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/minmax.h"
#include "base/units.h"
#include "core/hold.h"

/* A request without an answer is repeated after a twentieth of the lease, as in core/hold.c. */
#define RETRY_PART 20
#define RETRY_MIN_MS 50

/* ---- keys -------------------------------------------------------------------------------- */

void dm_reg_session_uuid(const struct dm_reg_session_id *id, char ret_uuid[DM_UUID_LENGTH + 1])
{
    for (size_t i = 0; i < sizeof id->uuid; i++)
        snprintf(ret_uuid + 2 * i, 3, "%02x", id->uuid[i]);
}

void dm_reg_session_key(const struct dm_reg_session_id *id, char ret_key[DM_REG_SESSION_KEY_ROOM])
{
    char uuid[DM_UUID_LENGTH + 1];

    dm_reg_session_uuid(id, uuid);
    snprintf(ret_key, DM_REG_SESSION_KEY_ROOM, "s/%s.%" PRIu32 "/%" PRIu32, uuid, id->serial, id->lease_ms);
}

/* Only the one spelling that dm_reg_session_key() writes. */
bool dm_reg_session_parse_key(const char *key, uint64_t identity, struct dm_reg_session_id *ret_id)
{
    struct dm_reg_session_id id = { .identity = identity };
    char again[DM_REG_SESSION_KEY_ROOM];

    if (strlen(key) < 2 + DM_UUID_LENGTH ||
        sscanf(key + 2 + DM_UUID_LENGTH, ".%9" SCNu32 "/%9" SCNu32, &id.serial, &id.lease_ms) != 2)
        return false;
    for (size_t i = 0; i < sizeof id.uuid; i++) {
        if (sscanf(key + 2 + 2 * i, "%2" SCNx8, &id.uuid[i]) != 1)
            return false;
    }
    dm_reg_session_key(&id, again);
    if (strcmp(key, again) != 0 || id.serial == 0 || id.lease_ms < DM_LEASE_MIN_MS || id.lease_ms > DM_LEASE_MAX_MS)
        return false;
    *ret_id = id;
    return true;
}

/* ---- one session ------------------------------------------------------------------------- */

void dm_reg_session_init(struct dm_reg_session *session, const struct dm_reg_session_id *id, int64_t from_ns)
{
    memset(session, 0, sizeof *session);
    session->id = *id;
    session->swap_ns = from_ns;
}

void dm_reg_session_refer(struct dm_reg_session *session, int references, int holds)
{
    session->references = (unsigned)dm_max64(0, (int64_t)session->references + references);
    session->holds = (unsigned)dm_max64(0, (int64_t)session->holds + holds);
}

/* A moment that is still to come would be awaited by one beat after the other. */
void dm_reg_session_await_beat(struct dm_reg_session *session, int64_t asked_ns, int64_t now_ns)
{
    session->wanted_ns = dm_max64(session->wanted_ns, dm_min64(asked_ns, now_ns));
}

static int64_t lease_ns(const struct dm_reg_session *session)
{
    return session->id.lease_ms * DM_NS_PER_MS;
}

/* ---- certainty --------------------------------------------------------------------------- */

int64_t dm_reg_session_certain_until_ns(const struct dm_reg_session *session)
{
    if (session->proved == 0 || (session->phase != DM_REG_SESSION_LIVE && session->phase != DM_REG_SESSION_PAST))
        return 0;
    return session->proved_ns + lease_ns(session) * 8 / 10;
}

bool dm_reg_session_is_certain(const struct dm_reg_session *session, int64_t now_ns)
{
    return now_ns < dm_reg_session_certain_until_ns(session);
}

/*
 * S8, S10.  Somebody may have watched a silent session already.  If it could be referred to, its kill would be told as
 * a death.
 */
bool dm_reg_session_may_refer(const struct dm_reg_session *session, int64_t now_ns)
{
    return session->phase == DM_REG_SESSION_LIVE && dm_reg_session_is_certain(session, now_ns);
}

/* ---- wants ------------------------------------------------------------------------------- */

/* When the next beat is due: S10, nobody beats for nothing. */
static int64_t beat_ns(const struct dm_reg_session *session)
{
    if (session->is_needed || session->proved_ns < session->wanted_ns)
        return 0;
    return session->references ? session->proved_ns + lease_ns(session) / 3 : DM_NEVER;
}

static enum dm_reg_session_want next_want(const struct dm_reg_session *session, int64_t *ret_due_ns)
{
    *ret_due_ns = session->read_ns;
    if (session->must_read)
        return DM_REG_SESSION_READ;
    *ret_due_ns = session->swap_ns;
    switch (session->phase) {
    case DM_REG_SESSION_UNMADE:
        *ret_due_ns = session->is_needed ? session->swap_ns : DM_NEVER;
        return DM_REG_SESSION_CREATE;
    case DM_REG_SESSION_LIVE:
        *ret_due_ns = dm_max64(beat_ns(session), session->swap_ns);
        return DM_REG_SESSION_BEAT;
    case DM_REG_SESSION_ENDING:
        return DM_REG_SESSION_END;
    case DM_REG_SESSION_OVER:
    case DM_REG_SESSION_PAST:
        break;
    }
    *ret_due_ns = DM_NEVER;
    return DM_REG_SESSION_NOTHING;
}

enum dm_reg_session_want dm_reg_session_wants(const struct dm_reg_session *session, int64_t now_ns)
{
    int64_t due_ns;
    enum dm_reg_session_want want = next_want(session, &due_ns);

    return session->under_way == DM_REG_SESSION_NOTHING && due_ns <= now_ns ? want : DM_REG_SESSION_NOTHING;
}

int64_t dm_reg_session_due_ns(const struct dm_reg_session *session)
{
    int64_t due_ns = DM_NEVER;

    next_want(session, &due_ns);
    if (session->under_way != DM_REG_SESSION_NOTHING)
        due_ns = DM_NEVER;
    if (session->holds && !session->is_lost && dm_reg_session_certain_until_ns(session))
        due_ns = dm_min64(due_ns, dm_reg_session_certain_until_ns(session));
    return due_ns;
}

uint64_t dm_reg_session_send(struct dm_reg_session *session, enum dm_reg_session_want want, int64_t now_ns)
{
    int64_t again_ns = now_ns + dm_max64(lease_ns(session) / RETRY_PART, RETRY_MIN_MS * DM_NS_PER_MS);

    session->under_way = want;
    session->sent_ns = now_ns;
    if (want == DM_REG_SESSION_READ)
        session->read_ns = again_ns;
    else
        session->swap_ns = again_ns;
    if (want == DM_REG_SESSION_CREATE || want == DM_REG_SESSION_BEAT)
        session->sent++;
    return session->sent;
}

/* ---- what has become of it --------------------------------------------------------------- */

/* S1.  An older beat that is proved late shortens nothing: the newest one counts. */
static void prove(struct dm_reg_session *session, uint64_t beat, int64_t sent_ns)
{
    if (beat <= session->proved)
        return;
    session->proved = beat;
    session->proved_ns = sent_ns;
    if (session->phase == DM_REG_SESSION_UNMADE)
        session->phase = DM_REG_SESSION_LIVE;
}

/* The process no longer has it; S6, D7. */
static void lose(struct dm_reg_session *session, int64_t now_ns)
{
    session->is_proof = session->phase == DM_REG_SESSION_LIVE && dm_reg_session_is_certain(session, now_ns);
    session->is_lost = session->is_lost || session->holds > 0;
    session->phase = DM_REG_SESSION_OVER;
    session->must_read = false;
}

/* Remembers a beat that may yet be executed; the oldest is forgotten first, and proves nothing then. */
static void remember(struct dm_reg_session *session, uint64_t beat)
{
    session->flights[beat % DM_REG_FLIGHTS] = (struct dm_reg_flight){ beat, session->sent_ns };
}

/*
 * S6.  The value is the session's own if its beat is the newest one proved, which somebody may have added a note to, or
 * a later one that was sent.  A beat whose sending is forgotten counts as executed, and makes nothing certain.
 */
static void find(struct dm_reg_session *session, const struct dm_reg_session_event *event, int64_t now_ns)
{
    const struct dm_reg_session_value *value = event->value;
    const struct dm_reg_flight *flight;

    if (!value || value->is_dead || value->beat < session->proved || value->beat > session->sent || value->beat == 0) {
        lose(session, now_ns);
        return;
    }
    flight = &session->flights[value->beat % DM_REG_FLIGHTS];
    prove(session, value->beat, flight->beat == value->beat ? flight->sent_ns : session->proved_ns);
    session->version = value->version;
    session->must_read = false;
    session->swap_ns = 0;
}

/* S7. */
static void pass_time(struct dm_reg_session *session, int64_t now_ns)
{
    if (session->holds == 0 || dm_reg_session_is_certain(session, now_ns))
        return;
    if (session->phase == DM_REG_SESSION_LIVE) {
        session->phase = DM_REG_SESSION_ENDING;
        session->is_lost = true;
    } else if (session->phase == DM_REG_SESSION_PAST) {
        session->phase = DM_REG_SESSION_OVER;
        session->is_lost = true;
    }
}

/* A session whose creation was never sent needs no end. */
static void close_down(struct dm_reg_session *session, bool may_delete)
{
    if (session->phase == DM_REG_SESSION_LIVE || (session->phase == DM_REG_SESSION_UNMADE && session->sent > 0)) {
        session->phase = DM_REG_SESSION_ENDING;
        session->may_delete = may_delete;
    } else if (session->phase != DM_REG_SESSION_ENDING) {
        session->phase = DM_REG_SESSION_OVER;
    }
}

static void take_done(struct dm_reg_session *session, enum dm_reg_session_want what,
                      const struct dm_reg_session_event *event)
{
    if (what == DM_REG_SESSION_END) {
        session->phase = DM_REG_SESSION_OVER;
        return;
    }
    session->version = event->version;
    session->swap_ns = 0;
    prove(session, session->sent, session->sent_ns);
}

/* An answer to the request under way. */
static void take_answer(struct dm_reg_session *session, const struct dm_reg_session_event *event, int64_t now_ns)
{
    enum dm_reg_session_want what = session->under_way;

    if (what == DM_REG_SESSION_NOTHING)
        return;
    session->under_way = DM_REG_SESSION_NOTHING;
    if (event->kind != DM_REG_SESSION_EV_UNKNOWN)
        session->read_ns = 0;
    switch (event->kind) {
    case DM_REG_SESSION_EV_DONE:
        take_done(session, what, event);
        break;
    case DM_REG_SESSION_EV_UNKNOWN:
        if (what == DM_REG_SESSION_CREATE || what == DM_REG_SESSION_BEAT)
            remember(session, session->sent);
        session->must_read = true;
        break;
    case DM_REG_SESSION_EV_CONFLICT:
        if (what == DM_REG_SESSION_CREATE)
            lose(session, now_ns); /* S4: what is there is another's */
        else
            session->must_read = true;
        break;
    case DM_REG_SESSION_EV_FOUND:
        find(session, event, now_ns);
        break;
    case DM_REG_SESSION_EV_ABSENT:
        lose(session, now_ns);
        break;
    default: /* SAME */
        session->must_read = false;
        if (session->proved == 0)
            lose(session, now_ns); /* S4: still absent, and not tried again */
    }
}

void dm_reg_session_step(struct dm_reg_session *session, const struct dm_reg_session_event *event, int64_t now_ns)
{
    switch (event->kind) {
    case DM_REG_SESSION_EV_TIME:
        break;
    case DM_REG_SESSION_EV_NEEDED:
        session->is_needed = !dm_reg_session_may_refer(session, now_ns);
        break;
    case DM_REG_SESSION_EV_CLOSED:
        close_down(session, event->may_delete);
        break;
    case DM_REG_SESSION_EV_MOVED: /* D3.  Two losses in a row change nothing for the holds. */
        if (session->phase != DM_REG_SESSION_PAST)
            session->phase = session->phase == DM_REG_SESSION_LIVE ? DM_REG_SESSION_PAST : DM_REG_SESSION_OVER;
        session->under_way = DM_REG_SESSION_NOTHING;
        session->must_read = false;
        memset(session->flights, 0, sizeof session->flights);
        break;
    default:
        take_answer(session, event, now_ns);
    }
    pass_time(session, now_ns);
    session->is_needed = session->is_needed && !dm_reg_session_may_refer(session, now_ns);
}
