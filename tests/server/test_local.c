/* SPDX-License-Identifier: BSD-2-Clause */
/* The private server that is started on demand: `local:`, and the failures that must not happen there. */
#include <dirent.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

#include "../lib/filter.h"
#include "../lib/folder.h"
#include "../lib/lines.h"
#include "../lib/testlib.h"

static char local_dir[64]; /* DMUTEX_LOCAL_DIR as an environment string: this test's own folder */
static pid_t server_pid;   /* of the server that was started there, once known */

static int begin_test(void **state)
{
    (void)state;
    server_pid = 0;
    keeper_make_folder(folder, sizeof folder);
    snprintf(local_dir, sizeof local_dir, "DMUTEX_LOCAL_DIR=%s", folder);
    return 0;
}

/* The first word of a file, as a number; 0 if there is none. */
static long number_in(const char *path)
{
    FILE *file = fopen(path, "r");
    long number = 0;

    if (file && fscanf(file, "%ld", &number) != 1)
        number = 0;
    if (file)
        fclose(file);
    return number;
}

/* The process that serves the folder; from here on the server ends with the test program. */
static pid_t find_server(void)
{
    wait_until((server_pid = (pid_t)number_in(in_folder("pid"))) > 1);
    keeper_watch(server_pid);
    return server_pid;
}

/* server_pid listens. A process that is in need of a server may have started the next one already. */
static bool is_listening(void)
{
    struct sockaddr_un address = { .sun_family = AF_UNIX };
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    struct ucred server = { .pid = 0 };
    socklen_t size = sizeof server;
    bool is_there;

    assert_return_code(fd, errno);
    snprintf(address.sun_path, sizeof address.sun_path, "%s", in_folder("s"));
    is_there = connect(fd, (const struct sockaddr *)&address, sizeof address) == 0 &&
               getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &server, &size) == 0 && server.pid == server_pid;
    close(fd);
    return is_there;
}

/* The server's first thread may be gone while another one still keeps the socket open. */
static void kill_server(void)
{
    assert_return_code(kill(server_pid, SIGKILL), errno);
    wait_until(!proc_is_alive(server_pid) && !is_listening());
    keeper_forget(server_pid);
    server_pid = 0;
}

static int end_test(void **state)
{
    (void)state;
    if (!server_pid)
        server_pid = (pid_t)number_in(in_folder("pid"));
    if (server_pid > 1 && proc_is_alive(server_pid))
        kill_server();
    keeper_remove_folder(folder);
    return 0;
}

/* An actor without a configured server. */
static struct actor *start_lost(const char *more)
{
    return actor_start_with(NULL, local_dir, more ? more : "A=b", NULL);
}

static int starts_of_server(void)
{
    return lines_with(in_folder("log"), "eady to accept connections"); /* R or r */
}

/* ---- a server that can be had ------------------------------------------------------------ */

/* Nothing is configured: the processes of one user share a mutex all the same, and are warned. */
static void test_the_server_is_started_when_nothing_is_configured(void **state)
{
    char log[128];
    struct actor *a, *b = start_lost(NULL);

    (void)state;
    snprintf(log, sizeof log, "DMUTEX_LOG=warn:%s", in_folder("warnings"));
    a = start_lost(log);
    actor_do(a, "0", "lock local/first");
    find_server();
    actor_do(b, "EBUSY", "trylock local/first");
    actor_send(b, "lock local/first");
    wait_until(actor_value(a, "waiters local/first") == 1);
    actor_do(a, "0", "unlock local/first");
    actor_expect(b, "0");
    actor_do(b, "0", "unlock local/first");
    assert_int_equal(starts_of_server(), 1);
    assert_int_equal(lines_with(in_folder("warnings"), "local:"), 1);
    actor_end(a);
    actor_end(b);
}

/* Properties of the server: no other user's, no port, nothing on the disk, nothing evicted. */
static void test_the_server_is_private_when_started(void **state)
{
    struct actor *a = start_lost("DMUTEX_URL=local:?command_timeout=1000");
    struct side *side;
    struct stat status;

    (void)state;
    actor_do(a, "0", "trylock local/private");
    find_server();
    assert_return_code(stat(folder, &status), errno);
    assert_int_equal(status.st_mode & 0777, 0700);
    assert_return_code(stat(in_folder("s"), &status), errno);
    assert_int_equal(status.st_mode & 077, 0);
    side = side_try_open(in_folder("s"));
    assert_non_null(side);
    assert_string_equal(side_text(side, "CONFIG GET port"), "port\n0");
    assert_string_equal(side_text(side, "CONFIG GET save"), "save\n");
    assert_string_equal(side_text(side, "CONFIG GET appendonly"), "appendonly\nno");
    assert_string_equal(side_text(side, "CONFIG GET maxmemory-policy"), "maxmemory-policy\nnoeviction");
    side_close(side);
    actor_do(a, "0", "unlock local/private");
    actor_end(a);
}

/* Many processes begin at once: one server is started, and the mutex is one. */
static void test_one_server_is_started_when_many_begin_at_once(void **state)
{
    (void)state;
    for (int round = 0; round < repetitions(3); round++) {
        struct actor *actors[8];

        for (int i = 0; i < 8; i++)
            actors[i] = start_lost(NULL);
        for (int i = 0; i < 8; i++)
            actor_send(actors[i], "count %s 10 local/race 2", in_folder("counter"));
        for (int i = 0; i < 8; i++)
            actor_expect(actors[i], "0");
        assert_int_equal(actor_counted(in_folder("counter")), 160);
        find_server();
        assert_int_equal(starts_of_server(), 1);
        for (int i = 0; i < 8; i++)
            actor_end(actors[i]);
        end_test(state);
        begin_test(state);
    }
}

/* The server is no process's child: its starter may be killed, and the next process gets the death. */
static void test_the_server_lives_on_when_its_starter_is_killed(void **state)
{
    struct actor *a = start_lost(NULL), *b = start_lost(NULL);

    (void)state;
    actor_do(a, "0", "init local/starter robust lease=300");
    actor_do(b, "0", "init local/starter robust lease=300");
    actor_do(a, "0", "lock local/starter");
    find_server();
    actor_kill(a);
    actor_do(b, "EOWNERDEAD", "lock local/starter");
    actor_do(b, "0", "consistent local/starter");
    actor_do(b, "0", "unlock local/starter");
    assert_true(proc_is_alive(server_pid));
    assert_int_equal(starts_of_server(), 1);
    actor_end(a);
    actor_end(b);
}

/* A server that died and left its socket is restarted by any process that needs it, which continues after the grace. */
static void test_the_server_is_started_again_when_it_was_killed(void **state)
{
    struct actor *a = start_lost(NULL), *b = start_lost(NULL);
    long long token;

    (void)state;
    actor_do(a, "0", "init local/again lease=500");
    actor_do(b, "0", "init local/again lease=500");
    actor_do(a, "0", "lock local/again");
    token = actor_value(a, "token local/again");
    actor_do(a, "0", "unlock local/again");
    find_server();
    kill_server();
    actor_do(b, "0", "lock local/again");
    assert_true(actor_value(b, "token local/again") > token);
    actor_send(a, "lock local/again");
    wait_until(actor_value(b, "waiters local/again") == 1);
    actor_do(b, "0", "unlock local/again");
    actor_expect(a, "0");
    actor_do(a, "0", "unlock local/again");
    find_server();
    assert_int_equal(starts_of_server(), 2);
    actor_end(a);
    actor_end(b);
}

#define GRACE "the server has just started and grants nothing new"

/*
 * R7: a server is killed, and the holder is busy elsewhere, still certain of the lock.  The next process starts a
 * server that knows no holder, and must not get the lock; the holder comes back to it.
 */
static void test_a_held_lock_is_nobody_elses_when_the_server_is_killed(void **state)
{
    struct actor *holder = start_lost(NULL), *other = start_lost(NULL);

    (void)state;
    actor_do(holder, "0", "init local/held lease=60000");
    actor_do(holder, "0", "lock local/held");
    find_server();
    actor_stop(holder);
    kill_server();
    actor_do(other, "EBUSY", "trylock local/held");
    actor_assert_words(other, GRACE);
    find_server();
    actor_cont(holder);
    actor_do(holder, "0", "renew local/held");
    assert_int_equal(actor_losses(holder), 0);
    actor_do(other, "EBUSY", "trylock local/held");
    actor_do(holder, "0", "unlock local/held");
    assert_int_equal(starts_of_server(), 2);
    actor_end(holder);
    actor_end(other);
}

/* A new server is as good as the first if nobody is left who used the previous one, however that ended. */
static void test_a_new_server_grants_at_once_when_nobody_is_left_of_the_one_before(void **state)
{
    struct actor *first = start_lost(NULL), *second;

    (void)state;
    actor_do(first, "0", "trylock local/left");
    find_server();
    actor_kill(first);
    kill_server();
    second = start_lost(NULL);
    actor_do(second, "0", "trylock local/left");
    find_server();
    actor_do(second, "0", "unlock local/left");
    actor_end(second);
}

/* Locks once, and leaves a forked child, whose pid is written to the pipe. */
static void __attribute__((__noreturn__)) lock_and_leave_child(int fd)
{
    dmutex_t mutex = DMUTEX_INITIALIZER("local/forks");
    pid_t child;

    if (putenv(local_dir) || setenv("DMUTEX_URL", "local:", 1) || lock_and_unlock(&mutex))
        _exit(2);
    child = fork();
    if (child == 0)
        pause();
    _exit(write(fd, &child, sizeof child) != sizeof child);
}

/* A forked child holds nothing, so a server after its parent's has no grace for its sake. */
static void test_a_new_server_grants_at_once_when_a_forked_child_is_left(void **state)
{
    struct actor *other;
    pid_t parent, child;
    int ends[2];

    (void)state;
    if (IS_THREAD_SANITIZED)
        return; /* the forked child starts threads */
    assert_return_code(pipe2(ends, O_CLOEXEC), errno);
    parent = keeper_fork();
    if (parent == 0)
        lock_and_leave_child(ends[1]);
    assert_int_equal(read(ends[0], &child, sizeof child), sizeof child);
    keeper_watch(child);
    assert_int_equal(keeper_reap(parent), 0);
    find_server();
    kill_server();
    other = start_lost(NULL);
    actor_do(other, "0", "trylock local/forks");
    find_server();
    assert_true(proc_is_alive(child));
    kill(child, SIGKILL);
    keeper_forget(child);
    actor_end(other);
    close(ends[0]);
    close(ends[1]);
}

/*
 * The file that says "no grace" is of one server: the next one does not take it over, although the process that has
 * used the first holds nothing.
 */
static void test_a_new_server_has_a_grace_when_the_previous_one_had_none(void **state)
{
    struct actor *a = start_lost(NULL), *b;

    (void)state;
    actor_do(a, "0", "trylock local/first");
    actor_do(a, "0", "unlock local/first");
    find_server();
    assert_return_code(access(in_folder("alone"), F_OK), errno);
    kill_server();
    b = start_lost(NULL);
    actor_do(b, "EBUSY", "trylock local/first");
    actor_assert_words(b, GRACE);
    find_server();
    assert_int_equal(access(in_folder("alone"), F_OK), -1);
    actor_end(a);
    actor_end(b);
}

/* The socket at descriptor 3 of a process, or "". */
static const char *conversation_of(pid_t pid)
{
    static char target[64];
    char path[64];
    ssize_t length;

    snprintf(path, sizeof path, "/proc/%d/fd/3", (int)pid);
    length = readlink(path, target, sizeof target - 1);
    target[length > 0 ? length : 0] = '\0';
    return target;
}

static bool has_descriptor(pid_t pid, const char *wanted)
{
    char path[300], target[64];
    struct dirent *entry;
    bool is_there = false;
    DIR *list;

    snprintf(path, sizeof path, "/proc/%d/fd", (int)pid);
    list = opendir(path);
    assert_non_null(list);
    while ((entry = readdir(list))) {
        ssize_t length;

        snprintf(path, sizeof path, "/proc/%d/fd/%s", (int)pid, entry->d_name);
        length = readlink(path, target, sizeof target - 1);
        target[length > 0 ? length : 0] = '\0';
        is_there |= strcmp(target, wanted) == 0;
    }
    closedir(list);
    return is_there;
}

/* Sets what children of this process inherit, or lets them inherit nothing. */
static void set_ambient(uint32_t capabilities)
{
    struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };
    struct __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3];

    assert_return_code(prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0), errno);
    assert_return_code(syscall(SYS_capget, &header, data), errno);
    data[0].inheritable = capabilities;
    assert_return_code(syscall(SYS_capset, &header, data), errno);
    for (unsigned i = 0; i < 32; i++)
        if (capabilities >> i & 1)
            assert_return_code(prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE, i, 0, 0), errno);
}

/* The server keeps nothing of the process that started the server, and that process has no child to wait for. */
static void test_the_server_has_nothing_of_its_starter(void **state)
{
    struct rlimit limit, lower;
    struct actor *a;
    char path[64], socket[64];

    (void)state;
    assert_return_code(getrlimit(RLIMIT_CPU, &limit), errno);
    lower = (struct rlimit){ .rlim_cur = 7654, .rlim_max = limit.rlim_max };
    assert_return_code(setrlimit(RLIMIT_CPU, &lower), errno);
    set_ambient(geteuid() == 0 ? 1U << CAP_CHOWN : 0);
    a = start_lost("LD_BIND_NOW=of-the-starter");
    set_ambient(0);
    assert_return_code(setrlimit(RLIMIT_CPU, &limit), errno);
    actor_do(a, "0", "trylock local/apart");
    find_server();
    snprintf(socket, sizeof socket, "%s", conversation_of(actor_pid(a)));
    assert_memory_equal(socket, "socket:", 7);
    assert_true(has_descriptor(actor_pid(a), socket));
    assert_false(has_descriptor(server_pid, socket));
    snprintf(path, sizeof path, "/proc/%d/status", (int)server_pid);
    assert_int_equal(lines_with(path, "SigBlk:\t0000000000000000"), 1);
    assert_int_equal(lines_with(path, "CapAmb:\t0000000000000000"), 1);
    snprintf(path, sizeof path, "/proc/%d/environ", (int)server_pid);
    assert_int_equal(lines_with(path, "of-the-starter"), 0);
    snprintf(path, sizeof path, "/proc/%d/limits", (int)server_pid);
    assert_int_equal(lines_with(path, "Max cpu time"), 1);
    assert_int_equal(lines_with(path, "7654"), 0);
    snprintf(path, sizeof path, "/proc/%d/task/%d/children", (int)actor_pid(a), (int)actor_pid(a));
    assert_int_equal(number_in(path), 0);
    actor_do(a, "0", "unlock local/apart");
    actor_end(a);
}

/* The path of a program on the PATH, or "". */
static const char *find_program(const char *name)
{
    static char found[512];
    const char *path = getenv("PATH");

    while (path && *path) {
        size_t length = strcspn(path, ":");

        snprintf(found, sizeof found, "%.*s/%s", (int)length, path, name);
        if (access(found, X_OK) == 0)
            return found;
        path += length + (path[length] == ':');
    }
    found[0] = '\0';
    return found;
}

/*
 * Where there is no redis-server, valkey-server is the server; also if a folder of PATH may not be entered, which the
 * kernel tells as it tells a file that may not be run.
 */
static void test_valkey_server_is_started_when_there_is_no_redis_server(void **state)
{
    char program[512], path[128];
    struct actor *a;
    int fd;

    (void)state;
    snprintf(program, sizeof program, "%s", find_program("redis-server"));
    if (!program[0])
        snprintf(program, sizeof program, "%s", find_program("valkey-server"));
    assert_true(program[0] == '/');
    assert_return_code(mkdir(in_folder("bin"), 0700), errno);
    assert_return_code(symlink(program, in_folder("bin/valkey-server")), errno);
    fd = open(in_folder("bin/redis-server"), O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    assert_return_code(fd, errno);
    close(fd);
    snprintf(path, sizeof path, "PATH=%s", in_folder("bin"));
    a = start_lost(path);
    actor_do(a, "0", "lock local/valkey");
    actor_do(a, "0", "unlock local/valkey");
    find_server();
    actor_end(a);
}

/* An attempt to start a server that began before the last one ended may still say that there is one. */
static void lock_when_tried_again(struct actor *actor, const char *name)
{
    wait_until((actor_send(actor, "lock %s", name), strcmp(actor_answer(actor), "0") == 0));
}

/* R7: a cleaner of /tmp deletes the socket while a lock is held; a second server would grant the lock again. */
static void test_no_second_server_is_started_when_the_files_were_deleted(void **state)
{
    static const char *const files[] = { "s", "lock", "pid", "log", "alone" };
    struct actor *holder = start_lost(NULL), *other = start_lost(NULL);

    (void)state;
    actor_do(holder, "0", "lock local/deleted");
    find_server();
    for (size_t i = 0; i < sizeof files / sizeof files[0]; i++)
        assert_return_code(unlink(in_folder(files[i])), errno);
    actor_do(other, "ENOLCK", "trylock local/deleted");
    actor_assert_words(other, "is served, but cannot be reached from here: the socket was deleted");
    assert_return_code(unlink(in_folder("lock")), errno);
    assert_int_equal(rmdir(folder), 0);
    actor_do(other, "ENOLCK", "trylock local/deleted");
    actor_do(holder, "0", "renew local/deleted");
    actor_do(holder, "0", "unlock local/deleted");
    kill_server();
    lock_when_tried_again(other, "local/deleted");
    find_server();
    actor_end(holder);
    actor_end(other);
}

/*
 * Containers that share the folder have network namespaces of their own, and none sees the sockets of the others among
 * the kernel's.
 */
static void test_no_second_server_is_started_when_the_first_is_in_another_network(void **state)
{
    int home = open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC);
    struct actor *holder, *other;

    (void)state;
    if (geteuid() != 0)
        return;
    holder = start_lost(NULL);
    actor_do(holder, "0", "lock local/apart");
    find_server();
    assert_return_code(unlink(in_folder("s")), errno);
    assert_return_code(unlink(in_folder("alone")), errno);
    assert_return_code(unshare(CLONE_NEWNET), errno);
    other = start_lost(NULL);
    assert_return_code(setns(home, CLONE_NEWNET), errno);
    actor_do(other, "ENOLCK", "trylock local/apart");
    actor_assert_words(other, "is served, but cannot be reached from here: the socket was deleted");
    actor_do(holder, "0", "unlock local/apart");
    kill_server();
    lock_when_tried_again(other, "local/apart");
    find_server();
    actor_end(holder);
    actor_end(other);
    close(home);
}

/* ---- a server that cannot be had --------------------------------------------------------- */

/* Every call that needs a server says ENOLCK, and a sentence with these words. */
static void check_refused(struct actor *a, const char *words)
{
    static const char *const calls[] = { "trylock", "lock", "islocked", "waiters", "forceunlock" };

    for (size_t i = 0; i < sizeof calls / sizeof calls[0]; i++) {
        actor_do(a, "ENOLCK", "%s local/none", calls[i]);
        actor_send(a, "strerror");
        if (!strstr(actor_answer(a), words)) {
            actor_send(a, "strerror");
            fail_msg("%s: \"%s\"", calls[i], actor_answer(a));
        }
    }
    actor_do(a, "EPERM", "unlock local/none");
    actor_do(a, "0", "destroy local/none");
}

/* Neither server is installed: ENOLCK, by lock as well, and a sentence that names the package. */
static void test_calls_say_enolck_when_no_server_is_installed(void **state)
{
    struct actor *a = start_lost("PATH=/nonexistent");

    (void)state;
    check_refused(a, "install the package redis-server");
    actor_end(a);
    assert_int_equal(access(in_folder("s"), F_OK), -1);
}

/* A folder that others can write to, or that is no folder, is not trusted, and nothing starts there. */
static void test_calls_say_enolck_when_the_folder_is_not_safe(void **state)
{
    static const char *const spoils[] = { "open", "linked", "file", "foreign" };
    static const char *const words[] = { "chmod it to 0700", "is not a folder, but a link or file of user",
                                         "is not a folder, but a link or file of user",
                                         "belongs to another user: 65534 (nobody)" };

    (void)state;
    for (int i = 0; i < (geteuid() == 0 ? 4 : 3); i++) {
        char place[128];
        struct actor *a;
        FILE *file;

        snprintf(place, sizeof place, "DMUTEX_LOCAL_DIR=%s", in_folder(spoils[i]));
        if (i == 1) {
            assert_return_code(symlink(folder, in_folder(spoils[i])), errno);
        } else if (i == 2) {
            assert_non_null(file = fopen(in_folder(spoils[i]), "w"));
            fclose(file);
        } else {
            assert_return_code(mkdir(in_folder(spoils[i]), 0700), errno);
        }
        if (i == 0)
            assert_return_code(chmod(in_folder(spoils[i]), 0777), errno);
        if (i == 3)
            assert_return_code(chown(in_folder(spoils[i]), 65534, 65534), errno);
        a = actor_start_with(NULL, place, NULL);
        check_refused(a, words[i]);
        actor_end(a);
        assert_int_equal(access(in_folder("open/s"), F_OK), -1);
        assert_int_equal(access(in_folder("foreign/s"), F_OK), -1);
        assert_int_equal(access(in_folder("s"), F_OK), -1);
    }
}

/* From now on this process can make threads, but no processes. */
static bool forbid_processes(void)
{
    const unsigned flags = offsetof(struct seccomp_data, args) + (__BYTE_ORDER__ == __ORDER_BIG_ENDIAN__ ? 4 : 0);
    struct sock_filter code[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_clone, 0, 3),
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, flags),
        BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, CLONE_VFORK, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EAGAIN),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };

    return filter_refuse(SYS_clone3, ENOSYS) && filter_add(code, sizeof code / sizeof code[0]);
}

/* A process is short of what it may have again: it waits, as for a server that is away. */
static void test_calls_wait_when_no_process_can_be_made(void **state)
{
    struct timespec deadline;
    dmutex_t mutex;
    pid_t pid;

    (void)state;
    if (IS_THREAD_SANITIZED)
        return; /* the forked child starts threads */
    pid = keeper_fork();
    if (pid == 0) {
        if (putenv(local_dir) || setenv("DMUTEX_URL", "local:", 1) || !forbid_processes() ||
            dmutex_init_np(&mutex, "local/none", NULL) || clock_gettime(CLOCK_REALTIME, &deadline))
            _exit(99);
        deadline.tv_sec++;
        if (dmutex_timedlock(&mutex, &deadline) != ETIMEDOUT)
            _exit(1);
        if (dmutex_trylock(&mutex) != ENOLCK)
            _exit(2);
        _exit(strstr(dmutex_strerror_np(), "cannot be used now") &&
                      strstr(dmutex_strerror_np(), "look at ulimit -u and pids.max")
                  ? 0
                  : 3);
    }
    assert_int_equal(keeper_reap(pid), 0);
}

/* As in a unit with RestrictAddressFamilies=. */
static void assert_sentence_without_sockets(const char *url, const char *words)
{
    dmutex_t mutex;
    pid_t pid = keeper_fork();

    if (pid == 0) {
        if (putenv(local_dir) || setenv("DMUTEX_URL", url, 1) || setenv("DMUTEX_ONDOWN", "fail", 1) ||
            !filter_refuse(SYS_socket, EAFNOSUPPORT) || dmutex_init_np(&mutex, "local/none", NULL))
            _exit(99);
        if (dmutex_lock(&mutex) != ENOLCK)
            _exit(1);
        _exit(strstr(dmutex_strerror_np(), words) ? 0 : 2);
    }
    assert_int_equal(keeper_reap(pid), 0);
}

static void test_calls_say_enolck_when_a_process_may_make_no_socket(void **state)
{
    (void)state;
    if (IS_THREAD_SANITIZED)
        return; /* the forked child starts threads */
    assert_sentence_without_sockets("local:", "allow AF_UNIX, as in RestrictAddressFamilies=");
    assert_sentence_without_sockets("unix:///nowhere/s", "allow AF_UNIX");
    assert_sentence_without_sockets("redis://127.0.0.1:1", "AF_INET and AF_INET6, as in RestrictAddressFamilies=");
}

/* Which folder a relative path means would depend on where a process is. */
static void test_calls_say_enolck_when_the_folder_is_relative(void **state)
{
    struct actor *a = actor_start_with(NULL, "DMUTEX_LOCAL_DIR=some/folder", NULL);

    (void)state;
    check_refused(a, "DMUTEX_LOCAL_DIR=some/folder is not an absolute path");
    actor_end(a);
}

/* A folder with a path too long for any socket. */
static void test_calls_say_enolck_when_the_folders_name_is_too_long(void **state)
{
    char place[256];
    struct actor *a;

    (void)state;
    snprintf(place, sizeof place, "%s/%0*d", local_dir, 100, 0);
    a = actor_start_with(NULL, place, NULL);
    check_refused(a, "107 bytes");
    actor_end(a);
}

#define LOCAL_TEST(test) cmocka_unit_test_setup_teardown(test, begin_test, end_test)

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        LOCAL_TEST(test_the_server_is_started_when_nothing_is_configured),
        LOCAL_TEST(test_the_server_is_private_when_started),
        LOCAL_TEST(test_one_server_is_started_when_many_begin_at_once),
        LOCAL_TEST(test_the_server_lives_on_when_its_starter_is_killed),
        LOCAL_TEST(test_the_server_is_started_again_when_it_was_killed),
        LOCAL_TEST(test_a_held_lock_is_nobody_elses_when_the_server_is_killed),
        LOCAL_TEST(test_a_new_server_grants_at_once_when_nobody_is_left_of_the_one_before),
        LOCAL_TEST(test_a_new_server_grants_at_once_when_a_forked_child_is_left),
        LOCAL_TEST(test_a_new_server_has_a_grace_when_the_previous_one_had_none),
        LOCAL_TEST(test_no_second_server_is_started_when_the_files_were_deleted),
        LOCAL_TEST(test_no_second_server_is_started_when_the_first_is_in_another_network),
        LOCAL_TEST(test_the_server_has_nothing_of_its_starter),
        LOCAL_TEST(test_valkey_server_is_started_when_there_is_no_redis_server),
        LOCAL_TEST(test_calls_say_enolck_when_no_server_is_installed),
        LOCAL_TEST(test_calls_say_enolck_when_the_folder_is_not_safe),
        LOCAL_TEST(test_calls_wait_when_no_process_can_be_made),
        LOCAL_TEST(test_calls_say_enolck_when_a_process_may_make_no_socket),
        LOCAL_TEST(test_calls_say_enolck_when_the_folder_is_relative),
        LOCAL_TEST(test_calls_say_enolck_when_the_folders_name_is_too_long),
    };

    test_begin(argc, argv);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
