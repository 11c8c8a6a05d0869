/* SPDX-License-Identifier: BSD-2-Clause */
/* The configuration file decides where nothing else does: dmutex.conf(5). */
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../lib/command.h"
#include "../lib/testlib.h"

static char home[300], path[400];
static dmutex_t mutex;

__attribute__((format(printf, 1, 2))) static void write_file(const char *format, ...)
{
    FILE *file = fopen(path, "we");
    va_list words;

    assert_non_null(file);
    va_start(words, format);
    assert_true(vfprintf(file, format, words) > 0);
    va_end(words);
    assert_int_equal(fclose(file), 0);
    assert_return_code(chmod(path, 0600), errno);
}

static int setup(void **state)
{
    int error = test_group_setup(state);

    if (error)
        return error;
    snprintf(home, sizeof home, "%s/home", the_server->folder);
    snprintf(path, sizeof path, "%s/home/dmutex/dmutex.conf", the_server->folder);
    if (mkdir(home, 0700) != 0)
        return -1;
    setenv("XDG_CONFIG_HOME", home, 1);
    return mkdir(strcat(home, "/dmutex"), 0700);
}

/* Without a URL in the environment the file's server is used, with the file's lease. */
static void test_the_file_names_the_server_when_nothing_else_does(void **state)
{
    struct actor *a;

    (void)state;
    write_file("[server]\nUrl=%s\nLocal=forbid\n[defaults]\nLease=60s\n", the_server->url);
    make_normal(&mutex, "file/server", 0);
    a = actor_start_with(the_server, "DMUTEX_URL=", NULL);
    actor_do(a, "0", "lock file/server");
    assert_result(dmutex_trylock(&mutex), EBUSY);
    actor_send(a, "remaining file/server");
    {
        const char *answer = actor_answer(a), *number = strchr(answer, ' ');

        if (!number || atoi(number) < 20000 || atoi(number) > 60000)
            fail_msg("\"%s\" is not the rest of a lease of 60 s", answer);
    }
    actor_do(a, "0", "unlock file/server");
    actor_end(a);
}

/* The environment goes before the file, and the program before both. */
static void test_the_environment_and_the_program_go_before_the_file(void **state)
{
    struct actor *a;

    (void)state;
    write_file("[server]\nUrl=%s\n", "unix:///nonexistent/socket?command_timeout=1");
    make_normal(&mutex, "file/last", 0);
    assert_result(dmutex_lock(&mutex), 0);
    a = actor_start_with(the_server, "DMUTEX_ONDOWN=fail", NULL);
    actor_do(a, "EBUSY", "trylock file/last");
    actor_end(a);
    a = actor_start_with(the_server, "DMUTEX_URL=", NULL);
    actor_do(a, "0", "configure %s", the_server->url);
    actor_do(a, "EBUSY", "trylock file/last");
    actor_end(a);
    assert_result(dmutex_unlock(&mutex), 0);
}

/* Where local: is forbidden, no private server is started: ENOLCK, and the advice. */
static void test_local_is_not_fallen_back_to_when_it_is_forbidden(void **state)
{
    struct actor *a;

    (void)state;
    write_file("[server]\nLocal=%s\n", "forbid");
    a = actor_start_with(the_server, "DMUTEX_URL=", NULL);
    actor_do(a, "ENOLCK", "lock file/local");
    actor_assert_words(a, path);
    actor_assert_words(a, "set DMUTEX_URL");
    actor_end(a);
    write_file("[server]\nLocal=%s\n", "allow");
    a = actor_start_with(the_server, "DMUTEX_URL=", "DMUTEX_LOCAL=forbid", NULL);
    actor_do(a, "ENOLCK", "lock file/local");
    actor_assert_words(a, "by DMUTEX_LOCAL");
    actor_end(a);
}

/* An actor whose standard error is the file. */
static struct actor *start_into(const char *errors, const char *url)
{
    FILE *file = fopen(errors, "we");
    int kept = dup(STDERR_FILENO);
    struct actor *actor;

    assert_non_null(file);
    assert_return_code(dup2(fileno(file), STDERR_FILENO), errno);
    actor = actor_start_with(the_server, url, "DMUTEX_LOCAL_DIR=no/path", "DMUTEX_LOG=", NULL);
    assert_return_code(dup2(kept, STDERR_FILENO), errno);
    close(kept);
    fclose(file);
    return actor;
}

/*
 * A process that nobody has configured gets a warning about a lock that no other host knows, even if its log is off.
 * The folder is refused, so no server is started.
 */
static void test_the_fallback_is_logged_when_no_server_is_configured(void **state)
{
    static const char *const urls[] = { "DMUTEX_URL=", "DMUTEX_URL=local:" };
    char errors[400], text[2000];

    (void)state;
    snprintf(errors, sizeof errors, "%s/errors", the_server->folder);
    write_file("[server]\nLocal=%s\n", "allow");
    for (size_t i = 0; i < 2; i++) {
        struct actor *a = start_into(errors, urls[i]);
        FILE *file;

        actor_do(a, "ENOLCK", "lock file/fallback");
        actor_do(a, "ENOLCK", "lock file/fallback");
        actor_do(a, "ENOLCK", "in-child lock file/fallback");
        actor_end(a);
        file = fopen(errors, "re");
        assert_non_null(file);
        text[fread(text, 1, sizeof text - 1, file)] = '\0';
        fclose(file);
        if (i == 0) {
            const char *told = strstr(text, "no server is configured: falling back to \"local:\", so that only ");

            assert_non_null(told);
            assert_null(strstr(told + 1, "no server is configured")); /* once, also with a child */
        } else {
            assert_string_equal(text, "");
        }
    }
}

/*
 * A file that cannot be used is not ignored: ENOLCK and the reason, unless the program or the environment names the
 * server.
 */
static void test_a_file_that_cannot_be_used_is_reported(void **state)
{
    struct actor *a;

    (void)state;
    write_file("[server]\nUrl=%s\n", the_server->url);
    assert_return_code(chmod(path, 0622), errno);
    a = actor_start_with(the_server, "DMUTEX_URL=", NULL);
    actor_do(a, "ENOLCK", "lock file/open");
    actor_assert_words(a, "can be written by others");
    actor_end(a);
    a = actor_start_with(the_server, NULL);
    actor_do(a, "0", "lock file/open");
    actor_do(a, "0", "unlock file/open");
    actor_end(a);
    write_file("[server]\nUrl=%s\n", "nonsense");
    a = actor_start_with(the_server, "DMUTEX_URL=", NULL);
    actor_do(a, "ENOLCK", "lock file/bad");
    actor_assert_words(a, path);
    actor_end(a);
}

/* What the environment does not set, the file sets: the host's name for others, the metrics file, the log. */
static void test_the_file_sets_what_the_environment_leaves_out(void **state)
{
    char log[400], metrics[400];
    dmutex_info_t info = { .struct_size = sizeof info };
    struct actor *a;

    (void)state;
    snprintf(log, sizeof log, "%s/log-of-the-file", home);
    snprintf(metrics, sizeof metrics, "%s/metrics-of-the-file", home);
    write_file("[defaults]\nHost=web-7\nMetrics=%s\nLog=info:%s\nOnDown=fail\n", metrics, log);
    make_normal(&mutex, "file/defaults", 0);
    a = actor_start_with(the_server, "DMUTEX_HOST=", NULL);
    actor_do(a, "0", "lock file/defaults");
    assert_result(dmutex_getinfo_np(&mutex, &info), 0);
    assert_string_equal(info.host, "web-7");
    actor_end(a);
    command_run("grep dmutex_acquisitions_total %s", metrics);
    assert_status(0);
    a = actor_start_with(the_server, "DMUTEX_URL=unix:///nowhere?command_timeout=200", "DMUTEX_HOST=web-8", NULL);
    actor_do(a, "ENOLCK", "lock file/defaults");
    actor_end(a);
    command_run("grep 'libdmutex\\[' %s", log);
    assert_status(0);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_file_names_the_server_when_nothing_else_does),
        cmocka_unit_test(test_the_environment_and_the_program_go_before_the_file),
        cmocka_unit_test(test_local_is_not_fallen_back_to_when_it_is_forbidden),
        cmocka_unit_test(test_the_fallback_is_logged_when_no_server_is_configured),
        cmocka_unit_test(test_a_file_that_cannot_be_used_is_reported),
        cmocka_unit_test(test_the_file_sets_what_the_environment_leaves_out),
        cmocka_unit_test(test_nothing_is_left),
    };

    test_begin(argc, argv);
    return cmocka_run_group_tests(tests, setup, test_group_teardown);
}
