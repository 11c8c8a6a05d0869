/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The usual calls take no memory from malloc(), once they are warm: a handler that forks may interrupt them anywhere,
 * and no lack of memory keeps a lock from its release.
 */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "../lib/testlib.h"

#define WARM_UP 200
#define CALLS 1000

/* Longer than the tests: no renewal in between. */
#define LONG_LEASE 60000

static __thread volatile bool is_counting; /* volatile: a compiler knows what malloc() does, and ours does more */
static __thread volatile int allocations;

static void note_allocation(const volatile void *memory, size_t size)
{
    (void)memory;
    (void)size;
    if (is_counting)
        allocations = allocations + 1;
}

/* Sanitizers have their own allocator, with hooks; libc's has none, and is called by the functions here. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
extern int __sanitizer_install_malloc_and_free_hooks(void (*allocated)(const volatile void *, size_t),
                                                     void (*freed)(const volatile void *));

static void note_free(const volatile void *memory)
{
    (void)memory;
}

static void begin_to_count(void)
{
    __sanitizer_install_malloc_and_free_hooks(note_allocation, note_free);
}
#else
extern void *__libc_malloc(size_t size);
extern void *__libc_calloc(size_t count, size_t size);
extern void *__libc_realloc(void *memory, size_t size);

void *malloc(size_t size)
{
    note_allocation(NULL, size);
    return __libc_malloc(size);
}

void *calloc(size_t count, size_t size)
{
    note_allocation(NULL, size);
    return __libc_calloc(count, size);
}

void *realloc(void *memory, size_t size)
{
    note_allocation(NULL, size);
    return __libc_realloc(memory, size);
}

static void begin_to_count(void)
{
}
#endif

static dmutex_t mutex;
static dcond_t condition = DCOND_INITIALIZER("allocations/condition");

static int pair(void)
{
    return lock_and_unlock(&mutex);
}

static int hold_and_signal(void)
{
    int result = dmutex_lock(&mutex);

    if (result == 0)
        result = dcond_signal(&condition);
    return result ? result : dmutex_unlock(&mutex);
}

static int hold_and_renew(void)
{
    int result = dmutex_trylock(&mutex);

    if (result == 0)
        result = dmutex_renew_np(&mutex);
    return result ? result : dmutex_unlock(&mutex);
}

static int hold_and_wait(void)
{
    struct timespec past = wait_time_in_ms(CLOCK_REALTIME, -1);
    int result = dmutex_lock(&mutex);

    if (result == 0 && dcond_timedwait(&condition, &mutex, &past) != ETIMEDOUT)
        result = EIO;
    return result ? result : dmutex_unlock(&mutex);
}

static void repeat(int (*call)(void), int times)
{
    for (int i = 0; i < times; i++)
        assert_result(call(), 0);
}

static void assert_takes_no_memory(int (*call)(void))
{
    repeat(call, WARM_UP);
    allocations = 0;
    is_counting = true;
    repeat(call, CALLS);
    is_counting = false;
    assert_int_equal(allocations, 0);
}

/* Tests the counter itself: a test that cannot fail is worthless. */
static void test_an_allocation_is_counted_when_there_is_one(void **state)
{
    void *volatile memory;

    (void)state;
    allocations = 0;
    is_counting = true;
    memory = malloc(1);
    is_counting = false;
    free(memory);
    assert_int_equal(allocations, 1);
}

static void test_a_pair_takes_no_memory_when_nobody_else_wants_the_mutex(void **state)
{
    (void)state;
    make_fair(&mutex, "allocations/fair", &kinds[0], LONG_LEASE);
    assert_takes_no_memory(pair);
    make_handed(&mutex, "allocations/handed", &kinds[0], LONG_LEASE, 0);
    assert_takes_no_memory(pair);
    assert_takes_no_memory(hold_and_signal);
    assert_takes_no_memory(hold_and_renew);
}

/* The lease is kept: the server is not asked. */
static void test_a_relock_takes_no_memory_when_the_lease_is_kept(void **state)
{
    (void)state;
    make_handed(&mutex, "allocations/kept", &kinds[0], LONG_LEASE, LONG_LEASE);
    assert_takes_no_memory(pair);
    assert_result(dmutex_destroy(&mutex), 0);
}

static void test_a_wait_takes_no_memory_when_its_time_is_over(void **state)
{
    (void)state;
    make_fair(&mutex, "allocations/wait", &kinds[0], LONG_LEASE);
    assert_takes_no_memory(hold_and_wait);
}

/* Another process takes turns: messages of the server are read, too. */
static void test_a_handoff_takes_no_memory_when_another_process_takes_turns(void **state)
{
    struct actor *other = actor_start(the_server);
    char file[64];

    (void)state;
    snprintf(file, sizeof file, "%s/allocations", the_server->folder);
    make_fair(&mutex, "allocations/handoff", &kinds[0], LONG_LEASE);
    actor_do(other, "0", "init allocations/handoff lease=%d fair", LONG_LEASE);
    assert_result(dmutex_lock(&mutex), 0);
    actor_send(other, "count %s %d allocations/handoff", file, 20 * (WARM_UP + CALLS));
    wait_until(waiters_of(&mutex) == 1);
    assert_result(dmutex_unlock(&mutex), 0);
    assert_takes_no_memory(pair);
    assert_true(actor_is_silent(other)); /* it has taken turns to the end */
    actor_expect(other, "0");
    actor_end(other);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_an_allocation_is_counted_when_there_is_one),
        cmocka_unit_test(test_a_pair_takes_no_memory_when_nobody_else_wants_the_mutex),
        cmocka_unit_test(test_a_relock_takes_no_memory_when_the_lease_is_kept),
        cmocka_unit_test(test_a_wait_takes_no_memory_when_its_time_is_over),
        cmocka_unit_test(test_a_handoff_takes_no_memory_when_another_process_takes_turns),
        cmocka_unit_test(test_nothing_is_left),
    };

    begin_to_count();
    test_begin(argc, argv);
    return cmocka_run_group_tests(tests, test_group_setup, test_group_teardown);
}
