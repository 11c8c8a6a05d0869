/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * TLS on a bad network, through forks, and over many connections: nothing is left locked, nothing leaks, and a login
 * that changes needs no restart.
 */
#include <malloc.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../lib/testlib.h"
#include "../lib/tls.h"

#define LONG_LEASE 60000 /* no test is saved by a lease's end */

static struct tls_server *tls;
static struct proxy *proxy;

static int begin_group(void **state)
{
    tls_begin();
    tls = tls_server_start("server", "no", NULL);
    return test_group_setup(state);
}

static int end_group(void **state)
{
    tls_server_end(tls);
    tls_end();
    return test_group_teardown(state);
}

static int begin_test(void **state)
{
    (void)state;
    proxy = proxy_start_raw(tls->server, tls->port);
    return 0;
}

static int end_test(void **state)
{
    (void)state;
    proxy_pass(proxy);
    proxy_end(proxy);
    return 0;
}

/* An actor that is connected through the proxy. */
static struct actor *begin_actor(const char *options)
{
    char url[400];

    assert_memory_equal(proxy_tcp_url(proxy), "redis:", 6);
    snprintf(url, sizeof url, "rediss%s&cacert=%s/ca.crt%s", proxy_tcp_url(proxy) + 5, tls_folder, options);
    return actor_start_at(url);
}

static void use(struct actor *actor, const char *name)
{
    actor_do(actor, "0", "lock %s", name);
    assert_int_equal(actor_value(actor, "holdcount %s", name), 1);
    actor_do(actor, "0", "unlock %s", name);
}

/* ---- the network ------------------------------------------------------------------------- */

/* The handshake is never answered: connect_timeout ends it, and the sentence says so. */
static void test_a_handshake_ends_by_connect_timeout_when_it_is_stalled(void **state)
{
    struct actor *a;

    (void)state;
    proxy_hold(proxy, PROXY_BOTH_WAYS, PROXY_ALL);
    a = begin_actor("&connect_timeout=300&command_timeout=1500");
    actor_do(a, "ENOLCK", "trylock tls/stalled");
    actor_assert_words(a, "the TLS handshake did not end within connect_timeout: the server says nothing");
    assert_true(proxy_accepted(proxy) >= 2);
    proxy_pass(proxy);
    use(a, "tls/stalled");
    actor_end(a);
}

/* The connection is cut after this many bytes of the handshake, even in the middle of records: later ones succeed. */
static void test_a_lock_comes_when_handshakes_were_cut(void **state)
{
    static const int cuts[] = { 1, 5, 6, 60, 127, 128, 200, 500, 900 };
    struct actor *a = begin_actor("");

    (void)state;
    for (size_t i = 0; i < 2 * sizeof cuts / sizeof cuts[0]; i++) {
        int before = proxy_accepted(proxy);

        proxy_cut(proxy);
        proxy_cut_after(proxy, i % 2 ? PROXY_TO_SERVER : PROXY_TO_CLIENT, cuts[i / 2]);
        actor_send(a, "lock tls/cut");
        wait_until(proxy_accepted(proxy) >= before + 2);
        proxy_pass(proxy);
        actor_expect(a, "0");
        actor_do(a, "0", "unlock tls/cut");
    }
    actor_end(a);
}

/* An open connection is cut in the middle of a record, of a command or of a reply: the lock is held once. */
static void test_a_lock_is_held_once_when_a_record_is_cut(void **state)
{
    static const int cuts[] = { 1, 4, 5, 6, 20, 40, 100 };
    struct actor *a = begin_actor("");

    (void)state;
    actor_do(a, "0", "init tls/once lease=%d", LONG_LEASE);
    use(a, "tls/once");
    for (size_t i = 0; i < 2 * sizeof cuts / sizeof cuts[0]; i++) {
        int before = proxy_accepted(proxy);

        proxy_cut_after(proxy, i % 2 ? PROXY_TO_SERVER : PROXY_TO_CLIENT, cuts[i / 2]);
        actor_send(a, "lock tls/once");
        wait_until(proxy_accepted(proxy) > before); /* another try: the connection was cut */
        proxy_pass(proxy);
        actor_expect(a, "0");
        assert_int_equal(actor_value(a, "holdcount tls/once"), 1);
        actor_do(a, "0", "unlock tls/once");
        use(a, "tls/once"); /* and it was given back */
    }
    actor_end(a);
}

/* Records come byte by byte. */
static void test_locks_work_when_records_come_in_pieces(void **state)
{
    struct actor *a = begin_actor("&connect_timeout=20000&command_timeout=20000");

    (void)state;
    proxy_trickle(proxy, PROXY_BOTH_WAYS, 7);
    use(a, "tls/pieces");
    proxy_trickle(proxy, PROXY_BOTH_WAYS, 1);
    use(a, "tls/pieces");
    proxy_trickle(proxy, PROXY_BOTH_WAYS, 0);
    actor_end(a);
}

/* Long messages to the inbox fill OpenSSL's buffers: the message after them is heard, even by a waiter. */
static void test_a_grant_is_heard_when_it_comes_after_a_flood(void **state)
{
    struct actor *a = begin_actor(""), *b = begin_actor("");
    const char *flood = "for i = 1, 40 do for _, c in ipairs(redis.call('PUBSUB', 'CHANNELS')) do "
                        "redis.call('PUBLISH', c, string.rep('x', 15000 + i)) end end return 1";

    (void)state;
    actor_do(a, "0", "init tls/flood lease=%d", LONG_LEASE);
    actor_do(b, "0", "init tls/flood lease=%d", LONG_LEASE);
    for (int i = 0; i < 5; i++) {
        actor_do(a, "0", "lock tls/flood");
        actor_send(b, "lock tls/flood");
        wait_until(actor_value(a, "waiters tls/flood") == 1);
        assert_int_equal(side_int(tls->server->side, "EVAL %s 0", flood), 1);
        actor_do(a, "0", "unlock tls/flood");
        actor_expect(b, "0");
        actor_do(b, "0", "unlock tls/flood");
    }
    actor_end(a);
    actor_end(b);
}

/* ---- processes --------------------------------------------------------------------------- */

/* A child has its own connection; the parent's continues, with its keys and its counters. */
static void test_parent_and_child_lock_when_the_parent_is_connected(void **state)
{
    struct actor *a = begin_actor("");
    int before;

    (void)state;
    actor_do(a, "0", "lock tls/parent");
    before = proxy_accepted(proxy);
    for (int i = 1; i <= 3; i++) {
        actor_do(a, "0", "in-child lock tls/child%d", i);
        assert_int_equal(proxy_accepted(proxy), before + i);
        use(a, "tls/other");
        wait_until(proxy_open(proxy) == before);
    }
    actor_do(a, "0", "unlock tls/parent");
    assert_int_equal(proxy_accepted(proxy), before + 3); /* the parent has needed no other connection */
    actor_end(a);
}

/* fork() while a thread of the library shakes hands: the child shakes hands, too, and has no copy of the socket. */
static void test_a_child_locks_when_the_parent_is_shaking_hands(void **state)
{
    struct actor *a;

    (void)state;
    if (IS_ADDRESS_SANITIZED)
        return; /* the thread that shakes hands allocates */
    a = begin_actor("&connect_timeout=20000");
    for (int i = 0; i < 10; i++) {
        int before = proxy_accepted(proxy);

        proxy_cut(proxy);
        proxy_hold(proxy, PROXY_TO_CLIENT, PROXY_ALL);
        actor_do(a, "0", "start lock tls/shaking");
        wait_until(proxy_accepted(proxy) > before);
        actor_send(a, "in-child lock tls/child");
        wait_until(proxy_accepted(proxy) > before + 1);
        proxy_pass(proxy);
        actor_expect(a, "0");
        actor_do(a, "0", "join");
        actor_do(a, "0", "forceunlock tls/child");
    }
    actor_end(a);
}

/* ---- many connections -------------------------------------------------------------------- */

static void reconnect(dmutex_t *mutex, struct side *side)
{
    assert_result(dmutex_lock(mutex), 0);
    assert_true(side_try(side, "CLIENT KILL TYPE normal SKIPME yes"));
    assert_result(dmutex_unlock(mutex), 0);
    assert_result(dmutex_lock(mutex), 0);
    assert_result(dmutex_unlock(mutex), 0);
}

/* Pages in memory that may be more after all connections than after a tenth; a leak of 400 bytes each is found. */
#ifdef __SANITIZE_ADDRESS__
#define PAGES_MORE 1000000 /* freed memory stays in quarantine; leaks are reported at the end */
#else
#define PAGES_MORE 100
#endif

static long pages_in_memory(void)
{
    FILE *file = fopen("/proc/self/statm", "r");
    long pages = 0;

    assert_true(file && fscanf(file, "%*d %ld", &pages) == 1);
    fclose(file);
    return pages;
}

/*
 * In a separate process, whose memory is counted: 300 connections, or with DMUTEX_TEST_LONG 10 000.  The heap is
 * counted, too, which shows a small leak after few connections.
 */
static int count_reconnects(const char *url, const char *path)
{
    long times = count_from("DMUTEX_TEST_RECONNECTS", 300, 10000), pages = 0;
    struct side *side = side_try_open(path);
    int descriptors = 0;
    ssize_t used = 0;
    dmutex_t mutex;

    dmutex_configure_np(url);
    make_normal(&mutex, "tls/reconnects", LONG_LEASE);
    for (long i = 1; i <= times; i++) {
        reconnect(&mutex, side);
        if (i == times / 10) {
            descriptors = open_descriptors();
            used = (ssize_t)mallinfo2().uordblks;
            pages = pages_in_memory();
        }
    }
    descriptors = open_descriptors() - descriptors;
    used = (ssize_t)mallinfo2().uordblks - used;
    pages = pages_in_memory() - pages;
    printf("%ld connections; from the %ldth on: %zd bytes, %ld pages, %d descriptors\n", times, times / 10, used, pages,
           descriptors);
    side_close(side);
    return used > 30000 || pages > PAGES_MORE || descriptors != 0;
}

static void test_nothing_leaks_when_the_connection_is_opened_again_and_again(void **state)
{
    struct tls_server *other = tls_server_start("server", "no", NULL); /* all its connections are killed */

    (void)state;
    /* without the threads' caches of freed blocks, which malloc() counts as used, and which differ with the release */
    command_run("GLIBC_TUNABLES=glibc.malloc.tcache_count=0 exec %s --reconnect '%s' %s", program_path, other->url,
                other->server->path);
    assert_status(0);
    print_message("# %s", ran.output);
    tls_server_end(other);
}

/* ---- logins that change ------------------------------------------------------------------ */

static void write_line(const char *name, const char *line)
{
    char path[64];
    FILE *file;

    snprintf(path, sizeof path, "%s/%s", tls_folder, name);
    file = fopen(path, "w");
    assert_true(file && fputs(line, file) >= 0);
    fclose(file);
}

/* User and password come from files: after a change of both, the next connection uses the new ones. */
static void test_the_new_login_is_used_when_the_files_change(void **state)
{
    char options[200];
    struct side *side = tls->server->side;
    struct actor *a;

    (void)state;
    assert_true(side_try(side, "ACL SETUSER first on >one ~* &* +@all"));
    assert_true(side_try(side, "ACL SETUSER default resetpass"));
    write_line("user", "first\n");
    write_line("password", "one\n");
    snprintf(options, sizeof options, "&user_file=%s/user&password_file=%s/password", tls_folder, tls_folder);
    a = begin_actor(options);
    use(a, "tls/login");
    assert_true(side_try(side, "ACL SETUSER second on >two ~* &* +@all"));
    use(a, "tls/login"); /* the open connection still works */
    write_line("user", "second\n");
    write_line("password", "two\n");
    assert_true(side_try(side, "ACL DELUSER first")); /* closes the user's connections */
    use(a, "tls/login");
    actor_end(a);
    a = begin_actor(options);
    use(a, "tls/login");
    assert_true(side_try(side, "ACL SETUSER second resetpass >three"));
    proxy_cut(proxy);
    actor_send(a, "lock tls/login"); /* with the old password, again and again */
    wait_until(side_text(side, "ACL LOG")[0]);
    assert_true(actor_is_silent(a));
    write_line("password", "three\n");
    actor_expect(a, "0");
    actor_do(a, "0", "unlock tls/login");
    actor_end(a);
    assert_true(side_try(side, "ACL SETUSER default nopass"));
}

/* A file that can no longer be read: the login that was read stays in use, and the log says so once. */
static void test_the_old_login_is_used_when_the_file_is_gone(void **state)
{
    char url[400], log[100];
    struct actor *a;

    (void)state;
    assert_true(side_try(the_server->side, "CONFIG SET requirepass secret"));
    write_line("gone", "secret\n");
    snprintf(url, sizeof url, "DMUTEX_URL=%s&password_file=%s/gone", the_server->url, tls_folder);
    snprintf(log, sizeof log, "DMUTEX_LOG=warn:%s/log-of-gone", tls_folder);
    a = actor_start_with(NULL, url, log, NULL);
    use(a, "tls/gone");
    command_run("rm %s/gone", tls_folder);
    for (int i = 0; i < 3; i++) {
        assert_true(side_try(the_server->side, "CLIENT KILL TYPE normal SKIPME yes"));
        use(a, "tls/gone");
    }
    actor_end(a);
    command_run("grep -c 'gone.: No such file or directory; using the login read before' %s/log-of-gone", tls_folder);
    assert_string_equal(ran.output, "1\n");
    assert_true(side_try(the_server->side, "CONFIG SET requirepass %s", ""));
}

/* A FIFO is no password file: no call, and no fork(), waits for its writer. */
static void test_the_login_is_refused_when_its_file_is_a_fifo(void **state)
{
    char path[64], url[400];
    struct actor *a;

    (void)state;
    snprintf(path, sizeof path, "%s/password-fifo", tls_folder);
    assert_return_code(mkfifo(path, 0600), errno);
    snprintf(url, sizeof url, "%s&password_file=%s", the_server->url, path);
    a = actor_start_at(url);
    actor_do(a, "ENOLCK", "trylock tls/fifo");
    actor_assert_words(a, "password-fifo\": it is not a regular file");
    actor_do(a, "here", "in-child say here");
    actor_end(a);
}

#define NETWORK_TEST(test) cmocka_unit_test_setup_teardown(test, begin_test, end_test)

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        NETWORK_TEST(test_a_handshake_ends_by_connect_timeout_when_it_is_stalled),
        NETWORK_TEST(test_a_lock_comes_when_handshakes_were_cut),
        NETWORK_TEST(test_a_lock_is_held_once_when_a_record_is_cut),
        NETWORK_TEST(test_locks_work_when_records_come_in_pieces),
        NETWORK_TEST(test_a_grant_is_heard_when_it_comes_after_a_flood),
        NETWORK_TEST(test_parent_and_child_lock_when_the_parent_is_connected),
        NETWORK_TEST(test_a_child_locks_when_the_parent_is_shaking_hands),
        cmocka_unit_test(test_nothing_leaks_when_the_connection_is_opened_again_and_again),
        NETWORK_TEST(test_the_new_login_is_used_when_the_files_change),
        cmocka_unit_test(test_the_old_login_is_used_when_the_file_is_gone),
        cmocka_unit_test(test_the_login_is_refused_when_its_file_is_a_fifo),
        cmocka_unit_test(test_nothing_is_left),
    };

    if (argc > 3 && strcmp(argv[1], "--reconnect") == 0)
        return count_reconnects(argv[2], argv[3]);
    test_begin(argc, argv);
    return cmocka_run_group_tests(tests, begin_group, end_group);
}
