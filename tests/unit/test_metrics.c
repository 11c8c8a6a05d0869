/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * process/keep/metrics: the text, the path, and when it is written, under a virtual clock.  The linker's --wrap
 * replaces the library's clock, loop and counters with the test's.
 */
#include "../lib/testlib.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "process/claims/alarm.h"
#include "process/keep/metrics.h"
#include "process/life/runtime.h"

static int64_t now_ns, due_ns;
static dmutex_stats_t stats;
static struct dm_gauges gauges;
static struct dm_runtime runtime;
static struct dm_claim claim;

static bool is_able(struct dm_store *store, const struct dm_place *place, enum dm_way way)
{
    (void)store;
    (void)place;
    (void)way;
    return true;
}

static const struct dm_store_ops ops = { .is_able = is_able };
static struct dm_store store = { .ops = &ops };
static char folder[] = "/tmp/dmutex-metrics-XXXXXX";

int64_t __wrap_dm_clock_boot_ns(void);
int64_t __wrap_dm_clock_boot_ns(void)
{
    return now_ns;
}

void __wrap_dm_alarm_set(struct dm_alarm *alarm, int64_t when_ns);
void __wrap_dm_alarm_set(struct dm_alarm *alarm, int64_t when_ns)
{
    (void)alarm;
    due_ns = when_ns;
}

void __wrap_dm_runtime_count(dmutex_stats_t *ret_stats);
void __wrap_dm_runtime_count(dmutex_stats_t *ret_stats)
{
    *ret_stats = stats;
}

/* ---- help -------------------------------------------------------------------------------- */

static int make_folder(void **state)
{
    (void)state;
    return mkdtemp(folder) ? 0 : -1;
}

static int remove_folder(void **state)
{
    (void)state;
    return rmdir(folder);
}

static int begin_anew(void **state)
{
    char path[64];

    (void)state;
    memset(&runtime, 0, sizeof runtime);
    runtime.store = &store;
    dm_registry_init(&runtime.registry, &store, 0);
    memset(&stats, 0, sizeof stats);
    now_ns = 1000 * DM_NS_PER_S;
    due_ns = DM_NEVER;
    snprintf(path, sizeof path, "%s/file", folder);
    runtime.metrics.path = strdup(path);
    return runtime.metrics.path ? 0 : -1;
}

static int end(void **state)
{
    (void)state;
    runtime.registry.claims = NULL;
    dm_registry_clear(&runtime.registry);
    unlink(runtime.metrics.path);
    free(runtime.metrics.path);
    return 0;
}

/* True if the file was written since the last question. */
static bool is_written(void)
{
    return unlink(runtime.metrics.path) == 0;
}

static void arm(void)
{
    dm_state_lock();
    dm_metrics_arm(&runtime);
    dm_state_unlock();
}

static int64_t next_ns(void)
{
    int64_t next;

    dm_state_lock();
    next = dm_metrics_due_ns(&runtime.metrics);
    dm_state_unlock();
    return next;
}

/* What was written of the counters, to be freed. */
static char *text_of(const char *program)
{
    char *text = NULL;
    size_t length;
    FILE *file = open_memstream(&text, &length);

    assert_non_null(file);
    dm_metrics_write(file, &stats, &gauges, program, 42);
    fclose(file);
    return text;
}

static void assert_line(const char *program, const char *line)
{
    char *text = text_of(program), wanted[200];

    snprintf(wanted, sizeof wanted, "\n%s\n", line);
    if (!strstr(text, wanted))
        fail_msg("no line \"%s\" in\n%s", line, text);
    free(text);
}

/* ---- the text ---------------------------------------------------------------------------- */

/* A counter has the labels program and pid, and its number. */
static void test_text_has_each_counter_with_its_labels(void **state)
{
    (void)state;
    stats.acquired_from_server = 1;
    stats.acquired_in_process = 2;
    stats.waits = 3;
    stats.timeouts = 4;
    stats.losses = 5;
    stats.owner_deaths = 6;
    stats.handoffs = 7;
    stats.commands = 8;
    stats.messages = 9;
    stats.reconnects = UINT64_MAX;
    assert_line("cron", "dmutex_acquisitions_total{program=\"cron\",pid=\"42\",from=\"server\"} 1");
    assert_line("cron", "dmutex_acquisitions_total{program=\"cron\",pid=\"42\",from=\"process\"} 2");
    assert_line("cron", "dmutex_waits_total{program=\"cron\",pid=\"42\"} 3");
    assert_line("cron", "dmutex_timeouts_total{program=\"cron\",pid=\"42\"} 4");
    assert_line("cron", "dmutex_losses_total{program=\"cron\",pid=\"42\"} 5");
    assert_line("cron", "dmutex_owner_deaths_total{program=\"cron\",pid=\"42\"} 6");
    assert_line("cron", "dmutex_handoffs_total{program=\"cron\",pid=\"42\"} 7");
    assert_line("cron", "dmutex_commands_total{program=\"cron\",pid=\"42\"} 8");
    assert_line("cron", "dmutex_messages_total{program=\"cron\",pid=\"42\"} 9");
    assert_line("cron", "dmutex_reconnects_total{program=\"cron\",pid=\"42\"} 18446744073709551615");
}

/* A bucket counts all shorter times, too; limits and sums are seconds. */
static void test_text_has_buckets_that_contain_the_shorter_ones(void **state)
{
    (void)state;
    stats.lock_times[0] = 3;
    stats.lock_times[1] = 4;
    stats.lock_times[DMUTEX_STATS_BUCKETS_NP - 1] = 5;
    stats.lock_ns = INT64_C(100000000007);
    assert_line("p", "dmutex_lock_seconds_bucket{program=\"p\",pid=\"42\",le=\"0.000004000\"} 3");
    assert_line("p", "dmutex_lock_seconds_bucket{program=\"p\",pid=\"42\",le=\"0.000008000\"} 7");
    assert_line("p", "dmutex_lock_seconds_bucket{program=\"p\",pid=\"42\",le=\"16.777216000\"} 7");
    assert_line("p", "dmutex_lock_seconds_bucket{program=\"p\",pid=\"42\",le=\"+Inf\"} 12");
    assert_line("p", "dmutex_lock_seconds_sum{program=\"p\",pid=\"42\"} 100.000000007");
    assert_line("p", "dmutex_lock_seconds_count{program=\"p\",pid=\"42\"} 12");
    assert_line("p", "dmutex_hold_seconds_count{program=\"p\",pid=\"42\"} 0");
}

/* One line without a name, or one for each name. */
static void test_text_has_gauges_with_a_name_where_there_is_one(void **state)
{
    char first[] = "a/b";

    (void)state;
    gauges = (struct dm_gauges){ .is_up = true, .count = 1, .each = { { .held = 2, .waiting = 3 } } };
    assert_line("p", "dmutex_server_up{program=\"p\",pid=\"42\"} 1");
    assert_line("p", "dmutex_held{program=\"p\",pid=\"42\"} 2");
    assert_line("p", "dmutex_waiting{program=\"p\",pid=\"42\"} 3");
    assert_line("p", "dmutex_oldest_hold_timestamp_seconds{program=\"p\",pid=\"42\"} 0");
    gauges.each[0].name = first;
    assert_line("p", "dmutex_held{program=\"p\",pid=\"42\",name=\"a/b\"} 2");
    gauges.count = 0;
}

/* Quotes and backslashes of a program's name do not end the label. */
static void test_text_escapes_the_name_of_the_program(void **state)
{
    (void)state;
    assert_line("a\"b\\c", "dmutex_waits_total{program=\"a\\\"b\\\\c\",pid=\"42\"} 0");
    assert_line(
        "\"\"\"\"\"\"\"\"\"\"\"\"\"\"\"\"\"\"\"\"\"\"\"\"\"\"\"\"\"\"\"\"", /* the longest, all escaped */
        "dmutex_waits_total{program=\"\\\"\\\"\\\"\\\"\\\"\\\"\\\"\\\"\\\"\\\"\\\"\\\"\\\"\\\"\\\"\\\"\\\"\\\"\\\""
        "\\\"\\\"\\\"\\\"\\\"\\\"\\\"\\\"\\\"\\\"\\\"\\\"\\\"\",pid=\"42\"} 0");
}

/* %p is the process; any other % is itself. */
static void test_path_has_the_process_in_the_place_of_each_mark(void **state)
{
    static const char *const paths[][2] = {
        { "/a/b.prom", "/a/b.prom" }, { "/a/%p.prom", "/a/42.prom" }, { "%p%p", "4242" }, { "%d%%p%", "%d%42%" }
    };

    (void)state;
    for (unsigned i = 0; i < sizeof paths / sizeof paths[0]; i++) {
        char *path = dm_metrics_path(paths[i][0], 42);

        assert_string_equal(path, paths[i][1]);
        free(path);
    }
}

/* ---- when -------------------------------------------------------------------------------- */

/* The first lock call is written at once, and what comes after it ten seconds later. */
static void test_file_is_written_at_once_and_then_after_ten_seconds(void **state)
{
    (void)state;
    dm_metrics_run(&runtime);
    assert_false(is_written());
    stats.waits = 1;
    arm();
    assert_int_equal(due_ns, now_ns);
    dm_metrics_run(&runtime);
    assert_true(is_written());
    stats.waits = 2;
    arm();
    assert_int_equal(next_ns(), now_ns + DM_METRICS_NS);
    now_ns += DM_METRICS_NS - 1;
    dm_metrics_run(&runtime);
    assert_false(is_written());
    now_ns++;
    dm_metrics_run(&runtime);
    assert_true(is_written());
}

/* A process in which nothing happens is left in peace; the next call is written at once again. */
static void test_nobody_wakes_up_when_nothing_changes(void **state)
{
    (void)state;
    stats.waits = 1;
    arm();
    dm_metrics_run(&runtime);
    assert_true(is_written());
    now_ns += DM_METRICS_NS;
    dm_metrics_run(&runtime);
    assert_false(is_written());
    assert_int_equal(next_ns(), DM_NEVER);
    now_ns += 10 * DM_METRICS_NS;
    stats.waits = 2;
    arm();
    dm_metrics_run(&runtime);
    assert_true(is_written());
}

/* While the process has a claim, threads may enter without the state lock: then nobody arms. */
static void test_looks_go_on_when_the_process_has_a_claim(void **state)
{
    (void)state;
    runtime.registry.claims = &claim;
    stats.waits = 1;
    arm();
    dm_metrics_run(&runtime);
    assert_true(is_written());
    for (int i = 0; i < 3; i++) {
        now_ns += DM_METRICS_NS;
        dm_metrics_run(&runtime);
        assert_false(is_written());
    }
    stats.acquired_in_process = 1;
    now_ns += DM_METRICS_NS;
    dm_metrics_run(&runtime);
    assert_true(is_written());
}

/* The end of a process that has not locked writes nothing; else the end writes whatever the time. */
static void test_end_writes_only_what_is_new(void **state)
{
    (void)state;
    stats.commands = 1;
    dm_metrics_end(&runtime);
    assert_false(is_written());
    arm();
    dm_metrics_run(&runtime);
    assert_true(is_written());
    dm_metrics_end(&runtime);
    assert_false(is_written());
    stats.commands = 2;
    dm_metrics_end(&runtime);
    assert_true(is_written());
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_text_has_each_counter_with_its_labels, begin_anew, end),
        cmocka_unit_test_setup_teardown(test_text_has_buckets_that_contain_the_shorter_ones, begin_anew, end),
        cmocka_unit_test_setup_teardown(test_text_has_gauges_with_a_name_where_there_is_one, begin_anew, end),
        cmocka_unit_test_setup_teardown(test_text_escapes_the_name_of_the_program, begin_anew, end),
        cmocka_unit_test(test_path_has_the_process_in_the_place_of_each_mark),
        cmocka_unit_test_setup_teardown(test_file_is_written_at_once_and_then_after_ten_seconds, begin_anew, end),
        cmocka_unit_test_setup_teardown(test_nobody_wakes_up_when_nothing_changes, begin_anew, end),
        cmocka_unit_test_setup_teardown(test_looks_go_on_when_the_process_has_a_claim, begin_anew, end),
        cmocka_unit_test_setup_teardown(test_end_writes_only_what_is_new, begin_anew, end),
    };

    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
