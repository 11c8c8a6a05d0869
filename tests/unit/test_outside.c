/* SPDX-License-Identifier: BSD-2-Clause */
/* spawn/outside: sockets that are served but cannot be reached, and the unit of a process. */
#include <fcntl.h>
#include <signal.h>
#include <stddef.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "../lib/folder.h"
#include "../lib/testlib.h"
#include "spawn/outside.h"

static int setup(void **state)
{
    (void)state;
    keeper_make_folder(folder, sizeof folder);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    keeper_remove_folder(folder);
    return 0;
}

static int bind_to(const char *path)
{
    struct sockaddr_un address = { .sun_family = AF_UNIX };
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

    snprintf(address.sun_path, sizeof address.sun_path, "%s", path);
    assert_return_code(bind(fd, (struct sockaddr *)&address, sizeof address), errno);
    return fd;
}

/* The kernel keeps the path of the bind, whatever becomes of the file; a blank in it is no end. */
static void test_a_listener_is_found_when_its_file_was_deleted(void **state)
{
    char path[80];
    int fd;

    (void)state;
    snprintf(path, sizeof path, "%s/a b", folder);
    fd = bind_to(path);
    assert_false(dm_outside_has_listener(path)); /* does not listen yet */
    assert_return_code(listen(fd, 1), errno);
    assert_true(dm_outside_has_listener(path));
    assert_return_code(unlink(path), errno);
    assert_true(dm_outside_has_listener(path));
    assert_false(dm_outside_has_listener(folder));
    close(fd);
    assert_false(dm_outside_has_listener(path));
}

static int listen_for_all(void *user)
{
    int ready = *(int *)user, fd;
    char path[80];

    snprintf(path, sizeof path, "%s/taken", folder);
    fd = bind_to(path);
    return listen(fd, 1) == 0 && write(ready, "L", 1) == 1 ? pause() : 1;
}

/* A stranger may bind to the path elsewhere, or to a name that looks like this path's line in /proc/net/unix. */
static void test_a_stranger_is_no_listener_of_this_user(void **state)
{
    static const char forged[] = "x\n0000000000000000: 00000002 00000000 00010000 0001 01 4242 /forged/s";
    struct sockaddr_un address = { .sun_family = AF_UNIX };
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0), ends[2];
    char path[80], byte;
    pid_t pid;

    (void)state;
    memcpy(address.sun_path + 1, forged, sizeof forged - 1);
    assert_return_code(bind(fd, (struct sockaddr *)&address, offsetof(struct sockaddr_un, sun_path) + sizeof forged),
                       errno);
    assert_return_code(listen(fd, 1), errno);
    assert_false(dm_outside_has_listener("/forged/s"));
    close(fd);
    if (geteuid() != 0)
        return;
    assert_return_code(chmod(folder, 0777), errno);
    assert_return_code(pipe2(ends, O_CLOEXEC), errno);
    pid = keeper_fork();
    if (pid == 0)
        _exit(setresuid(61234, 61234, 61234) == 0 ? listen_for_all(&ends[1]) : 1);
    assert_int_equal(read(ends[0], &byte, 1), 1);
    snprintf(path, sizeof path, "%s/taken", folder);
    assert_false(dm_outside_has_listener(path));
    assert_return_code(kill(pid, SIGKILL), errno);
    keeper_reap(pid);
    close(ends[0]);
    close(ends[1]);
}

/* The systemd service of a process, by the process's control groups. */
static void test_the_unit_is_known_when_the_process_is_of_a_service(void **state)
{
    static const struct {
        const char *cgroups, *unit;
    } cases[] = {
        { "0::/system.slice/report.service\n", "report.service" },
        { "9:pids:/x.service\n1:name=systemd:/system.slice/a@b.service\n0::/\n", "a@b.service" },
        { "0::/user.slice/user-0.slice/user@0.service/app.slice/x.service", "x.service" },
        { "0::/user.slice/user-0.slice/session-3.scope\n", NULL },
        { "0::/\n", NULL },
        { "0::/.service\n", NULL },
        { "9:pids:/x.service\n", NULL },
        { "x.service\n", NULL },
        { "", NULL },
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char unit[DM_OUTSIDE_UNIT_ROOM] = "";

        assert_int_equal(dm_outside_read_unit(cases[i].cgroups, unit), cases[i].unit != NULL);
        assert_string_equal(unit, cases[i].unit ? cases[i].unit : "");
    }
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_a_listener_is_found_when_its_file_was_deleted, setup, teardown),
        cmocka_unit_test_setup_teardown(test_a_stranger_is_no_listener_of_this_user, setup, teardown),
        cmocka_unit_test(test_the_unit_is_known_when_the_process_is_of_a_service),
    };

    test_begin(argc, argv);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
