/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Threads with the smallest stack that pthread_create() accepts, with a guard page below it: there is room for each
 * public call, at first use, in a wait, when the connection breaks and without a server.
 *
 * This program executes itself with --stacks SCENE: a process that makes the first call on such a stack.  The depth of
 * each call is measured by paint: a pattern below the caller's frame, and how much of it the call overwrote.
 */
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../lib/testlib.h"

#define COUNT(array) (sizeof(array) / sizeof(array)[0])

/* Under a sanitizer frames are larger, and PTHREAD_STACK_MIN says nothing: the calls run, unmeasured. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define IS_SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define IS_SANITIZED 1
#endif
#endif
#ifndef IS_SANITIZED
#define IS_SANITIZED 0
#endif

#if IS_SANITIZED
#define STACK_SIZE (1024 * 1024)
#define DEPTH_MAX STACK_SIZE
#elif defined(__OPTIMIZE__)
#define STACK_SIZE (16 * 1024)
#define DEPTH_MAX (8 * 1024)
#else
#define STACK_SIZE (16 * 1024)
#define DEPTH_MAX STACK_SIZE
#endif

#define GUARD_SIZE (64 * 1024)
#define PAINT 0xA5
#define MARGIN 512 /* below the caller's frame, left to the painting function */

/* ---- a small stack ------------------------------------------------------------------------ */

struct stack {
    unsigned char *lowest;
    void (*play)(struct stack *stack);
};

static void *play_on_stack(void *user)
{
    struct stack *stack = user;

    stack->play(stack);
    return NULL;
}

/* Begins a thread with a stack of the smallest size. */
static pthread_t begin_on_small_stack(struct stack *stack, void (*play)(struct stack *))
{
    unsigned char *room = mmap(NULL, GUARD_SIZE + STACK_SIZE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    pthread_attr_t attributes;
    pthread_t thread;

    stack->lowest = room + GUARD_SIZE;
    stack->play = play;
    pthread_attr_init(&attributes);
    if (room == MAP_FAILED || mprotect(stack->lowest, STACK_SIZE, PROT_READ | PROT_WRITE) != 0 ||
        pthread_attr_setstack(&attributes, stack->lowest, STACK_SIZE) != 0 ||
        pthread_create(&thread, &attributes, play_on_stack, stack) != 0) {
        puts("no small stack");
        exit(3);
    }
    pthread_attr_destroy(&attributes);
    return thread;
}

static void run_on_small_stack(void (*play)(struct stack *))
{
    struct stack stack;

    pthread_join(begin_on_small_stack(&stack, play), NULL);
}

#if IS_SANITIZED
static void paint(struct stack *stack)
{
    (void)stack;
}

static long depth_of(struct stack *stack)
{
    (void)stack;
    return 0;
}
#else
static __attribute__((noinline)) unsigned char *here(void)
{
    return __builtin_frame_address(0);
}

static __attribute__((noinline)) void paint(struct stack *stack)
{
    unsigned char *end = here() - MARGIN;

    for (volatile unsigned char *at = stack->lowest; at < end; at++)
        *at = PAINT;
}

static __attribute__((noinline)) long depth_of(struct stack *stack)
{
    unsigned char *at = stack->lowest;

    while (*at == PAINT)
        at++;
    return here() - at;
}
#endif

/* Says a call's result and depth; not from the small stack, because printf() needs more. */
static struct {
    const char *call;
    int result;
    long depth;
} measured[64];
static size_t measured_count;

static void note(const char *call, int result, long depth)
{
    measured[measured_count].call = call;
    measured[measured_count].result = result;
    measured[measured_count++].depth = depth;
}

#define MEASURE(call)                                  \
    do {                                               \
        int measured_result;                           \
                                                       \
        paint(stack);                                  \
        measured_result = (call);                      \
        note(#call, measured_result, depth_of(stack)); \
    } while (0)

static int print_measured(void)
{
    for (size_t i = 0; i < measured_count; i++)
        printf("%ld %s %s\n", measured[i].depth, result_name(measured[i].result), measured[i].call);
    return 0;
}

/* ---- scenes: run in the executed process ------------------------------------------------- */

static dmutex_t named = DMUTEX_INITIALIZER("stacks/named"), other = DMUTEX_INITIALIZER("stacks/other");
static dmutex_t robust = DMUTEX_ROBUST_INITIALIZER("stacks/robust");
static dcond_t condition = DCOND_INITIALIZER("stacks/condition");

static struct timespec in_ms(clockid_t clock, int64_t ms)
{
    return wait_time_in_ms(clock, ms);
}

static void call_mutexes(struct stack *stack)
{
    dmutexattr_t attr;
    dmutex_t shared;
    dmutex_info_t info = { .struct_size = sizeof info };
    struct timespec soon;
    uint64_t token;
    int64_t left_ms;
    unsigned count;
    int is_locked_now;
    char name[DMUTEX_NAME_MAX_NP + 1];

    MEASURE(dmutex_lock(&named));
    MEASURE(dmutex_trylock(&named));
    MEASURE(dmutex_token_np(&named, &token));
    MEASURE(dmutex_remaining_np(&named, &left_ms));
    MEASURE(dmutex_holdcount_np(&named, &count));
    MEASURE(dmutex_islocked_np(&named, &is_locked_now));
    MEASURE(dmutex_getinfo_np(&named, &info));
    MEASURE(dmutex_renew_np(&named));
    MEASURE(dmutex_getname_np(&named, name, sizeof name));
    MEASURE(dmutex_unlock(&named));
    soon = in_ms(CLOCK_REALTIME, 1000);
    MEASURE(dmutex_timedlock(&named, &soon));
    MEASURE(dmutex_forceunlock_np(&named));
    MEASURE(dmutex_unlock(&named));
    soon = in_ms(CLOCK_MONOTONIC, 1000);
    MEASURE(dmutex_clocklock(&named, CLOCK_MONOTONIC, &soon));
    MEASURE(dmutex_unlock(&named));
    MEASURE(dmutexattr_init(&attr));
    MEASURE(dmutexattr_setpshared(&attr, PTHREAD_PROCESS_SHARED));
    MEASURE(dmutex_init(&shared, &attr));
    MEASURE(dmutex_lock(&shared));
    MEASURE(dmutex_unlock(&shared));
    MEASURE(dmutex_destroy(&shared));
    MEASURE(dmutex_consistent(&robust));
    MEASURE(dmutex_strerror_np()[0] == '\0');
}

static void call_conditions(struct stack *stack)
{
    dmutexattr_t attr;
    dmutex_t shared;
    dcondattr_t condattr;
    dcond_t anonymous;
    struct timespec soon;

    MEASURE(dcond_signal(&condition));
    MEASURE(dmutex_lock(&named));
    soon = in_ms(CLOCK_REALTIME, 50);
    MEASURE(dcond_timedwait(&condition, &named, &soon));
    soon = in_ms(CLOCK_MONOTONIC, 50);
    MEASURE(dcond_clockwait(&condition, &named, CLOCK_MONOTONIC, &soon));
    MEASURE(dmutex_unlock(&named));
    MEASURE(dcond_broadcast(&condition));
    MEASURE(dcond_destroy(&condition));
    dmutexattr_init(&attr);
    dmutexattr_setpshared(&attr, PTHREAD_PROCESS_SHARED);
    dcondattr_init(&condattr);
    dcondattr_setpshared(&condattr, PTHREAD_PROCESS_SHARED);
    MEASURE(dmutex_init(&shared, &attr));
    MEASURE(dcond_init(&anonymous, &condattr));
    MEASURE(dmutex_lock(&shared));
    soon = in_ms(CLOCK_REALTIME, 50);
    MEASURE(dcond_timedwait(&anonymous, &shared, &soon));
    MEASURE(dmutex_unlock(&shared));
    MEASURE(dcond_signal(&anonymous));
    MEASURE(dcond_destroy(&anonymous));
    MEASURE(dmutex_destroy(&named));
    MEASURE(dmutex_destroy(&shared));
}

static int play_calls(const char *url)
{
    (void)url;
    run_on_small_stack(call_mutexes);
    run_on_small_stack(call_conditions);
    return print_measured();
}

static const char *url_to_configure;

static void configure(struct stack *stack)
{
    MEASURE(dmutex_configure_np(url_to_configure));
    MEASURE(dmutex_configure_np("redis://no:[::1"));
    MEASURE(dcond_broadcast(&condition));
}

/* The library is given a server, and started by a condition, on a small stack. */
static int play_configured(const char *url)
{
    url_to_configure = url;
    run_on_small_stack(configure);
    return print_measured();
}

static bool is_inside, may_leave; /* guarded by `named`, and by the server's answers */

static dmutex_t fair; /* each thread waits in the server's queue */

static void wait_in_queue(struct stack *stack)
{
    MEASURE(dmutex_lock(&fair));
    MEASURE(dmutex_unlock(&fair));
}

static void wait_for_signal(struct stack *stack)
{
    dmutex_lock(&named);
    is_inside = true;
    while (!may_leave)
        MEASURE(dcond_wait(&condition, &named));
    MEASURE(dmutex_unlock(&named));
}

/* Waiters are served by a message, and by a signal. */
static int play_waiters(const char *url)
{
    struct stack stack;
    pthread_t thread;
    bool is_there = false;

    (void)url;
    make_normal(&fair, "stacks/fair", 0);
    dmutex_lock(&fair);
    thread = begin_on_small_stack(&stack, wait_in_queue);
    wait_until(waiters_of(&fair) == 1);
    dmutex_unlock(&fair);
    pthread_join(thread, NULL);
    thread = begin_on_small_stack(&stack, wait_for_signal);
    while (!is_there) {
        dmutex_lock(&named);
        is_there = is_inside;
        may_leave = is_there;
        dmutex_unlock(&named);
    }
    dcond_signal(&condition);
    pthread_join(thread, NULL);
    return print_measured();
}

/* ---- cancelled in a wait ---- */

/* Stack that the thread's own functions have taken before the wait. */
#define OWN_STACK 512

static dmutex_t anonymous_mutex;
static dcond_t anonymous_condition;

static int wait_named(void)
{
    return dcond_wait(&condition, &named);
}

static int wait_for_hours(void)
{
    struct timespec late = in_ms(CLOCK_REALTIME, 3600 * 1000);

    return dcond_timedwait(&condition, &named, &late);
}

static int wait_by_clock(void)
{
    struct timespec late = in_ms(CLOCK_MONOTONIC, 3600 * 1000);

    return dcond_clockwait(&condition, &named, CLOCK_MONOTONIC, &late);
}

static int wait_anonymous(void)
{
    return dcond_wait(&anonymous_condition, &anonymous_mutex);
}

static const struct {
    dmutex_t *mutex;
    int (*wait)(void);
} waits[] = {
    { &named, wait_named }, { &named, wait_for_hours }, { &named, wait_by_clock }, { &anonymous_mutex, wait_anonymous }
};

static size_t wait_now; /* of `waits` */
static pid_t waiter_id; /* guarded by the mutex of the wait */
static bool has_owned_in_handler;

static void give_back_in_handler(void *user)
{
    has_owned_in_handler = dmutex_unlock(user) == 0;
}

static void wait_to_be_cancelled(struct stack *stack)
{
    volatile char own[OWN_STACK];
    dmutex_t *mutex = waits[wait_now].mutex;

    (void)stack;
    own[0] = own[OWN_STACK - 1] = 0;
    dmutex_lock(mutex);
    waiter_id = gettid();
    pthread_cleanup_push(give_back_in_handler, mutex);
    while (own[0] == 0)
        waits[wait_now].wait();
    pthread_cleanup_pop(1);
}

/* Returns once the thread sleeps in the wait. */
static pthread_t begin_waiter(struct stack *stack)
{
    pid_t id = 0;
    pthread_t thread;

    waiter_id = 0;
    thread = begin_on_small_stack(stack, wait_to_be_cancelled);
    while (!id) {
        dmutex_lock(waits[wait_now].mutex);
        id = waiter_id;
        dmutex_unlock(waits[wait_now].mutex);
    }
    wait_until(proc_state(id) == 'S');
    return thread;
}

static void cancel_waiter(pthread_t thread)
{
    void *value;

    has_owned_in_handler = false;
    pthread_cancel(thread);
    pthread_join(thread, &value);
    note("a cancelled wait", value == PTHREAD_CANCELED && has_owned_in_handler ? 0 : EIO, 0);
}

/* Two threads, because one sleeps at the socket and the other waits for it. */
static int play_cancelled(const char *url)
{
    dmutexattr_t attr;
    dcondattr_t condattr;
    struct stack stacks[2];
    pthread_t threads[2];

    (void)url;
    dmutexattr_init(&attr);
    dmutexattr_setpshared(&attr, PTHREAD_PROCESS_SHARED);
    dmutex_init(&anonymous_mutex, &attr);
    dcondattr_init(&condattr);
    dcondattr_setpshared(&condattr, PTHREAD_PROCESS_SHARED);
    dcond_init(&anonymous_condition, &condattr);
    for (wait_now = 0; wait_now < COUNT(waits); wait_now++) {
        threads[0] = begin_waiter(&stacks[0]);
        threads[1] = begin_waiter(&stacks[1]);
        cancel_waiter(threads[1]);
        cancel_waiter(threads[0]);
    }
    dcond_destroy(&condition);
    dcond_destroy(&anonymous_condition);
    dmutex_destroy(&named);
    dmutex_destroy(&anonymous_mutex);
    return print_measured();
}

static void call_without_server(struct stack *stack)
{
    struct timespec soon;
    int is_locked_now;

    MEASURE(dmutex_trylock(&named));
    MEASURE(dmutex_islocked_np(&named, &is_locked_now));
    soon = in_ms(CLOCK_REALTIME, 300);
    MEASURE(dmutex_timedlock(&named, &soon));
    MEASURE(dcond_signal(&condition));
}

static void take_line(int level, const char *message, void *user)
{
    (void)level;
    (void)message;
    (void)user;
}

/* No server, and everything is logged: failures of the connection are reported on the caller's stack. */
static int play_down(const char *url)
{
    (void)url;
    dmutex_setlog_np(take_line, NULL);
    run_on_small_stack(call_without_server);
    return print_measured();
}

static void hold_over_breaks(struct stack *stack)
{
    for (int i = 0; i < 4; i++) {
        MEASURE(dmutex_lock(&named));
        MEASURE(dmutex_renew_np(&named));
        MEASURE(dmutex_unlock(&named));
        MEASURE(dcond_signal(&condition));
    }
}

static bool is_over;

static void *break_connections(void *path)
{
    struct side *side = side_try_open(path);

    while (side && !__atomic_load_n(&is_over, __ATOMIC_ACQUIRE)) {
        side_try(side, "CLIENT KILL TYPE normal SKIPME yes");
        side_try(side, "CLIENT KILL TYPE pubsub");
        wait_nap();
    }
    if (side)
        side_close(side);
    return NULL;
}

/* Connections break all the time; a caller notices the break, logs it, reconnects and greets. */
static int play_breaks(const char *url)
{
    pthread_t breaker;

    dmutex_setlog_np(take_line, NULL);
    pthread_create(&breaker, NULL, break_connections, (void *)url);
    run_on_small_stack(hold_over_breaks);
    __atomic_store_n(&is_over, true, __ATOMIC_RELEASE);
    pthread_join(breaker, NULL);
    return print_measured();
}

static void end_with_hold(struct stack *stack)
{
    MEASURE(dmutex_lock(&robust)); /* the thread's end reports the death, on this stack */
}

static void lock_after_dead(struct stack *stack)
{
    MEASURE(dmutex_lock(&robust));
    MEASURE(dmutex_consistent(&robust));
    MEASURE(dmutex_unlock(&robust));
}

static void fork_and_lock(struct stack *stack)
{
    int status = -1;
    pid_t pid;

    MEASURE((pid = fork()) < 0);
    if (pid == 0) {
        dmutex_lock(&other);
        _exit(dmutex_unlock(&other) == 0 ? 0 : 4);
    }
    waitpid(pid, &status, 0);
    note("lock in the child", status == 0 ? 0 : EIO, 0);
}

static void exit_here(struct stack *stack)
{
    dmutex_lock(&named);
    (void)stack;
    print_measured();
    exit(0);
}

/* The thread's end, a forked child, and exit(). */
static int play_ends(const char *url)
{
    (void)url;
    run_on_small_stack(end_with_hold);
    run_on_small_stack(lock_after_dead);
    if (!IS_SANITIZED) /* the thread sanitizer cannot follow a fork while there are threads */
        run_on_small_stack(fork_and_lock);
    run_on_small_stack(exit_here);
    return 5;
}

static const struct {
    const char *name;
    int (*play)(const char *url);
} scenes[] = {
    { "calls", play_calls },         { "configured", play_configured }, { "waiters", play_waiters },
    { "down", play_down },           { "breaks", play_breaks },         { "ends", play_ends },
    { "cancelled", play_cancelled },
};

static int play_scene(const char *name, const char *url)
{
    for (size_t i = 0; i < COUNT(scenes); i++) {
        if (strcmp(scenes[i].name, name) == 0)
            return scenes[i].play(url);
    }
    return 2;
}

/* ---- the tests ---------------------------------------------------------------------------- */

/* Each line says: depth, result, call.  No depth is more than a call may have. */
static void check_depths(const char *scene)
{
    const char *line = ran.output;

    assert_true(line[0]);
    for (; line[0]; line += strcspn(line, "\n") + 1) {
        if (strtol(line, NULL, 10) > DEPTH_MAX)
            fail_msg("%s: deeper than %d bytes: %.*s", scene, DEPTH_MAX, (int)strcspn(line, "\n"), line);
    }
}

static void check_scene(const char *scene, const char *url, const char *argument)
{
    command_run("DMUTEX_URL='%s' DMUTEX_LOG=debug:%s/stacks.log exec %s --stacks %s '%s'", url, the_server->folder,
                program_path, scene, argument);
    assert_status(0);
    check_depths(scene);
}

/* The result of a measured call is there as often as that. */
static void assert_results(const char *result_and_call, int wanted)
{
    int count = 0;

    for (const char *at = ran.output; (at = strstr(at, result_and_call)); at++)
        count++;
    if (count != wanted)
        fail_msg("\"%s\" %d times, and not %d:\n%s", result_and_call, count, wanted, ran.output);
}

/* Every call, the first of the process included, over a unix socket. */
static void test_each_call_has_room_when_the_stack_is_the_smallest(void **state)
{
    (void)state;
    check_scene("calls", the_server->url, "");
    assert_results(" 0 dmutex_lock(&named)", 2);
    assert_results(" ETIMEDOUT dcond_timedwait", 2);
    assert_results(" 0 dcond_destroy", 2);
}

/* The same over TCP: numeric addresses are looked up on the caller's stack. */
static void test_each_call_has_room_when_the_server_is_reached_by_tcp(void **state)
{
    struct server *server = server_start_with(true, NULL);

    (void)state;
    check_scene("calls", server->tcp_url, "");
    assert_results(" 0 dmutex_lock(&named)", 2);
    check_scene("ends", server->tcp_url, "");
    server_end(server);
}

/* The URL is read and the library started by dmutex_configure_np() and a condition. */
static void test_the_first_call_has_room_when_it_is_configure(void **state)
{
    (void)state;
    check_scene("configured", "unix:///nowhere", the_server->url);
    assert_results(" 0 dmutex_configure_np(url_to_configure)", 1);
    assert_results(" 0 dcond_broadcast", 1);
}

/* A message makes the waiter the owner; a signal ends a wait. */
static void test_a_wait_has_room_when_it_is_ended_by_a_message(void **state)
{
    (void)state;
    check_scene("waiters", the_server->url, "");
    assert_results(" 0 dcond_wait", 1);
}

/* The signal's frame and the unwinding come on top of the wait. */
static void test_a_wait_has_room_to_unwind_when_it_is_cancelled(void **state)
{
    (void)state;
    check_scene("cancelled", the_server->url, "");
    assert_results(" 0 a cancelled wait", 2 * COUNT(waits));
}

/* Nothing listens at the address; by number, and by a name that another thread looks up. */
static void test_a_refused_call_has_room_when_no_server_is_there(void **state)
{
    static const char *const urls[] = { "unix:///nowhere/s?command_timeout=300",
                                        "redis://127.0.0.1:1?command_timeout=300",
                                        "redis://nowhere.invalid:1?command_timeout=300" };

    (void)state;
    for (size_t i = 0; i < COUNT(urls); i++) {
        check_scene("down", urls[i], "");
        assert_results(" ENOLCK dmutex_trylock", 1);
        assert_results(" ETIMEDOUT dmutex_timedlock", 1);
    }
}

/* Connections are cut all the time. */
static void test_calls_have_room_when_connections_break(void **state)
{
    struct server *server = server_start(); /* the server's side connection is cut with the others */

    (void)state;
    check_scene("breaks", server->url, server->path);
    assert_results(" 0 dmutex_lock", 4);
    server_end(server);
}

/* A thread that holds a robust mutex ends; fork(); exit(). */
static void test_ends_have_room_when_the_stack_is_the_smallest(void **state)
{
    (void)state;
    check_scene("ends", the_server->url, "");
    assert_results(" EOWNERDEAD dmutex_lock(&robust)", 1);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_each_call_has_room_when_the_stack_is_the_smallest),
        cmocka_unit_test(test_each_call_has_room_when_the_server_is_reached_by_tcp),
        cmocka_unit_test(test_the_first_call_has_room_when_it_is_configure),
        cmocka_unit_test(test_a_wait_has_room_when_it_is_ended_by_a_message),
        cmocka_unit_test(test_a_wait_has_room_to_unwind_when_it_is_cancelled),
        cmocka_unit_test(test_a_refused_call_has_room_when_no_server_is_there),
        cmocka_unit_test(test_calls_have_room_when_connections_break),
        cmocka_unit_test(test_ends_have_room_when_the_stack_is_the_smallest),
        cmocka_unit_test(test_nothing_is_left),
    };

    if (argc > 3 && strcmp(argv[1], "--stacks") == 0)
        return play_scene(argv[2], argv[3]);
    test_begin(argc, argv);
    return cmocka_run_group_tests(tests, test_group_setup, test_group_teardown);
}
