/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * registers/apply, while the store loses data: all orders in which three processes, two readers and a writer, can take
 * their steps on one name that comes back empty, or as a copy of any earlier moment, with another identity.  Time is
 * ticks, which may come between any two steps.  A hold is certain for some ticks after a beat of its session,
 * and a session is dead after a few more of silence.
 *
 * Searched is a state in which more is held with certainty than the lock has.  The processes keep the rules that are
 * theirs; where one is taken out, such a state must be found.
 */
#include "names.h"
#include "search.h"

#define PROCESSES 3
#define CAPACITY 2
#define LEASE_OF_ALL 1000

static const uint8_t weights[PROCESSES] = { CAPACITY, 1, 1 };

/* How much there is to search. */
static int processes, lease, sure;

#define PLACES (2 * PROCESSES) /* a process may be there with both sessions */

enum phase { IDLE, WANTS, WAITS, HOLDS, OVER };

/* Who is in the value: process + 1, in the session of which identity; 0: nobody. */
struct place {
    uint8_t who, identity;
};

struct value {
    uint8_t identity; /* 0: absent */
    uint8_t hold_count, queue_count;
    struct place places[PLACES];
};

struct process {
    uint8_t phase, conn; /* conn: the identity that it is connected to */
    uint8_t sure[3];     /* by its session in identity 1, 2 */
    uint8_t is_claimed;  /* the value in its identity has the hold under its session there */
    uint8_t silent, has_session, is_killed;
};

struct state {
    struct value value, copy;
    struct process processes[PROCESSES];
    uint8_t identity, is_copied, has_mark, watched;
};

/* What a search leaves out. */
static struct {
    bool no_grace, claims_unsure, holds_go_on;
} without;

static struct search search;

static bool is_certain(const struct process *process)
{
    return process->sure[1] || (process->is_claimed && process->sure[2]);
}

static bool is_too_much_held(const struct state *state)
{
    int held = 0;

    for (int i = 0; i < processes; i++) {
        if (state->processes[i].phase == HOLDS && is_certain(&state->processes[i]))
            held += weights[i];
    }
    return held > CAPACITY;
}

static void reach(const struct state *state)
{
    if (search_reach(&search, state) && is_too_much_held(state))
        search.is_found = true;
}

/* ---- steps on the value ------------------------------------------------------------------- */

static struct dm_reg_session_id session_of(int process, int identity)
{
    struct dm_reg_session_id id = { .serial = 1, .lease_ms = LEASE_OF_ALL, .identity = (uint64_t)identity };

    memset(id.uuid, 'a' + process, sizeof id.uuid);
    return id;
}

static struct dm_reg_ref ref_in(int process, int identity)
{
    return (struct dm_reg_ref){ .session = session_of(process, identity), .attempt = (uint64_t)process + 1 };
}

static void unpack(const struct value *from, struct dm_reg_name_value *to)
{
    memset(&to->version, from->identity != 0, sizeof to->version);
    to->identity = from->identity;
    to->kind = DM_REG_SEMAPHORE;
    to->capacity = CAPACITY;
    to->token = LAST_TOKEN;
    to->arrival = LAST_ARRIVAL;
    to->health = DM_REG_CLEAN;
    to->session_count = 0;
    to->hold_count = from->hold_count;
    to->queue_count = from->queue_count;
    for (int i = 0; i < from->hold_count + from->queue_count; i++) {
        int process = from->places[i].who - 1;

        to->entries[i] = (struct dm_reg_entry){
            .attempt = (uint64_t)process + 1,
            .token = i < from->hold_count ? LAST_TOKEN : 0,
            .arrival = i < from->hold_count ? 0 : (uint64_t)i + 1,
            .weight = weights[process],
            .session = session_index(to, session_of(process, from->places[i].identity)),
        };
    }
}

static void pack(const struct dm_reg_name_value *from, struct value *to)
{
    memset(to, 0, sizeof *to);
    to->identity = (uint8_t)(from->identity ? from->identity : 3); /* 3: stored, but settled in no data */
    to->hold_count = (uint8_t)from->hold_count;
    to->queue_count = (uint8_t)from->queue_count;
    assert_true(to->hold_count + to->queue_count <= PLACES);
    for (int i = 0; i < to->hold_count + to->queue_count; i++) {
        const struct dm_reg_session_id *id = &from->sessions[from->entries[i].session].id;

        to->places[i] = (struct place){ (uint8_t)(id->uuid[0] - 'a' + 1), (uint8_t)id->identity };
    }
}

/* A read, the step, and the swap, at once.  All know which sessions of these data are dead. */
static struct dm_answer step_on(struct state *state, enum dm_reg_act act, int process, int identity)
{
    static struct dm_reg_name_value name;
    struct dm_reg_session_id dead[PROCESSES];
    struct dm_reg_result done = { .notice_room = 0 };
    struct dm_reg_step step = {
        .act = act,
        .me = ref_in(process, identity),
        .kind = DM_REG_SEMAPHORE,
        .capacity = CAPACITY,
        .weight = weights[process],
        .token = LAST_TOKEN,
        .identity = state->identity,
        .quiet_ms = state->identity == 1 || state->watched >= lease || without.no_grace ? LEASE_OF_ALL : 0,
        .dead = dead,
    };

    for (int i = 0; i < processes; i++) {
        if (state->processes[i].is_killed && state->processes[i].conn == state->identity)
            dead[step.dead_count++] = session_of(i, state->identity);
    }
    assert_int_equal(dm_reg_name_reserve(&name, 0, 0, 0), 0);
    if (!name.entries)
        assert_int_equal(dm_reg_name_reserve(&name, 8, 1, 8), 0);
    unpack(&state->value, &name);
    dm_reg_apply(&name, &step, &done);
    if (done.is_changed)
        pack(&name, &state->value);
    return done.answer;
}

/* ---- what can happen next ----------------------------------------------------------------- */

static void enter(struct state *state, int i)
{
    struct process *process = &state->processes[i];

    if (!process->sure[process->conn]) /* N3 */
        return;
    process->phase = HOLDS;
    process->is_claimed = process->conn == 2;
}

static void ask(struct state state, int i, enum dm_reg_act act)
{
    struct process *process = &state.processes[i];
    struct dm_answer answer = step_on(&state, act, i, process->conn);

    if (answer.verdict == DM_SAYS_OWNED)
        enter(&state, i);
    else
        process->phase = answer.verdict == DM_SAYS_QUEUED ? WAITS : WANTS;
    reach(&state);
}

static void leave(struct state state, int i)
{
    struct process *process = &state.processes[i];

    step_on(&state, DM_REG_RELEASE, i, process->is_claimed ? 2 : 1);
    process->phase = OVER;
    reach(&state);
}

static void claim(struct state state, int i)
{
    struct process *process = &state.processes[i];

    if (step_on(&state, DM_REG_CLAIM, i, 2).verdict == DM_SAYS_OWNED)
        process->is_claimed = 1;
    else
        process->phase = OVER;
    reach(&state);
}

/* A beat that was executed; its answer came, or not. */
static void beat(struct state state, int i)
{
    struct process *process = &state.processes[i];

    process->silent = 0;
    process->has_session = 1;
    reach(&state);
    process->sure[process->conn] = (uint8_t)sure;
    reach(&state);
}

static void connect(struct state state, int i)
{
    struct process *process = &state.processes[i];

    process->conn = 2;
    process->is_killed = process->has_session = process->silent = 0;
    state.has_mark = 1;
    if (process->phase == WAITS)
        process->phase = WANTS;
    if (process->phase == HOLDS && without.holds_go_on)
        process->is_claimed = 1;
    reach(&state);
}

static void go_on(const struct state *from, int i)
{
    const struct process *process = &from->processes[i];
    bool is_connected = process->conn == from->identity && !process->is_killed;
    bool is_sure = is_connected && process->has_session && process->sure[process->conn];
    struct state state = *from;

    if (process->conn < from->identity)
        connect(state, i);
    if (process->phase == HOLDS && !is_certain(process)) { /* S7: lost, and the session ends with it */
        state.processes[i].phase = OVER;
        state.processes[i].is_killed = 1;
        reach(&state);
        state = *from;
        if (!without.claims_unsure)
            return;
    }
    if (process->phase == OVER)
        return;
    if (is_connected)
        beat(state, i);
    if (is_sure && (process->phase == IDLE || process->phase == WANTS))
        ask(state, i, DM_REG_ACQUIRE);
    if (is_connected && process->phase == WAITS)
        ask(state, i, DM_REG_SERVE);
    if (is_connected && process->phase == HOLDS) {
        leave(state, i);
        if (process->conn == 2 && !process->is_claimed && process->has_session &&
            (is_certain(process) || without.claims_unsure))
            claim(state, i);
    }
    if (is_connected && process->has_session && process->silent >= lease) { /* somebody kills it */
        state.processes[i].is_killed = 1;
        reach(&state);
    }
}

static void tick(struct state state)
{
    for (int i = 0; i < processes; i++) {
        struct process *process = &state.processes[i];

        process->sure[1] -= process->sure[1] > 0;
        process->sure[2] -= process->sure[2] > 0;
        process->silent += process->silent < lease && process->has_session;
    }
    state.watched += state.has_mark && state.watched < lease;
    reach(&state);
}

/* A copy is made; later it comes back, or nothing does. */
static void lose_data(const struct state *from)
{
    struct state state = *from;

    if (state.identity == 2)
        return;
    if (!state.is_copied) {
        state.is_copied = 1;
        state.copy = state.value;
        reach(&state);
    }
    state = *from;
    state.identity = 2;
    state.value = state.copy;
    memset(&state.copy, 0, sizeof state.copy);
    state.is_copied = 1;
    reach(&state);
    memset(&state.value, 0, sizeof state.value);
    reach(&state);
}

static bool is_found(int of_processes, int of_lease, int of_sure)
{
    struct state state;

    processes = of_processes;
    lease = of_lease;
    sure = of_sure;
    memset(&state, 0, sizeof state);
    state.identity = 1;
    for (int i = 0; i < processes; i++) {
        state.processes[i].conn = state.processes[i].has_session = 1;
        state.processes[i].sure[1] = (uint8_t)sure;
    }
    search_begin(&search, sizeof state);
    reach(&state);
    while (!search.is_found && search_next(&search, &state)) {
        for (int i = 0; i < processes; i++)
            go_on(&state, i);
        lose_data(&state);
        tick(state);
    }
    print_message("# %u states\n", search.state_count);
    return search.is_found;
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

/* No order of steps leads to more certain holders than the lock has room for. */
static void test_no_more_hold_than_can_when_data_are_lost(void **state)
{
    (void)state;
    assert_false(is_found(3, 2, 1));
    assert_false(is_found(2, 3, 2));
}

/* D2: without a grace it does. */
static void test_too_many_hold_when_nobody_waits_for_quiet(void **state)
{
    (void)state;
    without.no_grace = true;
    assert_true(is_found(2, 2, 1));
}

/* D4: if those claim who are not certain any more, it does. */
static void test_too_many_hold_when_a_claim_comes_after_certainty(void **state)
{
    (void)state;
    without.claims_unsure = true;
    assert_true(is_found(2, 3, 2));
}

/* D4: if new beats lengthen holds that nobody has claimed, it does. */
static void test_too_many_hold_when_holds_go_on_without_a_claim(void **state)
{
    (void)state;
    without.holds_go_on = true;
    assert_true(is_found(2, 3, 2));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_no_more_hold_than_can_when_data_are_lost, begin_search, end_search),
        cmocka_unit_test_setup_teardown(test_too_many_hold_when_nobody_waits_for_quiet, begin_search, end_search),
        cmocka_unit_test_setup_teardown(test_too_many_hold_when_a_claim_comes_after_certainty, begin_search,
                                        end_search),
        cmocka_unit_test_setup_teardown(test_too_many_hold_when_holds_go_on_without_a_claim, begin_search, end_search),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
