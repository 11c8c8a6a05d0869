/* SPDX-License-Identifier: BSD-2-Clause */
/* PostgreSQL by <dmutex/testing.h>: it serves locks at once, and leaves nothing. */
#include <pwd.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/shm.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <dmutex/testing.h>

#include "../lib/testlib.h"
#include "../registers/pgserver.h"

/* No test lives so long: whoever waited for the lease of an owner, or for new data to be trusted, would hang. */
#define LONG_MS 3600000
#define LONG "lease=3600000"

static dmutex_t mutex; /* each test's own */

static dmutex_test_server_t *start(void)
{
    dmutex_test_server_t *server = NULL;

    assert_result(dmutex_test_server_start_postgres(&server), 0);
    assert_non_null(server);
    return server;
}

static void copy_directory(const dmutex_test_server_t *server, char ret_directory[128])
{
    assert_int_equal(sscanf(dmutex_test_server_url(server), "postgresql:///postgres?host=%127[^&]&", ret_directory), 1);
}

/* ---- locks ------------------------------------------------------------------------------- */

/* The first lock does not wait until the data have been quiet for a lease; other programs use the server, too */
static void test_mutex_and_condition_work_at_once(void **state)
{
    dmutex_test_server_t *server = start();
    struct actor *waiter = actor_start_at(getenv("DMUTEX_URL"));
    dcond_t cond;
    char directory[128];

    (void)state;
    assert_string_equal(getenv("DMUTEX_URL"), dmutex_test_server_url(server));
    make_normal(&mutex, "testing/m", LONG_MS);
    assert_result(dcond_init_np(&cond, "testing/c", NULL), 0);
    actor_do(waiter, "0", "init testing/m " LONG);
    actor_do(waiter, "0", "lock testing/m");
    assert_result(dmutex_trylock(&mutex), EBUSY);
    actor_send(waiter, "wait testing/c testing/m");
    assert_result(dmutex_lock(&mutex), 0); /* when the waiter sleeps */
    assert_result(dcond_signal(&cond), 0);
    assert_result(dmutex_unlock(&mutex), 0);
    actor_expect(waiter, "0");
    actor_do(waiter, "0", "unlock testing/m");
    actor_end(waiter);
    copy_directory(server, directory);
    assert_int_equal(access(directory, F_OK), 0);
    assert_result(dmutex_test_server_stop(server), 0);
    assert_int_equal(access(directory, F_OK), -1);
    assert_null(getenv("DMUTEX_URL"));
}

/* Two servers have nothing in common, and the last one started counts */
static void test_two_servers_share_no_lock(void **state)
{
    dmutex_test_server_t *first = start(), *second = start();
    struct actor *holder = actor_start_at(dmutex_test_server_url(first));

    (void)state;
    make_normal(&mutex, "testing/two", LONG_MS);
    actor_do(holder, "0", "init testing/two " LONG);
    actor_do(holder, "0", "lock testing/two");
    assert_result(lock_and_unlock(&mutex), 0);
    assert_result(dmutex_test_server_stop(second), 0);
    assert_string_equal(getenv("DMUTEX_URL"), dmutex_test_server_url(first));
    assert_result(dmutex_trylock(&mutex), EBUSY);
    actor_do(holder, "0", "unlock testing/two");
    assert_result(lock_and_unlock(&mutex), 0);
    actor_end(holder);
    assert_result(dmutex_test_server_stop(first), 0);
}

/* A server that was killed comes back at the same URL, and grants at once */
static void test_server_comes_back_when_it_was_killed(void **state)
{
    dmutex_test_server_t *server = start();

    (void)state;
    make_normal(&mutex, "testing/killed", LONG_MS);
    assert_result(dmutex_lock(&mutex), 0);
    assert_result(dmutex_test_server_kill(server), 0);
    assert_result(dmutex_test_server_kill(server), 0);
    assert_result(dmutex_unlock(&mutex), 0);
    assert_result(timedlock_soon(&mutex), ETIMEDOUT);
    assert_result(dmutex_test_server_pause(server), ENOLCK);
    assert_result(dmutex_test_server_restart(server), 0);
    assert_result(lock_and_unlock(&mutex), 0);
    assert_result(dmutex_test_server_restart(server), 0);
    assert_result(lock_and_unlock(&mutex), 0);
    assert_result(dmutex_test_server_stop(server), 0);
}

/* The connection's own process stops with the server */
static void test_calls_wait_when_the_server_is_paused(void **state)
{
    dmutex_test_server_t *server = start();
    struct errand waiter;

    (void)state;
    make_normal(&mutex, "testing/paused", LONG_MS);
    assert_result(lock_and_unlock(&mutex), 0);
    assert_result(dmutex_test_server_pause(server), 0);
    assert_result(dmutex_test_server_pause(server), 0);
    assert_result(timedlock_soon(&mutex), ETIMEDOUT);
    errand_begin(&waiter, dmutex_lock, &mutex);
    errand_await_sleep(&waiter);
    assert_false(errand_is_over(&waiter));
    assert_result(dmutex_test_server_resume(server), 0);
    assert_result(errand_join(&waiter), 0);
    assert_result(dmutex_test_server_pause(server), 0);
    wait_until(dmutex_test_server_stop(server) == 0);
}

/* ---- what is left ------------------------------------------------------------------------ */

enum mood { RUNNING, PAUSED, KILLED };

struct remains {
    char directory[128];
    pid_t postmaster;
    int segment; /* of shared memory */
};

static void read_remains(struct remains *ret_remains)
{
    char path[160], line[256];
    unsigned long key;
    FILE *file;

    snprintf(path, sizeof path, "%s/data/postmaster.pid", ret_remains->directory);
    file = fopen(path, "r");
    assert_non_null(file);
    assert_non_null(fgets(line, sizeof line, file));
    ret_remains->postmaster = (pid_t)atoi(line);
    for (int i = 1; i < 7; i++)
        assert_non_null(fgets(line, sizeof line, file));
    assert_int_equal(sscanf(line, "%lu %d", &key, &ret_remains->segment), 2);
    fclose(file);
}

/* Works with the server until the parent has looked at it, and is killed then. */
static void live_and_die(int out, int in, enum mood mood)
{
    dmutex_test_server_t *server;
    char go;

    make_normal(&mutex, "testing/victim", LONG_MS);
    if (dmutex_test_server_start_postgres(&server) != 0 || dmutex_lock(&mutex) != 0)
        _exit(9);
    if (write(out, dmutex_test_server_url(server), 256) < 0 || read(in, &go, 1) != 1)
        _exit(9);
    if (mood == PAUSED)
        dmutex_test_server_pause(server);
    if (mood == KILLED)
        dmutex_test_server_kill(server);
    raise(SIGKILL);
}

/* True while a process has the directory, or one in it, as its working directory. */
static bool is_worked_in(const char *directory)
{
    command_run("for p in /proc/[0-9]*; do readlink $p/cwd; done | grep -c '^%s' || :", directory);
    return atoi(ran.output) > 0;
}

static void expect_nothing_left(enum mood mood)
{
    int out[2], in[2];
    struct remains remains;
    struct shmid_ds segment;
    char url[256];
    pid_t pid;

    assert_return_code(pipe(out), errno);
    assert_return_code(pipe(in), errno);
    pid = keeper_fork();
    if (pid == 0)
        live_and_die(out[1], in[0], mood);
    close(out[1]);
    assert_true(read(out[0], url, sizeof url) > 0);
    assert_int_equal(sscanf(url, "postgresql:///postgres?host=%127[^&]&", remains.directory), 1);
    read_remains(&remains);
    assert_return_code(shmctl(remains.segment, IPC_STAT, &segment), errno);
    assert_true(is_worked_in(remains.directory));
    assert_int_equal(write(in[1], "", 1), 1);
    assert_int_equal(WTERMSIG(keeper_reap(pid)), SIGKILL);
    wait_until(access(remains.directory, F_OK) == -1);
    assert_false(proc_is_alive(remains.postmaster));
    assert_false(is_worked_in(remains.directory));
    assert_int_equal(shmctl(remains.segment, IPC_STAT, &segment), -1);
    close(out[0]);
    close(in[0]);
    close(in[1]);
}

static void test_nothing_is_left_when_the_program_is_killed(void **state)
{
    (void)state;
    expect_nothing_left(RUNNING);
    expect_nothing_left(PAUSED);
    expect_nothing_left(KILLED);
}

/* ---- users and programs ------------------------------------------------------------------ */

static int start_as_another_user(void)
{
    dmutex_test_server_t *server;

    struct passwd *user = getpwnam("nobody"); /* initdb wants one with a name */

    if (!user || setgid(user->pw_gid) < 0 || setuid(user->pw_uid) < 0)
        return 1;
    make_normal(&mutex, "testing/user", LONG_MS);
    if (dmutex_test_server_start_postgres(&server) != 0 || lock_and_unlock(&mutex) != 0)
        return 2;
    return dmutex_test_server_stop(server) == 0 ? 0 : 3;
}

/* Without root's rights the server runs as the caller */
static void test_any_user_may_start_a_server(void **state)
{
    pid_t pid;

    (void)state;
    if (geteuid() != 0)
        return; /* all other tests have done so */
    pid = keeper_fork();
    if (pid == 0)
        _exit(start_as_another_user());
    assert_int_equal(WEXITSTATUS(keeper_reap(pid)), 0);
}

/* An initdb of the folder that says something and fails; postgres only has to be there. */
static void make_programs(const char *folder, const char *text)
{
    command_run("cd %s && printf '#!/bin/sh\\necho \"%s\"\\nexit 1\\n' >initdb && cp initdb postgres && "
                "chmod 755 . initdb postgres",
                folder, text);
    assert_status(0);
}

/* PATH comes before Debian's folders, and what initdb says is passed on */
static void test_start_says_why_when_initdb_fails(void **state)
{
    char *path = strdup(getenv("PATH")), folder[32], longer[4096];
    dmutex_test_server_t *server = NULL;

    (void)state;
    keeper_make_folder(folder, sizeof folder);
    make_programs(folder, "initdb: error: no cluster today\nthe end");
    snprintf(longer, sizeof longer, "%s:%s", folder, path);
    setenv("PATH", longer, 1);
    assert_result(dmutex_test_server_start_postgres(&server), ENOLCK);
    assert_non_null(strstr(dmutex_strerror_np(), "it has ended: initdb: error: no cluster today"));
    assert_null(server);
    assert_null(getenv("DMUTEX_URL"));
    setenv("PATH", path, 1);
    keeper_remove_folder(folder);
    free(path);
}

/* Hides Debian's folders in a mount namespace. 7: namespaces are forbidden here. */
static int start_without_programs(const char *empty)
{
    dmutex_test_server_t *server;

    if (unshare(geteuid() == 0 ? CLONE_NEWNS : CLONE_NEWUSER | CLONE_NEWNS) < 0)
        return 7;
    if (mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0)
        return 7;
    if (access("/usr/lib/postgresql", F_OK) == 0 && mount(empty, "/usr/lib/postgresql", NULL, MS_BIND, NULL) < 0)
        return 7;
    setenv("PATH", empty, 1);
    if (dmutex_test_server_start_postgres(&server) != ENOLCK)
        return 1;
    if (!strstr(dmutex_strerror_np(), "install the package postgresql"))
        return 2;
    return 0;
}

static void test_start_says_what_to_install(void **state)
{
    char folder[32];
    int result;
    pid_t pid;

    (void)state;
    keeper_make_folder(folder, sizeof folder);
    pid = keeper_fork();
    if (pid == 0)
        _exit(start_without_programs(folder));
    result = WEXITSTATUS(keeper_reap(pid));
    keeper_remove_folder(folder);
    if (result == 7)
        print_message("# mount namespaces are forbidden here: not looked at\n");
    else
        assert_int_equal(result, 0);
    assert_result(dmutex_test_server_start_postgres(NULL), EINVAL);
}

/* The same programs as those of the other tests. */
static void put_programs_into_path(void)
{
    const char *folder = getenv("DMUTEX_TEST_POSTGRES");
    char path[4096];

    snprintf(path, sizeof path, "%s%s%s", folder ? folder : "", folder ? ":" : "", getenv("PATH"));
    setenv("PATH", path, 1);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_mutex_and_condition_work_at_once),
        cmocka_unit_test(test_two_servers_share_no_lock),
        cmocka_unit_test(test_server_comes_back_when_it_was_killed),
        cmocka_unit_test(test_calls_wait_when_the_server_is_paused),
        cmocka_unit_test(test_nothing_is_left_when_the_program_is_killed),
        cmocka_unit_test(test_any_user_may_start_a_server),
        cmocka_unit_test(test_start_says_why_when_initdb_fails),
        cmocka_unit_test(test_start_says_what_to_install),
    };

    test_begin(argc, argv);
    if (!pgserver_is_possible()) {
        puts("1..0 # SKIP no PostgreSQL is installed (package postgresql)");
        return 0;
    }
    put_programs_into_path();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
