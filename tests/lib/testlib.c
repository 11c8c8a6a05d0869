/* SPDX-License-Identifier: BSD-2-Clause */
#include "testlib.h"

#include <dirent.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

char *program_path;
struct server *the_server;
struct proxy *the_proxy;
static int descriptors_before;

/* The server that configure found; "" if it found none. */
static void refuse_without_server(void)
{
    const char *program = getenv("DMUTEX_TEST_SERVER");

    if (!program || !strchr(program, '/') || access(program, X_OK) == 0)
        return;
    fprintf(stderr, "%s, which configure found, is gone: run configure again, in the build directory\n", program);
    exit(2);
}

/*
 * As from a terminal. A shell without job control ignores SIGINT and SIGQUIT in what it starts in the background, nohup
 * ignores SIGHUP, Python SIGPIPE, and all programs of the tests would inherit that.
 */
static void heed_signals(void)
{
    struct sigaction action;

    for (int number = 1; number <= SIGSYS; number++)
        if (sigaction(number, NULL, &action) == 0 && action.sa_handler == SIG_IGN)
            signal(number, SIG_DFL);
}

/* Ends in the same way as the child. */
static void end_as(int status)
{
    if (WIFSIGNALED(status)) {
        signal(WTERMSIG(status), SIG_DFL);
        raise(WTERMSIG(status));
    }
    _exit(WIFEXITED(status) ? WEXITSTATUS(status) : 2);
}

/*
 * The program continues in a child.  This process reaps what the tests leave behind, as a good process 1 does: that of
 * the machine or container may be slow, or reap nothing, and then a keeper of lock files does not end.
 */
static void begin_below_a_reaper(void)
{
    pid_t reaper = getpid(), program, ended;
    int status;

    prctl(PR_SET_CHILD_SUBREAPER, 1);
    program = fork();
    if (program < 0) {
        perror("fork");
        exit(2);
    }
    if (program == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (getppid() != reaper)
            _exit(2);
        return;
    }
    do
        ended = waitpid(-1, &status, 0);
    while (ended != program && (ended > 0 || errno == EINTR));
    end_as(status);
}

void test_begin(int argc, char **argv)
{
    static char path[4096];
    ssize_t length = readlink("/proc/self/exe", path, sizeof path - 1);

    program_path = length > 0 ? path : argv[0];
    setenv("DMUTEX_PRIVATE", "server", 0); /* here and in executed programs; unless the caller says libc */
    if (argc > 2 && strcmp(argv[1], "--role") == 0) {
        if (strcmp(argv[2], "actor") == 0)
            actor_serve();
        if (strcmp(argv[2], "proxy") == 0)
            proxy_serve();
        fprintf(stderr, "%s is no role\n", argv[2]);
        exit(2);
    }
    if (argc > 1)
        cmocka_set_test_filter(argv[1]);
    refuse_without_server();
    heed_signals();
    begin_below_a_reaper();
    keeper_begin();
}

bool private_is_libc(void)
{
    return strcmp(getenv("DMUTEX_PRIVATE"), "libc") == 0;
}

void test_put_server_into_path(void)
{
    const char *program = getenv("DMUTEX_TEST_SERVER"), *slash = program ? strrchr(program, '/') : NULL;
    char path[8192];

    if (!slash)
        return;
    snprintf(path, sizeof path, "%.*s:%s", (int)(slash - program), program, getenv("PATH"));
    setenv("PATH", path, 1);
}

/* Test programs are below tests/; folders above the build tree may have that name, too. */
void test_build_path(char *ret_path, size_t room, const char *name)
{
    const char *tests = NULL;

    for (const char *at = program_path; (at = strstr(at, "/tests/")); at++)
        tests = at;
    assert_non_null(tests);
    snprintf(ret_path, room, "%.*s/%s", (int)(tests - program_path), program_path, name);
    assert_return_code(access(ret_path, F_OK), errno);
}

const char *test_compiler(void)
{
    const char *given = getenv("CC");

    return given && *given ? given : "cc";
}

void test_tell_asan(const char *option)
{
    const char *usual = getenv("ASAN_OPTIONS");
    char options[1000];

    snprintf(options, sizeof options, "%s:%s", usual ? usual : "", option);
    setenv("ASAN_OPTIONS", options, 1);
}

/* On a loaded machine the time may be up before the call has begun to wait; then the call is repeated. */
static bool has_waited(dmutex_t *mutex)
{
    struct timespec soon = wait_time_in_ms(CLOCK_REALTIME, 20);

    assert_result(dmutex_timedlock(mutex, &soon), ETIMEDOUT);
    return true;
}

/* Opens all descriptors that the library opens at its first use, and at the first wait. */
static void warm_up(void)
{
    dmutex_t mutex;

    make_fair(&mutex, "test/warm", &kinds[0], 0);
    assert_result(dmutex_lock(&mutex), 0);
    wait_until(has_waited(&mutex) && side_count_channels(the_server->side) == 1);
    assert_result(dmutex_unlock(&mutex), 0);
    assert_result(dmutex_destroy(&mutex), 0);
}

int test_group_setup(void **state)
{
    the_server = server_start();
    setenv("DMUTEX_URL", the_server->url, 1);
    warm_up();
    descriptors_before = open_descriptors();
    *state = the_server;
    return 0;
}

int test_group_teardown(void **state)
{
    (void)state;
    server_end(the_server);
    return 0;
}

int test_proxy_setup(void **state)
{
    (void)state;
    the_proxy = proxy_start(the_server);
    return 0;
}

int test_proxy_teardown(void **state)
{
    (void)state;
    proxy_end(the_proxy);
    return 0;
}

int64_t client_commands(void)
{
    return side_client_commands(the_server->side);
}

void test_nothing_is_left(void **state)
{
    (void)state;
    check_descriptors(descriptors_before);
    check_keys(the_server->side);
}

int open_descriptors(void)
{
    DIR *folder = opendir("/proc/self/fd");
    int count = -3 - server_ports_taken(); /* ".", ".." and the folder itself */

    while (readdir(folder))
        count++;
    closedir(folder);
    return count;
}

void check_descriptors(int before)
{
    wait_until(open_descriptors() <= before);
}

/* The mark of a server, or of a node of a Cluster. */
static bool is_mark(const char *key)
{
    const char *brace = strchr(key, '}');

    return strcmp(key, "dmutex:server") == 0 || (brace && strcmp(brace, "}:server") == 0);
}

/*
 * A key that may stay: the state of a named mutex; the binding of a named condition, which expires by itself; a mark; a
 * control of a test.
 */
static bool may_stay(struct side *side, const char *key)
{
    if (strncmp(key, "control:", 8) == 0 || is_mark(key))
        return true;
    if (strstr(key, ":{~") || strstr(key, ":~"))
        return false;
    return strstr(key, "}:state:") || (strstr(key, "}:sleeper:") && side_int(side, "PTTL %s", key) >= 0);
}

/* A key that may not stay, or "".  Valid until the next call. */
static const char *find_leak(struct side *side)
{
    static char leak[1024];
    char *keys = strdup(side_keys(side)), *rest = keys, *key;

    leak[0] = '\0';
    while (!leak[0] && (key = strsep(&rest, "\n"))) {
        if (key[0] && !may_stay(side, key))
            snprintf(leak, sizeof leak, "%s", key);
    }
    free(keys);
    return leak;
}

void check_keys(struct side *side)
{
    int64_t until_ms = wait_now_ms() + WAIT_LIMIT_MS / 3;

    while (find_leak(side)[0]) {
        if (wait_now_ms() > until_ms)
            fail_msg("a key is left: %s", find_leak(side));
        wait_nap();
    }
}

const char *result_name(int result)
{
    const char *name = result == 0 ? "0" : strerrorname_np(result);

    return name ? name : "no errno value";
}

int waiters_of(dmutex_t *mutex)
{
    dmutex_info_t info = { .struct_size = sizeof info };

    return dmutex_getinfo_np(mutex, &info) == 0 ? (int)info.waiters : -1;
}

bool is_locked(dmutex_t *mutex)
{
    int locked = -1;

    return dmutex_islocked_np(mutex, &locked) == 0 && locked;
}

static bool is_long(void)
{
    const char *said = getenv("DMUTEX_TEST_LONG");

    return said && *said;
}

int repetitions(int usual)
{
    return is_long() ? usual * 10 : usual;
}

long count_from(const char *variable, long usual, long many)
{
    const char *said = getenv(variable);

    if (said && *said)
        return strtol(said, NULL, 10);
    return is_long() ? many : usual;
}

/* ---- bounds ------------------------------------------------------------------------------ */

void promise_within(int ms)
{
    side_set_bound(the_server->side, "bound", ms);
}

void assert_kept(void)
{
    assert_false(side_is_control_over(the_server->side, "bound"));
}

void let_pass(int ms)
{
    side_set_control(the_server->side, "time", ms);
    side_await_control(the_server->side, "time");
}
