/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * registers/apply, with swaps that are lost, unknown or late: all orders in which two processes can take their steps
 * on one mutex.  A process computes a swap from its copy, and the swap is executed if nobody has written since.
 * Without an answer it was executed, or never is, or is late: executed at any later moment, if it still fits.
 *
 * Time is one bit: a process is certain of its session, or not any more.  Then the session may be killed, and never is
 * certain again (session.h).
 *
 * Searched is a state that breaks a promise:
 *
 *      I1  two are certain of the lock
 *      I4  an attempt that is over is in the value, beside a living session
 *      I6  the lock is free, and somebody waits
 *      I9  a holder died inside, and the next one is not told; or is told of nothing
 *
 * The processes keep the rules that are theirs; where one is taken out, such a state must be found.
 */
#include "names.h"
#include "search.h"

#define PROCESSES 2
#define TRIES 3 /* attempts of a process */
#define ATTEMPTS (PROCESSES * TRIES + 1)
#define FAULTY 0 /* faults hit this process */

enum phase { IDLE, ASKS, WAITS, SERVES, GRANTED, INSIDE, LEAVES, CANCELS, THROUGH };

struct value {
    uint8_t is_there, hold, queue[PROCESSES * 2], count, is_dead; /* attempts; is_dead: an owner died */
};

/* What a swap does: it names its attempt, and was computed by somebody who knew the dead, or not. */
struct swap {
    uint8_t act, attempt, knows, is_owed;
};

struct process {
    uint8_t phase, attempt, tries, rounds, session;
    uint8_t is_fresh, knows; /* its copy is the present value; it has read which sessions are dead */
    uint8_t is_sure, is_told, is_unsettled, is_crashed;
    uint8_t box, box_dead; /* a notice: the attempt that was granted */
};

struct state {
    struct value value;
    struct process processes[PROCESSES];
    uint8_t killed[PROCESSES]; /* so many sessions of the process are dead, the first ones */
    uint8_t session_of[ATTEMPTS], is_over[ATTEMPTS], was_inside[ATTEMPTS];
    struct swap late;
    uint8_t is_late_fresh, is_late_for_absent;
    uint8_t unknowns, lapses, crashes, timeouts, losses, deletions; /* faults that are left */
    uint8_t must_tell, may_tell; /* a death that the next holder must hear of; may hear of */
    uint8_t is_broken;           /* a promise, by number */
};

/* What a search leaves out. */
static struct {
    bool kill, entering_by_the_clock, notices_by_attempt, settling, ending_of_sessions, new_reads;
} without;

static struct search search;
static uint8_t wanted; /* the promise that is to be broken */

/* ---- the value --------------------------------------------------------------------------- */

static int process_of(int attempt)
{
    return (attempt - 1) / TRIES;
}

static bool is_dead(const struct state *state, int attempt)
{
    return state->session_of[attempt] < state->killed[process_of(attempt)];
}

static struct dm_reg_session_id session_id(int process, int session)
{
    struct dm_reg_session_id id = { .serial = (uint32_t)session + 1, .lease_ms = LEASE_MS, .identity = PRESENT };

    memset(id.uuid, 'a' + process, sizeof id.uuid);
    return id;
}

static void put(const struct state *state, struct dm_reg_name_value *name, int attempt)
{
    int index = name->hold_count + name->queue_count;
    bool is_hold = attempt == state->value.hold;

    name->entries[index] = (struct dm_reg_entry){
        .attempt = (uint64_t)attempt,
        .token = is_hold ? LAST_TOKEN : 0,
        .arrival = is_hold ? 0 : (uint64_t)index + 1,
        .weight = 1,
        .session = session_index(name, session_id(process_of(attempt), state->session_of[attempt])),
        .flags = DM_REG_ROBUST,
    };
    *(is_hold ? &name->hold_count : &name->queue_count) += 1;
}

static void unpack(const struct state *state, struct dm_reg_name_value *name)
{
    const struct value *value = &state->value;

    name->session_count = name->hold_count = name->queue_count = 0;
    memset(&name->version, value->is_there, sizeof name->version);
    name->identity = value->is_there ? PRESENT : 0;
    name->kind = DM_REG_MUTEX;
    name->capacity = 1;
    name->token = LAST_TOKEN;
    name->arrival = LAST_ARRIVAL;
    name->health = value->is_dead ? DM_REG_OWNER_DIED : DM_REG_CLEAN;
    if (value->hold)
        put(state, name, value->hold);
    for (int i = 0; i < value->count; i++)
        put(state, name, value->queue[i]);
}

static void pack(const struct dm_reg_name_value *name, struct value *value)
{
    memset(value, 0, sizeof *value);
    value->is_there = 1;
    value->is_dead = name->health == DM_REG_OWNER_DIED;
    value->hold = name->hold_count ? (uint8_t)name->entries[0].attempt : 0;
    value->count = (uint8_t)name->queue_count;
    assert_true(name->queue_count <= (int)sizeof value->queue);
    for (int i = 0; i < name->queue_count; i++)
        value->queue[i] = (uint8_t)name->entries[name->hold_count + i].attempt;
}

static bool is_queued(const struct value *value, int attempt)
{
    return memchr(value->queue, attempt, value->count) != NULL;
}

/* ---- promises ---------------------------------------------------------------------------- */

static void check(struct state *state)
{
    const struct value *value = &state->value;
    int inside = 0;

    for (int i = 0; i < PROCESSES; i++)
        inside += state->processes[i].phase == INSIDE && state->processes[i].is_sure;
    if (inside > 1)
        state->is_broken = 1;
    for (int attempt = 1; attempt < ATTEMPTS; attempt++) {
        if (state->is_over[attempt] && (value->hold == attempt || is_queued(value, attempt)) &&
            !is_dead(state, attempt))
            state->is_broken = 4;
    }
    if (!value->hold && value->count)
        state->is_broken = 6;
}

static void reach(struct state *state)
{
    check(state);
    if (search_reach(&search, state) && state->is_broken)
        search.is_found = search.is_found || !wanted || state->is_broken == wanted;
}

/* ---- swaps ------------------------------------------------------------------------------- */

/* The hold of a dead session has ended, or somebody has told of a death: by what happened inside. */
static void note_ends(struct state *state, const struct value *before, const struct swap *swap)
{
    if (before->hold && state->value.hold != before->hold && is_dead(state, before->hold) &&
        !(swap->act == DM_REG_RELEASE && swap->attempt == before->hold)) {
        if (state->was_inside[before->hold])
            state->must_tell = 1;
        else
            state->may_tell = 1;
    }
    if (swap->act == DM_REG_CONSISTENT && before->hold == swap->attempt)
        state->must_tell = state->may_tell = 0;
}

/* Does the step to the present value, as the swap says.  The new holder is told, or the notice is lost. */
static void execute(struct state *state, const struct swap *swap)
{
    static struct dm_reg_name_value name;
    struct dm_reg_session_id dead[PROCESSES * TRIES];
    struct dm_reg_notice notice[2];
    struct dm_reg_result done = { .notices = notice, .notice_room = 2 };
    struct value before = state->value;
    int process = process_of(swap->attempt);
    struct dm_reg_step step = {
        .act = swap->act,
        .me = { .session = session_id(process, state->session_of[swap->attempt]), .attempt = swap->attempt },
        .capacity = 1,
        .weight = 1,
        .is_robust = true,
        .identity = PRESENT,
        .quiet_ms = LEASE_MS,
        .dead = dead,
    };

    for (int i = 0; swap->knows && i < PROCESSES; i++) {
        for (int session = 0; session < state->killed[i]; session++)
            dead[step.dead_count++] = session_id(i, session);
        if (without.kill && !state->processes[i].is_sure && i != process)
            dead[step.dead_count++] = session_id(i, state->processes[i].session);
    }
    if (!name.entries)
        assert_int_equal(dm_reg_name_reserve(&name, 8, 1, 8), 0);
    unpack(state, &name);
    dm_reg_apply(&name, &step, &done);
    if (done.answer.verdict == DM_SAYS_AGAIN) /* its session is known to be dead */
        return;
    pack(&name, &state->value);
    note_ends(state, &before, swap);
    for (int i = 0; i < PROCESSES; i++)
        state->processes[i].is_fresh = state->processes[i].knows = 0;
    state->is_late_fresh = 0;
    for (int i = 0; i < done.notice_count; i++) {
        int attempt = (int)notice[i].attempt, owner = process_of(attempt);

        if (notice[i].news != DM_REG_NEWS_GRANTED || state->processes[owner].is_crashed)
            continue;
        if (state->losses) {
            struct state lost = *state;

            lost.losses--;
            reach(&lost);
        }
        state->processes[owner].box = (uint8_t)attempt;
        state->processes[owner].box_dead = notice[i].is_owner_dead;
    }
}

typedef void (*then_fn)(struct state *state, int i, bool is_done);

/* Sends a swap: it conflicts, is done, or has no answer. */
static void swap(const struct state *from, int i, enum dm_reg_act act, then_fn then)
{
    const struct process *process = &from->processes[i];
    const struct swap it = { (uint8_t)act, process->attempt, process->knows, 0 };
    struct state state = *from;

    if (process->is_fresh) {
        execute(&state, &it);
        state.processes[i].is_fresh = 1;
        state.processes[i].is_unsettled = 0;
        then(&state, i, true);
    } else {
        then(&state, i, false);
    }
    if (!from->unknowns || i != FAULTY)
        return;
    for (int how = 0; how < 3; how++) { /* never executed, executed, late */
        state = *from;
        state.unknowns--;
        state.processes[i].is_unsettled = 1;
        if (how == 1 && process->is_fresh) {
            execute(&state, &it);
        } else if (how == 2 && process->is_fresh && !from->late.attempt) {
            state.late = it;
            state.is_late_fresh = 1;
            state.is_late_for_absent = !from->value.is_there;
        } else if (how) {
            continue;
        }
        state.processes[i].is_fresh = state.processes[i].knows = 0;
        then(&state, i, false);
    }
}

/* ---- a process --------------------------------------------------------------------------- */

static void look(struct state *state, int i)
{
    state->processes[i].is_fresh = 1;
    state->processes[i].knows = state->value.hold && is_dead(state, state->value.hold);
    if (without.kill && state->value.hold && !state->processes[process_of(state->value.hold)].is_sure)
        state->processes[i].knows = 1;
}

static void end_attempt(struct state *state, int i)
{
    state->is_over[state->processes[i].attempt] = 1;
    state->processes[i].attempt = state->processes[i].is_unsettled = 0;
    state->processes[i].is_told = 0;
    state->processes[i].phase = IDLE;
}

static void begin_session(struct state *state, int i)
{
    state->processes[i].session++;
    state->processes[i].is_sure = 1;
    state->processes[i].box = state->processes[i].box_dead = 0;
}

static void be_granted(struct state *state, int i, bool is_told)
{
    state->processes[i].is_told = is_told;
    state->processes[i].phase = GRANTED;
}

/* Where the copy shows the attempt. */
static void see(struct state *state, int i)
{
    struct process *process = &state->processes[i];

    if (state->value.hold == process->attempt)
        be_granted(state, i, state->value.is_dead);
    else if (is_queued(&state->value, process->attempt))
        process->phase = WAITS;
}

static void then_see(struct state *state, int i, bool is_done)
{
    if (is_done)
        see(state, i);
    reach(state);
}

static void then_wait(struct state *state, int i, bool is_done)
{
    state->processes[i].phase = WAITS;
    then_see(state, i, is_done);
}

static void then_mended(struct state *state, int i, bool is_done)
{
    if (is_done)
        state->processes[i].is_told = 0;
    reach(state);
}

static void then_over(struct state *state, int i, bool is_done)
{
    if (is_done) {
        state->processes[i].rounds--;
        end_attempt(state, i);
    }
    reach(state);
}

/* A beat that finds the session dead, or makes it certain again. */
static void beat(struct state state, int i)
{
    if (state.processes[i].session < state.killed[i]) {
        end_attempt(&state, i);
        begin_session(&state, i);
    } else {
        state.processes[i].is_sure = 1;
    }
    reach(&state);
}

static void begin(struct state state, int i)
{
    struct process *process = &state.processes[i];

    if (!process->rounds || process->tries == TRIES) {
        process->phase = THROUGH;
    } else {
        process->attempt = (uint8_t)(i * TRIES + ++process->tries);
        process->phase = ASKS;
        state.session_of[process->attempt] = process->session;
    }
    reach(&state);
}

static void ask(struct state state, int i)
{
    struct process *process = &state.processes[i];

    if (!process->is_fresh) {
        look(&state, i);
        reach(&state);
    } else if (state.value.hold == process->attempt || is_queued(&state.value, process->attempt)) {
        see(&state, i);
        reach(&state);
    } else {
        swap(&state, i, DM_REG_ACQUIRE, then_see);
    }
}

static void hear(struct state state, int i)
{
    struct process *process = &state.processes[i];

    if (process->box == process->attempt || without.notices_by_attempt) /* N4 */
        be_granted(&state, i, process->box_dead);
    process->box = process->box_dead = 0;
    reach(&state);
}

static void read_again(struct state state, int i)
{
    look(&state, i);
    see(&state, i);
    if (state.processes[i].phase == WAITS && state.processes[i].knows)
        state.processes[i].phase = SERVES;
    reach(&state);
}

/* N3: the clock is looked at last. */
static void enter(struct state state, int i)
{
    struct process *process = &state.processes[i];

    process->phase = INSIDE;
    if ((state.must_tell && !process->is_told) || (process->is_told && !state.must_tell && !state.may_tell))
        state.is_broken = 9;
    reach(&state);
    if (without.entering_by_the_clock) {
        process->is_sure = 1;
        reach(&state);
    }
}

/* S7: a hold that is lost ends with its session. */
static void lose(struct state state, int i)
{
    struct process *process = &state.processes[i];

    state.was_inside[process->attempt] = 1;
    process->rounds--;
    end_attempt(&state, i);
    if (without.ending_of_sessions && process->session == state.killed[i]) {
        process->is_sure = 1;
        reach(&state);
        return;
    }
    if (process->session == state.killed[i])
        state.killed[i]++;
    begin_session(&state, i);
    reach(&state);
}

/* N5: what may be late is settled by a swap, and never by looking. */
static void give_back(struct state state, int i)
{
    struct process *process = &state.processes[i];
    bool is_there;

    if (!process->is_fresh) {
        if (without.new_reads) { /* a read from before the grant */
            struct state old = state;

            then_over(&old, i, true);
        }
        look(&state, i);
        reach(&state);
        return;
    }
    is_there = state.value.hold == process->attempt || is_queued(&state.value, process->attempt);
    if (is_there || (process->is_unsettled && !without.settling))
        swap(&state, i, DM_REG_RELEASE, then_over);
    else
        then_over(&state, i, true);
}

static void go_on(const struct state *state, int i)
{
    const struct process *process = &state->processes[i];
    struct state next = *state;

    if (process->is_crashed)
        return;
    if ((process->phase == ASKS || process->phase == WAITS) && state->timeouts && i == FAULTY) {
        next.timeouts--;
        next.processes[i].phase = CANCELS;
        reach(&next);
    }
    switch (process->phase) {
    case IDLE:
        begin(*state, i);
        break;
    case ASKS:
        ask(*state, i);
        break;
    case WAITS:
        if (process->box)
            hear(*state, i);
        read_again(*state, i);
        if (!process->is_sure)
            beat(*state, i);
        break;
    case SERVES:
        swap(state, i, DM_REG_SERVE, then_wait);
        break;
    case GRANTED:
        if (process->is_sure || without.entering_by_the_clock)
            enter(*state, i);
        if (!process->is_sure)
            beat(*state, i);
        break;
    case INSIDE:
        if (!process->is_sure) {
            lose(*state, i);
        } else if (process->is_told) {
            look(&next, i);
            swap(&next, i, DM_REG_CONSISTENT, then_mended);
        } else {
            next.processes[i].phase = LEAVES;
            reach(&next);
        }
        break;
    case LEAVES:
    case CANCELS:
        give_back(*state, i);
        break;
    default:
        break;
    }
}

/* ---- the world --------------------------------------------------------------------------- */

static void run_late(struct state state)
{
    struct swap late = state.late;
    bool is_fresh = state.is_late_fresh;

    memset(&state.late, 0, sizeof state.late);
    state.is_late_fresh = state.is_late_for_absent = 0;
    if (is_fresh)
        execute(&state, &late);
    reach(&state);
}

/* N6: the key of an idle name is deleted, and what was computed for an absent key fits again. */
static void delete_key(struct state state)
{
    state.deletions--;
    memset(&state.value, 0, sizeof state.value);
    for (int i = 0; i < PROCESSES; i++)
        state.processes[i].is_fresh = state.processes[i].knows = 0;
    state.is_late_fresh = state.late.attempt && state.is_late_for_absent;
    reach(&state);
}

static void go_on_world(const struct state *from)
{
    struct state state = *from;
    const struct process *process = &from->processes[FAULTY];

    if (from->late.attempt)
        run_late(*from);
    if (from->lapses && process->is_sure) { /* stopped, or too slow */
        state.lapses--;
        state.processes[FAULTY].is_sure = 0;
        reach(&state);
    }
    state = *from;
    if (from->crashes && !process->is_crashed && process->phase != THROUGH) {
        state.crashes--;
        if (process->phase == INSIDE)
            state.was_inside[process->attempt] = 1;
        state.processes[FAULTY].is_crashed = 1;
        state.processes[FAULTY].is_sure = state.processes[FAULTY].box = state.processes[FAULTY].box_dead = 0;
        state.processes[FAULTY].phase = THROUGH;
        reach(&state);
    }
    state = *from;
    if (!process->is_sure && process->session == from->killed[FAULTY]) {
        state.killed[FAULTY]++;
        reach(&state);
    }
    if (from->deletions && from->value.is_there && !from->value.hold && !from->value.count && !from->value.is_dead)
        delete_key(*from);
}

/* ---- the searches ------------------------------------------------------------------------ */

struct faults {
    uint8_t unknowns, lapses, crashes, timeouts, losses, deletions;
    uint8_t rounds; /* of the process that the faults do not hit; 1 if not told */
};

static bool is_broken(struct faults faults)
{
    struct state state;

    memset(&state, 0, sizeof state);
    for (int i = 0; i < PROCESSES; i++)
        state.processes[i] = (struct process){ .is_sure = 1, .rounds = faults.rounds ? faults.rounds : 1 };
    state.processes[FAULTY].rounds = 2;
    state.unknowns = faults.unknowns;
    state.lapses = faults.lapses;
    state.crashes = faults.crashes;
    state.timeouts = faults.timeouts;
    state.losses = faults.losses;
    state.deletions = faults.deletions;
    search_begin(&search, sizeof state);
    reach(&state);
    while (!search.is_found && search_next(&search, &state)) {
        for (int i = 0; i < PROCESSES; i++)
            go_on(&state, i);
        go_on_world(&state);
    }
    print_message("# %u states\n", search.state_count);
    return search.is_found;
}

/* ---- the tests --------------------------------------------------------------------------- */

static int begin_search(void **state)
{
    (void)state;
    memset(&without, 0, sizeof without);
    wanted = 0;
    return 0;
}

static int end_search(void **state)
{
    (void)state;
    search_end(&search);
    return 0;
}

/* No order breaks a promise when swaps are unknown and late, and threads give up. */
static void test_promises_hold_when_swaps_are_late(void **state)
{
    (void)state;
    assert_false(is_broken((struct faults){ .unknowns = 2, .timeouts = 1 }));
}

/* Nor when a process is stopped and goes on, is killed, or crashes. */
static void test_promises_hold_when_processes_stop_and_die(void **state)
{
    (void)state;
    assert_false(is_broken((struct faults){ .unknowns = 1, .lapses = 1, .crashes = 1, .losses = 1 }));
    assert_false(is_broken((struct faults){ .unknowns = 1, .lapses = 2 }));
}

/* N2: whoever takes the lock without a kill takes it from a holder that may be certain again. */
static void test_promise_is_broken_when_a_lock_is_taken_without_a_kill(void **state)
{
    (void)state;
    without.kill = true;
    wanted = 1;
    assert_true(is_broken((struct faults){ .unknowns = 1, .lapses = 2 }));
}

/* N3: a thread that enters without a look at the clock may not have the lock any more. */
static void test_promise_is_broken_when_a_thread_enters_without_the_clock(void **state)
{
    (void)state;
    without.entering_by_the_clock = true;
    wanted = 1;
    assert_true(is_broken((struct faults){ .unknowns = 1, .lapses = 2 }));
}

/* N4: a notice may be about an attempt that was given up. */
static void test_promise_is_broken_when_any_notice_is_believed(void **state)
{
    (void)state;
    without.notices_by_attempt = true;
    wanted = 1;
    assert_true(is_broken((struct faults){ .timeouts = 1, .rounds = 2 }));
}

/* N5: an attempt that is cancelled by looking may come into the value later. */
static void test_promise_is_broken_when_nothing_settles_an_unknown_swap(void **state)
{
    (void)state;
    without.settling = true;
    wanted = 4;
    assert_true(is_broken((struct faults){ .unknowns = 1, .timeouts = 1 }));
}

/* N5: a read that is older than what the process knows does not show the grant. */
static void test_promise_is_broken_when_reads_are_old(void **state)
{
    (void)state;
    without.new_reads = true;
    wanted = 4;
    assert_true(is_broken((struct faults){ .unknowns = 1 }));
}

/* N6: a late swap fits again when the key of an idle name was deleted. */
static void test_promise_is_broken_when_an_idle_name_is_deleted(void **state)
{
    (void)state;
    wanted = 4;
    assert_true(is_broken((struct faults){ .unknowns = 1, .timeouts = 1, .deletions = 1 }));
}

/* S7: a hold that is lost stays in the value for ever if its session goes on. */
static void test_promise_is_broken_when_a_session_goes_on_after_a_loss(void **state)
{
    (void)state;
    without.ending_of_sessions = true;
    wanted = 4;
    assert_true(is_broken((struct faults){ .unknowns = 1, .lapses = 1 }));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_promises_hold_when_swaps_are_late, begin_search, end_search),
        cmocka_unit_test_setup_teardown(test_promises_hold_when_processes_stop_and_die, begin_search, end_search),
        cmocka_unit_test_setup_teardown(test_promise_is_broken_when_a_lock_is_taken_without_a_kill, begin_search,
                                        end_search),
        cmocka_unit_test_setup_teardown(test_promise_is_broken_when_a_thread_enters_without_the_clock, begin_search,
                                        end_search),
        cmocka_unit_test_setup_teardown(test_promise_is_broken_when_any_notice_is_believed, begin_search, end_search),
        cmocka_unit_test_setup_teardown(test_promise_is_broken_when_nothing_settles_an_unknown_swap, begin_search,
                                        end_search),
        cmocka_unit_test_setup_teardown(test_promise_is_broken_when_reads_are_old, begin_search, end_search),
        cmocka_unit_test_setup_teardown(test_promise_is_broken_when_an_idle_name_is_deleted, begin_search, end_search),
        cmocka_unit_test_setup_teardown(test_promise_is_broken_when_a_session_goes_on_after_a_loss, begin_search,
                                        end_search),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
