/* SPDX-License-Identifier: BSD-2-Clause */
/* The driver of PostgreSQL, on a server of its own. */
#include <dlfcn.h>
#include <malloc.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/thread.h"
#include "base/units.h"
#include "postgres.h"

static bool is_waiting(int backend)
{
    return strcmp(pgserver_sql(server,
                               "SELECT count(*) FROM pg_stat_activity WHERE pid = %d AND wait_event_type = "
                               "'Lock'",
                               backend),
                  "1") == 0;
}

/* ---- what a driver must do --------------------------------------------------------------- */

/* A swap takes effect if the version is the expected one, and only then */
static void test_swap_compares_the_version(void **state)
{
    struct asker *one = asker_start(server->url, NULL), *two = asker_start(server->url, NULL);
    struct dm_reg_version version = absent, old;
    const struct asked *asked;

    (void)state;
    assert_string_equal(one->identity, two->identity);
    assert_outcome(asker_read(one, "n/a", NULL), DM_REG_DONE);
    assert_int_equal(one->asked[0].reply.size, 0);
    assert_true(one->asked[0].reply.has_value);
    assert_outcome(asker_swap(one, "n/a", &version, "first"), DM_REG_DONE);
    asked = asker_read(two, "n/a", NULL);
    assert_outcome(asked, DM_REG_DONE);
    assert_string_equal(asked->value, "first");
    assert_memory_equal(&asked->reply.version, &version, sizeof version);
    assert_outcome(asker_read(two, "n/a", &version), DM_REG_SAME);

    old = version;
    assert_outcome(asker_swap(two, "n/a", &version, "second"), DM_REG_DONE);
    asked = asker_swap(one, "n/a", &old, "third");
    assert_outcome(asked, DM_REG_CONFLICT);
    assert_true(asked->reply.has_value);
    assert_string_equal(asked->value, "second");
    assert_outcome(asker_swap(one, "n/a", &absent, "fourth"), DM_REG_CONFLICT);
    assert_string_equal(one->asked[0].value, "second");

    assert_outcome(asker_delete(one, "n/a", &old), DM_REG_CONFLICT);
    assert_outcome(asker_delete(one, "n/a", &version), DM_REG_DONE);
    asked = asker_swap(two, "n/a", &version, "fifth");
    assert_outcome(asked, DM_REG_CONFLICT);
    assert_true(asked->reply.has_value);
    assert_int_equal(asked->reply.size, 0);
    asker_end(one);
    asker_end(two);
}

/* True if the server's log has the text. */
static bool is_logged(const char *text)
{
    char path[128], line[4096];
    bool is = false;
    FILE *file;

    snprintf(path, sizeof path, "%s/log", server->folder);
    file = fopen(path, "r");
    assert_non_null(file);
    while (!is && fgets(line, sizeof line, file))
        is = strstr(line, text) != NULL;
    fclose(file);
    return is;
}

/* The server plans what is executed often once, and then executes it by its name */
static void test_statements_are_planned_once(void **state)
{
    struct asker *asker = asker_start(server->url, NULL);
    struct dm_reg_version version = absent;

    (void)state;
    assert_outcome(asker_swap(asker, "n/planned", &version, "first"), DM_REG_DONE);
    pgserver_sql(server, "ALTER SYSTEM SET log_min_duration_statement = 0");
    pgserver_sql(server, "SELECT pg_reload_conf()");
    do {
        assert_outcome(asker_swap(asker, "n/planned", &version, "next"), DM_REG_DONE);
        assert_outcome(asker_read(asker, "n/planned", NULL), DM_REG_DONE);
    } while (!is_logged(": UPDATE \"dmutex\"") || !is_logged(": SELECT r."));
    assert_true(is_logged("execute dmutex_update: "));
    assert_true(is_logged("execute dmutex_read: "));
    pgserver_sql(server, "ALTER SYSTEM RESET log_min_duration_statement");
    pgserver_sql(server, "SELECT pg_reload_conf()");
    asker_end(asker);
}

/* A value may have a megabyte, and no more; keys have all their bytes */
static void test_swap_keeps_all_bytes(void **state)
{
    struct asker *asker = asker_start(server->url, NULL);
    size_t most = asker->driver->can.value_max;
    char *value = malloc(most + 1), key[DM_REG_KEY_MAX + 1];
    struct dm_reg_item item = { .key = key, .value = value, .size = most };

    (void)state;
    memset(key, 'k', DM_REG_KEY_MAX);
    memcpy(key, "n/A.a_~%20/-Z", 13);
    key[DM_REG_KEY_MAX] = '\0';
    for (size_t i = 0; i < most + 1; i++)
        value[i] = (char)(i * 7 + i / 256);
    asker_post(asker, &item, 1, true);
    asker_until(asker, asker->answered == 1);
    assert_outcome(&asker->asked[0], DM_REG_DONE);
    asker_read(asker, key, NULL);
    assert_int_equal(asker->asked[0].reply.size, most);
    assert_string_equal(pgserver_sql(server, "SELECT length(value) FROM dmutex.registers WHERE length(name) = 250"),
                        "1048552");
    item.size = most + 1;
    asker_post(asker, &item, 1, true);
    asker_until(asker, asker->answered == 1);
    assert_outcome(&asker->asked[0], DM_REG_TOO_LARGE);
    asker_read(asker, "n/a.A_~%20/-Z", NULL);
    assert_int_equal(asker->asked[0].reply.size, 0);
    pgserver_sql(server, "DELETE FROM dmutex.registers");
    free(value);
    asker_end(asker);
}

/* A swap that waited for another one brings what that one has written, and not what it was refused for */
static void test_conflict_brings_the_newest_value(void **state)
{
    struct asker *asker = asker_start(server->url, NULL);
    struct dm_reg_version version = absent;
    struct dm_reg_item item = { .key = "n/newest" };
    PGconn *other;

    (void)state;
    assert_outcome(asker_swap(asker, "n/newest", &version, "old"), DM_REG_DONE);
    other = lock_row("n/newest");
    item.version = version;
    item.value = asker_value(asker, "mine", &item.size);
    asker_post(asker, &item, 1, true);
    asker_until(asker, is_waiting(backend_of(asker)));
    pgserver_sql_by(other,
                    "UPDATE dmutex.registers SET version = '012345678901234567890123', value = 'new' WHERE name = "
                    "'n/newest'; COMMIT");
    asker_until(asker, asker->answered == 1);
    assert_outcome(&asker->asked[0], DM_REG_CONFLICT);
    assert_string_equal(asker->asked[0].value, "new");
    PQfinish(other);
    asker_end(asker);
}

/* ---- groups ------------------------------------------------------------------------------ */

static bool is_one_transaction(const char *names)
{
    return strcmp(pgserver_sql(server, "SELECT count(DISTINCT xmin::text) FROM dmutex.registers WHERE name LIKE '%s'",
                               names),
                  "1") == 0;
}

/* The next value of the row, and its version afterwards. */
static struct dm_reg_item next_swap(struct asker *asker, const char *key, struct dm_reg_version *version)
{
    struct dm_reg_item item = { .key = key, .version = *version };

    item.value = asker_value(asker, "next", &item.size);
    memcpy(version->bytes, item.value, sizeof version->bytes);
    return item;
}

/*
 * Two swaps go together, and then one after the other is asked for.  True if the first of these waits for the second,
 * and would not have done so for long.
 */
static bool swap_together(struct asker *asker, struct dm_reg_version versions[2])
{
    struct dm_reg_item items[] = { next_swap(asker, "n/together1", &versions[0]),
                                   next_swap(asker, "n/together2", &versions[1]) };
    int64_t due_ns;

    asker_post(asker, items, 2, true);
    asker_until(asker, asker->answered == 2);
    assert_true(is_one_transaction("n/together_"));
    items[0] = next_swap(asker, "n/together1", &versions[0]);
    items[1] = next_swap(asker, "n/together2", &versions[1]);
    asker_post(asker, &items[0], 1, true);
    dm_watch_clear(&asker->watch);
    asker->driver->ops->watch(asker->driver, &asker->watch);
    due_ns = asker->watch.due_ns;
    asker_post_more(asker, &items[1], true);
    asker_until(asker, asker->answered == 2);
    assert_outcome(&asker->asked[0], DM_REG_DONE);
    assert_outcome(&asker->asked[1], DM_REG_DONE);
    return is_one_transaction("n/together_") && due_ns < dm_clock_boot_ns() + DM_NS_PER_S;
}

/* Threads that have swapped together do so again, however they come back: all need one commit, and not two. */
static void test_swaps_that_went_together_go_together_again(void **state)
{
    struct asker *asker = asker_start(server->url, NULL);
    struct dm_reg_version versions[2] = { absent, absent };

    (void)state;
    wait_until(swap_together(asker, versions));
    assert_outcome(asker_swap(asker, "n/together1", &versions[0], "alone"), DM_REG_DONE);
    asker_end(asker);
}

/* ---- reservations ------------------------------------------------------------------------ */

/* A swap of a version that is not there, or a read, whose asker goes on at once.  The answer has the row. */
static const struct asked *reserve(struct asker *asker, const char *key, bool is_swap)
{
    static const struct dm_reg_version never = { "not there" };
    struct dm_reg_item item = { .key = key, .reserves = true };

    if (is_swap) {
        item.version = never;
        item.value = asker_value(asker, "refused", &item.size);
    }
    asker_post(asker, &item, 1, is_swap);
    asker_until(asker, asker->answered == 1);
    assert_outcome(&asker->asked[0], is_swap ? DM_REG_CONFLICT : DM_REG_DONE);
    assert_true(asker->asked[0].reply.has_value);
    return &asker->asked[0];
}

static void post_swap(struct asker *asker, const char *key, const struct dm_reg_version *version, const char *text)
{
    struct dm_reg_item item = { .key = key, .version = *version };

    item.value = asker_value(asker, text, &item.size);
    asker_post(asker, &item, 1, true);
}

static void let_go(struct asker *asker)
{
    asker->driver->ops->let_go(asker->driver);
}

/* False: this process was so slow that the server ended its connection. */
static bool reserve_and_swap(const char *key, bool is_swap)
{
    struct asker *one = asker_start(server->url, NULL), *two = asker_start(server->url, NULL);
    struct dm_reg_version version = absent;
    const struct asked *asked;
    bool is_in_time;

    pgserver_sql(server, "DELETE FROM dmutex.registers WHERE name = '%s'", key);
    assert_outcome(asker_swap(two, key, &version, "first"), DM_REG_DONE);
    asked = reserve(one, key, is_swap);
    assert_true(asked->reply.is_reserved);
    assert_string_equal(asked->value, "first");
    post_swap(two, key, &version, "late");
    asker_until(two, one->down || two->answered || is_waiting(backend_of(two)));
    post_swap(one, key, &version, "second");
    let_go(one);
    asker_until(one, one->answered == 1);
    asker_until(two, two->answered == 1);
    is_in_time = one->asked[0].reply.outcome != DM_REG_UNKNOWN;
    if (is_in_time) {
        assert_outcome(&one->asked[0], DM_REG_DONE);
        assert_outcome(&two->asked[0], DM_REG_CONFLICT);
        assert_string_equal(two->asked[0].value, "second");
    }
    asker_end(one);
    asker_end(two);
    return is_in_time;
}

/* Nobody comes between a refusal, or a read that asks for it, and the next swap: the others wait, and are refused. */
static void test_reserved_row_waits_for_our_next_swap(void **state)
{
    (void)state;
    wait_until(reserve_and_swap("n/reserved", true));
    wait_until(reserve_and_swap("n/reserved-by-a-read", false));
}

static void test_reserved_row_is_free_when_no_swap_follows(void **state)
{
    struct asker *one = asker_start(server->url, NULL), *two = asker_start(server->url, NULL);
    struct dm_reg_version version = absent, other = absent;

    (void)state;
    assert_outcome(asker_swap(two, "n/unused", &version, "first"), DM_REG_DONE);
    assert_true(reserve(one, "n/unused", true)->reply.is_reserved);
    post_swap(one, "n/another", &other, "other");
    let_go(one);
    assert_outcome(asker_swap(two, "n/unused", &version, "second"), DM_REG_DONE);
    asker_until(one, one->answered == 1);
    assert_outcome(&one->asked[0], DM_REG_DONE);
    asker_end(one);
    asker_end(two);
}

/* Who waits for one row has none with a later key, so two processes never wait for each other. */
static void test_rows_are_reserved_in_the_order_of_their_keys(void **state)
{
    struct asker *asker = asker_start(server->url, NULL);
    struct dm_reg_item items[2] = { { .key = "n/order2", .reserves = true }, { .key = "n/order1", .reserves = true } };
    struct dm_reg_version version = absent;
    PGconn *other;

    (void)state;
    assert_outcome(asker_swap(asker, "n/order1", &version, "x"), DM_REG_DONE);
    version = absent;
    assert_outcome(asker_swap(asker, "n/order2", &version, "x"), DM_REG_DONE);
    other = lock_row("n/order1");
    asker_post(asker, items, 2, false);
    asker_until(asker, is_waiting(backend_of(asker)));
    pgserver_sql(server, "SELECT FROM dmutex.registers WHERE name = 'n/order2' FOR UPDATE NOWAIT");
    PQfinish(other);
    asker_until(asker, asker->answered == 2);
    let_go(asker);
    asker_end(asker);
}

/* The server ends its connection, and it reserves nothing for a while: perhaps it is always so slow. */
static void test_process_that_is_stopped_keeps_no_row(void **state)
{
    struct asker *one = asker_start(server->url, NULL), *two = asker_start(server->url, NULL);
    struct dm_reg_version version = absent;
    const struct asked *asked;

    (void)state;
    assert_outcome(asker_swap(two, "n/stopped", &version, "first"), DM_REG_DONE);
    assert_true(reserve(one, "n/stopped", true)->reply.is_reserved);
    assert_outcome(asker_swap(two, "n/stopped", &version, "second"), DM_REG_DONE);
    asker_until(one, one->down == 1);
    asker_until(one, one->ready == 2);
    asked = reserve(one, "n/stopped", true);
    assert_false(asked->reply.is_reserved);
    assert_string_equal(asked->value, "second");
    asker_end(one);
    asker_end(two);
}

/* An absent row cannot be locked, and is told all the same. */
static void test_absent_row_is_not_reserved(void **state)
{
    struct asker *asker = asker_start(server->url, NULL);
    struct dm_reg_version version = absent;
    const struct asked *asked;

    (void)state;
    for (int i = 0; i < 2; i++) {
        asked = reserve(asker, "n/nowhere", i == 0);
        assert_false(asked->reply.is_reserved);
        assert_int_equal(asked->reply.size, 0);
        let_go(asker);
    }
    assert_outcome(asker_swap(asker, "n/nowhere", &version, "first"), DM_REG_DONE);
    asker_end(asker);
}

/* ---- ages and lists ---------------------------------------------------------------------- */

/* An age is that of the value, also if the swap had to wait; a value of another timeline has none */
static void test_ages_are_never_too_high(void **state)
{
    struct asker *asker = asker_start(server->url, NULL);
    struct dm_reg_version version = absent;
    const struct asked *asked;

    (void)state;
    assert_outcome(asker_swap(asker, "n/age", &version, "x"), DM_REG_DONE);
    pgserver_sql(server, "UPDATE dmutex.registers SET written = written - interval '1 hour' WHERE name = 'n/age'");
    asked = asker_read(asker, "n/age", NULL);
    assert_true(asked->reply.age_ms >= 3600000 && asked->reply.age_ms < 3600000 + WAIT_LIMIT_MS);
    assert_true(asked->reply.clock_us > INT64_C(1700000000000000));
    assert_outcome(asker_swap(asker, "n/age", &version, "y"), DM_REG_DONE);
    asked = asker_read(asker, "n/age", NULL);
    assert_true(asked->reply.age_ms >= 0 && asked->reply.age_ms < WAIT_LIMIT_MS);
    pgserver_sql(server, "UPDATE dmutex.registers SET written = written + interval '1 hour' WHERE name = 'n/age'");
    assert_int_equal(asker_read(asker, "n/age", NULL)->reply.age_ms, -1);
    pgserver_sql(server,
                 "UPDATE dmutex.registers SET written = written - interval '2 hours', timeline = 77 WHERE name = "
                 "'n/age'");
    assert_int_equal(asker_read(asker, "n/age", NULL)->reply.age_ms, -1);
    asker_end(asker);
}

/* Keys come in order, those of the prefix alone, and in as many pieces as one likes */
static void test_list_walks_over_a_prefix(void **state)
{
    static const char *const wanted[] = { "l/A", "l/a", "l/a/b", "l/~" };
    struct asker *asker = asker_start(server->url, NULL);
    const struct dm_reg_driver_ops *ops = asker->driver->ops;

    (void)state;
    for (int i = 3; i >= 0; i--)
        assert_outcome(asker_swap(asker, wanted[i], &(struct dm_reg_version){ 0 }, "x"), DM_REG_DONE);
    assert_outcome(asker_swap(asker, "m/a", &(struct dm_reg_version){ 0 }, "x"), DM_REG_DONE);
    for (int most = 1; most <= 5; most++) {
        char after[DM_REG_KEY_MAX + 1] = "";
        int seen = 0;

        do {
            asker->answered = 0;
            assert_true(ops->list(asker->driver, ++asker->tickets, "l/", after, most));
            asker_until(asker, asker->answered == 1);
            assert_true(asker->is_listed && asker->key_count <= most);
            for (int i = 0; i < asker->key_count; i++)
                assert_string_equal(asker->keys[i], wanted[seen++]);
            snprintf(after, sizeof after, "%s", asker->keys[asker->key_count - 1]);
        } while (!asker->is_last);
        assert_int_equal(seen, 4);
    }
    asker_end(asker);
}

/* A notice comes if the swap has taken effect, with all its bytes, and not to other inboxes */
static void tell_each_other(const char *url)
{
    struct asker *asker = asker_start(url, "me"), *other = asker_start(url, "Someone else; \"--");
    struct dm_reg_version version = absent, old = absent, never = { "not there" };
    char text[DM_REG_TELL_MAX];
    struct dm_reg_tell tell = { "me", text, sizeof text };
    struct dm_reg_item item = { .key = "n/tell", .tells = &tell, .tell_count = 1 };

    pgserver_sql(server, "DELETE FROM dmutex.registers WHERE name = 'n/tell'");
    assert_true(asker->has_inbox && asker->driver->can.has_tells);
    assert_outcome(asker_swap_and_tell(other, "n/tell", &version, "x", "me", "one"), DM_REG_DONE);
    asker_until(asker, asker->tells == 1);
    assert_string_equal(asker->told, "one");
    assert_outcome(asker_swap_and_tell(other, "n/tell", &old, "x", "me", "two"), DM_REG_CONFLICT);
    assert_outcome(asker_swap_and_tell(other, "n/tell", &never, "x", "me", "three"), DM_REG_CONFLICT);
    for (size_t i = 0; i < sizeof text; i++)
        text[i] = (char)i;
    item.version = version;
    item.value = asker_value(other, "y", &item.size);
    asker_post(other, &item, 1, true);
    asker_until(asker, (asker_turn(other), asker->tells == 2));
    assert_int_equal(asker->told_size, sizeof text);
    assert_memory_equal(asker->told, text, sizeof text);
    pgserver_sql(server, "NOTIFY \"%s\", 'not hexadecimal'", ((struct dm_postgres *)asker->driver)->channel);
    assert_outcome(asker_read(other, "n/tell", NULL), DM_REG_DONE);
    memcpy(version.bytes, other->asked[0].reply.version.bytes, sizeof version.bytes);
    assert_outcome(asker_swap_and_tell(asker, "n/tell", &version, "z", "Someone else; \"--", ""), DM_REG_DONE);
    asker_until(other, other->tells == 1);
    assert_int_equal(other->told_size, 0);
    assert_int_equal(asker->tells, 2);
    asker_end(asker);
    asker_end(other);
}

static void test_notice_comes_only_if_the_swap_is_done(void **state)
{
    char url[160];

    (void)state;
    snprintf(url, sizeof url, "%s&options=-csynchronous_commit%%3Doff", server->url);
    tell_each_other(server->url);
    tell_each_other(url);
}

/* Commits that notify wait for each other.  One that waits for a standby holds all of them up, and no swap. */
static void test_swap_does_not_wait_for_the_notices_of_others(void **state)
{
    struct dm_reg_version version = absent;
    struct asker *asker;
    PGconn *other;

    (void)state;
    pgserver_sql(server, "SET synchronous_commit = local");
    pgserver_sql(server, "ALTER ROLE postgres SET synchronous_commit = local");
    asker = asker_start(server->url, "me");
    other = pgserver_connect(server, "postgres");
    pgserver_sql_by(other, "SET synchronous_commit = on");
    pgserver_sql(server, "ALTER SYSTEM SET synchronous_standby_names = 'nobody'");
    pgserver_sql(server, "SELECT pg_reload_conf()");
    while (pgserver_sql(server, "SELECT 1 FROM pg_stat_activity WHERE pid = %d AND wait_event = 'SyncRep'",
                        PQbackendPID(other))[0] == '\0') {
        PQconsumeInput(other);
        while (!PQisBusy(other) && PQtransactionStatus(other) == PQTRANS_ACTIVE)
            PQclear(PQgetResult(other));
        if (PQtransactionStatus(other) == PQTRANS_IDLE)
            PQsendQuery(other, "NOTIFY anything");
    }
    assert_outcome(asker_swap_and_tell(asker, "n/notices", &version, "x", "me", "one"), DM_REG_DONE);
    assert_int_equal(asker->tells, 0);
    pgserver_sql(server, "ALTER SYSTEM RESET synchronous_standby_names");
    pgserver_sql(server, "SELECT pg_reload_conf()");
    asker_until(asker, asker->tells == 1);
    pgserver_sql(server, "ALTER ROLE postgres RESET synchronous_commit");
    PQfinish(other);
    asker_end(asker);
}

/* ---- groups ------------------------------------------------------------------------------ */

/* Swaps of one call are executed each for itself, and those of one key in their order */
static void test_one_bad_swap_stops_no_other(void **state)
{
    struct asker *asker = asker_open(server->url, "dmutex", 2000);
    struct dm_reg_item items[130];
    struct dm_reg_version version = absent;
    char keys[130][16];
    PGconn *other;

    (void)state;
    asker->driver->ops->want(asker->driver);
    asker_until(asker, asker->ready);
    assert_outcome(asker_swap(asker, "n/group7", &version, "x"), DM_REG_DONE);
    other = lock_row("n/group7");
    memset(items, 0, sizeof items);
    for (int i = 0; i < 130; i++) {
        snprintf(keys[i], sizeof keys[i], "n/group%d", i % 120);
        items[i].key = keys[i];
        if (i == 7)
            items[i].version = version;
        if (i >= 120)
            memcpy(items[i].version.bytes, items[i - 120].value, DM_REG_VERSION_SIZE);
        items[i].value = malloc(64);
        memcpy((void *)items[i].value, asker_value(asker, i < 120 ? "one" : "two", &items[i].size), 64);
    }
    asker_post(asker, items, 130, true);
    asker_until(asker, asker->answered == 130);
    for (int i = 0; i < 130; i++)
        assert_outcome(&asker->asked[i], i == 7 || i == 127 ? DM_REG_CONFLICT : DM_REG_DONE);
    assert_non_null(strstr(asker->warning, "pg_locks"));
    assert_string_equal(pgserver_sql(server,
                                     "SELECT count(*) FROM dmutex.registers WHERE name LIKE 'n/group%%' AND value = "
                                     "'two'"),
                        "9");
    pgserver_sql_by(other, "COMMIT");
    assert_outcome(asker_swap(asker, "n/group7", &version, "now"), DM_REG_DONE);
    for (int i = 0; i < 130; i++)
        free((void *)items[i].value);
    PQfinish(other);
    asker_end(asker);
}

/* A commit that fails after the statement was answered is no success, and others of its transaction go on */
static void test_failed_commit_is_not_done(void **state)
{
    struct asker *asker = asker_start(server->url, NULL);
    struct dm_reg_item items[3] = { { .key = "n/commit1" }, { .key = "n/commit2" }, { .key = "n/commit3" } };

    (void)state;
    pgserver_sql(server,
                 "CREATE FUNCTION complain() RETURNS trigger LANGUAGE plpgsql AS $$BEGIN IF NEW.name = "
                 "'n/commit2' THEN RAISE 'no such luck'; END IF; RETURN NULL; END$$; CREATE CONSTRAINT TRIGGER "
                 "late AFTER INSERT ON dmutex.registers DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION "
                 "complain()");
    for (int i = 0; i < 3; i++)
        items[i].value = asker_value(asker, "x", &items[i].size);
    asker_post(asker, items, 3, true);
    asker_until(asker, asker->answered == 3);
    assert_outcome(&asker->asked[0], DM_REG_DONE);
    assert_outcome(&asker->asked[1], DM_REG_REFUSED);
    assert_outcome(&asker->asked[2], DM_REG_DONE);
    assert_non_null(strstr(asker->asked[1].reason, "no such luck"));
    pgserver_sql(server, "DROP TRIGGER late ON dmutex.registers; DROP FUNCTION complain");
    assert_int_equal(asker_read(asker, "n/commit2", NULL)->reply.size, 0);
    asker_end(asker);
}

/* ---- faults ------------------------------------------------------------------------------ */

/* A swap that has no answer is unknown, and may be executed later, if its version fits then */
static void test_swap_without_an_answer_is_unknown_and_may_come_late(void **state)
{
    struct asker *asker = asker_open(server->url, "dmutex", 300), *other = asker_start(server->url, NULL);
    struct dm_reg_version version = absent;
    struct dm_reg_item item = { .key = "n/late" };
    int backend, down, ready; /* on a slow machine the first attempt to connect takes too long */

    (void)state;
    asker->driver->ops->want(asker->driver);
    asker_until(asker, asker->ready);
    assert_outcome(asker_swap(other, "n/late", &version, "first"), DM_REG_DONE);
    assert_outcome(asker_read(asker, "n/late", NULL), DM_REG_DONE); /* nothing else is under way */
    backend = backend_of(asker);
    down = asker->down;
    ready = asker->ready;
    kill(backend, SIGSTOP);
    item.version = version;
    item.value = asker_value(asker, "late", &item.size);
    asker_post(asker, &item, 1, true);
    asker_until(asker, asker->answered == 1);
    kill(backend, SIGSTOP);
    assert_outcome(&asker->asked[0], DM_REG_UNKNOWN);
    assert_int_equal(asker->down, down + 1);
    assert_false(asker->is_final);
    assert_string_equal(asker_read(other, "n/late", NULL)->value, "first");
    kill(backend, SIGCONT);
    wait_until(strcmp(asker_read(other, "n/late", NULL)->value, "late") == 0);
    asker_until(asker, asker->ready > ready);
    assert_string_equal(asker->identity, other->identity);
    asker_end(asker);
    asker_end(other);
}

/* An admin who ends a session makes its swap unknown; one who cancels a statement does not */
static void test_admin_ends_the_statement_or_the_session(void **state)
{
    struct asker *asker = asker_start(server->url, "ends");
    struct dm_reg_version version = absent;
    struct dm_reg_item item = { .key = "n/ended" };
    PGconn *other;

    (void)state;
    assert_outcome(asker_swap(asker, "n/ended", &version, "x"), DM_REG_DONE);
    other = lock_row("n/ended");
    item.version = version;
    item.value = asker_value(asker, "y", &item.size);
    asker_post(asker, &item, 1, true);
    asker_until(asker, is_waiting(backend_of(asker)));
    pgserver_sql(server, "SELECT pg_cancel_backend(%d)", backend_of(asker));
    asker_until(asker, asker->answered == 1);
    assert_outcome(&asker->asked[0], DM_REG_CONFLICT);
    assert_string_equal(asker->asked[0].value, "x");
    assert_int_equal(asker->down, 0);
    asker_post(asker, &item, 1, true);
    asker_until(asker, is_waiting(backend_of(asker)));
    pgserver_sql(server, "SELECT pg_terminate_backend(%d)", backend_of(asker));
    asker_until(asker, asker->answered == 1);
    assert_outcome(&asker->asked[0], DM_REG_UNKNOWN);
    pgserver_sql_by(other, "COMMIT");
    asker_until(asker, asker->ready == 2 && asker->has_inbox);
    assert_outcome(asker_swap(asker, "n/ended", &version, "z"), DM_REG_DONE);
    PQfinish(other);
    asker_end(asker);
}

#define BREAKS 20

/* A connection that the server breaks off is freed: libpq has closed its socket by itself */
static void test_broken_connections_leave_no_memory(void **state)
{
    struct asker *asker = asker_start(server->url, NULL);
    size_t used = 0;

    (void)state;
    for (int i = 0; i <= BREAKS; i++) {
        pgserver_sql(server, "SELECT pg_terminate_backend(%d)", backend_of(asker));
        asker_until(asker, asker->ready == i + 2);
        if (i == 0)
            used = mallinfo2().uordblks;
    }
    assert_true(mallinfo2().uordblks <= used + (size_t)BREAKS * 8192); /* a connection has 33 KiB */
    asker_end(asker);
}

/* The data of a server that was killed are all there, and are known again */
static void test_killed_server_keeps_its_identity(void **state)
{
    struct asker *asker = asker_start(server->url, NULL);
    struct dm_reg_version version = absent;
    char identity[DM_REG_IDENTITY_ROOM];

    (void)state;
    snprintf(identity, sizeof identity, "%s", asker->identity);
    assert_outcome(asker_swap(asker, "n/killed", &version, "x"), DM_REG_DONE);
    pgserver_kill(server);
    asker_until(asker, asker->down > 0);
    pgserver_restart(server);
    asker_until(asker, asker->ready == 2);
    assert_string_equal(asker->identity, identity);
    assert_outcome(asker_swap(asker, "n/killed", &version, "y"), DM_REG_DONE);
    asker_end(asker);
}

/* Where a crash may lose commits, the data after a crash are others, and after a clean restart they are not */
static void test_crash_without_durable_commits_is_another_identity(void **state)
{
    char url[128], identity[DM_REG_IDENTITY_ROOM];
    struct asker *asker;

    (void)state;
    pgserver_sql(server, "CREATE ROLE hasty LOGIN SUPERUSER; ALTER ROLE hasty SET synchronous_commit = off");
    snprintf(url, sizeof url, "%s&user=hasty", server->url);
    asker = asker_start(url, NULL);
    snprintf(identity, sizeof identity, "%s", asker->identity);
    pgserver_shutdown(server);
    asker_until(asker, asker->down);
    pgserver_restart(server);
    asker_until(asker, asker->ready == 2);
    assert_string_equal(asker->identity, identity);
    kill(backend_of(asker), SIGKILL);
    asker_until(asker, asker->ready == 3);
    assert_string_not_equal(asker->identity, identity);
    pgserver_kill(server);
    pgserver_restart(server);
    asker_end(asker);
}

/* A standby is refused; once promoted it has another identity, and the old primary is refused from then on */
static void test_promotion_is_another_identity(void **state)
{
    struct pgserver *standby = pgserver_start_standby(server);
    struct asker *asker = asker_start(server->url, NULL), *both;
    char url[160], identity[DM_REG_IDENTITY_ROOM];
    struct dm_reg_version version = absent;

    (void)state;
    asker_end(asker);
    asker = asker_open(standby->url, "dmutex", 0);
    asker->driver->ops->want(asker->driver);
    asker_until(asker, asker->down);
    assert_non_null(strstr(asker->reason, "standby"));
    snprintf(url, sizeof url, "postgresql:///postgres?host=%s,%s&user=postgres", server->folder, standby->folder);
    both = asker_start(url, NULL);
    snprintf(identity, sizeof identity, "%s", both->identity);
    assert_outcome(asker_swap(both, "n/promoted", &version, "x"), DM_REG_DONE);
    wait_until(strcmp(pgserver_sql(standby, "SELECT count(*) FROM dmutex.registers WHERE name = 'n/promoted'"), "1") ==
               0);
    pgserver_kill(server);
    pgserver_promote(standby);
    asker_until(both, both->ready == 2);
    assert_string_not_equal(both->identity, identity);
    assert_outcome(asker_read(both, "n/promoted", NULL), DM_REG_DONE);
    assert_string_equal(both->asked[0].value, "x");
    assert_int_equal(both->asked[0].reply.age_ms, -1);
    asker_until(asker, asker->ready);
    assert_string_equal(asker->identity, both->identity);

    pgserver_end(standby);
    pgserver_restart(server);
    both->down = 0;
    asker_until(both, both->down > 1 && strstr(both->reason, "old primary"));
    assert_int_equal(both->ready, 2);
    asker_end(asker);
    asker_end(both);
}

/* After a backup was restored and a new epoch drawn, no swap of the time before takes effect */
static void test_new_epoch_ends_swaps_of_the_old_one(void **state)
{
    struct asker *asker = asker_start(server->url, NULL);
    struct dm_reg_version version = absent, kept;
    char identity[DM_REG_IDENTITY_ROOM];
    struct dm_reg_item item = { .key = "n/epoch" };

    (void)state;
    assert_outcome(asker_swap(asker, "n/epoch", &version, "copy"), DM_REG_DONE);
    kept = version;
    snprintf(identity, sizeof identity, "%s", asker->identity);
    pgserver_sql(server, "BEGIN; LOCK TABLE dmutex.registers IN EXCLUSIVE MODE; UPDATE dmutex.epoch SET id = "
                         "gen_random_uuid(), drawn = clock_timestamp(); COMMIT");
    item.version = version;
    item.value = asker_value(asker, "of the old", &item.size);
    asker_post(asker, &item, 1, true);
    asker_until(asker, asker->answered == 1);
    assert_outcome(&asker->asked[0], DM_REG_UNKNOWN);
    asker_until(asker, asker->ready == 2);
    assert_string_not_equal(asker->identity, identity);
    assert_string_equal(asker_read(asker, "n/epoch", NULL)->value, "copy");
    assert_outcome(asker_swap(asker, "n/epoch", &kept, "of the new"), DM_REG_DONE);
    asker_end(asker);
}

/* ---- the process ------------------------------------------------------------------------- */

/* A forked child that forgets the driver leaves the parent's connection alone */
static void test_child_leaves_the_connection_alone(void **state)
{
    struct asker *asker = asker_start(server->url, NULL), *connecting = asker_open(server->url, "dmutex", 0);
    struct dm_reg_version version = absent;
    pid_t child;

    (void)state;
    connecting->driver->ops->want(connecting->driver);
    connecting->driver->ops->turn(connecting->driver);
    child = keeper_fork();
    if (child == 0) {
        asker->driver->ops->forget(asker->driver);
        connecting->driver->ops->forget(connecting->driver);
        asker->driver->ops->turn(asker->driver);
        _exit(asker->ready == 1 ? 0 : 1);
    }
    assert_int_equal(keeper_reap(child), 0);
    assert_outcome(asker_swap(asker, "n/forked", &version, "x"), DM_REG_DONE);
    asker_until(connecting, connecting->ready);
    assert_int_equal(asker->down, 0);
    asker_end(asker);
    asker_end(connecting);
}

/* A program that closes all descriptors, and gets the number again, has its file left alone */
static void test_closed_descriptor_is_not_used(void **state)
{
    struct asker *asker = asker_start(server->url, NULL);
    struct dm_reg_item item = { .key = "n/closed" };
    int fd = PQsocket(((struct dm_postgres *)asker->driver)->connection), pipes[2];

    (void)state;
    assert_return_code(pipe(pipes), errno);
    assert_int_equal(dup2(pipes[1], fd), fd);
    wait_nap(); /* the driver asks each millisecond whether the number is its own */
    assert_false(asker->driver->ops->read(asker->driver, 1, &item, 1));
    asker_until(asker, asker->down > 0);
    close(pipes[1]);
    assert_int_equal(write(fd, "x", 1), 1);
    close(fd);
    assert_int_equal(read(pipes[0], &(char[2]){ 0 }, 2), 1);
    asker_until(asker, asker->ready == 2);
    close(pipes[0]);
    asker_end(asker);
}

/* Until a connection is known to have no TLS, a thread needs the stack that OpenSSL may need */
static void test_stack_is_there_for_the_first_message(void **state)
{
    struct asker *asker = asker_open(server->url, "dmutex", 0);
    const struct dm_reg_driver_ops *ops = asker->driver->ops;

    (void)state;
    assert_int_equal(ops->stack(asker->driver), DM_OPENSSL_STACK);
    ops->want(asker->driver);
    assert_int_equal(ops->stack(asker->driver), DM_OPENSSL_STACK);
    asker_until(asker, asker->ready);
    assert_int_equal(ops->stack(asker->driver), 0);
    asker_end(asker);
}

/* The module has all that it needs, and refuses the library of another version */
static void test_module_works_by_itself(void **state)
{
    void *module = dlopen("libdmutex/.libs/store-postgres.so", RTLD_NOW | RTLD_LOCAL);
    dm_reg_open_fn *own = asker_driver;
    struct dm_reg_place place = { .url = server->url, .prefix = "dmutex" };
    struct dm_reg_version version = absent;
    char reason[DM_REASON_ROOM];
    struct asker *asker;

    (void)state;
    if (!module)
        fail_msg("%s", dlerror());
    asker_driver = (dm_reg_open_fn *)dlsym(module, DM_POSTGRES_OPEN);
    assert_non_null(asker_driver);
    assert_null(asker_driver("0.0.0", &place, &(struct dm_reg_client){ 0 }, reason));
    assert_non_null(strstr(reason, "0.0.0"));
    asker = asker_start(server->url, "module");
    assert_outcome(asker_swap_and_tell(asker, "n/module", &version, "x", "module", "told"), DM_REG_DONE);
    asker_until(asker, asker->tells == 1);
    asker_end(asker);
    asker_driver = own;
}

/* A connection that nobody needs is closed, and opened again when it is needed */
static void test_resting_driver_has_no_connection(void **state)
{
    struct asker *asker = asker_start(server->url, NULL);
    int backend = backend_of(asker);

    (void)state;
    asker->driver->ops->rest(asker->driver);
    wait_until(strcmp(pgserver_sql(server, "SELECT count(*) FROM pg_stat_activity WHERE pid = %d", backend), "0") == 0);
    asker_turn(asker);
    assert_int_equal(asker->down, 0);
    asker->driver->ops->want(asker->driver);
    asker_until(asker, asker->ready == 2);
    asker_end(asker);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_swap_compares_the_version),
        cmocka_unit_test(test_statements_are_planned_once),
        cmocka_unit_test(test_swap_keeps_all_bytes),
        cmocka_unit_test(test_conflict_brings_the_newest_value),
        cmocka_unit_test(test_swaps_that_went_together_go_together_again),
        cmocka_unit_test(test_reserved_row_waits_for_our_next_swap),
        cmocka_unit_test(test_reserved_row_is_free_when_no_swap_follows),
        cmocka_unit_test(test_rows_are_reserved_in_the_order_of_their_keys),
        cmocka_unit_test(test_process_that_is_stopped_keeps_no_row),
        cmocka_unit_test(test_absent_row_is_not_reserved),
        cmocka_unit_test(test_ages_are_never_too_high),
        cmocka_unit_test(test_list_walks_over_a_prefix),
        cmocka_unit_test(test_notice_comes_only_if_the_swap_is_done),
        cmocka_unit_test(test_swap_does_not_wait_for_the_notices_of_others),
        cmocka_unit_test(test_one_bad_swap_stops_no_other),
        cmocka_unit_test(test_failed_commit_is_not_done),
        cmocka_unit_test(test_swap_without_an_answer_is_unknown_and_may_come_late),
        cmocka_unit_test(test_admin_ends_the_statement_or_the_session),
        cmocka_unit_test(test_broken_connections_leave_no_memory),
        cmocka_unit_test(test_killed_server_keeps_its_identity),
        cmocka_unit_test(test_crash_without_durable_commits_is_another_identity),
        cmocka_unit_test(test_new_epoch_ends_swaps_of_the_old_one),
        cmocka_unit_test(test_child_leaves_the_connection_alone),
        cmocka_unit_test(test_closed_descriptor_is_not_used),
        cmocka_unit_test(test_stack_is_there_for_the_first_message),
        cmocka_unit_test(test_module_works_by_itself),
        cmocka_unit_test(test_resting_driver_has_no_connection),
        cmocka_unit_test(test_promotion_is_another_identity),
    };

    run_on_postgres(tests, argc, argv);
}
