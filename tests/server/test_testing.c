/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * <dmutex/testing.h> from the side of a test that uses the header. test_remains.c checks the remains of a test that
 * ends otherwise than planned; test_testing_abandon.c checks an abandoned hold.
 */
#include <dirent.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <dmutex/testing.h>

#include "../lib/testlib.h"

static dmutex_t mutex; /* each test's own */

static dmutex_test_server_t *start(void)
{
    dmutex_test_server_t *server = NULL;

    assert_result(dmutex_test_server_start(&server), 0);
    assert_non_null(server);
    return server;
}

/* Valid until the third call from now. */
static const char *socket_of(const dmutex_test_server_t *server)
{
    static char rooms[3][256];
    static unsigned next;
    const char *url = dmutex_test_server_url(server);
    char *room = rooms[next++ % 3];

    assert_int_equal(sscanf(url, "unix://%255[^?]?grace=off", room), 1);
    assert_int_equal(room[0], '/');
    return room;
}

/* True if the server's directory and socket are there: both, or neither. */
static bool is_there(const char *socket)
{
    char directory[128];
    bool has_socket = access(socket, F_OK) == 0;

    snprintf(directory, sizeof directory, "%.*s", (int)(strrchr(socket, '/') - socket), socket);
    assert_int_equal(access(directory, F_OK) == 0, has_socket);
    return has_socket;
}

static bool has_key(const char *socket, const char *key)
{
    struct side *side = side_try_open(socket);
    bool has;

    assert_non_null(side);
    has = side_int(side, "EXISTS %s", key) == 1;
    side_close(side);
    return has;
}

/* ---- start and stop ---------------------------------------------------------------------- */

/* Mutexes are on the new server; stop leaves neither a socket nor a directory. */
static void test_start_gives_a_server_when_there_was_none(void **state)
{
    dmutex_test_server_t *server = start();
    char socket[128];

    (void)state;
    snprintf(socket, sizeof socket, "%s", socket_of(server));
    assert_true(strlen(socket) <= 107);
    assert_string_equal(getenv("DMUTEX_URL"), dmutex_test_server_url(server));
    make_normal(&mutex, "testing/one", 0);
    assert_result(dmutex_lock(&mutex), 0);
    assert_true(has_key(socket, key_of("lock", "testing/one")));
    assert_result(dmutex_unlock(&mutex), 0);
    assert_true(is_there(socket));
    assert_result(dmutex_test_server_stop(server), 0);
    assert_false(is_there(socket));
    assert_null(getenv("DMUTEX_URL"));
}

/* Each server is another server, empty, to which the same object belongs at the next use. */
static void test_start_gives_an_empty_server_when_done_again(void **state)
{
    dmutex_test_server_t *server;

    (void)state;
    make_normal(&mutex, "testing/again", 0);
    for (int i = 0; i < 3; i++) {
        server = start();
        assert_false(has_key(socket_of(server), key_of("state", "testing/again")));
        assert_result(lock_and_unlock(&mutex), 0);
        assert_result(dmutex_lock(&mutex), 0);
        assert_true(has_key(socket_of(server), key_of("state", "testing/again")));
        assert_result(dmutex_unlock(&mutex), 0);
        assert_result(dmutex_test_server_stop(server), 0);
    }
}

/* Two servers at a time: the last one started counts, in any order of the stops. */
static void test_the_last_server_is_used_when_there_are_several(void **state)
{
    dmutex_test_server_t *first = start(), *second = start(), *third = start();

    (void)state;
    make_normal(&mutex, "testing/several", 0);
    assert_result(dmutex_test_server_stop(second), 0);
    assert_string_equal(getenv("DMUTEX_URL"), dmutex_test_server_url(third));
    assert_result(lock_and_unlock(&mutex), 0);
    assert_true(has_key(socket_of(third), key_of("state", "testing/several")));
    assert_false(has_key(socket_of(first), key_of("state", "testing/several")));
    assert_result(dmutex_test_server_stop(third), 0);
    assert_string_equal(getenv("DMUTEX_URL"), dmutex_test_server_url(first));
    assert_result(lock_and_unlock(&mutex), 0);
    assert_true(has_key(socket_of(first), key_of("state", "testing/several")));
    assert_result(dmutex_test_server_stop(first), 0);
    assert_null(getenv("DMUTEX_URL"));
}

/* The program's configuration, by the environment and by a call, counts again after stop. */
static void test_stop_undoes_start_when_a_server_was_configured(void **state)
{
    struct server *by_call = server_start();
    dmutex_test_server_t *server;

    (void)state;
    make_normal(&mutex, "testing/undo", 0);
    setenv("DMUTEX_URL", "unix:///nowhere", 1);
    server = start();
    assert_result(dmutex_configure_np("nonsense"), EINVAL);
    assert_result(dmutex_configure_np(by_call->url), 0);
    assert_result(lock_and_unlock(&mutex), 0);
    assert_true(has_key(socket_of(server), key_of("state", "testing/undo")));
    assert_false(has_key(by_call->path, key_of("state", "testing/undo")));
    assert_result(dmutex_configure_np(by_call->url), EBUSY);
    assert_result(dmutex_test_server_stop(server), 0);
    assert_string_equal(getenv("DMUTEX_URL"), "unix:///nowhere");
    assert_result(lock_and_unlock(&mutex), 0);
    assert_true(has_key(by_call->path, key_of("state", "testing/undo")));
    server = start();
    assert_result(dmutex_configure_np(""), EINVAL);
    assert_result(dmutex_configure_np("local:"), 0); /* for the later tests */
    assert_result(dmutex_test_server_stop(server), 0);
    unsetenv("DMUTEX_URL");
    server_end(by_call);
}

/* While a mutex is held, neither start nor stop changes anything. */
static void test_nothing_changes_when_a_mutex_is_held(void **state)
{
    dmutex_test_server_t *server = start(), *other = NULL;

    (void)state;
    make_normal(&mutex, "testing/held", 0);
    assert_result(dmutex_lock(&mutex), 0);
    assert_result(dmutex_test_server_start(&other), EBUSY);
    assert_null(other);
    assert_result(dmutex_test_server_stop(server), EBUSY);
    assert_string_equal(getenv("DMUTEX_URL"), dmutex_test_server_url(server));
    assert_true(is_locked(&mutex));
    assert_int_equal(holdcount_of(&mutex), 1);
    assert_result(dmutex_unlock(&mutex), 0);
    assert_result(dmutex_test_server_stop(server), 0);
}

/* The same while a thread waits for a mutex. */
static void test_nothing_changes_when_a_mutex_is_waited_for(void **state)
{
    dmutex_test_server_t *server = start(), *other = NULL;
    struct actor *holder = actor_start_at(dmutex_test_server_url(server));
    struct errand waiter;

    (void)state;
    make_normal(&mutex, "testing/waited", 0);
    actor_do(holder, "0", "lock testing/waited");
    errand_begin(&waiter, dmutex_lock, &mutex);
    wait_until(waiters_of(&mutex) == 1);
    assert_result(dmutex_test_server_start(&other), EBUSY);
    assert_result(dmutex_test_server_stop(server), EBUSY);
    actor_do(holder, "0", "unlock testing/waited");
    assert_result(errand_join(&waiter), 0); /* the hold ends with the thread */
    actor_end(holder);
    wait_until(dmutex_test_server_stop(server) == 0);
}

/* A lost hold, and an unconfirmed unlock, keep no server from being stopped. */
static void test_stop_is_not_refused_when_the_server_is_dead(void **state)
{
    dmutex_test_server_t *server = start();
    dmutex_t other;

    (void)state;
    make_normal(&mutex, "testing/lost", 100);
    make_normal(&other, "testing/unconfirmed", 0);
    assert_result(dmutex_lock(&mutex), 0);
    assert_result(dmutex_lock(&other), 0);
    assert_result(dmutex_test_server_kill(server), 0);
    assert_result(dmutex_unlock(&other), 0);
    wait_until(holdcount_of(&mutex) == 0);
    assert_result(dmutex_test_server_stop(server), 0);
    assert_result(dmutex_unlock(&mutex), EPERM);
}

/* A server that cannot be reached may be left for a private server. */
static void test_start_works_when_the_server_before_is_down(void **state)
{
    dmutex_test_server_t *server;

    (void)state;
    make_normal(&mutex, "testing/down", 0);
    server = start();
    assert_result(dmutex_configure_np("redis://localhost:1?connect_timeout=50&command_timeout=50"), 0);
    assert_result(dmutex_test_server_stop(server), 0);
    assert_result(dmutex_trylock(&mutex), ENOLCK);
    server = start();
    assert_result(lock_and_unlock(&mutex), 0);
    assert_result(dmutex_configure_np("local:"), EBUSY);
    assert_result(dmutex_test_server_stop(server), 0);
    assert_result(dmutex_trylock(&mutex), ENOLCK);
    server = start();
    assert_result(dmutex_configure_np("local:"), 0);
    assert_result(dmutex_test_server_stop(server), 0);
}

/* Nothing grows with each start: descriptors, processes. */
static void test_no_descriptor_is_left_when_servers_come_and_go(void **state)
{
    int before = -1;

    (void)state;
    make_normal(&mutex, "testing/many", 0);
    for (int i = 0; i < repetitions(5); i++) {
        dmutex_test_server_t *server = start();
        struct errand waiter;

        assert_result(dmutex_lock(&mutex), 0);
        errand_begin(&waiter, timedlock_soon, &mutex); /* needs the inbox */
        assert_result(errand_join(&waiter), ETIMEDOUT);
        assert_result(dmutex_unlock(&mutex), 0);
        assert_result(dmutex_test_server_stop(server), 0);
        if (before < 0)
            before = open_descriptors();
        check_descriptors(before);
    }
}

/* A directory with signs in the name that mean something in a URL; a directory without room for a socket. */
static void test_start_finds_a_place_when_tmpdir_is_unusual(void **state)
{
    char folder[32], inner[64], deep[512];
    dmutex_test_server_t *server;

    (void)state;
    keeper_make_folder(folder, sizeof folder);
    snprintf(inner, sizeof inner, "%s/a %%41?b#c&d", folder);
    assert_return_code(mkdir(inner, 0700), errno);
    setenv("TMPDIR", inner, 1);
    server = start();
    assert_memory_equal(socket_of(server), folder, strlen(folder));
    make_normal(&mutex, "testing/place", 0);
    assert_result(lock_and_unlock(&mutex), 0);
    assert_result(dmutex_test_server_stop(server), 0);
    assert_return_code(rmdir(inner), errno);

    snprintf(deep, sizeof deep, "%s/%0100d", folder, 0);
    assert_return_code(mkdir(deep, 0700), errno);
    setenv("TMPDIR", deep, 1);
    server = start();
    assert_memory_equal(socket_of(server), "/tmp/", 5);
    assert_result(dmutex_test_server_stop(server), 0);

    setenv("TMPDIR", "relative", 1);
    server = start();
    assert_memory_equal(socket_of(server), "/tmp/", 5);
    assert_result(dmutex_test_server_stop(server), 0);
    unsetenv("TMPDIR");
    keeper_remove_folder(folder);
}

static bool has_test_folder(const char *path)
{
    DIR *folder = opendir(path);
    bool has = false;
    struct dirent *entry;

    while ((entry = readdir(folder)))
        has = has || strncmp(entry->d_name, "dmutex-test-", 12) == 0;
    closedir(folder);
    return has;
}

/* After a cleaning of /tmp somebody else may have made a folder of that name. */
static void test_stop_leaves_a_folder_alone_when_it_is_of_another_user(void **state)
{
    dmutex_test_server_t *server;
    char directory[256];

    (void)state;
    if (geteuid() != 0)
        return;
    server = start();
    snprintf(directory, sizeof directory, "%s", socket_of(server));
    *strrchr(directory, '/') = '\0';
    command_run("rm -r %1$s && setpriv --reuid 61234 --clear-groups sh -c 'mkdir -m 777 %1$s && echo kept >%1$s/file'",
                directory);
    assert_status(0);
    assert_result(dmutex_test_server_stop(server), 0);
    command_run("cat %1$s/file && rm -r %1$s", directory);
    assert_string_equal(ran.output, "kept\n");
}

/* Without a server program the sentence names the package; with a server that ends, the server's last words. */
static void test_start_says_why_when_no_server_can_run(void **state)
{
    char *path = strdup(getenv("PATH")), folder[32], fake[64];
    dmutex_test_server_t *server = NULL;
    FILE *script;

    (void)state;
    keeper_make_folder(folder, sizeof folder);
    setenv("PATH", folder, 1);
    setenv("TMPDIR", folder, 1);
    assert_result(dmutex_test_server_start(&server), ENOLCK);
    assert_non_null(strstr(dmutex_strerror_np(), "install the package redis-server"));

    snprintf(fake, sizeof fake, "%s/valkey-server", folder);
    script = fopen(fake, "w");
    fprintf(script, "#!/bin/sh\necho no server today >log\n");
    fchmod(fileno(script), 0700);
    fclose(script);
    assert_result(dmutex_test_server_start(&server), ENOLCK);
    assert_non_null(strstr(dmutex_strerror_np(), "no server today"));

    assert_null(server);
    assert_false(has_test_folder(folder));
    assert_null(getenv("DMUTEX_URL"));
    setenv("PATH", path, 1);
    unsetenv("TMPDIR");
    keeper_remove_folder(folder);
    free(path);
}

static void test_pointers_are_checked_when_null(void **state)
{
    (void)state;
    assert_result(dmutex_test_server_start(NULL), EINVAL);
    assert_result(dmutex_test_server_stop(NULL), 0);
    assert_string_equal(dmutex_test_server_url(NULL), "");
    assert_result(dmutex_test_server_kill(NULL), EINVAL);
    assert_result(dmutex_test_server_restart(NULL), EINVAL);
    assert_result(dmutex_test_server_pause(NULL), EINVAL);
    assert_result(dmutex_test_server_resume(NULL), EINVAL);
    assert_result(dmutex_test_abandon(NULL), EINVAL);
    assert_result(dmutex_test_group_setup(NULL), EINVAL);
    assert_result(dmutex_test_group_teardown(NULL), 0);
}

/* ---- other processes --------------------------------------------------------------------- */

/* An executed program gets the URL by the environment. */
static void test_a_program_uses_the_server_when_it_was_executed(void **state)
{
    dmutex_test_server_t *server = start();
    struct actor *actor = actor_start_at(getenv("DMUTEX_URL"));

    (void)state;
    make_normal(&mutex, "testing/executed", 0);
    actor_do(actor, "0", "lock testing/executed");
    assert_result(dmutex_trylock(&mutex), EBUSY);
    actor_do(actor, "0", "unlock testing/executed");
    actor_end(actor);
    assert_result(dmutex_test_server_stop(server), 0);
}

static volatile sig_atomic_t children_ended;

static void count_child(int number)
{
    (void)number;
    children_ended++;
}

static int look_for_children(void)
{
    dmutex_test_server_t *server;

    signal(SIGCHLD, count_child);
    if (dmutex_test_server_start(&server) != 0)
        return 1;
    if (wait(NULL) != -1 || errno != ECHILD)
        return 2;
    if (dmutex_test_server_kill(server) != 0 || dmutex_test_server_stop(server) != 0)
        return 3;
    if (wait(NULL) != -1 || errno != ECHILD)
        return 4;
    return children_ended ? 5 : 0;
}

/* A program that waits for its children has no unknown child, and hears of none. */
static void test_wait_sees_no_child_when_a_server_runs(void **state)
{
    pid_t pid = keeper_fork();

    (void)state;
    if (pid == 0)
        _exit(look_for_children());
    assert_int_equal(WEXITSTATUS(keeper_reap(pid)), 0);
}

static int start_with_odd_signals_and_descriptors(void)
{
    dmutex_test_server_t *server;

    signal(SIGCHLD, SIG_IGN);
    for (int i = 0; i < 3; i++)
        close(i);
    for (int i = 0; i < 2; i++) {
        if (dmutex_test_server_start(&server) != 0 || dmutex_test_server_pause(server) != 0)
            return 1;
        if (dmutex_test_server_kill(server) != 0 || dmutex_test_server_restart(server) != 0)
            return 2;
        if (dmutex_test_server_stop(server) != 0)
            return 3;
    }
    return 0;
}

/* A program may ignore SIGCHLD, and have closed its standard descriptors. */
static void test_start_works_when_the_program_is_odd(void **state)
{
    pid_t pid = keeper_fork();

    (void)state;
    if (pid == 0)
        _exit(start_with_odd_signals_and_descriptors());
    assert_int_equal(WEXITSTATUS(keeper_reap(pid)), 0);
}

/* ---- kill, restart, pause, resume -------------------------------------------------------- */

/* Calls answer as dmutex(7) says, and the server comes back empty at the same address. */
static void test_calls_answer_by_the_table_when_the_server_is_killed(void **state)
{
    dmutex_test_server_t *server = start();
    char url[256];
    int locked;

    (void)state;
    snprintf(url, sizeof url, "%s", dmutex_test_server_url(server));
    make_normal(&mutex, "testing/killed", 0);
    assert_result(lock_and_unlock(&mutex), 0);
    assert_result(dmutex_lock(&mutex), 0);
    assert_result(dmutex_test_server_kill(server), 0);
    assert_result(dmutex_test_server_kill(server), 0);
    assert_result(dmutex_unlock(&mutex), 0);
    assert_result(dmutex_trylock(&mutex), ENOLCK);
    assert_result(timedlock_soon(&mutex), ETIMEDOUT);
    assert_result(dmutex_islocked_np(&mutex, &locked), ENOLCK);
    assert_result(dmutex_test_server_pause(server), ENOLCK);
    assert_result(dmutex_test_server_resume(server), ENOLCK);

    assert_result(dmutex_test_server_restart(server), 0);
    assert_string_equal(dmutex_test_server_url(server), url);
    assert_false(has_key(socket_of(server), key_of("state", "testing/killed")));
    assert_result(lock_and_unlock(&mutex), 0);
    assert_result(dmutex_test_server_restart(server), 0);
    assert_false(has_key(socket_of(server), key_of("state", "testing/killed")));
    assert_result(lock_and_unlock(&mutex), 0);
    assert_result(dmutex_test_server_stop(server), 0);
}

/* A lock keeps trying until there is a server again. */
static void test_lock_waits_when_the_server_is_killed(void **state)
{
    dmutex_test_server_t *server = start();
    struct errand waiter;

    (void)state;
    make_normal(&mutex, "testing/patient", 0);
    assert_result(dmutex_test_server_kill(server), 0);
    errand_begin(&waiter, dmutex_lock, &mutex);
    errand_await_sleep(&waiter);
    assert_result(dmutex_test_server_stop(server), EBUSY);
    assert_result(dmutex_test_server_restart(server), 0);
    assert_result(errand_join(&waiter), 0);
    wait_until(dmutex_test_server_stop(server) == 0);
}

/* A paused server answers nothing, and does the requests when going on. */
static void test_calls_wait_when_the_server_is_paused(void **state)
{
    dmutex_test_server_t *server = start();
    struct errand waiter;

    (void)state;
    make_normal(&mutex, "testing/paused", 0);
    assert_result(lock_and_unlock(&mutex), 0);
    assert_result(dmutex_test_server_pause(server), 0);
    assert_result(dmutex_test_server_pause(server), 0);
    assert_result(timedlock_soon(&mutex), ETIMEDOUT);
    assert_result(dmutex_trylock(&mutex), ENOLCK);
    errand_begin(&waiter, dmutex_lock, &mutex);
    errand_await_sleep(&waiter);
    assert_false(errand_is_over(&waiter));
    assert_result(dmutex_test_server_resume(server), 0);
    assert_result(dmutex_test_server_resume(server), 0);
    assert_result(errand_join(&waiter), 0);
    assert_result(dmutex_test_server_pause(server), 0);
    wait_until(dmutex_test_server_stop(server) == 0);
}

/* ---- group fixtures ---------------------------------------------------------------------- */

static void test_groups_have_a_server_each_when_they_follow(void **state)
{
    void *group = NULL;

    (void)state;
    make_normal(&mutex, "testing/group", 0);
    for (int i = 0; i < 2; i++) {
        assert_result(dmutex_test_group_setup(&group), 0);
        assert_false(has_key(socket_of(group), key_of("state", "testing/group")));
        assert_result(lock_and_unlock(&mutex), 0);
        assert_result(dmutex_test_group_teardown(&group), 0);
        assert_null(group);
    }
}

/* A test that failed with a mutex held is reported, and does not spoil the next group. */
static void test_the_next_group_begins_when_a_mutex_was_left_locked(void **state)
{
    void *group = NULL;

    (void)state;
    make_normal(&mutex, "testing/left", 0);
    assert_result(dmutex_test_group_setup(&group), 0);
    assert_result(dmutex_lock(&mutex), 0);
    assert_result(dmutex_test_group_teardown(&group), EBUSY);
    assert_null(group);
    assert_null(getenv("DMUTEX_URL"));
    assert_result(dmutex_test_group_setup(&group), 0);
    assert_result(lock_and_unlock(&mutex), 0);
    assert_result(dmutex_test_group_teardown(&group), 0);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_start_gives_a_server_when_there_was_none),
        cmocka_unit_test(test_start_gives_an_empty_server_when_done_again),
        cmocka_unit_test(test_the_last_server_is_used_when_there_are_several),
        cmocka_unit_test(test_stop_undoes_start_when_a_server_was_configured),
        cmocka_unit_test(test_nothing_changes_when_a_mutex_is_held),
        cmocka_unit_test(test_nothing_changes_when_a_mutex_is_waited_for),
        cmocka_unit_test(test_stop_is_not_refused_when_the_server_is_dead),
        cmocka_unit_test(test_start_works_when_the_server_before_is_down),
        cmocka_unit_test(test_no_descriptor_is_left_when_servers_come_and_go),
        cmocka_unit_test(test_start_finds_a_place_when_tmpdir_is_unusual),
        cmocka_unit_test(test_stop_leaves_a_folder_alone_when_it_is_of_another_user),
        cmocka_unit_test(test_start_says_why_when_no_server_can_run),
        cmocka_unit_test(test_pointers_are_checked_when_null),
        cmocka_unit_test(test_a_program_uses_the_server_when_it_was_executed),
        cmocka_unit_test(test_wait_sees_no_child_when_a_server_runs),
        cmocka_unit_test(test_start_works_when_the_program_is_odd),
        cmocka_unit_test(test_calls_answer_by_the_table_when_the_server_is_killed),
        cmocka_unit_test(test_lock_waits_when_the_server_is_killed),
        cmocka_unit_test(test_calls_wait_when_the_server_is_paused),
        cmocka_unit_test(test_groups_have_a_server_each_when_they_follow),
        cmocka_unit_test(test_the_next_group_begins_when_a_mutex_was_left_locked),
    };

    test_begin(argc, argv);
    test_put_server_into_path();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
