/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * registers/apply: nobody sleeps for ever beside an item.  All orders in which a producer and two consumers can take
 * their steps on one mutex with one condition.  The producer puts one item or two, and signals each; a consumer wants
 * one item, and sleeps while there is none.  A consumer may die anywhere, or wait for a limited time and not look
 * again.
 *
 * Swaps are executed at once (test_apply_orders.c has the others).  Only when nothing else can happen, time passes:
 * then all know who is dead, and who waits or sleeps polls.
 */
#include "names.h"
#include "search.h"

#define PROCESSES 3
#define PRODUCER 0
#define FAULTY 1 /* the consumer that dies, or gives up */
#define PLACES 6

enum phase { OUTSIDE, AWAITS, INSIDE, SIGNALS, THROUGH };

struct place {
    uint8_t process, attempt, carries;
};

struct process {
    uint8_t phase, attempt, has_put, is_dead;
};

struct state {
    struct place places[PLACES];
    uint8_t holds, waits, sleeps; /* how many of each */
    struct process processes[PROCESSES];
    uint8_t items, to_put, has_given_up, are_dead_known;
    uint8_t crashes, timeouts, is_inside; /* the producer signals before it unlocks */
};

/* What a search leaves out. */
static struct {
    bool signal_at_the_deadline, watching_of_sleepers;
} without;

static struct search search;
static bool is_changed; /* the present state has a successor */

/* ---- the value --------------------------------------------------------------------------- */

static struct dm_reg_ref ref_to(int process, int attempt)
{
    struct dm_reg_ref ref = { .session = session_of_letter((char)('a' + process)), .attempt = (uint64_t)attempt };

    return ref;
}

static void unpack(const struct state *state, struct dm_reg_name_value *name)
{
    name->session_count = name->condition_count = 0;
    memset(&name->version, 1, sizeof name->version);
    name->identity = PRESENT;
    name->kind = DM_REG_MUTEX;
    name->capacity = 1;
    name->token = LAST_TOKEN;
    name->arrival = LAST_ARRIVAL;
    name->health = DM_REG_CLEAN;
    name->hold_count = state->holds;
    name->queue_count = state->waits;
    name->sleeper_count = state->sleeps;
    for (int i = 0; i < state->holds + state->waits + state->sleeps; i++) {
        const struct place *place = &state->places[i];

        name->entries[i] = (struct dm_reg_entry){
            .attempt = place->attempt,
            .token = i < state->holds ? LAST_TOKEN : 0,
            .arrival = i < state->holds ? 0 : (uint64_t)i + 1,
            .weight = 1,
            .session = session_index(name, session_of_letter((char)('a' + place->process))),
            .condition = condition_index(name, 'x'),
            .flags = place->carries ? DM_REG_CARRIES : 0,
        };
    }
}

static void pack(const struct dm_reg_name_value *name, struct state *state)
{
    memset(state->places, 0, sizeof state->places);
    state->holds = (uint8_t)name->hold_count;
    state->waits = (uint8_t)name->queue_count;
    state->sleeps = (uint8_t)name->sleeper_count;
    assert_true(state->holds + state->waits + state->sleeps <= PLACES);
    for (int i = 0; i < state->holds + state->waits + state->sleeps; i++) {
        const struct dm_reg_entry *entry = &name->entries[i];

        state->places[i] = (struct place){ (uint8_t)(name->sessions[entry->session].id.uuid[0] - 'a'),
                                           (uint8_t)entry->attempt, (entry->flags & DM_REG_CARRIES) != 0 };
    }
}

static bool is_asleep(const struct state *state, int process)
{
    for (int i = state->holds + state->waits; i < state->holds + state->waits + state->sleeps; i++) {
        if (state->places[i].process == process)
            return true;
    }
    return false;
}

static struct dm_reg_result step_on(struct state *state, enum dm_reg_act act, int process)
{
    static struct dm_reg_name_value name;
    struct dm_reg_session_id dead = session_of_letter('a' + FAULTY);
    struct dm_reg_result done = { .notice_room = 0 };
    int attempt = state->processes[process].attempt;
    struct dm_reg_step step = step_by(act, "");

    step.me = ref_to(process, attempt);
    if (act == DM_REG_WAIT) { /* by another attempt than the one that holds */
        step.leaving = step.me;
        step.me.attempt = (uint64_t)(3 - attempt);
        state->processes[process].attempt = (uint8_t)(3 - attempt);
    }
    step.dead = &dead;
    step.dead_count = state->are_dead_known && state->processes[FAULTY].is_dead &&
                      !(without.watching_of_sleepers && is_asleep(state, process));
    if (!name.entries)
        assert_int_equal(dm_reg_name_reserve(&name, 8, 2, 8), 0);
    unpack(state, &name);
    dm_reg_apply(&name, &step, &done);
    pack(&name, state);
    return done;
}

/* ---- what can happen next ----------------------------------------------------------------- */

static void reach(const struct state *state)
{
    is_changed = true;
    search_reach(&search, state);
}

static bool holds(const struct state *state, int process)
{
    return state->holds && state->places[0].process == process &&
           state->places[0].attempt == state->processes[process].attempt;
}

static void unlock(struct state *state, int i, enum phase then)
{
    step_on(state, DM_REG_RELEASE, i);
    state->processes[i].phase = (uint8_t)then;
}

/* Puts an item, and signals before or after the unlock. */
static void produce(struct state state, int i)
{
    struct process *process = &state.processes[i];

    if (process->phase == SIGNALS) {
        step_on(&state, DM_REG_SIGNAL, i);
        process->phase = OUTSIDE;
        if (state.is_inside)
            unlock(&state, i, OUTSIDE);
    } else {
        state.items++;
        state.to_put--;
        process->phase = SIGNALS;
        if (!state.is_inside)
            unlock(&state, i, SIGNALS);
    }
    if (process->phase == OUTSIDE && !state.to_put)
        process->phase = THROUGH;
    reach(&state);
}

static void consume(struct state state, int i)
{
    if (state.items && !(state.has_given_up && i == FAULTY)) {
        state.items--;
        unlock(&state, i, THROUGH);
    } else if (state.has_given_up && i == FAULTY) {
        unlock(&state, i, THROUGH); /* ETIMEDOUT: it does not look again */
    } else {
        step_on(&state, DM_REG_WAIT, i);
        state.processes[i].phase = AWAITS;
    }
    reach(&state);
}

/* C4: whoever was signalled first has not timed out. */
static void time_out(struct state state, int i)
{
    struct dm_reg_result done;

    state.timeouts--;
    done = step_on(&state, DM_REG_COND_CANCEL, i);
    state.has_given_up = !done.is_signalled || without.signal_at_the_deadline;
    reach(&state);
}

static void go_on(const struct state *from, int i)
{
    const struct process *process = &from->processes[i];
    struct state state = *from;

    if (process->is_dead || process->phase == THROUGH)
        return;
    if (from->crashes && i == FAULTY) {
        state.crashes--;
        state.processes[i].is_dead = 1;
        reach(&state);
        state = *from;
    }
    switch (process->phase) {
    case OUTSIDE:
        state.processes[i].attempt = 1;
        step_on(&state, DM_REG_ACQUIRE, i);
        state.processes[i].phase = AWAITS;
        reach(&state);
        break;
    case AWAITS:
        if (from->timeouts && i == FAULTY && process->attempt == 2)
            time_out(*from, i);
        if (holds(from, i)) { /* told, or by a poll */
            state.processes[i].phase = INSIDE;
            reach(&state);
        }
        break;
    default:
        if (i == PRODUCER)
            produce(*from, i);
        else
            consume(*from, i);
    }
}

/* Nothing else can happen.  Returns true if polls do not change anything either. */
static bool is_at_rest(const struct state *from)
{
    bool is_still = true;

    for (int i = 0; i < PROCESSES; i++) {
        struct state state = *from;

        if (from->processes[i].is_dead || from->processes[i].phase != AWAITS)
            continue;
        state.are_dead_known = 1;
        step_on(&state, DM_REG_SERVE, i);
        if (memcmp(&state, from, sizeof state) != 0) {
            is_still = false;
            reach(&state);
        }
    }
    return is_still;
}

/* Somebody lives, wants an item, and does not get the one that is there. */
static bool is_stuck(const struct state *state)
{
    for (int i = 0; i < PROCESSES; i++) {
        const struct process *process = &state->processes[i];

        if (!process->is_dead && process->phase != THROUGH && (i == PRODUCER || state->items))
            return true;
    }
    return false;
}

static bool is_lost(struct state first)
{
    struct state state;

    search_begin(&search, sizeof state);
    reach(&first);
    while (!search.is_found && search_next(&search, &state)) {
        is_changed = false;
        for (int i = 0; i < PROCESSES; i++)
            go_on(&state, i);
        if (!is_changed && is_at_rest(&state) && is_stuck(&state))
            search.is_found = true;
    }
    print_message("# %u states\n", search.state_count);
    return search.is_found;
}

/* With one item and with two, signalled before the unlock and after it. */
static bool is_ever_lost(int crashes, int timeouts)
{
    struct state first;

    for (int way = 0; way < 4; way++) {
        memset(&first, 0, sizeof first);
        first.to_put = (uint8_t)(1 + way / 2);
        first.is_inside = (uint8_t)(way % 2);
        first.crashes = (uint8_t)crashes;
        first.timeouts = (uint8_t)timeouts;
        if (is_lost(first))
            return true;
    }
    return false;
}

/* ---- the tests --------------------------------------------------------------------------- */

static int begin_search(void **state)
{
    (void)state;
    memset(&without, 0, sizeof without);
    return 0;
}

static int end_search(void **state)
{
    (void)state;
    search_end(&search);
    return 0;
}

/* C1, C2: each item reaches a consumer. */
static void test_nobody_sleeps_beside_an_item(void **state)
{
    (void)state;
    assert_false(is_ever_lost(0, 0));
}

/* C3, C6: also when a consumer dies, anywhere. */
static void test_nobody_sleeps_beside_an_item_when_a_consumer_dies(void **state)
{
    (void)state;
    assert_false(is_ever_lost(1, 0));
}

/* C4: also when a consumer waits for a limited time; and if it dies then. */
static void test_nobody_sleeps_beside_an_item_when_a_consumer_gives_up(void **state)
{
    (void)state;
    assert_false(is_ever_lost(0, 1));
    assert_false(is_ever_lost(1, 1));
}

/* C4: a signal is lost with a consumer that has timed out in spite of it. */
static void test_somebody_sleeps_when_a_deadline_comes_before_a_signal(void **state)
{
    (void)state;
    without.signal_at_the_deadline = true;
    assert_true(is_ever_lost(0, 1));
}

/* C6: a signal is lost with a dead consumer if those who sleep do not look. */
static void test_somebody_sleeps_when_sleepers_do_not_watch(void **state)
{
    (void)state;
    without.watching_of_sleepers = true;
    assert_true(is_ever_lost(1, 0));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_nobody_sleeps_beside_an_item, begin_search, end_search),
        cmocka_unit_test_setup_teardown(test_nobody_sleeps_beside_an_item_when_a_consumer_dies, begin_search,
                                        end_search),
        cmocka_unit_test_setup_teardown(test_nobody_sleeps_beside_an_item_when_a_consumer_gives_up, begin_search,
                                        end_search),
        cmocka_unit_test_setup_teardown(test_somebody_sleeps_when_a_deadline_comes_before_a_signal, begin_search,
                                        end_search),
        cmocka_unit_test_setup_teardown(test_somebody_sleeps_when_sleepers_do_not_watch, begin_search, end_search),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
