/* SPDX-License-Identifier: BSD-2-Clause */
/* Sentinels that are missing, silent, strangers, or say nonsense: a sentence, nothing lost, and no grant. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../lib/testlib.h"

#define SWITCH 2000
#define TIMES "grace=off&command_timeout=500&connect_timeout=500&switch=2000"

/* An actor at three ports, and the name of a master. */
static struct actor *start_at(int first, int second, int third, const char *name)
{
    char url[256];

    snprintf(url, sizeof url, "redis+sentinel://127.0.0.1:%d,127.0.0.1:%d,127.0.0.1:%d/%s?" TIMES, first, second, third,
             name);
    return actor_start_at(url);
}

static struct actor *start(void)
{
    return actor_start_at(sentinels_url(the_sentinels, "?" TIMES));
}

static int port_of(int sentinel)
{
    return the_sentinels->sentinel[sentinel]->port;
}

static int64_t commands_of(const struct server *server)
{
    return strtoll(strchr(strstr(side_text(server->side, "INFO stats"), "total_commands_processed"), ':') + 1, NULL,
                   10);
}

static void test_a_lock_fails_when_no_sentinel_knows_the_name(void **state)
{
    struct actor *actor = start_at(port_of(0), port_of(1), port_of(2), "theirs");

    (void)state;
    actor_do(actor, "ENOLCK", "lock f/name");
    actor_assert_words(actor, "the sentinels know no master named \"theirs\": correct the name in the URL");
    actor_end(actor);
}

/* A minority has no word, and its master is asked for nothing.  When the majority is back, everything works. */
static void test_a_lock_waits_when_two_of_three_sentinels_are_stopped(void **state)
{
    struct actor *actor = start();

    (void)state;
    actor_do(actor, "0", "init f/minority lease=1500");
    actor_do(actor, "0", "lock f/minority");
    server_stop(the_sentinels->sentinel[0]);
    server_stop(the_sentinels->sentinel[2]);
    wait_until(actor_losses(actor) == 1); /* no longer renewed */
    actor_do(actor, "EPERM", "unlock f/minority");
    actor_do(actor, "ETIMEDOUT", "timedlock f/minority 500");
    actor_assert_words(actor, "1 of 3 sentinels have answered recently, and 2 must agree on who the master is: start "
                              "the missing ones, or correct the URL");
    actor_do(actor, "ENOLCK", "trylock f/minority");
    server_cont(the_sentinels->sentinel[0]);
    server_cont(the_sentinels->sentinel[2]);
    actor_do(actor, "0", "lock f/minority");
    actor_do(actor, "0", "unlock f/minority");
    actor_end(actor);
}

/* The only listed sentinel knows of two others: by itself it is a minority, even at the beginning. */
static void test_a_lock_waits_when_the_listed_sentinel_is_alone(void **state)
{
    struct actor *actor;
    char url[160];

    (void)state;
    server_stop(the_sentinels->sentinel[1]);
    server_stop(the_sentinels->sentinel[2]);
    snprintf(url, sizeof url, "redis+sentinel://127.0.0.1:%d/mymaster?" TIMES, port_of(0));
    actor = actor_start_at(url);
    actor_do(actor, "ETIMEDOUT", "timedlock f/alone 1000");
    actor_assert_words(actor, "1 of 3 sentinels have answered recently, and 2 must agree on who the master is: start "
                              "the missing ones, and list all of them in the URL");
    server_cont(the_sentinels->sentinel[1]);
    server_cont(the_sentinels->sentinel[2]);
    actor_do(actor, "0", "lock f/alone");
    actor_do(actor, "0", "unlock f/alone");
    actor_end(actor);
}

/* One of three may stay away. */
static void test_a_lock_is_acquired_when_one_sentinel_is_gone(void **state)
{
    struct actor *actor;

    (void)state;
    server_kill(the_sentinels->sentinel[1]);
    actor = start();
    actor_do(actor, "0", "lock f/gone");
    actor_do(actor, "0", "unlock f/gone");
    actor_end(actor);
    server_restart(the_sentinels->sentinel[1]);
}

/* The URL has ports of data servers instead of the sentinels'. */
static void test_a_lock_waits_when_servers_with_data_stand_for_sentinels(void **state)
{
    struct actor *actor =
        start_at(the_sentinels->data[0]->port, the_sentinels->data[1]->port, the_sentinels->data[2]->port, "mymaster");

    (void)state;
    actor_do(actor, "ETIMEDOUT", "timedlock f/data 500");
    actor_assert_words(actor, "0 of 3 sentinels have answered recently");
    actor_assert_words(actor, "is not a sentinel: a server with data is listed as a sentinel");
    actor_end(actor);
}

static void write_password(const char *path)
{
    FILE *file = fopen(path, "w");

    assert_non_null(file);
    fprintf(file, "not-theirs\n");
    fclose(file);
}

/* The password of the sentinels is not the password of the servers with data. */
static void test_a_lock_is_acquired_with_the_sentinels_own_password(void **state)
{
    char path[64], url[400];
    struct actor *actor;

    (void)state;
    for (int i = 0; i < SENTINELS; i++)
        side_text(the_sentinels->sentinel[i]->side, "ACL SETUSER default >not-theirs");
    actor = start();
    actor_do(actor, "ETIMEDOUT", "timedlock f/password 500");
    actor_assert_words(actor, "0 of 3 sentinels have answered recently");
    actor_assert_words(actor, "give the sentinels' login by sentinel_user and sentinel_password_file: NOAUTH");
    actor_end(actor);

    snprintf(path, sizeof path, "%s/password", the_sentinels->data[0]->folder);
    write_password(path);
    snprintf(url, sizeof url, "%s&sentinel_password_file=%s", sentinels_url(the_sentinels, "?" TIMES), path);
    actor = actor_start_at(url);
    actor_do(actor, "0", "lock f/password");
    actor_do(actor, "0", "unlock f/password");
    actor_end(actor);
    for (int i = 0; i < SENTINELS; i++)
        side_text(the_sentinels->sentinel[i]->side, "ACL SETUSER default nopass");
}

/* A server that does not know AUTH quotes its arguments: no sentence and no line of the log repeats them. */
static void test_the_sentinels_password_is_hidden_when_the_server_quotes_it(void **state)
{
    struct server *server = server_start_with(true, "--rename-command", "AUTH", "", NULL);
    char path[64], url[256], log[160];
    struct actor *actor;

    (void)state;
    assert_false(side_try(server->side, "AUTH not-theirs"));
    assert_non_null(strstr(side_error(server->side), "not-theirs")); /* the server does quote the arguments */
    snprintf(path, sizeof path, "%s/password", server->folder);
    write_password(path);
    snprintf(url, sizeof url, "DMUTEX_URL=redis+sentinel://127.0.0.1:%d/mymaster?" TIMES "&sentinel_password_file=%s",
             server->port, path);
    snprintf(log, sizeof log, "DMUTEX_LOG=debug:%s/quoted", server->folder);
    actor = actor_start_with(server, url, log, NULL);
    actor_do(actor, "ENOLCK", "trylock f/quoted");
    actor_assert_words(actor, "the sentinels' login is refused: ERR");
    actor_send(actor, "strerror");
    assert_null(strstr(actor_answer(actor), "not-theirs"));
    command_run("grep refused %s/quoted && ! grep not-theirs %s/quoted", server->folder, server->folder);
    assert_status(0);
    actor_end(actor);
    server_end(server);
}

/* A sentinel of another group, under the same name: one voice of three, and its master is never asked. */
static void test_a_sentinel_that_says_another_master_is_outvoted(void **state)
{
    struct server *stranger = server_start_with(true, NULL);
    struct server *liar;
    struct actor *actor;
    char lines[160];

    (void)state;
    snprintf(lines, sizeof lines, "sentinel monitor mymaster 127.0.0.1 %d 1\n", stranger->port);
    liar = server_start_by_file(lines, "--sentinel");
    actor = start_at(port_of(0), liar->port, port_of(1), "mymaster");
    actor_do(actor, "0", "lock f/liar");
    assert_int_equal(side_int(stranger->side, "EXISTS %s", key_of("lock", "f/liar")), 0);
    actor_do(actor, "0", "unlock f/liar");
    actor_end(actor);
    server_end(liar);
    server_end(stranger);
}

#define HELPERS 6 /* more than the group has */

/* Sentinels of another group by the same name; they find each other by its master. */
static void start_liars(struct server **liars, const struct server *stranger)
{
    char lines[160], wanted[32];

    snprintf(lines, sizeof lines, "sentinel monitor mymaster 127.0.0.1 %d 1\n", stranger->port);
    snprintf(wanted, sizeof wanted, "sentinels=%d", 1 + HELPERS);
    for (int i = 0; i <= HELPERS; i++)
        liars[i] = server_start_by_file(lines, "--sentinel");
    for (int i = 0; i <= HELPERS; i++)
        wait_until(side_says(liars[i]->side, wanted, "INFO sentinel"));
}

/*
 * One of three listed sentinels names others of its own, so many that they would be the majority: they are not asked,
 * and neither their master nor they get a password.
 */
static void test_a_listed_sentinel_cannot_bring_a_majority_of_its_own(void **state)
{
    struct server *stranger = server_start_with(true, NULL), *liars[1 + HELPERS];
    char path[64], url[320];
    struct actor *actor;
    int64_t before;

    (void)state;
    start_liars(liars, stranger);
    snprintf(path, sizeof path, "%s/password", stranger->folder);
    write_password(path);
    snprintf(url, sizeof url,
             "redis+sentinel://default:secret@127.0.0.1:%d,127.0.0.1:%d,127.0.0.1:%d/mymaster?sentinel_user=default&"
             "sentinel_password_file=%s&" TIMES,
             liars[0]->port, port_of(0), port_of(1), path);
    actor = actor_start_at(url);
    actor_do(actor, "0", "init f/majority lease=60000");
    actor_do(actor, "0", "lock f/majority");
    before = commands_of(liars[0]);
    wait_until(commands_of(liars[0]) > before + 40); /* of some rounds of questions */
    actor_do(actor, "0", "unlock f/majority");
    actor_do(actor, "0", "lock f/majority");
    assert_int_equal(actor_losses(actor), 0);
    assert_false(side_says(stranger->side, "cmdstat_auth", "INFO commandstats"));
    for (int i = 1; i <= HELPERS; i++)
        assert_false(side_says(liars[i]->side, "id=", "CLIENT LIST TYPE pubsub"));
    actor_do(actor, "0", "unlock f/majority");
    actor_end(actor);
    for (int i = 0; i <= HELPERS; i++)
        server_end(liars[i]);
    server_end(stranger);
}

static void test_a_lock_waits_when_the_only_listed_sentinel_is_gone(void **state)
{
    int nobody = server_free_port();
    struct actor *actor;
    char url[160];

    (void)state;
    snprintf(url, sizeof url, "redis+sentinel://127.0.0.1:%d/mymaster?" TIMES, nobody);
    actor = actor_start_at(url);
    actor_do(actor, "ETIMEDOUT", "timedlock f/nobody 500");
    actor_assert_words(actor, "0 of 1 sentinels have answered recently, and 1 must agree on who the master is: start "
                              "the missing ones, or correct the URL; ");
    actor_assert_words(actor, "Connection refused");
    actor_do(actor, "ENOLCK", "trylock f/nobody");
    actor_end(actor);
}

#define CHILDREN 40

/* A try must connect to four servers within command_timeout, also on a busy machine. */
#define LONG_TIMES "grace=off&command_timeout=10000&connect_timeout=10000&switch=10000"

/* Names are looked up in separate threads; a fork may come at any time, and the child starts afresh. */
static void test_children_find_sentinels_by_name(void **state)
{
    struct actor *actor;
    char url[256];

    (void)state;
    if (IS_THREAD_SANITIZED)
        return;
    snprintf(url, sizeof url, "redis+sentinel://localhost:%d,localhost:%d,localhost:%d/mymaster?" LONG_TIMES,
             port_of(0), port_of(1), port_of(2));
    actor = actor_start_at(url);
    actor_do(actor, "0", "init f/children lease=60000");
    actor_do(actor, "0", "lock f/children");
    for (int i = 0; i < CHILDREN; i++)
        actor_do(actor, "EBUSY", "in-child trylock f/children");
    assert_int_equal(actor_losses(actor), 0);
    actor_do(actor, "0", "unlock f/children");
    actor_end(actor);
}

static void say(struct server *liar, const struct server *master)
{
    side_try(liar->side, "SENTINEL REMOVE mymaster");
    side_text(liar->side, "SENTINEL MONITOR mymaster 127.0.0.1 %d 1", master->port);
}

static bool log_says(const struct server *server, const char *text)
{
    command_run("grep -s '%s' %s/doubts", text, server->folder);
    return ran.status == 0;
}

/* The log names who is in doubt, and blames nobody else. */
static void test_the_log_names_the_sentinel_that_says_another_master(void **state)
{
    struct server *stranger = server_start_with(true, NULL), *liar = server_start_by_file("", "--sentinel");
    char url[256], log[192];
    struct actor *actor;

    (void)state;
    say(liar, the_sentinels->data[0]);
    snprintf(url, sizeof url, "DMUTEX_URL=redis+sentinel://127.0.0.1:%d,127.0.0.1:%d,127.0.0.1:%d/mymaster?" TIMES,
             port_of(0), liar->port, port_of(1));
    snprintf(log, sizeof log, "DMUTEX_LOG=warn:%s/doubts", stranger->folder);
    actor = actor_start_with(the_server, url, log, NULL);
    actor_do(actor, "0", "lock f/doubts");
    say(liar, stranger);
    wait_until(log_says(stranger, "asking all of them again"));
    snprintf(log, sizeof log, "the sentinel 127.0.0.1:%d ", liar->port);
    assert_output(log);
    assert_false(log_says(stranger, "gave no answer"));
    actor_do(actor, "0", "unlock f/doubts");
    actor_end(actor);
    server_end(liar);
    server_end(stranger);
}

/* Each names the master in its own way: the sentence has two of these. */
static void test_the_sentence_names_two_opinions_when_no_majority_agrees(void **state)
{
    static const char *const hosts[] = { "127.0.0.1", "::1", "127.0.0.2" };
    struct server *liars[3];
    struct actor *actor;
    char words[160];

    (void)state;
    for (int i = 0; i < 3; i++) {
        liars[i] = server_start_by_file("", "--sentinel");
        side_text(liars[i]->side, "SENTINEL MONITOR mymaster %s 9 1", hosts[i]);
    }
    actor = start_at(liars[0]->port, liars[1]->port, liars[2]->port, "mymaster");
    actor_do(actor, "ETIMEDOUT", "timedlock f/spelled 1000");
    snprintf(words, sizeof words,
             "2 must agree on who the master is: 127.0.0.1:%d says 127.0.0.1:9, and 127.0.0.1:%d says [::1]:9",
             liars[0]->port, liars[1]->port);
    actor_assert_words(actor, words);
    actor_end(actor);
    for (int i = 0; i < 3; i++)
        server_end(liars[i]);
}

/* The library may not ask who the master is. */
static void test_the_sentence_names_the_right_that_the_sentinels_user_lacks(void **state)
{
    struct actor *actor;

    (void)state;
    for (int i = 0; i < SENTINELS; i++)
        side_text(the_sentinels->sentinel[i]->side, "ACL SETUSER default -sentinel|get-master-addr-by-name");
    actor = start();
    actor_do(actor, "ETIMEDOUT", "timedlock f/right 1000");
    for (int i = 0; i < SENTINELS; i++)
        side_text(the_sentinels->sentinel[i]->side, "ACL SETUSER default +@all");
    actor_assert_words(actor, "give the sentinels' user the rights that dmutex acl prints: NOPERM");
    actor_assert_words(actor, "get-master-addr-by-name");
    actor_end(actor);
}

#define FLIPS 300

/* It alternates between masters: each change is at most a doubt, and locks work. */
static void test_locks_go_on_when_a_sentinel_changes_its_mind(void **state)
{
    struct server *strangers[2] = { server_start_with(true, NULL), server_start_with(true, NULL) };
    struct server *liar = server_start_by_file("", "--sentinel");
    struct actor *actor;
    int locks = 0;

    (void)state;
    actor = start_at(port_of(0), liar->port, port_of(1), "mymaster");
    actor_do(actor, "0", "lock f/flips");
    actor_do(actor, "0", "unlock f/flips");
    for (int i = 0; i < FLIPS; i++) {
        say(liar, strangers[i % 2]);
        actor_send(actor, "timedlock f/flips 1000");
        locks += strcmp(actor_answer(actor), "0") == 0;
        actor_send(actor, "unlock f/flips");
        actor_answer(actor);
    }
    print_message("# %d of %d locks\n", locks, FLIPS);
    assert_int_equal(locks, FLIPS);
    actor_end(actor);
    server_end(liar);
    server_end(strangers[0]);
    server_end(strangers[1]);
}

/* A server in place of a sentinel keeps announcing switches: the sentinels are not asked more often because of that. */
static void test_sentinels_are_not_flooded_when_a_stranger_announces_switches(void **state)
{
    struct server *stranger = server_start_with(true, NULL);
    struct actor *actor = start_at(port_of(0), stranger->port, port_of(1), "mymaster");
    int64_t before, asked;
    int messages = 0;

    (void)state;
    actor_do(actor, "0", "lock f/flood");
    wait_until(side_count_channels(stranger->side) == 1);
    before = commands_of(the_sentinels->sentinel[0]);
    side_set_control(stranger->side, "flood", SWITCH);
    for (; !side_is_control_over(stranger->side, "flood"); messages++)
        assert_int_equal(side_int(stranger->side, "PUBLISH +switch-master %s", "mymaster 127.0.0.1 1 127.0.0.1 2"), 1);
    actor_do(actor, "0", "unlock f/flood");
    asked = commands_of(the_sentinels->sentinel[0]) - before;
    print_message("# %d messages, %lld commands\n", messages, (long long)asked);
    assert_true(messages > 200);
    assert_true(asked < 80);
    actor_end(actor);
    server_end(stranger);
}

/* The master's address leads nowhere, as with network address translation. */
static void test_a_lock_waits_when_the_address_leads_nowhere(void **state)
{
    int nowhere = server_free_port();
    struct server *sentinel;
    struct actor *actor;
    char lines[160], url[160], words[64];

    (void)state;
    snprintf(lines, sizeof lines, "sentinel monitor mymaster 127.0.0.1 %d 1\n", nowhere);
    sentinel = server_start_by_file(lines, "--sentinel");
    snprintf(url, sizeof url, "redis+sentinel://127.0.0.1:%d/mymaster?" TIMES, sentinel->port);
    actor = actor_start_at(url);
    actor_do(actor, "ETIMEDOUT", "timedlock f/nowhere 500");
    snprintf(words, sizeof words, "127.0.0.1:%d: cannot be opened (Connection refused)", nowhere);
    actor_assert_words(actor, words);
    actor_end(actor);
    server_end(sentinel);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_lock_fails_when_no_sentinel_knows_the_name),
        cmocka_unit_test(test_a_lock_waits_when_two_of_three_sentinels_are_stopped),
        cmocka_unit_test(test_a_lock_waits_when_the_listed_sentinel_is_alone),
        cmocka_unit_test(test_a_lock_is_acquired_when_one_sentinel_is_gone),
        cmocka_unit_test(test_a_lock_waits_when_servers_with_data_stand_for_sentinels),
        cmocka_unit_test(test_a_lock_is_acquired_with_the_sentinels_own_password),
        cmocka_unit_test(test_the_sentence_names_two_opinions_when_no_majority_agrees),
        cmocka_unit_test(test_the_sentence_names_the_right_that_the_sentinels_user_lacks),
        cmocka_unit_test(test_the_sentinels_password_is_hidden_when_the_server_quotes_it),
        cmocka_unit_test(test_a_sentinel_that_says_another_master_is_outvoted),
        cmocka_unit_test(test_a_listed_sentinel_cannot_bring_a_majority_of_its_own),
        cmocka_unit_test(test_a_lock_waits_when_the_only_listed_sentinel_is_gone),
        cmocka_unit_test(test_children_find_sentinels_by_name),
        cmocka_unit_test(test_the_log_names_the_sentinel_that_says_another_master),
        cmocka_unit_test(test_locks_go_on_when_a_sentinel_changes_its_mind),
        cmocka_unit_test(test_sentinels_are_not_flooded_when_a_stranger_announces_switches),
        cmocka_unit_test(test_a_lock_waits_when_the_address_leads_nowhere),
    };

    test_begin(argc, argv);
    return cmocka_run_group_tests(tests, sentinels_group_setup, sentinels_group_teardown);
}
