/* SPDX-License-Identifier: BSD-2-Clause */
#include "registers/apply.h"

#include <string.h>

#include "registers/work.h"

/* ---- looks ------------------------------------------------------------------------------- */

bool dm_reg_is_settled(const struct dm_reg_name_value *value, uint64_t identity)
{
    return value->identity == identity;
}

bool dm_reg_is_idle(const struct dm_reg_name_value *value)
{
    return !dm_work_count(value) && value->health == DM_REG_CLEAN;
}

/* ---- doubt ------------------------------------------------------------------------------- */

static uint64_t greater(uint64_t one, uint64_t other)
{
    return one > other ? one : other;
}

/*
 * D2: how long the mark must have been quiet before the value can be settled: as long as the longest lease of those who
 * may hold it without our knowing, and of the caller.
 */
static uint64_t quiet_needed(const struct dm_work *work)
{
    uint64_t needed = work->step->me.session.lease_ms;

    for (int i = 0; i < work->value->session_count; i++)
        needed = greater(needed, work->value->sessions[i].id.lease_ms);
    return needed;
}

static uint64_t quiet_lacking(const struct dm_work *work)
{
    uint64_t needed = quiet_needed(work);

    return !work->is_in_doubt || work->step->quiet_ms >= needed ? 0 : needed - work->step->quiet_ms;
}

/* N11: tokens go on by ones; only after data may have been lost they jump, so one wrong clock does not drive them. */
static void raise_token(struct dm_reg_name_value *value, const struct dm_reg_step *step)
{
    uint64_t now = step->clock_us > DM_TOKEN_EPOCH_US ? (uint64_t)(step->clock_us - DM_TOKEN_EPOCH_US) : 0;

    value->token = greater(value->token, step->seen);
    if (now < DM_TOKEN_LIMIT - 1)
        value->token = greater(value->token, now ? now - 1 : 0);
}

/* D6: references of other data's sessions leave; nobody revives them.  A hold among them was not claimed: a death. */
static void leave_other_data(struct dm_work *work)
{
    struct dm_reg_name_value *value = work->value;

    for (int i = 0; i < dm_work_count(value); i++) {
        if (dm_work_session(value, i)->identity != work->step->identity)
            dm_work_orphan(work, i);
    }
}

/*
 * D1: a value that was settled with other data, or is not there, may be older than what has been done to the name.  A
 * step of a session settles it once the mark is quiet.
 */
static void settle(struct dm_work *work)
{
    struct dm_reg_name_value *value = work->value;
    const struct dm_reg_step *step = work->step;

    work->is_in_doubt = !dm_reg_is_settled(value, step->identity);
    if (!work->is_in_doubt || !step->me.session.serial || quiet_lacking(work))
        return;
    work->is_in_doubt = false;
    value->identity = step->identity;
    raise_token(value, step);
    leave_other_data(work);
}

/* ---- before each act --------------------------------------------------------------------- */

static bool is_known(const struct dm_reg_step *step, uint64_t attempt)
{
    for (int i = 0; i < step->known_count; i++) {
        if (step->known[i] == attempt)
            return true;
    }
    return attempt == step->me.attempt || attempt == step->leaving.attempt;
}

/* N7: nothing of an attempt that is over stays beside a living session. */
static void leave_unknown(struct dm_work *work)
{
    struct dm_reg_name_value *value = work->value;

    for (int i = 0; work->step->known && i < dm_work_count(value); i++) {
        if (!(value->entries[i].flags & DM_WORK_IS_GONE) && !is_known(work->step, value->entries[i].attempt) &&
            dm_reg_session_id_equals(dm_work_session(value, i), &work->step->me.session))
            dm_work_leave(work, i);
    }
}

static bool is_dead(const struct dm_reg_step *step, const struct dm_reg_session_id *id)
{
    for (int i = 0; i < step->dead_count; i++) {
        if (dm_reg_session_id_equals(&step->dead[i], id))
            return true;
    }
    return false;
}

/*
 * N2: the hold of a dead session ends as a death, unless perhaps nobody was inside.  C6: the dead leave the queue and
 * the conditions, too.  N12: an unlock that comes after its own session has died is no death.  The marks of the
 * sessions say which are dead.
 */
static void bury(struct dm_work *work)
{
    struct dm_reg_name_value *value = work->value;

    for (int i = 0; i < value->session_count; i++)
        value->sessions[i].mark = is_dead(work->step, &value->sessions[i].id);
    for (int i = 0; i < dm_work_count(value); i++) {
        bool is_released = work->step->act == DM_REG_RELEASE && dm_work_is_same(value, i, &work->step->me);

        if (!(value->entries[i].flags & DM_WORK_IS_GONE) && value->sessions[value->entries[i].session].mark &&
            !is_released)
            dm_work_orphan(work, i);
    }
}

/* ---- answers ----------------------------------------------------------------------------- */

static void say(struct dm_work *work, enum dm_verdict verdict)
{
    work->ret->answer.verdict = verdict;
}

static void refuse(struct dm_work *work, const char *reason)
{
    say(work, DM_SAYS_REFUSED);
    work->ret->reason = reason;
}

static void say_owned(struct dm_work *work, const struct dm_reg_entry *hold)
{
    struct dm_answer *answer = &work->ret->answer;

    answer->verdict = DM_SAYS_OWNED;
    answer->token = hold->token;
    answer->is_owner_dead = work->value->health == DM_REG_OWNER_DIED && work->step->is_robust;
    answer->has_waiter = work->value->queue_count > 0;
}

/* A whole lease of the holder; nobody knows here when it began. */
static int64_t holders_lease(const struct dm_work *work)
{
    return work->value->hold_count ? (int64_t)dm_work_session(work->value, 0)->lease_ms : 0;
}

static void say_queued(struct dm_work *work, int index)
{
    struct dm_answer *answer = &work->ret->answer;
    int64_t lacking = (int64_t)quiet_lacking(work), lease = holders_lease(work);

    answer->verdict = DM_SAYS_QUEUED;
    answer->position = (uint64_t)(index - work->value->hold_count + 1);
    answer->arrival = work->value->entries[index].arrival;
    answer->remaining_ms = lacking > lease ? lacking : lease;
}

/* Where the caller is.  A hold of other data is not believed (D1). */
static enum dm_reg_place find_me(const struct dm_work *work, int *ret_index)
{
    enum dm_reg_place place = dm_reg_find(work->value, &work->step->me, ret_index);

    return place == DM_REG_HOLDS && work->step->me.session.identity != work->step->identity ? DM_REG_NOWHERE : place;
}

/* Says where the caller is; `nowhere` if it is nowhere.  Returns the place. */
static enum dm_reg_place say_place(struct dm_work *work, enum dm_verdict nowhere)
{
    int index;
    enum dm_reg_place place = find_me(work, &index);

    if (place == DM_REG_HOLDS)
        say_owned(work, &work->value->entries[index]);
    else if (place == DM_REG_WAITS)
        say_queued(work, index);
    else if (place == DM_REG_SLEEPS)
        say(work, DM_SAYS_WAITING);
    else if (work->value->health == DM_REG_NOT_RECOVERABLE)
        say(work, DM_SAYS_NOT_RECOVERABLE);
    else
        say(work, nowhere);
    return place;
}

/* ---- the acts ---------------------------------------------------------------------------- */

/* N2: an attempt that is there already stays as it is. */
static void act_acquire(struct dm_work *work)
{
    int index;
    enum dm_reg_place place = find_me(work, &index);

    if (place == DM_REG_SLEEPS)
        dm_work_wake(work, index, false);
    if (place == DM_REG_NOWHERE && work->value->health != DM_REG_NOT_RECOVERABLE &&
        work->value->queue_count < DM_REG_QUEUE_MAX)
        dm_work_enqueue(work);
}

/*
 * As a waiter would, if it were served at once: so nobody in the queue is passed.  Whoever waits already, and tries
 * because it cannot be told of a grant, leaves the queue: after BUSY nobody answers for the attempt, so it must not be
 * granted.
 */
static void act_try(struct dm_work *work)
{
    int index;
    enum dm_reg_place place = find_me(work, &index);

    if (place == DM_REG_WAITS)
        dm_work_leave(work, index);
    if (place == DM_REG_NOWHERE && work->value->health != DM_REG_NOT_RECOVERABLE && !work->is_in_doubt &&
        !work->value->queue_count && dm_work_fits(work, work->step->weight))
        dm_work_enqueue(work);
}

static void answer_try(struct dm_work *work)
{
    enum dm_reg_place place = say_place(work, DM_SAYS_BUSY);

    if (place == DM_REG_HOLDS || work->ret->answer.verdict == DM_SAYS_NOT_RECOVERABLE)
        return;
    work->ret->answer = (struct dm_answer){
        .verdict = DM_SAYS_BUSY,
        .remaining_ms = holders_lease(work),
        .grace_ms = (int64_t)quiet_lacking(work),
    };
    if (!work->value->queue_count) /* the next try may find it free */
        dm_work_tell_holders(work, work->value->hold_count);
}

/* D1: in doubt the hold goes from the copy, but nobody gets it. */
static void act_release(struct dm_work *work)
{
    say(work, dm_work_end_attempt(work, &work->step->me, work->step->end) ? DM_SAYS_DONE : DM_SAYS_NOT_OWNER);
}

static void act_cancel(struct dm_work *work)
{
    int index;

    say(work, DM_SAYS_DONE);
    if (find_me(work, &index) == DM_REG_HOLDS)
        say_owned(work, &work->value->entries[index]);
    else
        dm_work_end_attempt(work, &work->step->me, DM_END_UNLOCKED);
}

/* Nobody mends what others may be reading. */
static void act_consistent(struct dm_work *work)
{
    int index;

    say(work, DM_SAYS_UNKNOWN);
    if (find_me(work, &index) != DM_REG_HOLDS || !dm_work_is_whole(work->value, &work->value->entries[index]))
        return;
    say(work, DM_SAYS_DONE);
    if (work->value->health == DM_REG_OWNER_DIED) {
        work->value->health = DM_REG_CLEAN;
        work->ret->is_changed = true;
    }
}

/* A death with any mark, and a gap in the tokens, by which people see it. */
static void act_force(struct dm_work *work)
{
    struct dm_reg_name_value *value = work->value;
    int first = 0, end = value->hold_count;

    say(work, DM_SAYS_DONE);
    if (work->step->me.attempt) {
        if (dm_reg_find(value, &work->step->me, &first) != DM_REG_HOLDS)
            return;
        end = first + 1;
    }
    for (int i = first; i < end; i++) {
        dm_work_tell(work, i, DM_REG_NEWS_LOST);
        dm_work_die(work, i, DM_END_BROKEN);
    }
    if (first < end && dm_work_has_tokens(value))
        value->token++;
}

/* Sleepers come back to the mutex, so they keep its data; a health that is to be cleared has none beside it. */
static void act_drop(struct dm_work *work)
{
    struct dm_reg_name_value *value = work->value;

    if (value->hold_count || value->queue_count || (work->step->is_anonymous && value->sleeper_count)) {
        say(work, DM_SAYS_BUSY);
        return;
    }
    say(work, DM_SAYS_DONE);
    if (work->step->is_anonymous) {
        work->ret->is_deleted = work->ret->is_changed = !dm_reg_version_is_absent(&value->version);
    } else if (value->health == DM_REG_NOT_RECOVERABLE) {
        value->health = DM_REG_CLEAN;
        work->ret->is_changed = true;
    }
}

/* Ends what the copy says of the attempt in its former session, and holds of other data that leave no room for it. */
static void make_way(struct dm_work *work)
{
    struct dm_reg_name_value *value = work->value;
    const struct dm_reg_step *step = work->step;

    for (int i = 0; i < dm_work_count(value); i++) {
        if (value->entries[i].attempt == step->me.attempt &&
            memcmp(dm_work_session(value, i)->uuid, step->me.session.uuid, sizeof step->me.session.uuid) == 0)
            dm_work_leave(work, i);
    }
    dm_work_remove_gone(work);
    for (int i = 0; i < value->hold_count && work->taken + step->weight > value->capacity; i++) {
        if (dm_work_session(value, i)->identity != step->identity) {
            work->taken -= value->entries[i].weight;
            dm_work_leave(work, i);
        }
    }
    dm_work_remove_gone(work);
}

/*
 * D4: a holder that is certain takes its place in the new data, over whatever they say of the time before.  One that
 * has the whole knows that nobody else holds, so it settles the value.  With a part of it, others may be certain, too,
 * and claim: the doubt stays.  Holds that the claim removes had ended before it began, so they are no deaths.
 */
static void act_claim(struct dm_work *work)
{
    struct dm_reg_name_value *value = work->value;
    const struct dm_reg_step *step = work->step;
    struct dm_reg_entry entry;
    uint64_t claimed = 0;
    int index;

    if (find_me(work, &index) == DM_REG_HOLDS)
        return;
    for (int i = 0; i < value->hold_count; i++)
        claimed += dm_work_session(value, i)->identity == step->identity ? value->entries[i].weight : 0;
    if (!work->is_in_doubt || claimed + step->weight > value->capacity || value->hold_count == DM_REG_HOLDS_MAX) {
        say(work, DM_SAYS_UNKNOWN);
        return;
    }
    make_way(work);
    if (value->health == DM_REG_NOT_RECOVERABLE)
        value->health = DM_REG_CLEAN; /* somebody has cleared it since, or the hold could not be */
    if (step->weight == value->capacity) {
        leave_other_data(work);
        dm_work_remove_gone(work);
        value->identity = step->identity;
        work->is_in_doubt = false;
    }
    entry = dm_work_my_entry(work);
    entry.token = step->token;
    *dm_work_insert(work, value->hold_count) = entry;
    value->hold_count++;
    dm_work_count_taken(work);
    value->token = greater(value->token, greater(step->token, step->seen));
}

/* The newest mark counts.  The swap looks at the queue, too: who came before the mark has told nobody. */
static void act_mark(struct dm_work *work)
{
    static const uint8_t flags[] = { 0, DM_REG_TELLS, DM_REG_TELLS | DM_REG_KEPT };
    struct dm_reg_entry *hold;
    uint8_t before;
    int index;

    if (find_me(work, &index) != DM_REG_HOLDS) {
        say(work, DM_SAYS_UNKNOWN);
        return;
    }
    hold = &work->value->entries[index];
    before = hold->flags;
    hold->flags = (uint8_t)((before & ~(DM_REG_TELLS | DM_REG_KEPT)) | flags[work->step->mark]);
    work->ret->is_changed = work->ret->is_changed || hold->flags != before;
}

/* The index of a condition in the table, or -1. */
static int find_condition(const struct dm_reg_name_value *value, const char *condition)
{
    for (int i = 0; i < value->condition_count; i++) {
        if (strcmp(value->conditions[i].name, condition) == 0)
            return i;
    }
    return -1;
}

/* The same; a new one gets a place, for which there is room.  -1: there are too many. */
static int add_condition(struct dm_reg_name_value *value, const char *condition)
{
    int index = find_condition(value, condition);

    if (index >= 0 || value->condition_count == DM_REG_CONDITIONS_MAX)
        return index;
    index = value->condition_count++;
    value->conditions[index].mark = 0;
    strcpy(value->conditions[index].name, condition);
    return index;
}

/* C1: the hold goes on and the caller sleeps, in one step, so no signal falls between. */
static void act_wait(struct dm_work *work)
{
    struct dm_reg_name_value *value = work->value;
    const struct dm_reg_step *step = work->step;
    struct dm_reg_entry entry;
    int index, condition;

    if (find_me(work, &index) != DM_REG_NOWHERE || value->health == DM_REG_NOT_RECOVERABLE)
        return;
    if (step->leaving.session.identity != step->identity ||
        dm_reg_find(value, &step->leaving, &index) != DM_REG_HOLDS) {
        say(work, DM_SAYS_NOT_OWNER);
        return;
    }
    condition = value->sleeper_count < DM_REG_QUEUE_MAX ? add_condition(value, step->condition) : -1;
    if (condition < 0) {
        say(work, DM_SAYS_FULL);
        return;
    }
    entry = dm_work_my_entry(work);
    entry.weight = value->entries[index].weight;
    entry.condition = (uint16_t)condition;
    dm_work_end_hold(work, index, step->end);
    if (step->end != DM_END_UNLOCKED)
        return;
    entry.arrival = dm_work_next_arrival(value);
    *dm_work_insert(work, dm_work_count(value)) = entry;
    value->sleeper_count++;
}

/* C4: the value decides.  A sleeper wakes without a signal; one that a signal has woken before keeps the signal. */
static void act_cond_cancel(struct dm_work *work)
{
    int index;
    enum dm_reg_place place = find_me(work, &index);

    if (place == DM_REG_SLEEPS)
        dm_work_wake(work, index, false);
    else if (place != DM_REG_NOWHERE)
        work->ret->is_signalled = work->value->entries[index].flags & DM_REG_CARRIES;
}

/* The newest sleeper of a condition that is not newer than `upto`; 0: there is none. */
static uint64_t newest_sleeper(const struct dm_reg_name_value *value, int condition, uint64_t upto)
{
    uint64_t newest = 0;

    for (int i = dm_work_queue_end(value); i < dm_work_count(value); i++) {
        if (value->entries[i].condition == condition && value->entries[i].arrival <= upto)
            newest = value->entries[i].arrival;
    }
    return newest;
}

/*
 * C2: the first sleepers stand in line, and carry the signal.  `upto` means all that sleep at the first try, also for a
 * single signal: if the first try was lost, and its sleeper times out before the repetition, the signal is another's.
 */
static void act_signal(struct dm_work *work)
{
    const struct dm_reg_step *step = work->step;
    int condition = find_condition(work->value, step->condition);
    uint64_t upto = step->upto ? step->upto : UINT64_MAX, newest, last;

    say(work, DM_SAYS_DONE);
    work->ret->upto = step->upto;
    if (condition < 0)
        return;
    newest = newest_sleeper(work->value, condition, upto);
    last = dm_work_wake_some(work, condition, step->most, upto);
    if (!step->upto)
        work->ret->upto = newest;
    work->ret->has_left = step->most > 1 && last < newest;
}

static void act(struct dm_work *work)
{
    static void (*const acts[DM_REG_ACT_COUNT])(struct dm_work *) = {
        [DM_REG_ACQUIRE] = act_acquire,
        [DM_REG_TRY] = act_try,
        [DM_REG_RELEASE] = act_release,
        [DM_REG_CANCEL] = act_cancel,
        [DM_REG_CONSISTENT] = act_consistent,
        [DM_REG_FORCE] = act_force,
        [DM_REG_DROP] = act_drop,
        [DM_REG_CLAIM] = act_claim,
        [DM_REG_MARK] = act_mark,
        [DM_REG_WAIT] = act_wait,
        [DM_REG_COND_CANCEL] = act_cond_cancel,
        [DM_REG_SIGNAL] = act_signal,
    };

    if (acts[work->step->act])
        acts[work->step->act](work);
}

/* What the act itself has not said depends on where the caller is after all grants. */
static void answer(struct dm_work *work)
{
    enum dm_reg_act which = work->step->act;

    if (which == DM_REG_TRY)
        answer_try(work);
    else if (work->ret->answer.verdict == DM_SAYS_NOTHING)
        say_place(work, which == DM_REG_ACQUIRE ? DM_SAYS_FULL : DM_SAYS_UNKNOWN);
    if ((which == DM_REG_ACQUIRE || which == DM_REG_TRY) && !work->value->hold_count &&
        !dm_work_has_tokens(work->value)) {
        refuse(work, "the tokens of the name are used up; delete its value in the store");
        work->ret->is_changed = false;
    }
}

/* ---- the whole step ---------------------------------------------------------------------- */

/* True if the caller may add references: its session exists (S8), in the data that the value comes from (D4). */
static bool may_add(const struct dm_reg_step *step)
{
    const struct dm_reg_session_id *id = &step->me.session;

    return step->me.attempt && id->serial && id->identity == step->identity && !is_dead(step, id);
}

static bool is_token(uint64_t token)
{
    return token + 1 < DM_TOKEN_LIMIT;
}

/* Says why the step cannot be done to the value, and returns false. */
static bool check(struct dm_work *work)
{
    struct dm_reg_name_value *value = work->value;
    const struct dm_reg_step *step = work->step;
    bool has_weight = step->act == DM_REG_ACQUIRE || step->act == DM_REG_TRY || step->act == DM_REG_CLAIM;
    bool has_condition = step->act == DM_REG_WAIT || step->act == DM_REG_SIGNAL;
    bool does_add = has_weight || step->act == DM_REG_WAIT;

    if (step->capacity && dm_reg_version_is_absent(&value->version)) {
        value->kind = step->kind;
        value->capacity = step->capacity;
    }
    if (step->capacity && (step->kind != value->kind || step->capacity != value->capacity))
        refuse(work, "the name is in use for a lock of another kind or capacity; use another name");
    else if (has_weight && (step->weight < 1 || step->weight > value->capacity))
        refuse(work, "the lock has less than is asked for");
    else if (!is_token(step->seen) || !is_token(step->token) || (step->act == DM_REG_CLAIM && !step->token))
        refuse(work, "the token is none of ours");
    else if (has_condition && !dm_reg_is_condition(step->condition))
        refuse(work, "the name of the condition is none of ours");
    else if (does_add && !may_add(step))
        say(work, DM_SAYS_AGAIN);
    else if (does_add && dm_reg_name_reserve(value, 1, has_condition, 1) != 0)
        say(work, DM_SAYS_NO_MEMORY);
    else
        return true;
    return false;
}

void dm_reg_apply(struct dm_reg_name_value *value, const struct dm_reg_step *step, struct dm_reg_result *ret_result)
{
    struct dm_work work = { .value = value, .step = step, .ret = ret_result };
    int queue_before, holds_before;

    *ret_result = (struct dm_reg_result){ .notices = ret_result->notices, .notice_room = ret_result->notice_room };
    if (!check(&work))
        return;
    for (int i = 0; i < value->condition_count; i++)
        value->conditions[i].mark = 0;
    settle(&work);
    for (int i = 0; i < step->owed_count; i++)
        dm_work_end_attempt(&work, &step->owed[i].ref, step->owed[i].end);
    leave_unknown(&work);
    bury(&work);
    dm_work_normalize(&work);

    queue_before = value->queue_count;
    act(&work);
    holds_before = dm_work_normalize(&work);
    if (!queue_before && value->queue_count)
        dm_work_tell_holders(&work, holds_before);
    dm_work_tell_moved(&work);
    answer(&work);
    dm_reg_name_tidy(value);
}
