/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A program that closes descriptors which it did not open, as daemons do with closefrom(3), and reuses their numbers
 * for its own files: the library neither reads, writes nor closes those, and continues with its own descriptors.
 *
 * This program executes itself with --descriptors: a process that closes all its descriptors.
 */
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../lib/testlib.h"

/* Beyond the numbers that the library takes. */
#define NUMBERS 700

static dmutex_t held, other = DMUTEX_INITIALIZER("descriptors/other");
static dmutex_t waited = DMUTEX_INITIALIZER("descriptors/waited");
static dcond_t condition = DCOND_INITIALIZER("descriptors/condition");

/* ---- the program's own files --------------------------------------------------------------- */

enum file_kind { REGULAR, SOCKET, PIPE, EVENTS, KIND_END };

#define EVENTS_WITHIN 7

static struct {
    enum file_kind kind;
    int fd;
    int peer; /* what was written to fd arrives here; -1: looks at fd itself */
    struct stat status;
} files[NUMBERS];
static int file_count;

static void open_file(enum file_kind kind)
{
    char path[] = "/tmp/dmutex-descriptors-XXXXXX";
    int ends[2] = { -1, -1 };

    if (kind == REGULAR) {
        ends[0] = mkstemp(path);
        unlink(path);
    } else if (kind == EVENTS) {
        ends[0] = eventfd(EVENTS_WITHIN, EFD_NONBLOCK);
    } else if (kind == PIPE) {
        int turned[2];

        if (pipe(turned) == 0) {
            ends[0] = turned[1];
            ends[1] = turned[0];
        }
    } else if (socketpair(AF_UNIX, SOCK_STREAM, 0, ends) == 0 && write(ends[1], "kept", 4) != 4) {
        exit(3);
    }
    if (ends[0] < 0)
        exit(3);
    files[file_count].kind = kind;
    files[file_count].fd = ends[0];
    files[file_count].peer = ends[1];
    fstat(ends[0], &files[file_count].status);
    file_count++;
}

static void open_many_files(void)
{
    for (int kind = 0; file_count == 0 || files[file_count - 1].fd < NUMBERS; kind++)
        open_file(kind % KIND_END);
}

static bool is_silent(int fd)
{
    struct pollfd poller = { .fd = fd, .events = POLLIN };

    return poll(&poller, 1, 0) == 0;
}

/* Nobody has closed, written, read or shut down any. */
static bool are_untouched(void)
{
    for (int i = 0; i < file_count; i++) {
        struct stat now;
        uint64_t events;
        char kept[8];
        bool is_good = fstat(files[i].fd, &now) == 0 && now.st_ino == files[i].status.st_ino && now.st_size == 0;

        if (files[i].peer >= 0)
            is_good = is_good && is_silent(files[i].peer);
        if (files[i].kind == SOCKET)
            is_good = is_good && recv(files[i].fd, kept, sizeof kept, MSG_DONTWAIT | MSG_PEEK) == 4;
        if (files[i].kind == EVENTS)
            is_good = is_good && read(files[i].fd, &events, sizeof events) == sizeof events &&
                      events == EVENTS_WITHIN && write(files[i].fd, &events, sizeof events) == sizeof events;
        if (!is_good) {
            printf("touched: number %d, kind %d\n", files[i].fd, files[i].kind);
            return false;
        }
    }
    return true;
}

/* ---- the process --------------------------------------------------------------------------- */

static bool is_waiting, is_signalled; /* guarded by `waited` */

static void *wait_for_signal(void *user)
{
    (void)user;
    dmutex_lock(&waited);
    is_waiting = true;
    while (!is_signalled)
        dcond_wait(&condition, &waited);
    dmutex_unlock(&waited);
    return NULL;
}

static pthread_t begin_waiting(void)
{
    bool is_there = false;
    pthread_t thread;

    pthread_create(&thread, NULL, wait_for_signal, NULL);
    while (!is_there) {
        dmutex_lock(&waited);
        is_there = is_waiting;
        dmutex_unlock(&waited);
    }
    return thread;
}

static void signal_waiter(void)
{
    dmutex_lock(&waited);
    is_signalled = true;
    dcond_signal(&condition);
    dmutex_unlock(&waited);
}

static int fork_and_look(void)
{
    int status = -1;
    pid_t pid = fork();

    if (pid == 0) {
        dmutex_lock(&other);
        dmutex_unlock(&other);
        _exit(are_untouched() ? 0 : 1);
    }
    waitpid(pid, &status, 0);
    return status;
}

static int play(bool has_waiter)
{
    pthread_t thread = 0;

    make_fair(&held, "descriptors/held", &kinds[0], 2000);
    if (dmutex_lock(&held) != 0 || lock_and_unlock(&other) != 0)
        return 4;
    if (has_waiter)
        thread = begin_waiting();
    closefrom(3);
    open_many_files();
    wait_nap(); /* the library asks each millisecond whether a number is its own */
    for (int i = 0; i < 100; i++) {
        if (lock_and_unlock(&other) != 0 || dmutex_renew_np(&held) != 0)
            return 5;
    }
    if (has_waiter) {
        signal_waiter();
        pthread_join(thread, NULL);
    }
    if (fork_and_look() != 0 || !are_untouched())
        return 6;
    if (dmutex_unlock(&held) != 0)
        return 7;
    return are_untouched() ? 0 : 8;
}

/* ---- the tests ----------------------------------------------------------------------------- */

static void run(const char *how)
{
    command_run("DMUTEX_URL='%s' DMUTEX_LOG=info:%s/descriptors.log exec %s --descriptors %s", the_server->url,
                the_server->folder, program_path, how);
    assert_status(0);
    command_run("cat %s/descriptors.log", the_server->folder);
    assert_output("the connection to ");
}

static void test_files_of_the_program_are_left_alone_when_it_has_closed_ours(void **state)
{
    (void)state;
    run("alone");
}

/* Meanwhile a thread sleeps on the numbers. */
static void test_files_of_the_program_are_left_alone_when_a_thread_waits(void **state)
{
    (void)state;
    run("waiter");
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_files_of_the_program_are_left_alone_when_it_has_closed_ours),
        cmocka_unit_test(test_files_of_the_program_are_left_alone_when_a_thread_waits),
        cmocka_unit_test(test_nothing_is_left),
    };

    if (argc > 2 && strcmp(argv[1], "--descriptors") == 0)
        return play(strcmp(argv[2], "waiter") == 0);
    test_begin(argc, argv);
    return cmocka_run_group_tests(tests, test_group_setup, test_group_teardown);
}
