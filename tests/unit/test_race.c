/* SPDX-License-Identifier: BSD-2-Clause */
/* Parallel connects, and the order of a name's addresses.  This program's look-up replaces libc's. */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <net/if.h>
#include <netdb.h>
#include <poll.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/clock.h"
#include "link/race.h"
#include "link/session.h"

/* ---- addresses --------------------------------------------------------------------------- */

static const char *const *listed; /* the addresses of each name, NULL at the end; NULL: libc's own answer */

static int usual_error; /* of a look-up with AI_ADDRCONFIG; 0: none */

int __real_getaddrinfo(const char *name, const char *service, const struct addrinfo *hints, struct addrinfo **found);
int __wrap_getaddrinfo(const char *name, const char *service, const struct addrinfo *hints, struct addrinfo **found);

int __wrap_getaddrinfo(const char *name, const char *service, const struct addrinfo *hints, struct addrinfo **found)
{
    if (!listed)
        return __real_getaddrinfo(name, service, hints, found);
    if (usual_error && hints->ai_flags & AI_ADDRCONFIG)
        return usual_error;
    for (int i = 0; listed[i]; i++) {
        assert_int_equal(__real_getaddrinfo(listed[i], service, NULL, found), 0);
        while (*found && (*found)->ai_socktype == SOCK_STREAM)
            found = &(*found)->ai_next;
        if (*found)
            freeaddrinfo(*found);
        *found = NULL;
    }
    return 0;
}

static struct dm_addresses *addresses_of(const char *const *list, uint16_t port)
{
    struct dm_addresses *addresses;
    char text[8], reason[DM_REASON_ROOM];
    struct dm_address address = { .host = "name.test.example", .port = text };

    snprintf(text, sizeof text, "%u", port);
    listed = list;
    assert_int_equal(dm_addresses_find(&address, true, &addresses, reason), DM_FOUND);
    listed = NULL;
    assert_true(dm_addresses_are_of(addresses, &address));
    return addresses;
}

/* The address that is taken next. */
static const char *take(struct dm_addresses *addresses)
{
    static char text[INET6_ADDRSTRLEN];
    socklen_t length;
    unsigned index = dm_addresses_take(addresses);
    const struct sockaddr *address = dm_addresses_at(addresses, index, &length);

    assert_int_equal(getnameinfo(address, length, text, sizeof text, NULL, 0, NI_NUMERICHOST), 0);
    return text;
}

static void test_families_take_turns_when_a_name_has_both(void **state)
{
    static const char *const list[] = { "fd00::1", "fd00::2", "fd00::3", "127.0.0.1", NULL };
    struct dm_addresses *addresses = addresses_of(list, 1);

    (void)state;
    assert_string_equal(take(addresses), "fd00::1");
    assert_string_equal(take(addresses), "127.0.0.1");
    assert_string_equal(take(addresses), "fd00::2");
    assert_string_equal(take(addresses), "fd00::3");
    assert_int_equal(dm_addresses_left(addresses), 0);
    dm_addresses_begin(addresses);
    assert_int_equal(dm_addresses_left(addresses), 4);
    dm_addresses_free(addresses);
}

static void test_the_working_address_is_first_when_a_look_up_finds_it_again(void **state)
{
    static const char *const before[] = { "127.0.0.5", "127.0.0.6", NULL };
    static const char *const now[] = { "127.0.0.7", "127.0.0.8", "127.0.0.6", NULL };
    struct dm_addresses *old = addresses_of(before, 1), *addresses = addresses_of(now, 1), *other;

    (void)state;
    dm_addresses_note_good(old, 1);
    assert_true(dm_addresses_have_good(old));
    assert_int_equal(dm_addresses_left(old), 0);
    dm_addresses_prefer(addresses, old);
    assert_string_equal(take(addresses), "127.0.0.6");
    assert_string_equal(take(addresses), "127.0.0.7");
    other = addresses_of(now, 2);
    dm_addresses_prefer(other, old); /* another port */
    assert_string_equal(take(other), "127.0.0.7");
    dm_addresses_free(old);
    dm_addresses_free(addresses);
    dm_addresses_free(other);
}

/* struct in6_ifreq of the kernel, whose header clashes with libc's. */
struct address_request {
    struct in6_addr address;
    uint32_t prefix;
    int index;
};

/* A network with only IPv6, except for the loopback. */
static bool enter_ipv6_only(void)
{
    struct ifreq request = { .ifr_name = "lo", .ifr_flags = IFF_UP };
    struct address_request address = { .prefix = 128 };
    int fd, fd6;

    if (unshare(CLONE_NEWNET) != 0 && unshare(CLONE_NEWUSER | CLONE_NEWNET) != 0)
        return false;
    fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    fd6 = socket(AF_INET6, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    address.index = (int)if_nametoindex("lo");
    return ioctl(fd, SIOCSIFFLAGS, &request) == 0 && inet_pton(AF_INET6, "fd00::1", &address.address) == 1 &&
           ioctl(fd6, SIOCSIFADDR, &address) == 0;
}

/* True if 127.0.0.1 is among the addresses of the name. */
static bool is_found(const char *name)
{
    struct dm_address address = { .host = name, .port = "1" };
    struct dm_addresses *addresses;
    char reason[DM_REASON_ROOM];
    bool result = false;

    if (dm_addresses_find(&address, true, &addresses, reason) != DM_FOUND)
        return false;
    while (dm_addresses_left(addresses))
        result |= strcmp(take(addresses), "127.0.0.1") == 0;
    dm_addresses_free(addresses);
    return result;
}

/* R5: AI_ADDRCONFIG takes no account of the loopback. */
static void test_localhost_has_its_address_when_the_network_is_ipv6_alone(void **state)
{
    pid_t pid = fork();
    int status;

    (void)state;
    if (pid == 0)
        _exit(!enter_ipv6_only() ? 2 : is_found("localhost") && is_found("LocalHost") ? 0 : 1);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
}

/* R5: a name of /etc/hosts, say, of which only the name servers are asked for the family that the machine has. */
static void test_a_name_is_found_when_it_has_only_addresses_of_the_other_family(void **state)
{
    static const char *const list[] = { "127.0.0.1", NULL };
    static const int errors[] = { EAI_NONAME, EAI_NODATA, EAI_AGAIN };

    (void)state;
    for (size_t i = 0; i < sizeof errors / sizeof errors[0]; i++) {
        struct dm_addresses *addresses;

        usual_error = errors[i];
        addresses = addresses_of(list, 1);
        assert_string_equal(take(addresses), "127.0.0.1");
        dm_addresses_free(addresses);
    }
    usual_error = 0;
}

/* ---- races ------------------------------------------------------------------------------- */

static int listen_at(const char *host, uint16_t *port, int backlog)
{
    struct sockaddr_in address = { .sin_family = AF_INET, .sin_port = htons(*port) };
    socklen_t length = sizeof address;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    assert_int_equal(inet_pton(AF_INET, host, &address.sin_addr), 1);
    assert_int_equal(bind(fd, (struct sockaddr *)&address, length), 0);
    assert_int_equal(listen(fd, backlog), 0);
    assert_int_equal(getsockname(fd, (struct sockaddr *)&address, &length), 0);
    *port = ntohs(address.sin_port);
    return fd;
}

/* With the queue full, the kernel drops the packets of all further callers. */
static int fill_queue(const char *host, uint16_t port)
{
    struct sockaddr_in address = { .sin_family = AF_INET, .sin_port = htons(port) };
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    assert_int_equal(inet_pton(AF_INET, host, &address.sin_addr), 1);
    assert_int_equal(connect(fd, (struct sockaddr *)&address, sizeof address), 0);
    return fd;
}

/* As a session does: polls, and steps.  Returns what the last step returned. */
static int run(struct dm_race *race, struct dm_addresses *addresses, int *ret_fd)
{
    int result;

    while ((result = dm_race_step(race, addresses, 1000, ret_fd)) == EINPROGRESS) {
        struct pollfd poller = { .fd = dm_race_fd(race), .events = dm_race_events(race) };
        int64_t due_ns = dm_race_due_ns(race, addresses), left_ns = due_ns - dm_clock_boot_ns();

        poll(&poller, 1, due_ns == DM_NEVER ? -1 : left_ns > 0 ? (int)(left_ns / DM_NS_PER_MS) + 1 : 0);
    }
    return result;
}

static int count_descriptors(void)
{
    int count = 0;

    for (int fd = 0; fd < 1024; fd++)
        count += fcntl(fd, F_GETFD) >= 0;
    return count;
}

static const char *const two[] = { "127.0.0.2", "127.0.0.1", NULL };

/* The one that swallows packets was not tried to its end. */
static void test_the_second_wins_when_the_first_drops_packets(void **state)
{
    uint16_t port = 0;
    int server = listen_at("127.0.0.1", &port, 5), hole = listen_at("127.0.0.2", &port, 0);
    int caller = fill_queue("127.0.0.2", port), before = count_descriptors(), fd = -1;
    struct dm_addresses *addresses = addresses_of(two, port);
    struct dm_race race;

    (void)state;
    dm_race_begin(&race, addresses, 2000);
    assert_int_equal(run(&race, addresses, &fd), 0);
    assert_int_equal(race.winner, 1);
    assert_int_equal(dm_race_fd(&race), -1);
    assert_int_equal(count_descriptors(), before + 1);
    assert_int_equal(dm_addresses_left(addresses), 1);
    close(fd);
    close(caller);
    close(hole);
    close(server);
    dm_addresses_free(addresses);
}

/* Without a pause: the time of the second's turn would not come in this test. */
static void test_the_second_is_tried_at_once_when_the_first_refuses(void **state)
{
    uint16_t port = 0;
    int server = listen_at("127.0.0.1", &port, 5), fd = -1;
    struct dm_addresses *addresses = addresses_of(two, port);
    struct dm_race race;

    (void)state;
    dm_race_begin(&race, addresses, 2000);
    race.pace_ns = 1000 * DM_NS_PER_S;
    assert_int_equal(run(&race, addresses, &fd), 0);
    assert_int_equal(race.winner, 1);
    assert_int_equal(dm_addresses_left(addresses), 0);
    close(fd);
    close(server);
    dm_addresses_free(addresses);
}

static void test_the_race_fails_when_all_addresses_refuse(void **state)
{
    uint16_t port = 0;
    int server = listen_at("127.0.0.1", &port, 5), before, fd = -1;
    struct dm_addresses *addresses = addresses_of(two, port);
    struct dm_race race;

    (void)state;
    close(server);
    before = count_descriptors();
    dm_race_begin(&race, addresses, 2000);
    assert_int_equal(run(&race, addresses, &fd), ECONNREFUSED);
    dm_race_end(&race);
    assert_int_equal(count_descriptors(), before);
    dm_addresses_free(addresses);
}

/* The child closes its copies; the parent's connects continue, and its epoll still reports them. */
static void test_the_race_goes_on_when_a_child_is_forked(void **state)
{
    uint16_t port = 0;
    int server = listen_at("127.0.0.1", &port, 5), hole = listen_at("127.0.0.2", &port, 0);
    int caller = fill_queue("127.0.0.2", port), before = count_descriptors(), fd = -1, status;
    struct dm_addresses *addresses = addresses_of(two, port);
    struct dm_race race;
    pid_t pid;

    (void)state;
    dm_race_begin(&race, addresses, 2000);
    assert_int_equal(dm_race_step(&race, addresses, 1000, &fd), EINPROGRESS);
    pid = fork();
    if (pid == 0) {
        dm_race_forget(&race);
        _exit(count_descriptors() != before);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
    assert_int_equal(run(&race, addresses, &fd), 0);
    assert_int_equal(race.winner, 1);
    close(fd);
    close(caller);
    close(hole);
    close(server);
    dm_addresses_free(addresses);
}

/* The program closes descriptors that it has not opened, and the number goes to an epoll of its own. */
static void test_the_epoll_of_the_program_is_left_alone_when_it_has_the_number(void **state)
{
    uint16_t port = 0;
    int server = listen_at("127.0.0.1", &port, 5), hole = listen_at("127.0.0.2", &port, 0);
    int caller = fill_queue("127.0.0.2", port), own = epoll_create1(EPOLL_CLOEXEC), number, fd = -1;
    struct dm_addresses *addresses = addresses_of(two, port);
    struct dm_race race;

    (void)state;
    dm_race_begin(&race, addresses, 2000);
    assert_int_equal(dm_race_step(&race, addresses, 1000, &fd), EINPROGRESS);
    number = race.crowd;
    assert_int_equal(race.count, 1);
    assert_int_equal(dup2(own, number), number);
    race.next_ns = 0;
    while (dm_race_step(&race, addresses, 1000, &fd) == EINPROGRESS && race.count == 1 && race.crowd >= 0)
        continue;
    assert_int_not_equal(fcntl(number, F_GETFD), -1);
    for (int other = 0; other < 1024; other++)
        assert_int_not_equal(epoll_ctl(own, EPOLL_CTL_DEL, other, NULL), 0);
    dm_race_end(&race);
    assert_int_not_equal(fcntl(number, F_GETFD), -1);
    close(number);
    close(own);
    close(caller);
    close(hole);
    close(server);
    dm_addresses_free(addresses);
}

/* ---- a session --------------------------------------------------------------------------- */

/* The greeter of a server whose address is `*place`. */
static enum dm_located locate(void *user, struct dm_link_options *options, char ret_reason[DM_REASON_ROOM])
{
    const struct dm_address *place = user;

    (void)ret_reason;
    options->address = *place;
    return DM_LOCATED;
}

static void begin_greeting(void *user)
{
    (void)user;
}

static int greet_with_nothing(void *user, struct dm_command *ret_round)
{
    (void)user;
    *ret_round = (struct dm_command){ 0 };
    return 0;
}

static uint64_t be_ready(void *user)
{
    (void)user;
    return 1;
}

/* Until the session waits for a look-up, or is open. */
static void work(struct dm_session *session)
{
    session->is_wanted = true;
    do
        dm_session_work(session);
    while (session->state != DM_SESSION_PREPARING && session->state != DM_SESSION_READY);
}

/* As the helper thread: begins, and ends with what the list has. */
static void look_up(struct dm_session *session, struct dm_prepared *prepared, const char *const *list)
{
    listed = list;
    dm_prepare(prepared, &session->options);
    listed = NULL;
    dm_session_go_on(session, prepared);
}

static void assert_peer(const struct dm_session *session, const char *host)
{
    struct sockaddr_in peer;
    socklen_t length = sizeof peer;
    char text[INET_ADDRSTRLEN];

    assert_int_equal(session->state, DM_SESSION_READY);
    assert_int_equal(getpeername(session->pipe.stream.fd, (struct sockaddr *)&peer, &length), 0);
    assert_string_equal(inet_ntop(AF_INET, &peer.sin_addr, text, sizeof text), host);
}

/* A group's master has moved while its first name was looked up: that name's addresses are not the new master's. */
static void test_a_late_look_up_is_not_used_when_the_server_has_another_name_by_then(void **state)
{
    static const char *const first[] = { "127.0.0.1", NULL }, *const second[] = { "127.0.0.2", NULL };
    uint16_t port = 0;
    int old = listen_at("127.0.0.1", &port, 5), server = listen_at("127.0.0.2", &port, 5);
    char digits[8];
    struct dm_address place = { .host = "old.test.example", .port = digits };
    struct dm_link_options options = { .name = "x", .connect_timeout_ms = 1, .command_timeout_ms = 1000 };
    const struct dm_greeter greeter = {
        .locate = locate, .begin = begin_greeting, .round = greet_with_nothing, .ready = be_ready, .user = &place
    };
    struct dm_session session = { 0 };
    struct dm_prepared late, prepared;

    (void)state;
    snprintf(digits, sizeof digits, "%u", port);
    dm_session_init(&session, &options, &greeter);
    work(&session);
    dm_session_begin_preparing(&session, &late);
    assert_int_equal(late.task, DM_PREPARING_WAY);
    while (session.state != DM_SESSION_CLOSED) /* connect_timeout ends the wait for the look-up */
        dm_session_work(&session);
    session.is_wanted = false;
    look_up(&session, &late, first);
    place.host = "new.test.example";
    session.options.connect_timeout_ms = 10000;
    work(&session);
    if (session.state == DM_SESSION_PREPARING) {
        dm_session_begin_preparing(&session, &prepared);
        look_up(&session, &prepared, second);
    }
    work(&session);
    assert_peer(&session, "127.0.0.2");
    dm_session_end(&session, "");
    dm_addresses_free(session.addresses);
    close(old);
    close(server);
}

/* A server at `two`, of which the first address swallows packets, and a session that has begun with it. */
static struct {
    uint16_t port;
    int server, hole, caller;
    char digits[8];
    struct dm_address place;
    struct dm_session session;
} half;

static bool is_there; /* is_half_current() */

static bool is_half_current(void *user, bool is_for_any, char ret_reason[DM_REASON_ROOM])
{
    (void)is_for_any;
    (void)user;
    snprintf(ret_reason, DM_REASON_ROOM, "elsewhere");
    return is_there;
}

static void prepare_nothing(void *user)
{
    (void)user;
}

/* The first look-up, if one is due, finds both. */
static void begin_half(void (*prepare)(void *user))
{
    struct dm_link_options options = { .name = "x", .connect_timeout_ms = 60000, .command_timeout_ms = 60000 };
    static const struct dm_belief belief = { .may_believe = is_half_current };
    const struct dm_greeter greeter = { .prepare = prepare,
                                        .locate = locate,
                                        .belief = &belief,
                                        .begin = begin_greeting,
                                        .round = greet_with_nothing,
                                        .ready = be_ready,
                                        .user = &half.place };
    struct dm_prepared prepared;

    memset(&half, 0, sizeof half);
    is_there = true;
    half.server = listen_at("127.0.0.1", &half.port, 5);
    half.hole = listen_at("127.0.0.2", &half.port, 0);
    half.caller = fill_queue("127.0.0.2", half.port);
    snprintf(half.digits, sizeof half.digits, "%u", half.port);
    half.place = (struct dm_address){ .host = "old.test.example", .port = half.digits };
    dm_session_init(&half.session, &options, &greeter);
    work(&half.session);
    dm_session_begin_preparing(&half.session, &prepared);
    if (prepare)
        dm_session_note_greeter_prepared(&half.session);
    look_up(&half.session, &prepared, two);
    assert_int_equal(half.session.state, DM_SESSION_CONNECTING);
    assert_int_equal(dm_addresses_left(half.session.addresses), 1);
}

/* The first address is given up, and the next opening is due. */
static void break_half(void)
{
    dm_session_fail(&half.session, "the test");
    half.session.retry.due_ns = 0;
}

static void end_half(void)
{
    dm_session_end(&half.session, "");
    dm_addresses_free(half.session.addresses);
    close(half.caller);
    close(half.hole);
    close(half.server);
}

/* A password that was changed is read before the next address is tried, and the address is not looked up again. */
static void test_the_greeter_is_prepared_when_another_address_is_tried(void **state)
{
    struct dm_prepared prepared;

    (void)state;
    begin_half(prepare_nothing);
    break_half();
    work(&half.session);
    assert_int_equal(half.session.state, DM_SESSION_PREPARING);
    dm_session_begin_preparing(&half.session, &prepared);
    assert_int_equal(prepared.task, DM_PREPARING_LOGIN);
    dm_session_note_greeter_prepared(&half.session);
    look_up(&half.session, &prepared, NULL);
    work(&half.session);
    assert_peer(&half.session, "127.0.0.1");
    end_half();
}

/* A file that takes longer than connect_timeout is no name server that does not answer. */
static void test_the_look_up_has_its_time_when_the_greeter_was_slow(void **state)
{
    struct dm_prepared prepared;

    (void)state;
    begin_half(prepare_nothing);
    dm_addresses_free(half.session.addresses);
    half.session.addresses = NULL;
    break_half();
    half.session.options.connect_timeout_ms = 1;
    work(&half.session);
    dm_session_begin_preparing(&half.session, &prepared);
    while (dm_clock_boot_ns() <= half.session.deadline_ns)
        dm_session_work(&half.session);
    half.session.options.connect_timeout_ms = 60000;
    dm_session_note_greeter_prepared(&half.session);
    dm_session_work(&half.session);
    assert_int_equal(half.session.state, DM_SESSION_PREPARING);
    look_up(&half.session, &prepared, two);
    assert_int_equal(half.session.state, DM_SESSION_CONNECTING);
    end_half();
}

/* The server is at another name: no other address of the old one is tried. */
static void test_no_address_is_left_when_the_server_has_another_name(void **state)
{
    struct dm_prepared prepared;

    (void)state;
    begin_half(NULL);
    is_there = false;
    half.place.host = "new.test.example";
    break_half();
    work(&half.session);
    assert_int_equal(half.session.state, DM_SESSION_PREPARING);
    dm_session_begin_preparing(&half.session, &prepared);
    assert_string_equal(prepared.host, "new.test.example");
    end_half();
}

static int open_socket(void *user, bool may_block, char ret_reason[DM_REASON_ROOM])
{
    (void)user;
    (void)ret_reason;
    return may_block ? socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0) : -1;
}

/* A handler has forked while its thread was about to start the helper: in the child, the helper opens nothing. */
static void test_nothing_is_opened_when_a_forked_child_has_ended_the_session(void **state)
{
    const struct dm_link_options options = {
        .name = "x", .connect_timeout_ms = 1000, .command_timeout_ms = 1000, .open = open_socket
    };
    const struct dm_greeter greeter = { .begin = begin_greeting, .round = greet_with_nothing, .ready = be_ready };
    struct dm_session session = { 0 };
    struct dm_prepared prepared;
    int before = count_descriptors();

    (void)state;
    dm_session_init(&session, &options, &greeter);
    work(&session);
    dm_session_forget(&session);
    dm_session_begin_preparing(&session, &prepared);
    look_up(&session, &prepared, NULL);
    assert_int_equal(count_descriptors(), before);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_families_take_turns_when_a_name_has_both),
        cmocka_unit_test(test_the_working_address_is_first_when_a_look_up_finds_it_again),
        cmocka_unit_test(test_localhost_has_its_address_when_the_network_is_ipv6_alone),
        cmocka_unit_test(test_a_name_is_found_when_it_has_only_addresses_of_the_other_family),
        cmocka_unit_test(test_the_second_wins_when_the_first_drops_packets),
        cmocka_unit_test(test_the_second_is_tried_at_once_when_the_first_refuses),
        cmocka_unit_test(test_the_race_fails_when_all_addresses_refuse),
        cmocka_unit_test(test_the_race_goes_on_when_a_child_is_forked),
        cmocka_unit_test(test_the_epoll_of_the_program_is_left_alone_when_it_has_the_number),
        cmocka_unit_test(test_the_greeter_is_prepared_when_another_address_is_tried),
        cmocka_unit_test(test_the_look_up_has_its_time_when_the_greeter_was_slow),
        cmocka_unit_test(test_no_address_is_left_when_the_server_has_another_name),
        cmocka_unit_test(test_nothing_is_opened_when_a_forked_child_has_ended_the_session),
        cmocka_unit_test(test_a_late_look_up_is_not_used_when_the_server_has_another_name_by_then),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
