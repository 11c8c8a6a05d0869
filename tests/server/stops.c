/* SPDX-License-Identifier: BSD-2-Clause */
#include "stops.h"

#include "api/object.h"
#include "base/rank.h"
#include "base/self.h"
#include "process/claims/claim.h"
#include "process/claims/registry.h"
#include "process/keep/inbox.h"
#include "stores/redis/parts.h"

#include "../lib/testlib.h"

static __thread enum stop next_stop, stop_behind;
static int stopped, let_go; /* how often; atomic */
static bool is_off;         /* nobody stops any more; atomic */

void stop_at(enum stop where)
{
    stop_at_both(where, STOP_NOWHERE);
}

void stop_at_both(enum stop where, enum stop then)
{
    next_stop = where;
    stop_behind = then;
    __atomic_store_n(&is_off, false, __ATOMIC_RELEASE);
}

/* The present stop is the last, or the last but one. */
static void plan_next(void)
{
    next_stop = stop_behind;
    stop_behind = STOP_NOWHERE;
}

/* In the thread that stops. */
static void stand_still(void)
{
    int mine = __atomic_add_fetch(&stopped, 1, __ATOMIC_ACQ_REL);

    while (__atomic_load_n(&let_go, __ATOMIC_ACQUIRE) < mine)
        wait_nap();
}

static bool is_stop(enum stop where)
{
    return next_stop == where && !__atomic_load_n(&is_off, __ATOMIC_ACQUIRE);
}

void stop_await(void)
{
    wait_until(__atomic_load_n(&stopped, __ATOMIC_ACQUIRE) > __atomic_load_n(&let_go, __ATOMIC_ACQUIRE));
}

void stop_end(void)
{
    __atomic_add_fetch(&let_go, 1, __ATOMIC_ACQ_REL);
}

void stop_end_all(void)
{
    __atomic_store_n(&is_off, true, __ATOMIC_RELEASE);
    stop_end();
}

/* ---- functions of the library ------------------------------------------------------------ */

struct dm_answer __real_dm_redis_ask(struct dm_store *store, const struct dm_question *question,
                                     const struct dm_deadline *deadline, char ret_reason[DM_REASON_ROOM]);
struct dm_answer __wrap_dm_redis_ask(struct dm_store *store, const struct dm_question *question,
                                     const struct dm_deadline *deadline, char ret_reason[DM_REASON_ROOM]);
struct dm_answer __wrap_dm_redis_ask(struct dm_store *store, const struct dm_question *question,
                                     const struct dm_deadline *deadline, char ret_reason[DM_REASON_ROOM])
{
    struct dm_answer answer = __real_dm_redis_ask(store, question, deadline, ret_reason);

    if (question->op == DM_OP_ACQUIRE && is_stop(STOP_ANSWERED)) {
        plan_next();
        stand_still();
    }
    return answer;
}

void __real_dm_line_sit_down(struct dm_line *line, struct dm_seat *seat);
void __wrap_dm_line_sit_down(struct dm_line *line, struct dm_seat *seat);
void __wrap_dm_line_sit_down(struct dm_line *line, struct dm_seat *seat)
{
    if (is_stop(STOP_SEAT)) {
        plan_next();
        stand_still();
    }
    __real_dm_line_sit_down(line, seat);
}

bool __real_dm_self_sleep(struct dm_self *self, const struct dm_deadline *deadline);
bool __wrap_dm_self_sleep(struct dm_self *self, const struct dm_deadline *deadline);
bool __wrap_dm_self_sleep(struct dm_self *self, const struct dm_deadline *deadline)
{
    bool is_woken = __real_dm_self_sleep(self, deadline);

    if (is_stop(STOP_WOKEN))
        stand_still();
    return is_woken;
}

/* The loop thread, too, needs the state lock. */
static void stop_all(void)
{
    dm_state_lock();
    stand_still();
    if (next_stop != STOP_VISIT) /* else only the thread continues to there */
        dm_state_unlock();
}

int64_t __real_dm_clock_boot_ns(void);
int64_t __wrap_dm_clock_boot_ns(void);
int64_t __wrap_dm_clock_boot_ns(void)
{
    enum stop here = next_stop;

    if ((here == STOP_CLOCK || here == STOP_CLOCK_ALL) && is_stop(here) && dm_mutex_holds_none()) {
        plan_next();
        if (here == STOP_CLOCK)
            stand_still();
        else
            stop_all();
    }
    return __real_dm_clock_boot_ns();
}

struct dm_visit __real_dm_visit_begin(void);
struct dm_visit __wrap_dm_visit_begin(void);
struct dm_visit __wrap_dm_visit_begin(void)
{
    if (is_stop(STOP_VISIT)) {
        plan_next();
        if (!dm_mutex_holds_none())
            dm_state_unlock();
        stand_still();
    }
    return __real_dm_visit_begin();
}

void __real_dm_returns_await(struct dm_runtime *runtime, const struct dm_name *name,
                             const struct dm_deadline *deadline);
void __wrap_dm_returns_await(struct dm_runtime *runtime, const struct dm_name *name,
                             const struct dm_deadline *deadline);
void __wrap_dm_returns_await(struct dm_runtime *runtime, const struct dm_name *name, const struct dm_deadline *deadline)
{
    __real_dm_returns_await(runtime, name, deadline);
    if (is_stop(STOP_RELEASED)) {
        plan_next();
        stand_still();
    }
}

/* ---- a message --------------------------------------------------------------------------- */

static bool must_keep, is_kept; /* atomic */
static struct dm_message kept;
static void *kept_for;

void message_keep(void)
{
    __atomic_store_n(&is_kept, false, __ATOMIC_RELEASE);
    __atomic_store_n(&must_keep, true, __ATOMIC_RELEASE);
}

bool message_is_kept(void)
{
    return __atomic_load_n(&is_kept, __ATOMIC_ACQUIRE);
}

void __real_dm_inbox_take(void *user, const struct dm_message *message);
void __wrap_dm_inbox_take(void *user, const struct dm_message *message);
void __wrap_dm_inbox_take(void *user, const struct dm_message *message)
{
    if (message->kind != DM_MESSAGE_GRANTED || !__atomic_exchange_n(&must_keep, false, __ATOMIC_ACQ_REL)) {
        __real_dm_inbox_take(user, message);
        return;
    }
    kept = *message;
    kept_for = user;
    __atomic_store_n(&is_kept, true, __ATOMIC_RELEASE);
}

void message_deliver(void)
{
    __real_dm_inbox_take(kept_for, &kept);
}
