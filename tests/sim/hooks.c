/* SPDX-License-Identifier: BSD-2-Clause */
#include "hooks.h"

#include <string.h>

#include "base/self.h"
#include "base/units.h"
#include "check.h"
#include "core/hold.h"
#include "link/session_parts.h"
#include "plans.h"
#include "registers/apply.h"
#include "stores/redis/parts.h"
#include "stores/redis/sentinel/master_watch.h"
#include "world.h"

static enum core_defect defect;
static int64_t kept_ns; /* CORE_KEEPS_ALL: the last time */

void hooks_set(enum core_defect wanted)
{
    defect = wanted;
    kept_ns = 0;
}

bool hooks_has(enum core_defect asked)
{
    return defect == asked;
}

/* ---- requests of the runtime ----------------------------------------------------------------- */

/* The operations of the stores of this run, right and wrong: the stores of a run are of one kind. */
static const struct dm_store_ops *right;
static struct dm_store_ops wrong;

static struct dm_answer ask(struct dm_store *store, const struct dm_question *question,
                            const struct dm_deadline *deadline, char ret_reason[DM_REASON_ROOM])
{
    struct dm_question changed = *question;

    if (defect == RELEASES_NAME_CALLERS && question->op == DM_OP_RELEASE)
        changed.thread = dm_self_get()->serial;
    if (defect == WAITS_NAME_CALLERS && question->op == DM_OP_COND_WAIT)
        changed.leave.thread = question->thread;
    return right->ask(store, &changed, deadline, ret_reason);
}

void hooks_put(struct dm_store *store)
{
    if (defect != RELEASES_NAME_CALLERS && defect != WAITS_NAME_CALLERS)
        return;
    right = store->ops;
    wrong = *right;
    wrong.ask = ask;
    store->ops = &wrong;
}

/* ---- messages and steps ----------------------------------------------------------------------- */

/* Called by the linker's --wrap at every message of an inbox. */
void __real_dm_redis_hear(struct dm_redis *redis, const char *text, const struct dm_server *server);
void __wrap_dm_redis_hear(struct dm_redis *redis, const char *text, const struct dm_server *server);

void __wrap_dm_redis_hear(struct dm_redis *redis, const char *text, const struct dm_server *server)
{
    const char *last = strrchr(text, ' ');
    struct dm_server named = { .run = last ? dm_server_read_run(last + 1) : 0 };

    __real_dm_redis_hear(redis, text, defect == INBOX_BELIEVES_ANY && named.run ? &named : server);
}

/* Called by the linker's --wrap when a process keeps a lease. */
void __real_dm_hold_look_at(struct dm_hold *hold, int64_t look_ns);
void __wrap_dm_hold_look_at(struct dm_hold *hold, int64_t look_ns);

void __wrap_dm_hold_look_at(struct dm_hold *hold, int64_t look_ns)
{
    if (defect != LINE_NEVER_LOOKS)
        __real_dm_hold_look_at(hold, look_ns);
}

/* Called by the linker's --wrap when a process exits. */
void __real_dm_claim_take_back(struct dm_claim *claim);
void __wrap_dm_claim_take_back(struct dm_claim *claim);

void __wrap_dm_claim_take_back(struct dm_claim *claim)
{
    if (defect != LINE_TAKES_NONE_BACK)
        __real_dm_claim_take_back(claim);
}

/* Called by the linker's --wrap when a request goes out. */
struct dm_request __real_dm_hold_send(struct dm_hold *hold, enum dm_want want, int64_t now_ns);
struct dm_request __wrap_dm_hold_send(struct dm_hold *hold, enum dm_want want, int64_t now_ns);

struct dm_request __wrap_dm_hold_send(struct dm_hold *hold, enum dm_want want, int64_t now_ns)
{
    plans_sent(hold, want);
    return __real_dm_hold_send(hold, want, now_ns);
}

/* A defect takes the answer for no news. */
static bool is_dropped(const struct dm_hold *hold, const struct dm_event *event)
{
    if (defect == CORE_DROPS_LATE_UNKNOWN)
        return event->kind == DM_EV_POLLED && event->answer->verdict == DM_SAYS_UNKNOWN &&
               event->request != hold->last_request;
    if (defect == CORE_RENEWS_ONCE)
        return event->kind == DM_EV_RENEWED && event->answer->verdict == DM_SAYS_NOTHING;
    return defect == CORE_RELEASES_ONCE && event->kind == DM_EV_RELEASED && event->answer->verdict == DM_SAYS_NOTHING;
}

/* Called by the linker's --wrap at every step of every attempt. */
unsigned __real_dm_hold_step(struct dm_hold *hold, const struct dm_event *event, int64_t now_ns);
unsigned __wrap_dm_hold_step(struct dm_hold *hold, const struct dm_event *event, int64_t now_ns);

unsigned __wrap_dm_hold_step(struct dm_hold *hold, const struct dm_event *event, int64_t now_ns)
{
    int64_t certain_ns = hold->certain_until_ns;
    enum dm_phase phase = hold->phase;
    struct dm_event changed = *event;
    unsigned actions;

    if (event->kind == DM_EV_PROCESS_ENDS && dm_hold_is_certain(hold, now_ns) && hold->is_entered)
        check_told_death((const struct dm_claim *)(const void *)hold); /* its first member */
    if (defect == CORE_TRUSTS_ANY_GRANT && event->kind == DM_EV_GRANTED)
        changed.request = hold->last_request;
    plans_answered(hold, event->kind);
    actions = is_dropped(hold, event) ? 0 : __real_dm_hold_step(hold, &changed, now_ns);
    if (defect != CORE_KEEPS_ALL) /* the core does not know that hold */
        plans_check(hold);
    if (defect == CORE_HAS_NO_MARGIN && hold->certain_until_ns != certain_ns)
        hold->certain_until_ns += hold->lease_ms * MS / 5;
    if (defect == CORE_KEEPS_ALL && event->kind == DM_EV_GIVEN_BACK && phase == DM_HELD && now_ns != kept_ns) {
        hold->phase = DM_HELD;
        kept_ns = now_ns; /* once: dm_step() gives it back again at once */
    }
    if (hold->phase != phase || hold->certain_until_ns != certain_ns)
        check_soon();
    counters.states += hold->phase != phase;
    return actions;
}

/* ---- the link ---------------------------------------------------------------------------------- */

/* Called by the linker's --wrap when a confirmation has come. */
void __real_dm_session_give_kept(struct dm_session *session, bool is_confirmed);
void __wrap_dm_session_give_kept(struct dm_session *session, bool is_confirmed);

void __wrap_dm_session_give_kept(struct dm_session *session, bool is_confirmed)
{
    counters.confirmed += is_confirmed;
    counters.unconfirmed += !is_confirmed;
    __real_dm_session_give_kept(session, is_confirmed || defect == LINK_AWAITS_NO_REPLICA);
}

/* Called by the linker's --wrap before a request is sent. */
enum dm_identify_verdict __real_dm_identify_at_request(const struct dm_identify *identify, int64_t now_ns);
enum dm_identify_verdict __wrap_dm_identify_at_request(const struct dm_identify *identify, int64_t now_ns);

enum dm_identify_verdict __wrap_dm_identify_at_request(const struct dm_identify *identify, int64_t now_ns)
{
    return defect == LINK_AWAITS_NO_IDENTITY ? DM_IDENTIFY_SENDS : __real_dm_identify_at_request(identify, now_ns);
}

/* ---- the store on registers ------------------------------------------------------------------- */

/* Nobody who has been woken has a signal that could be passed on. */
static void forget_signals(struct dm_reg_name_value *value)
{
    for (int i = 0; i < value->hold_count + value->queue_count; i++) {
        value->entries[i].flags &= (uint8_t)~DM_REG_CARRIES;
        value->entries[i].condition = 0;
    }
}

/* Called by the linker's --wrap at each step on a name. */
void __real_dm_reg_apply(struct dm_reg_name_value *value, const struct dm_reg_step *step,
                         struct dm_reg_result *ret_result);
void __wrap_dm_reg_apply(struct dm_reg_name_value *value, const struct dm_reg_step *step,
                         struct dm_reg_result *ret_result);

void __wrap_dm_reg_apply(struct dm_reg_name_value *value, const struct dm_reg_step *step,
                         struct dm_reg_result *ret_result)
{
    struct dm_reg_step changed = *step;

    if (defect == REGISTERS_SIGNAL_NOBODY && step->act == DM_REG_SIGNAL)
        changed.most = 0;
    if (defect == REGISTERS_DROP_SIGNALS)
        forget_signals(value);
    __real_dm_reg_apply(value, &changed, ret_result);
}

/* ---- the sentinels' word ---------------------------------------------------------------------- */

/* Called by the linker's --wrap. */
bool __real_dm_master_watch_is_fresh(struct dm_master_watch *master_watch, uint64_t number);
bool __wrap_dm_master_watch_is_fresh(struct dm_master_watch *master_watch, uint64_t number);

bool __wrap_dm_master_watch_is_fresh(struct dm_master_watch *master_watch, uint64_t number)
{
    return defect == WORDS_COUNT_FOR_EVER || __real_dm_master_watch_is_fresh(master_watch, number);
}

/* Called by the linker's --wrap when the word names another master. */
void __real_dm_link_close(struct dm_link *link, const char *reason);
void __wrap_dm_link_close(struct dm_link *link, const char *reason);

void __wrap_dm_link_close(struct dm_link *link, const char *reason)
{
    if (defect != WORDS_COUNT_FOR_EVER)
        __real_dm_link_close(link, reason);
}
