/* SPDX-License-Identifier: BSD-2-Clause */
/* What the process hears without asking, or long after: confirmed holds, notices, deaths, ends of its sessions. */
#include <stdlib.h>

#include "base/units.h"
#include "registers/store_parts.h"

/* ---- renewals ---------------------------------------------------------------------------- */

static bool answer_renewal(struct dm_registers *registers, const struct dm_reg_renewal *renewal);

void dm_registers_push_renewal(struct dm_registers *registers, const struct dm_reg_renewal *renewal)
{
    const struct dm_answer nothing = { .verdict = DM_SAYS_NOTHING };
    struct dm_reg_renewal *pushed;

    if (answer_renewal(registers, renewal))
        return;
    pushed = malloc(sizeof *pushed);
    if (!pushed) {
        dm_registers_answer(registers, renewal->batch, renewal->index, &nothing, NULL);
        return;
    }
    *pushed = *renewal;
    pushed->next = registers->renewals;
    registers->renewals = pushed;
}

/*
 * No request: the session's beats keep the hold.  NOTHING: the beat that proves it is still to come.  After a loss of
 * data a hold is as certain as before; a thread that awaits more learns what becomes of the claim.
 */
static struct dm_answer renewal_answer(struct dm_registers *registers, const struct dm_reg_renewal *renewal)
{
    const struct dm_reg_attempt *attempt = dm_registers_attempt(registers, renewal->attempt);
    struct dm_answer answer = { .verdict = DM_SAYS_UNKNOWN, .has_waiter = renewal->has_waiter };
    const struct dm_reg_session *session = attempt && attempt->own ? &attempt->own->session : NULL;

    if (!session || !attempt->is_hold || !dm_reg_attempt_is_certain(attempt))
        return answer;
    answer.verdict = DM_SAYS_NOTHING;
    if (session->phase == DM_REG_SESSION_LIVE ? session->proved_ns < renewal->asked_ns
                                              : renewal->is_awaited && dm_reg_attempt_find_claim(attempt))
        return answer;
    answer.verdict = DM_SAYS_OWNED;
    answer.token = attempt->token;
    answer.from_ns = session->proved_ns;
    return answer;
}

static void note_heard(struct dm_registers *registers, uint64_t number)
{
    struct dm_reg_attempt *attempt = dm_registers_attempt(registers, number);

    if (attempt)
        attempt->heard_ns = dm_clock_boot_ns();
}

/* False: its beat is still to come. */
static bool answer_renewal(struct dm_registers *registers, const struct dm_reg_renewal *renewal)
{
    struct dm_answer answer = renewal_answer(registers, renewal);

    if (answer.verdict == DM_SAYS_NOTHING)
        return false;
    note_heard(registers, renewal->attempt);
    dm_registers_answer(registers, renewal->batch, renewal->index, &answer, NULL);
    return true;
}

/* True if a session of ours has proved a beat, or has ended, since the last call. */
static bool has_beaten(struct dm_registers *registers)
{
    bool has = false;

    for (struct dm_reg_own *own = registers->owns; own; own = own->next) {
        has = has || own->told_ns != own->session.proved_ns || own->told_phase != own->session.phase;
        own->told_ns = own->session.proved_ns;
        own->told_phase = own->session.phase;
    }
    return has;
}

/* Thousands may wait for one beat, so they are not looked at before it. */
void dm_registers_renew_all(struct dm_registers *registers)
{
    struct dm_reg_renewal **at = &registers->renewals;

    if (!has_beaten(registers) && !registers->has_claimed)
        return;
    registers->has_claimed = false;
    while (*at) {
        struct dm_reg_renewal *renewal = *at;

        if (!answer_renewal(registers, renewal)) {
            at = &renewal->next;
            continue;
        }
        *at = renewal->next;
        free(renewal);
    }
}

void dm_registers_leave_renewals(struct dm_registers *registers)
{
    while (registers->renewals) {
        struct dm_reg_renewal *renewal = registers->renewals;

        registers->renewals = renewal->next;
        dm_registers_leave_unanswered(registers, renewal->batch);
        free(renewal);
    }
}

/* ---- news -------------------------------------------------------------------------------- */

void dm_registers_tell_about(struct dm_registers *registers, const struct dm_reg_attempt *attempt,
                             enum dm_message_kind kind)
{
    dm_registers_tell(registers, &(struct dm_message){ .kind = kind, .attempt = attempt->number });
}

/*
 * N4: a grant is believed if it is about this very attempt, in this session, and the session is certain; and if nobody
 * has said that it is broken, which may come first.
 */
static void take_grant(struct dm_registers *registers, struct dm_reg_attempt *attempt,
                       const struct dm_reg_notice *notice)
{
    struct dm_message message = { .kind = DM_MESSAGE_GRANTED, .attempt = attempt->number };

    if (attempt->is_ending || !attempt->is_sent)
        return;
    if (attempt->is_broken || !dm_reg_attempt_is_certain(attempt) ||
        attempt->own->session.phase != DM_REG_SESSION_LIVE) {
        dm_registers_tell_about(registers, attempt, DM_MESSAGE_ASK);
        return;
    }
    dm_reg_attempt_note_hold(attempt, notice->token);
    message.answer = (struct dm_answer){ .verdict = DM_SAYS_OWNED,
                                         .token = notice->token,
                                         .is_owner_dead = notice->is_owner_dead && attempt->is_robust,
                                         .has_waiter = notice->has_waiter,
                                         .from_ns = attempt->own->session.proved_ns };
    dm_registers_tell(registers, &message);
}

/* From the condition to the queue. */
static void take_signal(struct dm_registers *registers, struct dm_reg_attempt *attempt,
                        const struct dm_reg_notice *notice)
{
    struct dm_message message = { .kind = DM_MESSAGE_SIGNALLED, .attempt = attempt->number };

    attempt->is_waiting = attempt->is_waiting || attempt->is_asleep;
    attempt->is_asleep = false;
    message.answer = (struct dm_answer){ .verdict = DM_SAYS_QUEUED,
                                         .position = notice->position,
                                         .remaining_ms = attempt->lease_ms };
    dm_registers_tell(registers, &message);
}

void dm_registers_hear_notice(struct dm_registers *registers, const struct dm_reg_notice *notice)
{
    struct dm_reg_attempt *attempt = dm_registers_attempt(registers, notice->attempt);

    if (attempt)
        attempt->name->copy.is_old = true;
    dm_registers_take_notice(registers, notice);
}

void dm_registers_take_notice(struct dm_registers *registers, const struct dm_reg_notice *notice)
{
    struct dm_reg_attempt *attempt = dm_registers_attempt(registers, notice->attempt);

    if (!attempt || !attempt->own || !dm_reg_session_id_equals(&attempt->own->session.id, &notice->session))
        return;
    switch (notice->news) {
    case DM_REG_NEWS_GRANTED:
        take_grant(registers, attempt, notice);
        break;
    case DM_REG_NEWS_WANTED:
        dm_registers_tell_about(registers, attempt, DM_MESSAGE_WANTED);
        break;
    case DM_REG_NEWS_LOST:
        attempt->is_broken = true;
        dm_registers_tell_about(registers, attempt, DM_MESSAGE_LOST);
        break;
    case DM_REG_NEWS_SIGNALLED:
        take_signal(registers, attempt, notice);
        break;
    case DM_REG_NEWS_ASK:
        dm_registers_tell_about(registers, attempt, DM_MESSAGE_ASK);
    }
}

/* Sessions of ours that are over: those who wait ask anew, and holds are lost. */
static void tell_ends(struct dm_registers *registers)
{
    for (unsigned i = 0; i < DM_REG_BUCKETS; i++) {
        for (struct dm_reg_attempt *attempt = registers->attempts[i]; attempt; attempt = attempt->in_row) {
            if (attempt->own && attempt->own->is_over && !attempt->own->is_told)
                dm_registers_tell_about(registers, attempt, attempt->is_hold ? DM_MESSAGE_LOST : DM_MESSAGE_ASK);
        }
    }
}

/* True if the copy of the name's value has a session that is known to be dead. */
static bool has_dead_in_copy(const struct dm_registers *registers, const struct dm_reg_name *name)
{
    struct dm_reg_name_value value;
    const char *reason;
    bool is_there = false;

    dm_reg_name_init(&value);
    if (dm_reg_name_decode(&value, name->value, name->size, &reason))
        return false;
    for (int i = 0; i < value.session_count && !is_there; i++)
        is_there = dm_reg_watch_is_dead(&registers->watch, &value.sessions[i].id);
    dm_reg_name_free(&value);
    return is_there;
}

/* Waiters who may be before a free place now ask; one of them drops the dead. */
static void tell_deaths(struct dm_registers *registers)
{
    for (unsigned i = 0; i < DM_REG_BUCKETS; i++) {
        for (struct dm_reg_attempt *attempt = registers->attempts[i]; attempt; attempt = attempt->in_row) {
            if ((attempt->is_waiting || attempt->is_asleep) && has_dead_in_copy(registers, attempt->name))
                dm_registers_tell_about(registers, attempt, DM_MESSAGE_ASK);
        }
    }
}

bool dm_registers_tell_names(struct dm_registers *registers)
{
    bool has_ended = false, has_dead = registers->has_dead;

    for (struct dm_reg_own *own = registers->owns; own; own = own->next)
        has_ended = has_ended || (own->is_over && !own->is_told);
    if (has_ended)
        tell_ends(registers);
    for (struct dm_reg_own *own = registers->owns; own; own = own->next)
        own->is_told = own->is_over;
    if (has_dead)
        tell_deaths(registers);
    registers->has_dead = false;
    return has_ended || has_dead;
}
