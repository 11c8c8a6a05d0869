/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * process/keep/pump with core/ and the orders of process/claims/due, under a virtual clock: when thousands of holds are
 * renewed, and in how many calls.  The store answers at once; the linker's --wrap replaces the library's clock and loop
 * with the test's.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "../lib/range.h"
#include "base/log.h"
#include "process/claims/alarm.h"
#include "process/claims/claim.h"
#include "process/claims/steps.h"
#include "process/keep/pump.h"

#define LEASE_MS 3000
#define LEASE_NS (LEASE_MS * DM_NS_PER_MS)
#define HOLDS 20000
#define FIRST UINT64_C(5000000000) /* the number before the first attempt's */
#define WINDOWS 20                 /* of a lease */
#define LEASES 8                   /* how long a run lasts */
#define SETTLED 4                  /* leases after which a burst has dissolved */

/* ---- the clock and the loop -------------------------------------------------------------- */

static int64_t now_ns, due_ns;

int64_t __wrap_dm_clock_boot_ns(void);
int64_t __wrap_dm_clock_boot_ns(void)
{
    return now_ns;
}

void __wrap_dm_alarm_set(struct dm_alarm *alarm, int64_t when_ns);
void __wrap_dm_alarm_set(struct dm_alarm *alarm, int64_t when_ns)
{
    (void)alarm;
    due_ns = when_ns < due_ns ? when_ns : due_ns;
}

void __wrap_dm_alarm_reset(struct dm_alarm *alarm, int64_t when_ns);
void __wrap_dm_alarm_reset(struct dm_alarm *alarm, int64_t when_ns)
{
    (void)alarm;
    due_ns = when_ns;
}

/* ---- the store --------------------------------------------------------------------------- */

/* A call of renewals that is not answered yet: the pump has 16 at most, unless renewals are free. */
struct posted {
    dm_answers_fn handler;
    void *user;
    int count;
};

static struct posted posted[1000], unanswered[1000];
static int posted_count, unanswered_count;

/* The holds are spread over this many lanes; if there are several, the last lane's server is silent. */
static int lanes = 1;

/* As a store on registers answers: all that wait, each time that a beat of the session is proved; 0: at once. */
static int64_t beat_every_ns, next_beat_ns;

static int64_t confirmed_ns[HOLDS]; /* of each hold: when the last confirmed request was sent */
static int late;                    /* renewals later than a third of the lease after that */
static int calls;
static int renewals[LEASES * WINDOWS];

/* The number of the hold replaces its keys. */
static struct dm_place *place(struct dm_store *store, const char *key)
{
    int *number = malloc(sizeof *number);

    (void)store;
    *number = atoi(strchr(key, '/') + 1);
    return (struct dm_place *)number;
}

static unsigned lane(struct dm_store *store, const struct dm_place *at)
{
    (void)store;
    return (unsigned)(*(const int *)at % lanes);
}

static bool is_silent(unsigned of_lane)
{
    return lanes > 1 && (int)of_lane == lanes - 1;
}

static struct dm_origin origin(struct dm_store *store, const struct dm_place *place)
{
    (void)store;
    (void)place;
    return (struct dm_origin){ .number = 2 };
}

/* Releases are those of the lost holds of the silent server. */
static bool submit(struct dm_store *store, const struct dm_question *batch, int count, dm_answers_fn handler,
                   void *user)
{
    if (batch[0].op == DM_OP_RELEASE) {
        assert_true(is_silent(lane(store, batch[0].place)));
        handler(user, NULL, 1, NULL);
        return true;
    }
    if (is_silent(lane(store, batch[0].place))) {
        unanswered[unanswered_count++] = (struct posted){ handler, user, count };
        return true;
    }
    for (int i = 0; i < count; i++) {
        int64_t *last_ns = &confirmed_ns[batch[i].attempt - FIRST - 1];

        late += now_ns > *last_ns + LEASE_NS / 3;
        *last_ns = batch[i].request.sent_ns;
    }
    calls++;
    renewals[now_ns * WINDOWS / LEASE_NS] += count;
    posted[posted_count++] = (struct posted){ handler, user, count };
    return true;
}

static void work(struct dm_store *store)
{
    static struct dm_answer answers[DM_BATCH];

    (void)store;
    if (now_ns < next_beat_ns)
        return;
    next_beat_ns = now_ns + beat_every_ns;
    for (int i = 0; i < DM_BATCH; i++)
        answers[i] = (struct dm_answer){ .verdict = DM_SAYS_OWNED, .token = 1 };
    while (posted_count > 0) {
        const struct posted *first = &posted[--posted_count];

        first->handler(first->user, answers, first->count, NULL);
    }
}

static const struct dm_store_ops ops = {
    .place = place, .lane = lane, .origin = origin, .submit = submit, .work = work
};
static struct dm_store store = { .ops = &ops };
static struct dm_runtime runtime = { .store = &store };

/* ---- holds ------------------------------------------------------------------------------- */

static void take(int number)
{
    struct dm_answer owned = { .verdict = DM_SAYS_OWNED, .token = 1 };
    struct dm_event answer = { .kind = DM_EV_ANSWER, .answer = &owned };
    struct dm_claim *claim;
    char key[32];

    snprintf(key, sizeof key, "npacing/%d", number);
    dm_state_lock();
    claim = dm_registry_claim(&runtime.registry, dm_registry_name(&runtime.registry, key), LEASE_MS, 0, false);
    answer.request = dm_hold_send(&claim->hold, DM_WANTS_ACQUIRE, now_ns).serial;
    dm_step(&runtime, claim, &answer);
    dm_step_kind(&runtime, claim, DM_EV_ENTERED);
    confirmed_ns[number] = now_ns;
    dm_state_unlock();
}

/* Takes `holds` locks within burst_ns, and lets LEASES leases pass. */
static void run(int holds, int64_t burst_ns)
{
    int left;

    memset(renewals, 0, sizeof renewals);
    calls = late = posted_count = unanswered_count = 0;
    now_ns = 0;
    due_ns = DM_NEVER;
    dm_registry_init(&runtime.registry, &store, FIRST);
    for (int i = 0; i < holds; i++) {
        now_ns = burst_ns * i / holds;
        take(i);
    }
    next_beat_ns = now_ns + beat_every_ns;
    while (due_ns < LEASES * LEASE_NS || (beat_every_ns && next_beat_ns < LEASES * LEASE_NS)) {
        int64_t until_ns = beat_every_ns && next_beat_ns < due_ns ? next_beat_ns : due_ns;

        now_ns = until_ns > now_ns ? until_ns : now_ns;
        dm_pump_run(&runtime);
    }
    while (unanswered_count > 0) {
        const struct posted *last = &unanswered[--unanswered_count];

        last->handler(last->user, NULL, last->count, NULL);
    }
    dm_state_lock();
    left = (int)runtime.registry.claim_count;
    dm_claim_drop_all(&runtime.registry);
    dm_registry_empty(&runtime.registry);
    dm_state_unlock();
    dm_registry_clear(&runtime.registry);
    assert_true(left == holds || lanes > 1);
    assert_int_equal(late, 0);
    for (int i = 0; i < holds; i++)
        assert_true(is_silent((unsigned)(i % lanes)) || confirmed_ns[i] > (LEASES - 1) * LEASE_NS); /* none is lost */
}

/* ---- tests ------------------------------------------------------------------------------- */

/* A burst of locks dissolves: some leases later each twentieth of a lease has about the same number of renewals. */
static void test_renewals_are_even_when_twenty_thousand_locks_were_taken_at_once(void **state)
{
    int most = 0, sum = 0, windows = (LEASES - SETTLED) * WINDOWS;

    (void)state;
    run(HOLDS, LEASE_NS / WINDOWS);
    for (int i = SETTLED * WINDOWS; i < LEASES * WINDOWS; i++) {
        most = renewals[i] > most ? renewals[i] : most;
        sum += renewals[i];
    }
    printf("# renewals in a twentieth of a lease: %d at most, %d on average; %.1f calls for a lease\n", most,
           sum / windows, (double)calls / LEASES);
    assert_true(sum > 0);
    assert_true(most * 2 <= sum / windows * 3);
}

/* Evenness costs few calls: renewals go out by the hundred, and each a little more often than three times a lease. */
static void test_renewals_are_sent_in_full_batches_when_they_are_even(void **state)
{
    static const int counts[] = { 100, 2500, HOLDS };

    (void)state;
    for (size_t i = 0; i < sizeof counts / sizeof counts[0]; i++) {
        int least = counts[i] / DM_BATCH * 3 * LEASES;

        run(counts[i], LEASE_NS / WINDOWS);
        printf("# %d holds: %.1f calls for a lease\n", counts[i], (double)calls / LEASES);
        assert_within(calls, least - counts[i] / DM_BATCH, least + least / 6);
    }
}

/* 5000 holds of a silent server, 50 batches, hold up no renewal of the others. */
static void test_renewals_of_other_servers_go_on_when_a_server_is_silent(void **state)
{
    (void)state;
    lanes = 2;
    run(10000, LEASE_NS / WINDOWS);
    lanes = 1;
}

/* Renewals that wait for a beat of the session, 200 batches, hold up no others if they are free. */
static void test_renewals_wait_for_one_beat_together_when_they_are_free(void **state)
{
    (void)state;
    store.has_free_renewals = true;
    beat_every_ns = LEASE_NS / 3;
    run(HOLDS, LEASE_NS / WINDOWS);
    store.has_free_renewals = false;
    beat_every_ns = 0;
}

static int warnings;

static void count_warning(int level, const char *message, void *user)
{
    (void)level;
    (void)user;
    warnings += strstr(message, "clock was stepped") != NULL;
}

/* An answer about hold 0 or 1, whose server says this time. */
static void hear_clock(int number, int64_t store_ms)
{
    struct dm_place *at = place(&store, number ? "n/1" : "n/0");

    now_ns += DM_NS_PER_MS;
    dm_state_lock();
    dm_step_clock(&runtime, at, store_ms * 1000, now_ns - 1000, now_ns);
    dm_state_unlock();
    dm_log_deliver();
    free(at);
}

/* Two servers whose clocks are always an hour apart: only a step of one clock is reported. */
static void test_each_server_has_a_clock_of_its_own(void **state)
{
    const int64_t hour_ms = 3600 * 1000;

    (void)state;
    lanes = 2;
    warnings = 0;
    now_ns = 0;
    dm_log_set(count_warning, NULL);
    for (int ms = 1; ms < 20; ms++)
        hear_clock(ms % 2, ms + (ms % 2) * hour_ms);
    assert_int_equal(warnings, 0);
    hear_clock(0, 20 + hour_ms);
    assert_int_equal(warnings, 1);
    dm_log_set(NULL, NULL);
    lanes = 1;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_renewals_are_even_when_twenty_thousand_locks_were_taken_at_once),
        cmocka_unit_test(test_renewals_are_sent_in_full_batches_when_they_are_even),
        cmocka_unit_test(test_renewals_of_other_servers_go_on_when_a_server_is_silent),
        cmocka_unit_test(test_renewals_wait_for_one_beat_together_when_they_are_free),
        cmocka_unit_test(test_each_server_has_a_clock_of_its_own),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
