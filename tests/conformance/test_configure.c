/* SPDX-License-Identifier: BSD-2-Clause */
/* The choice of the server and this process's own label: URLs, the environment, and the messages. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../lib/testlib.h"

#define COUNT(array) (sizeof(array) / sizeof(array)[0])

static dmutex_t mutex;

/* An actor with no other DMUTEX_URL than this URL. */
static struct actor *start_under(const char *url)
{
    char variable[300];

    snprintf(variable, sizeof variable, "DMUTEX_URL=%s", url);
    return actor_start_with(the_server, variable, NULL);
}

/* ---- URLs -------------------------------------------------------------------------------- */

static const char *const bad_urls[] = {
    "redis:",
    "http://127.0.0.1:6379",
    "localhost",
    "redis://",
    "redis://h:0",
    "redis://h:65536",
    "redis://h/x",
    "redis://[::1",
    "redis://h%zz",
    "redis://h%00",
    "unix:relative",
    "unix://",
    "local:x",
    "redis://h?x=1",
    "redis://h?command_timeout=0",
    "redis://h?prefix={",
    "redis://h?password_file=/nonexistent/file",
    "rediss://h?tls=no",
    "redis+sentinel://h",
    "redis+cluster://h/0",
    "redis://a,b",
};

/* A bad URL is EINVAL and a sentence, and nothing is changed: the server stays the same. */
static void test_configure_refuses_when_the_url_is_bad(void **state)
{
    struct actor *a = actor_start(the_server);

    (void)state;
    for (size_t i = 0; i < COUNT(bad_urls); i++) {
        actor_do(a, "EINVAL", "configure %s", bad_urls[i]);
        actor_assert_words(a, " ");
    }
    make_normal(&mutex, "configure/bad", 0);
    assert_result(dmutex_lock(&mutex), 0);
    actor_do(a, "EBUSY", "trylock configure/bad");
    assert_result(dmutex_unlock(&mutex), 0);
    actor_end(a);
}

/* A bad DMUTEX_URL makes every call that needs a server ENOLCK, with the reason, at once. */
static void test_calls_say_enolck_when_the_environments_url_is_bad(void **state)
{
    static const char *const calls[] = { "lock X",    "trylock X",         "timedlock X 60000", "islocked X",
                                         "waiters X", "clocklock X 60000", "forceunlock X",     "unlock X" };

    (void)state;
    side_set_bound(the_server->side, "bound", 20000);
    for (size_t i = 0; i < COUNT(bad_urls); i++) {
        struct actor *a = start_under(bad_urls[i]);

        for (size_t c = 0; c < COUNT(calls); c++) {
            actor_send(a, "%s", calls[c]);
            if (strcmp(actor_answer(a), "ENOLCK") != 0 && strcmp(calls[c], "unlock X") != 0)
                fail_msg("%s under %s is not ENOLCK", calls[c], bad_urls[i]);
            if (c == 0)
                actor_assert_words(a, "DMUTEX_URL");
        }
        actor_do(a, "0 0", "holdcount X");
        actor_do(a, "0", "destroy X");
        actor_end(a);
    }
    assert_false(side_is_control_over(the_server->side, "bound"));
}

/* The program's URL comes before the environment's URL, however bad the latter may be. */
static void test_configure_comes_before_the_environment(void **state)
{
    static const char *const others[] = { "nonsense", "unix:///nonexistent/socket", "" };

    (void)state;
    make_normal(&mutex, "configure/before", 0);
    assert_result(dmutex_lock(&mutex), 0);
    for (size_t i = 0; i < COUNT(others); i++) {
        struct actor *a = start_under(others[i]);

        actor_do(a, "0", "configure unix:///nonexistent/other");
        actor_do(a, "0", "configure %s", the_server->url); /* the last URL counts */
        actor_do(a, "EINVAL", "configure nonsense");
        actor_do(a, "EBUSY", "trylock configure/before");
        actor_end(a);
    }
    assert_result(dmutex_unlock(&mutex), 0);
}

/* After the first use a URL is too late: EBUSY, and the server stays. */
static void test_configure_is_busy_when_the_library_is_in_use(void **state)
{
    struct actor *a = actor_start(the_server);

    (void)state;
    make_normal(&mutex, "configure/late", 0);
    actor_do(a, "0", "lock configure/late");
    actor_do(a, "EBUSY", "configure unix:///nonexistent/socket");
    actor_assert_words(a, "before the first use");
    actor_do(a, "EINVAL", "configure nonsense");
    assert_result(dmutex_trylock(&mutex), EBUSY);
    actor_do(a, "0", "unlock configure/late");
    actor_do(a, "0", "lock configure/late");
    assert_result(dmutex_trylock(&mutex), EBUSY);
    actor_do(a, "0", "unlock configure/late");
    actor_end(a);
}

/* A prefix is a separate world: the same name is another mutex, and all keys begin with the prefix. */
static void test_names_are_apart_when_the_prefix_differs(void **state)
{
    struct actor *a, *b;
    char url[200];

    (void)state;
    snprintf(url, sizeof url, "%s&prefix=other", the_server->url);
    a = start_under(url);
    b = start_under(url);
    make_normal(&mutex, "configure/prefix", 0);
    assert_result(dmutex_lock(&mutex), 0);
    actor_do(a, "0", "lock configure/prefix");
    actor_do(b, "EBUSY", "trylock configure/prefix");
    assert_int_equal(side_int(the_server->side, "EXISTS other:{configure}:lock:prefix"), 1);
    actor_send(b, "lock configure/prefix");
    wait_until(actor_value(a, "waiters configure/prefix") == 1);
    assert_int_equal(side_count_keys(the_server->side, "other:{configure}:*:prefix"), 4);
    assert_string_equal(side_text(the_server->side, "PUBSUB NUMPAT"), "0");
    actor_do(a, "0", "unlock configure/prefix");
    actor_expect(b, "0");
    actor_do(b, "0", "unlock configure/prefix");
    assert_result(dmutex_unlock(&mutex), 0);
    actor_end(a);
    actor_end(b);
}

/* An actor with a URL made of the server's port. */
__attribute__((__format__(__printf__, 1, 2))) static struct actor *start_at(const char *format, ...)
{
    char url[256];
    va_list arguments;

    va_start(arguments, format);
    vsnprintf(url, sizeof url, format, arguments);
    va_end(arguments);
    return actor_start_at(url);
}

/* A password by URL or file, with or without a user: commands and the inbox log in with the password. */
static void test_lock_owns_when_the_password_is_right(void **state)
{
    struct server *other = server_start_with(true, NULL);
    struct actor *actors[3];
    char path[64];
    FILE *file;

    (void)state;
    side_text(other->side, "ACL SETUSER me on >s3cret ~* &* +@all");
    side_text(other->side, "CONFIG SET requirepass s3cret");
    snprintf(path, sizeof path, "%s/password", other->folder);
    assert_non_null(file = fopen(path, "w"));
    fputs("s3cret\n", file);
    fclose(file);
    actors[0] = start_at("redis://:s3cret@127.0.0.1:%d", other->port);
    actors[1] = start_at("redis://me:s3cret@127.0.0.1:%d", other->port);
    actors[2] = start_at("redis://127.0.0.1:%d?password_file=%s", other->port, path);
    for (int i = 0; i < 3; i++) {
        actor_do(actors[i], "0", "lock configure/login");
        actor_do(actors[(i + 1) % 3], "ETIMEDOUT", "timedlock configure/login 20"); /* an inbox, too */
        actor_do(actors[i], "0", "unlock configure/login");
    }
    for (int i = 0; i < 3; i++)
        actor_end(actors[i]);
    server_end(other);
}

/* ---- names of this process --------------------------------------------------------------- */

/* getinfo reports all facts about an owner elsewhere: host, program, process, depth, token, waiters. */
static void test_getinfo_reports_the_owner_when_held(void **state)
{
    static const char *const hosts[][2] = {
        { "rack7", "rack7" },
        { "a host: {with} spaces", "a_host:_{with}_spaces" }, /* a label is one word */
        { "0123456789012345678901234567890123456789012345678901234567890123456789",
          "0123456789012345678901234567890123456789012345678901234567890123" },
    };

    (void)state;
    for (size_t i = 0; i < COUNT(hosts); i++) {
        dmutex_info_t info = { .struct_size = sizeof info };
        char variable[128];
        struct actor *a;

        snprintf(variable, sizeof variable, "DMUTEX_HOST=%s", hosts[i][0]);
        a = actor_start_with(the_server, variable, NULL);
        make_normal(&mutex, "configure/info", 0);
        actor_do(a, "0", "init configure/info recursive lease=900");
        for (int depth = 0; depth < 3; depth++)
            actor_do(a, "0", "lock configure/info");
        wait_until(dmutex_getinfo_np(&mutex, &info) == 0 && info.hold_count == 3);
        assert_int_equal(info.locked, 1);
        assert_int_equal(info.struct_size, sizeof info);
        assert_true((long long)info.token == actor_value(a, "token configure/info"));
        assert_within(info.remaining_ms, 1, 900);
        assert_int_equal(info.pid, actor_pid(a));
        assert_true(info.thread > 0);
        assert_int_equal(info.waiters, 0);
        assert_int_equal(info.health, 0);
        assert_int_equal(strspn(info.owner, "0123456789abcdef"), 32);
        assert_int_equal(strlen(info.owner), 32);
        assert_string_equal(info.host, hosts[i][1]);
        assert_string_equal(info.program, "test_configure");
        actor_do(a, "0", "unlock configure/info");
        actor_end(a);
    }
}

/* Of a free mutex: no owner, the last token, and texts that are empty. */
static void test_getinfo_reports_nobody_when_free(void **state)
{
    dmutex_info_t info, fresh = { .struct_size = sizeof fresh };
    uint64_t token;

    (void)state;
    make_normal(&mutex, "configure/free", 0);
    for (int round = 0; round < 2; round++) {
        memset(&info, 0x5a, sizeof info);
        info.struct_size = sizeof info;
        assert_result(dmutex_getinfo_np(&mutex, &info), 0);
        assert_int_equal(info.locked, 0);
        assert_int_equal(info.hold_count, 0);
        assert_int_equal(info.waiters, 0);
        assert_int_equal(info.health, 0);
        assert_string_equal(info.owner, "");
        assert_string_equal(info.host, "");
        assert_string_equal(info.program, "");
        if (round == 0) {
            assert_true(info.token == 0);
            assert_result(dmutex_lock(&mutex), 0);
            token = token_of(&mutex);
            assert_result(dmutex_unlock(&mutex), 0);
            wait_until(!is_locked(&mutex));
        } else {
            assert_true(info.token == token);
        }
    }
    assert_result(dmutex_lock(&mutex), 0);
    assert_result(dmutex_getinfo_np(&mutex, &fresh), 0);
    assert_int_equal(fresh.pid, getpid());
    assert_true(strlen(fresh.host) > 0);
    assert_result(dmutex_unlock(&mutex), 0);
}

/* ---- messages ---------------------------------------------------------------------------- */

static void *say_in_thread(void *user)
{
    char *said = user;

    snprintf(said, 256, "%s", dmutex_strerror_np());
    return NULL;
}

/* The sentence is the thread's own, empty before any failure, and stays until the next failure. */
static void test_strerror_is_the_threads_own(void **state)
{
    struct actor *a = actor_start(the_server);
    char said[256] = "?", kept[256];
    pthread_t thread;

    (void)state;
    actor_do(a, "0", "lock configure/says");
    actor_do(a, "", "strerror");
    actor_do(a, "EPERM", "unlock configure/other");
    actor_assert_words(a, "does not own");
    actor_do(a, "", "in-thread strerror");
    actor_do(a, "0", "unlock configure/says");
    actor_assert_words(a, "does not own"); /* a success says nothing */
    actor_end(a);

    make_normal(&mutex, "configure/says", 0);
    assert_result(dmutex_unlock(&mutex), EPERM);
    snprintf(kept, sizeof kept, "%s", dmutex_strerror_np());
    assert_int_equal(pthread_create(&thread, NULL, say_in_thread, said), 0);
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_string_equal(said, "");
    assert_string_equal(dmutex_strerror_np(), kept);
}

/* Failure 12: a thread that never owned, and a thread with a lost hold both get EPERM, with different sentences. */
static void test_unlock_says_why_when_it_refuses(void **state)
{
    char never[256];

    (void)state;
    make_normal(&mutex, "configure/why", 0);
    assert_result(dmutex_unlock(&mutex), EPERM);
    snprintf(never, sizeof never, "%s", dmutex_strerror_np());
    assert_result(dmutex_lock(&mutex), 0);
    assert_result(dmutex_forceunlock_np(&mutex), 0);
    assert_result(dmutex_unlock(&mutex), EPERM);
    assert_non_null(strstr(dmutex_strerror_np(), "lost"));
    assert_string_not_equal(dmutex_strerror_np(), never);
    assert_result(dmutex_unlock(&mutex), EPERM);
    assert_string_equal(dmutex_strerror_np(), never);
}

static int lines_logged;

static void note_line(int level, const char *message, void *user)
{
    bool is_fine = level >= DMUTEX_LOG_ERROR && level <= DMUTEX_LOG_DEBUG && user == &mutex && message[0] &&
                   !strpbrk(message, "\r\n");

    __atomic_add_fetch(&lines_logged, is_fine ? 1 : 1000000, __ATOMIC_RELEASE);
}

/* The log callback gets each line, until it is removed. */
static void test_log_has_a_line_when_a_hold_is_lost(void **state)
{
    int seen;

    (void)state;
    make_normal(&mutex, "configure/log", 0);
    assert_result(dmutex_setlog_np(note_line, &mutex), 0);
    assert_result(dmutex_lock(&mutex), 0);
    assert_result(dmutex_forceunlock_np(&mutex), 0);
    assert_result(dmutex_unlock(&mutex), EPERM);
    wait_until(__atomic_load_n(&lines_logged, __ATOMIC_ACQUIRE) > 0);
    assert_result(dmutex_setlog_np(NULL, NULL), 0);
    seen = __atomic_load_n(&lines_logged, __ATOMIC_ACQUIRE);
    assert_within(seen, 1, 999999);
    assert_result(dmutex_lock(&mutex), 0);
    assert_result(dmutex_forceunlock_np(&mutex), 0);
    assert_result(dmutex_unlock(&mutex), EPERM);
    assert_within(__atomic_load_n(&lines_logged, __ATOMIC_ACQUIRE), seen, seen + 1);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_configure_refuses_when_the_url_is_bad),
        cmocka_unit_test(test_calls_say_enolck_when_the_environments_url_is_bad),
        cmocka_unit_test(test_configure_comes_before_the_environment),
        cmocka_unit_test(test_configure_is_busy_when_the_library_is_in_use),
        cmocka_unit_test(test_names_are_apart_when_the_prefix_differs),
        cmocka_unit_test(test_lock_owns_when_the_password_is_right),
        cmocka_unit_test(test_getinfo_reports_the_owner_when_held),
        cmocka_unit_test(test_getinfo_reports_nobody_when_free),
        cmocka_unit_test(test_strerror_is_the_threads_own),
        cmocka_unit_test(test_unlock_says_why_when_it_refuses),
        cmocka_unit_test(test_log_has_a_line_when_a_hold_is_lost),
        cmocka_unit_test(test_nothing_is_left),
    };

    test_begin(argc, argv);
    return cmocka_run_group_tests(tests, test_group_setup, test_group_teardown);
}
