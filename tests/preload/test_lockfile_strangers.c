/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Lock files on a machine with other users: a keeper of another user is never asked. The stranger's "keeper" of these
 * tests grants everything.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "../lib/stranger.h"
#include "host.h"

static char folder[32];      /* this test's folder; sticky, for everybody, as /tmp */
static char keeper_name[64]; /* the sockets' name for keepers of this server */
static struct job *holder;   /* holds x.lock on host a */

/* Reads the name from the holder's output; host b, with another folder, uses the same name. */
static void find_keeper_name(void)
{
    snprintf(keeper_name, sizeof keeper_name, "%s", job_line(holder));
    assert_memory_equal(keeper_name, "keeper-0x", 9);
}

static int begin(void **state)
{
    keeper_make_folder(folder, sizeof folder);
    assert_return_code(chmod(folder, 01777), errno);
    host_pair_setup(state);
    holder = host_start(a, "flock x.lock sh -c 'cd $DMUTEX_LOCAL_DIR; echo keeper-0x*; read go'");
    find_keeper_name();
    return 0;
}

static int end(void **state)
{
    job_go(holder);
    assert_int_equal(job_end(holder), 0);
    host_pair_teardown(state);
    keeper_remove_folder(folder);
    return 0;
}

/* Opens a listening socket with a keeper's name in a folder, for all users. */
static int listen_in(const char *place)
{
    struct sockaddr_un address = { .sun_family = AF_UNIX };
    int fd = socket(AF_UNIX, SOCK_SEQPACKET, 0);

    snprintf(address.sun_path, sizeof address.sun_path, "%s/%s", place, keeper_name);
    if (bind(fd, (struct sockaddr *)&address, sizeof address) < 0 || chmod(address.sun_path, 0777) < 0 ||
        listen(fd, 5) < 0)
        _exit(96);
    return fd;
}

/* Receives a question, and writes "stolen" to all descriptors that come with it. */
static bool take_question(int caller)
{
    union {
        struct cmsghdr header;
        char bytes[CMSG_SPACE(8 * sizeof(int))];
    } room;
    char question[8192];
    struct iovec text = { .iov_base = question, .iov_len = sizeof question };
    struct msghdr message = { .msg_iov = &text, .msg_iovlen = 1, .msg_control = &room, .msg_controllen = sizeof room };
    ssize_t got = recvmsg(caller, &message, 0);
    struct cmsghdr *header = got > 0 ? CMSG_FIRSTHDR(&message) : NULL;

    for (size_t i = 0; header && CMSG_LEN(i * sizeof(int)) < header->cmsg_len; i++) {
        int fd;

        memcpy(&fd, CMSG_DATA(header) + i * sizeof fd, sizeof fd);
        if (write(fd, "stolen\n", 7) < 0)
            errno = 0;
        close(fd);
    }
    return got > 0;
}

/* Grants every request, in a process of the stranger's. */
static void __attribute__((__noreturn__)) pretend(int listening)
{
    for (;;) {
        int caller = accept(listening, NULL, NULL);

        if (take_question(caller))
            send(caller, "ok", 3, MSG_NOSIGNAL);
        close(caller);
    }
}

/* Starts a stranger's keeper; when the call returns, the keeper listens. */
static pid_t start_pretender(const char *place)
{
    int ends[2];
    pid_t pid;
    char byte;

    assert_return_code(pipe(ends), errno);
    pid = keeper_fork();
    if (pid == 0) {
        int listening;

        if (setresgid(STRANGER, STRANGER, STRANGER) < 0 || setresuid(STRANGER, STRANGER, STRANGER) < 0)
            _exit(99);
        listening = listen_in(place);
        if (write(ends[1], "L", 1) < 0)
            _exit(95);
        pretend(listening);
    }
    close(ends[1]);
    assert_int_equal(read(ends[0], &byte, 1), 1);
    close(ends[0]);
    return pid;
}

/* Asserts that host b gets no lock with this folder, and prints the words. */
static void assert_not_granted(const char *place, const char *words)
{
    char string[200];

    snprintf(string, sizeof string, "DMUTEX_LOCAL_DIR=%s", place);
    host_put(b, string);
    assert_int_not_equal(host_run(b, "flock -n x.lock true"), 0);
    assert_true(host_has_said(b, words));
}

/* No lock is granted if a stranger has made the folder first, and listens there. */
static void test_no_lock_is_granted_when_a_stranger_has_made_the_folder(void **state)
{
    char place[64];
    pid_t pretender;

    (void)state;
    snprintf(place, sizeof place, "%s/squatted", folder);
    stranger_run(STRANGER, "mkdir -m 0755 %s", place);
    pretender = start_pretender(place);
    assert_not_granted(place, "/squatted belongs to another user: 61234: it is not used; set DMUTEX_LOCAL_DIR");
    stranger_end(pretender);
}

/* No lock is granted if the folder is a link to the stranger's folder. */
static void test_no_lock_is_granted_when_the_folder_is_a_link(void **state)
{
    char there[64], place[64];
    pid_t pretender;

    (void)state;
    snprintf(there, sizeof there, "%s/there", folder);
    snprintf(place, sizeof place, "%s/link", folder);
    stranger_run(STRANGER, "mkdir -m 0755 %s && ln -s there %s", there, place);
    pretender = start_pretender(there);
    assert_not_granted(place, "/link is not a folder, but a link or file of user 61234");
    stranger_end(pretender);
}

/* No lock is granted if a stranger listens in a folder that once was open to all, although its mode is right now. */
static void test_no_lock_is_granted_when_another_user_listens(void **state)
{
    char place[64];
    pid_t pretender;

    (void)state;
    snprintf(place, sizeof place, "%s/own", folder);
    assert_return_code(mkdir(place, 0700), errno);
    assert_return_code(chmod(place, 0777), errno);
    pretender = start_pretender(place);
    assert_return_code(chmod(place, 0700), errno);
    assert_not_granted(place, "is served by another user: 61234");
    stranger_end(pretender);
}

/*
 * If a program of root becomes the stranger, it uses the stranger's keeper, but nothing else of the program's becomes
 * accessible to the stranger: neither a log nor a pipe that root has opened for its standard error.
 */
static void test_the_stranger_gets_no_standard_error_when_a_program_becomes_the_stranger(void **state)
{
    char place[64], string[96];
    pid_t pretender;

    (void)state;
    snprintf(place, sizeof place, "%s/its", folder);
    stranger_run(STRANGER, "mkdir -m 0700 %s", place);
    pretender = start_pretender(place);
    snprintf(string, sizeof string, "DMUTEX_LOCAL_DIR=%s", place);
    host_put(b, string);
    assert_int_equal(host_run(b, "$LOCKER y.lock drop flock 2<>data >out"), 0);
    assert_int_equal(host_run(b, "grep -q 'flock 0' out && ! test -s data"), 0);
    assert_int_equal(host_run(b, "{ $LOCKER y.lock drop flock 2>&1 >&3 | cat >data; } 3>out"), 0);
    assert_int_equal(host_run(b, "grep -q 'flock 0' out && ! test -s data"), 0);
    stranger_end(pretender);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_no_lock_is_granted_when_a_stranger_has_made_the_folder),
        cmocka_unit_test(test_no_lock_is_granted_when_the_folder_is_a_link),
        cmocka_unit_test(test_no_lock_is_granted_when_another_user_listens),
        cmocka_unit_test(test_the_stranger_gets_no_standard_error_when_a_program_becomes_the_stranger),
    };

    test_begin(argc, argv);
    stranger_require();
    return cmocka_run_group_tests(tests, begin, end);
}
