/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A server with a host name: addresses that drop packets, refuse or come late, and name servers that are away.
 *
 * The name's addresses are the words in a file, which this program's look-up reads instead of libc's: "hang" blocks the
 * look-up as long as the file says so, "away" is a name server that does not answer.
 */
#include <arpa/inet.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <netdb.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../lib/testlib.h"

#define NAME "name.test.example"
#define LEASE 6000

static struct server *server;
static char url[200];

/* ---- the look-up ------------------------------------------------------------------------- */

static void read_words(const char *path, char *ret_words, size_t room)
{
    FILE *in = fopen(path, "r");

    if (!in || !fgets(ret_words, (int)room, in))
        ret_words[0] = '\0';
    if (in)
        fclose(in);
}

/* One byte more in FILE.asked. */
static void note_asked(const char *path)
{
    char name[200];
    int fd;

    snprintf(name, sizeof name, "%s.asked", path);
    fd = open(name, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600);
    if (write(fd, "?", 1) != 1)
        abort();
    close(fd);
}

/* Replaces libc's function, for the library, too. */
int getaddrinfo(const char *name, const char *service, const struct addrinfo *hints, struct addrinfo **ret_found)
{
    int (*look_up)(const char *, const char *, const struct addrinfo *, struct addrinfo **);
    const char *path = getenv("TEST_NAMES");
    char words[400], *rest = words, *word;
    int error = EAI_NONAME;

    *(void **)&look_up = dlsym(RTLD_NEXT, "getaddrinfo");
    if (!path || !name || strcmp(name, NAME) != 0 || hints->ai_flags & AI_NUMERICHOST)
        return look_up(name, service, hints, ret_found);
    note_asked(path);
    for (read_words(path, words, sizeof words); strcmp(words, "hang") == 0; read_words(path, words, sizeof words))
        wait_nap();
    if (strcmp(words, "away") == 0)
        return EAI_AGAIN;
    while ((word = strsep(&rest, " "))) {
        error = look_up(word, service, hints, ret_found);
        if (error)
            return error;
        ret_found = &(*ret_found)->ai_next;
    }
    return error;
}

static void say(const char *words)
{
    const char *path = getenv("TEST_NAMES");
    char other[200];
    FILE *out;

    snprintf(other, sizeof other, "%s.new", path);
    out = fopen(other, "w");
    assert_non_null(out);
    fputs(words, out);
    fclose(out);
    assert_return_code(rename(other, path), errno);
}

/* True if the name was asked for so often, by any process. */
static bool is_asked(int times)
{
    struct stat asked;
    char name[200];

    snprintf(name, sizeof name, "%s.asked", getenv("TEST_NAMES"));
    return stat(name, &asked) == 0 && asked.st_size >= times;
}

static int begin_test(void **state)
{
    char name[200];

    (void)state;
    server = server_start_with(true, NULL);
    setenv("TEST_NAMES", server_file(server, "names"), 1);
    snprintf(name, sizeof name, "%s.asked", getenv("TEST_NAMES"));
    unlink(name);
    snprintf(url, sizeof url, "redis://" NAME ":%d?grace=off&connect_timeout=1000&command_timeout=1000", server->port);
    return 0;
}

static int end_test(void **state)
{
    (void)state;
    server_end(server);
    unsetenv("TEST_NAMES");
    return 0;
}

/* ---- addresses --------------------------------------------------------------------------- */

static int listen_at(int last, int backlog)
{
    struct sockaddr_in address = { .sin_family = AF_INET, .sin_port = htons((uint16_t)server->port) };
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), on = 1;

    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK - 1 + (in_addr_t)last);
    assert_return_code(setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on), errno);
    assert_return_code(bind(fd, (struct sockaddr *)&address, sizeof address), errno);
    assert_return_code(listen(fd, backlog), errno);
    return fd;
}

/* 127.0.0.LAST answers nobody: with its queue full, the kernel drops the packets of all further callers. */
struct hole {
    int listener, caller;
};

static struct hole dig(int last)
{
    struct hole hole = { listen_at(last, 0), socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0) };
    struct sockaddr_in address;
    socklen_t length = sizeof address;

    assert_return_code(getsockname(hole.listener, (struct sockaddr *)&address, &length), errno);
    assert_return_code(connect(hole.caller, (struct sockaddr *)&address, length), errno);
    return hole;
}

static void fill(const struct hole *hole)
{
    close(hole->caller);
    close(hole->listener);
}

/* R5: the first address does not get all the time that a connection may take. */
static void test_a_lock_is_acquired_when_the_first_address_drops_packets(void **state)
{
    struct hole hole = dig(2);
    struct actor *a;

    (void)state;
    say("127.0.0.2 127.0.0.1");
    a = actor_start_at(url);
    actor_do(a, "0", "trylock names/x");
    actor_do(a, "0", "unlock names/x");
    actor_end(a);
    fill(&hole);
}

/* The more addresses there are, the closer their tries follow. */
static void test_a_lock_is_acquired_when_all_addresses_but_the_last_drop_packets(void **state)
{
    struct hole holes[8];
    struct actor *a;

    (void)state;
    for (int i = 0; i < 8; i++)
        holes[i] = dig(i + 2);
    say("127.0.0.2 127.0.0.3 127.0.0.4 127.0.0.5 127.0.0.6 127.0.0.7 127.0.0.8 127.0.0.9 127.0.0.1");
    a = actor_start_at(url);
    actor_do(a, "0", "trylock names/x");
    actor_do(a, "0", "unlock names/x");
    actor_end(a);
    for (int i = 0; i < 8; i++)
        fill(&holes[i]);
}

/* Nobody listened at the first address; somebody who does so later is not asked. */
static void test_the_last_working_address_is_tried_first_when_the_connection_breaks(void **state)
{
    struct actor *a;
    int stranger;

    (void)state;
    say("127.0.0.2 127.0.0.1");
    a = actor_start_at(url);
    actor_do(a, "0", "trylock names/x");
    stranger = listen_at(2, 5);
    assert_true(side_int(server->side, "CLIENT KILL TYPE normal") > 0);
    actor_do(a, "0", "renew names/x");
    actor_do(a, "0", "unlock names/x");
    assert_return_code(fcntl(stranger, F_SETFL, O_NONBLOCK), errno);
    assert_true(accept(stranger, NULL, NULL) < 0 && errno == EAGAIN);
    close(stranger);
    actor_end(a);
}

/* The kernel connects in place of a frozen server.  When that has not answered in time, the next address is tried. */
static void test_a_lock_is_acquired_when_the_first_address_does_not_speak(void **state)
{
    int frozen = listen_at(2, 5);
    struct actor *a;

    (void)state;
    say("127.0.0.2 127.0.0.1");
    a = actor_start_at(url);
    actor_do(a, "0", "lock names/x");
    assert_true(side_int(server->side, "CLIENT KILL TYPE normal") > 0);
    actor_do(a, "0", "renew names/x"); /* the frozen one is no longer first */
    actor_do(a, "0", "unlock names/x");
    actor_end(a);
    close(frozen);
}

/* ---- name servers ------------------------------------------------------------------------ */

static void assert_hold_survives(const char *words)
{
    struct actor *a;

    say("127.0.0.1");
    a = actor_start_at(url);
    actor_do(a, "0", "init names/held lease=%d", LEASE);
    actor_do(a, "0", "lock names/held");
    say(words);
    assert_true(side_int(server->side, "CLIENT KILL TYPE normal") > 0);
    actor_do(a, "0", "renew names/held");
    assert_int_equal(actor_losses(a), 0);
    actor_do(a, "0", "unlock names/held");
    say("127.0.0.1"); /* a look-up that hangs ends the process late */
    actor_end(a);
}

/* R5: the server is where it was seconds ago. */
static void test_a_hold_is_kept_when_the_name_server_is_away(void **state)
{
    (void)state;
    assert_hold_survives("away");
}

static void test_a_hold_is_kept_when_the_name_server_does_not_answer(void **state)
{
    (void)state;
    assert_hold_survives("hang");
}

/* If the name server says that a name is gone, the server no longer has it. */
static void test_a_lock_fails_when_the_name_is_gone(void **state)
{
    struct actor *a;

    (void)state;
    say("127.0.0.1");
    a = actor_start_at(url);
    actor_do(a, "0", "lock names/x");
    actor_do(a, "0", "unlock names/x");
    say("");
    assert_true(side_int(server->side, "CLIENT KILL TYPE normal") > 0);
    actor_do(a, "ENOLCK", "trylock names/x");
    actor_assert_words(a, "cannot be looked up");
    actor_end(a);
}

/* The call ends while the look-up is in progress; its result is used when it arrives. */
static void test_calls_end_at_their_deadline_when_the_look_up_hangs(void **state)
{
    struct actor *a;

    (void)state;
    say("hang");
    a = actor_start_at(url);
    actor_do(a, "ETIMEDOUT", "timedlock names/x 100");
    assert_true(is_asked(1));
    actor_do(a, "ENOLCK", "trylock names/x");
    actor_assert_words(a, "host name " NAME " cannot be looked up: no name server answers");
    say("127.0.0.1");
    actor_do(a, "0", "lock names/x");
    actor_do(a, "0", "unlock names/x");
    actor_end(a);
}

/* The child has neither the thread that does the look-up nor its result. */
/*
 * Both hang in the look-up before either may go on.  libc's own locks of a look-up do not survive fork() (glibc 2.36:
 * that of __check_pf()), so a fork in the moment in which the parent has one of them would be a test of libc.
 */
static void test_the_child_looks_up_itself_when_it_is_forked_during_a_look_up(void **state)
{
    struct actor *a;

    (void)state;
    say("hang");
    a = actor_start_at(url);
    actor_do(a, "0", "start lock names/x");
    wait_until(is_asked(1));
    actor_send(a, "in-child lock names/y");
    wait_until(is_asked(2));
    say("127.0.0.1");
    actor_expect(a, "0");
    actor_do(a, "0", "join");
    actor_end(a);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_a_lock_is_acquired_when_the_first_address_drops_packets, begin_test,
                                        end_test),
        cmocka_unit_test_setup_teardown(test_a_lock_is_acquired_when_all_addresses_but_the_last_drop_packets,
                                        begin_test, end_test),
        cmocka_unit_test_setup_teardown(test_the_last_working_address_is_tried_first_when_the_connection_breaks,
                                        begin_test, end_test),
        cmocka_unit_test_setup_teardown(test_a_lock_is_acquired_when_the_first_address_does_not_speak, begin_test,
                                        end_test),
        cmocka_unit_test_setup_teardown(test_a_hold_is_kept_when_the_name_server_is_away, begin_test, end_test),
        cmocka_unit_test_setup_teardown(test_a_hold_is_kept_when_the_name_server_does_not_answer, begin_test, end_test),
        cmocka_unit_test_setup_teardown(test_a_lock_fails_when_the_name_is_gone, begin_test, end_test),
        cmocka_unit_test_setup_teardown(test_calls_end_at_their_deadline_when_the_look_up_hangs, begin_test, end_test),
        cmocka_unit_test_setup_teardown(test_the_child_looks_up_itself_when_it_is_forked_during_a_look_up, begin_test,
                                        end_test),
        cmocka_unit_test(test_nothing_is_left),
    };

    test_begin(argc, argv);
    return cmocka_run_group_tests(tests, test_group_setup, test_group_teardown);
}
