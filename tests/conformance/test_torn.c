/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Objects in memory that another process changes during calls: at one moment a name is terminated, at the next it is
 * not.  No call reads or writes anywhere else.
 *
 * The mutex is at the end of a page with no page after it; the compiler's canary guards the caller's frame, and bytes
 * after the buffer guard the buffer.
 */
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "../lib/testlib.h"

#define PAGE 4096
#define CALLS 200000
#define GUARD 64

/* The objects, at the end of the memory; the bytes after them cannot be read. */
struct torn {
    dcond_t cond;
    dmutex_t mutex;
};

static struct torn *torn;
static pid_t writer;

static struct torn *map_last(void)
{
    char *memory = mmap(NULL, 2 * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

    assert_ptr_not_equal(memory, MAP_FAILED);
    assert_int_equal(mprotect(memory + PAGE, PAGE, PROT_NONE), 0);
    return (struct torn *)(void *)(memory + PAGE - sizeof(struct torn));
}

static void fill(volatile char *bytes, size_t from, size_t to, char with)
{
    for (size_t i = from; i < to; i++)
        bytes[i] = with;
}

/* Another process keeps overwriting the ends of both names with letters, and restoring them. */
static void tear(void)
{
    for (;;) {
        fill(torn->mutex.dm_name, 10, sizeof torn->mutex.dm_name, 'x');
        fill(torn->cond.dm_name, 10, sizeof torn->cond.dm_name, 'x');
        fill(torn->mutex.dm_name, 10, sizeof torn->mutex.dm_name, '\0');
        fill(torn->cond.dm_name, 10, sizeof torn->cond.dm_name, '\0');
    }
}

static int begin(void **state)
{
    (void)state;
    torn = map_last();
    assert_result(dmutex_init_np(&torn->mutex, "torn/mutex", NULL), 0);
    assert_result(dcond_init_np(&torn->cond, "torn/cond", NULL), 0);
    writer = keeper_fork();
    if (writer == 0)
        tear();
    return 0;
}

static int end(void **state)
{
    (void)state;
    kill(writer, SIGKILL);
    keeper_reap(writer);
    munmap((char *)(torn + 1) - PAGE, 2 * PAGE);
    return 0;
}

static bool is_told_or_refused(int result)
{
    return result == 0 || result == EINVAL || result == EPERM || result == EBUSY;
}

/* The name begins as the real name, or the call has refused. */
static void check_name(int result, const char *name, const char *whole)
{
    assert_true(result == 0 || result == EINVAL);
    if (result == 0)
        assert_memory_equal(name, whole, 10);
}

/* getname never writes more than a name and the NUL. */
static void test_getname_writes_a_name_when_it_is_being_torn(void **state)
{
    char name[DMUTEX_NAME_MAX_NP + 1 + GUARD], guard[GUARD];

    (void)state;
    memset(guard, 'g', GUARD);
    memset(name, 'g', sizeof name);
    for (int i = 0; i < repetitions(CALLS); i++) {
        check_name(dmutex_getname_np(&torn->mutex, name, DMUTEX_NAME_MAX_NP + 1), name, "torn/mutex");
        assert_memory_equal(name + DMUTEX_NAME_MAX_NP + 1, guard, GUARD);
        check_name(dcond_getname_np(&torn->cond, name, DMUTEX_NAME_MAX_NP + 1), name, "torn/cond\0");
        assert_memory_equal(name + DMUTEX_NAME_MAX_NP + 1, guard, GUARD);
    }
}

/* Calls that make a key of the name use one version of the name, or refuse. */
static void test_calls_end_when_the_name_is_being_torn(void **state)
{
    unsigned depth;

    (void)state;
    for (int i = 0; i < repetitions(CALLS); i++) {
        assert_true(is_told_or_refused(dmutex_unlock(&torn->mutex)));
        assert_true(is_told_or_refused(dcond_wait(&torn->cond, &torn->mutex)));
        assert_true(is_told_or_refused(dmutex_holdcount_np(&torn->mutex, &depth)));
    }
}

/* The same with the server: lock, signal and unlock each use one version of the name. */
static void test_locks_end_when_the_name_is_being_torn(void **state)
{
    (void)state;
    for (int i = 0; i < repetitions(CALLS / 200); i++) {
        assert_true(is_told_or_refused(dmutex_trylock(&torn->mutex)));
        assert_true(is_told_or_refused(dcond_signal(&torn->cond)));
        assert_true(is_told_or_refused(dmutex_unlock(&torn->mutex)));
    }
}

#define with_a_writer(test) cmocka_unit_test_setup_teardown(test, begin, end)

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        with_a_writer(test_getname_writes_a_name_when_it_is_being_torn),
        with_a_writer(test_calls_end_when_the_name_is_being_torn),
        with_a_writer(test_locks_end_when_the_name_is_being_torn),
    };

    test_begin(argc, argv);
    return cmocka_run_group_tests(tests, test_group_setup, test_group_teardown);
}
