/* SPDX-License-Identifier: BSD-2-Clause */
/* base/place: folders and sockets that no other user can have put in the place. */
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../lib/folder.h"
#include "../lib/stranger.h"
#include "../lib/testlib.h"
#include "base/place.h"

static int setup(void **state)
{
    (void)state;
    keeper_make_folder(folder, sizeof folder);
    return 0;
}

/* Listens at a name in the folder. */
static int listen_at(const char *name)
{
    struct sockaddr_un address = { .sun_family = AF_UNIX };
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

    snprintf(address.sun_path, sizeof address.sun_path, "%s/%s", folder, name);
    assert_return_code(bind(fd, (struct sockaddr *)&address, sizeof address), errno);
    assert_return_code(listen(fd, 1), errno);
    return fd;
}

static void assert_fault(const char *path, enum dm_fault_kind kind, int error)
{
    struct dm_fault fault;

    assert_int_equal(dm_place_open_own(path, false, &fault), -1);
    assert_int_equal(fault.kind, kind);
    if (kind != DM_FAULT_OWNER)
        assert_int_equal(fault.error, error);
}

/* An absent folder is made if the caller allows, closed to other users (mode 0700). */
static void test_place_makes_the_folder_when_it_may(void **state)
{
    struct dm_fault fault;
    struct stat status;
    int fd;

    (void)state;
    assert_fault(in_folder("new"), DM_FAULT_ABSENT, ENOENT);
    fd = dm_place_open_own(in_folder("new"), true, &fault);
    assert_true(fd >= 0);
    assert_return_code(fstat(fd, &status), errno);
    assert_int_equal(status.st_mode & 07777, 0700);
    close(fd);
    fd = dm_place_open_own(in_folder("new"), false, &fault);
    assert_true(fd >= 0);
    close(fd);
}

/* A path that is relative, ends with '/', leads nowhere or in a circle, or is too long: errno says which. */
static void test_place_refuses_when_the_path_leads_nowhere(void **state)
{
    char name[400];

    (void)state;
    assert_fault("relative/path", DM_FAULT_ERROR, EINVAL);
    assert_fault(in_folder("trailing/"), DM_FAULT_ERROR, EINVAL);
    assert_fault(in_folder("none/x"), DM_FAULT_ABSENT, ENOENT);
    assert_return_code(symlink("circle", in_folder("circle")), errno);
    assert_fault(in_folder("circle/x"), DM_FAULT_ERROR, ELOOP);
    memset(name, 'n', 300);
    strcpy(name + 300, "/x");
    assert_fault(in_folder(name), DM_FAULT_ERROR, ENAMETOOLONG);
}

/* The user's links on the way are followed, absolute and relative links, and through `..`. */
static void test_place_follows_links_when_they_are_its_own(void **state)
{
    struct dm_fault fault;
    int fd;

    (void)state;
    assert_return_code(mkdir(in_folder("a"), 0755), errno);
    assert_return_code(symlink("a/../a", in_folder("relative")), errno);
    assert_return_code(symlink(folder, in_folder("a/absolute")), errno);
    fd = dm_place_open_own(in_folder("relative/absolute/a/own"), true, &fault);
    assert_true(fd >= 0);
    close(fd);
    assert_int_equal(access(in_folder("a/own"), F_OK), 0);
}

/* A folder on the way is refused if other users or a group may write there, but not if the folder is sticky. */
static void test_place_refuses_when_others_can_change_the_way(void **state)
{
    static const mode_t modes[] = { 0777, 0775, 0757, 01777, 0755 };

    (void)state;
    assert_return_code(mkdir(in_folder("open"), 0700), errno);
    assert_return_code(mkdir(in_folder("open/own"), 0700), errno);
    for (size_t i = 0; i < sizeof modes / sizeof modes[0]; i++) {
        struct dm_fault fault;
        int fd;

        assert_return_code(chmod(in_folder("open"), modes[i]), errno);
        fd = dm_place_open_own(in_folder("open/own"), false, &fault);
        assert_int_equal(fd >= 0, i >= 3); /* from here on sticky, or not writable */
        if (fd >= 0)
            close(fd);
        else
            assert_true(fault.kind == DM_FAULT_OWNER && fault.is_open);
    }
}

/* Writes the process's own number into its new user namespace, in which root has none. */
static bool enter_namespace(uid_t user)
{
    FILE *map;

    if (setuid(user) != 0 || prctl(PR_SET_DUMPABLE, 1) != 0 || unshare(CLONE_NEWUSER) != 0)
        return false;
    map = fopen("/proc/self/uid_map", "w");
    return map && fprintf(map, "%u %u 1\n", (unsigned)user, (unsigned)user) > 0 && fclose(map) == 0;
}

static int owner_of_fault(const char *path)
{
    struct dm_fault fault;
    int fd = dm_place_open(path, &fault);

    if (fd >= 0)
        close(fd);
    return fd >= 0 ? 0 : fault.kind == DM_FAULT_OWNER ? 1 : 2;
}

/*
 * In a user namespace the files of root and of strangers belong to one number. Those that a stranger can have put there
 * are not taken for root's.
 */
static void test_place_refuses_a_strangers_file_when_root_has_no_number(void **state)
{
    static const char *const folders[] = { "many", "many/strange" };
    int status;
    pid_t pid;

    (void)state;
    if (geteuid() != 0)
        return;
    for (size_t i = 0; i < sizeof folders / sizeof folders[0]; i++)
        assert_return_code(mkdir(in_folder(folders[i]), 0755), errno);
    assert_return_code(chmod(folder, 0755), errno);
    assert_return_code(chmod(in_folder("many"), 01777), errno);
    assert_return_code(chown(in_folder("many/strange"), STRANGER, STRANGER), errno);
    pid = keeper_fork();
    if (pid == 0) {
        if (!enter_namespace(VICTIM))
            _exit(3);
        _exit(owner_of_fault(in_folder("many/strange")) == 1 && owner_of_fault("/etc/passwd") == 0 ? 0 : 1);
    }
    status = keeper_reap(pid);
    assert_return_code(chmod(folder, 0700), errno);
    if (WIFEXITED(status) && WEXITSTATUS(status) == 3)
        return; /* a chroot allows no user namespace */
    assert_int_equal(status, 0);
}

/* A socket of the same user is connected, through the folder's descriptor; without a listener, the socket is absent. */
static void test_place_connects_when_somebody_of_this_user_listens(void **state)
{
    int listening = listen_at("there"), open, fd;
    struct dm_fault fault;

    (void)state;
    open = dm_place_open_own(folder, false, &fault);
    assert_true(open >= 0);
    assert_int_equal(dm_place_connect(open, "nobody", SOCK_STREAM, &fault), -1);
    assert_int_equal(fault.kind, DM_FAULT_ABSENT);
    fd = dm_place_connect(open, "there", SOCK_STREAM, &fault);
    assert_true(fd >= 0);
    close(fd);
    close(listening);
    assert_int_equal(dm_place_connect(open, "there", SOCK_STREAM, &fault), -1);
    assert_int_equal(fault.kind, DM_FAULT_ABSENT);
    assert_int_equal(fault.error, ECONNREFUSED);
    close(open);
}

static pthread_t first_thread;

static void *connect_alone(void *unused)
{
    struct dm_fault fault;
    int open;

    (void)unused;
    pthread_join(first_thread, NULL);
    open = dm_place_open_own(folder, false, &fault);
    _exit(dm_place_connect(open, "late", SOCK_STREAM, &fault) >= 0 ? 0 : 1);
}

/* A socket is connected even after the first thread has ended, when /proc/self shows no descriptors any more. */
static void test_place_connects_when_the_first_thread_has_ended(void **state)
{
    int listening;
    pid_t pid;

    (void)state;
    if (IS_THREAD_SANITIZED)
        return; /* the forked child starts a thread */
    listening = listen_at("late");
    pid = keeper_fork();
    if (pid == 0) {
        pthread_t thread;

        first_thread = pthread_self();
        if (pthread_create(&thread, NULL, connect_alone, NULL) != 0)
            _exit(2);
        pthread_exit(NULL);
    }
    assert_int_equal(keeper_reap(pid), 0);
    close(listening);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_place_makes_the_folder_when_it_may),
        cmocka_unit_test(test_place_refuses_when_the_path_leads_nowhere),
        cmocka_unit_test(test_place_follows_links_when_they_are_its_own),
        cmocka_unit_test(test_place_refuses_when_others_can_change_the_way),
        cmocka_unit_test(test_place_refuses_a_strangers_file_when_root_has_no_number),
        cmocka_unit_test(test_place_connects_when_somebody_of_this_user_listens),
        cmocka_unit_test(test_place_connects_when_the_first_thread_has_ended),
    };

    test_begin(argc, argv);
    return cmocka_run_group_tests(tests, setup, folder_teardown);
}
