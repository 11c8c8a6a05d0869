/* SPDX-License-Identifier: BSD-2-Clause */
/* The place and the beginning of objects: static initialisers, shared memory, fork: scenario 14. */
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "../lib/testlib.h"

#define SLOTS 12

static const char *counter_path(void)
{
    static char path[64];
    static int last;

    snprintf(path, sizeof path, "%s/count%d", the_server->folder, ++last);
    return path;
}

/* A file of a page in the server's folder, mapped shared. */
struct page {
    char path[64];
    dmutex_t *mutexes;
};

static void make_page(struct page *page)
{
    static int last;
    int fd;

    snprintf(page->path, sizeof page->path, "%s/page%d", the_server->folder, ++last);
    fd = open(page->path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    assert_return_code(fd, errno);
    assert_return_code(ftruncate(fd, 4096), errno);
    page->mutexes = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    assert_ptr_not_equal(page->mutexes, MAP_FAILED);
    close(fd);
}

static int anonymous_keys(void)
{
    return side_count_keys(the_server->side, "*{~*:state:*");
}

/* POSIX scenario 14: 32 threads begin with an all-zero object, and with the library, at once. */
static void test_first_lock_agrees_when_32_threads_begin_on_zeroes(void **state)
{
    (void)state;
    for (int round = 0; round < repetitions(5); round++) {
        struct actor *a = actor_start(the_server);
        const char *path = counter_path();
        int before = anonymous_keys();

        actor_do(a, "0", "zero m");
        actor_do(a, "0", "count %s 10 m 32", path);
        assert_int_equal(actor_counted(path), 320);
        assert_int_equal(anonymous_keys(), before + !private_is_libc());
        actor_do(a, "0", "destroy m");
        assert_int_equal(anonymous_keys(), before);
        actor_end(a);
    }
}

/* The same with a named object: the first use of the object is the first use of the name, too. */
static void test_first_lock_agrees_when_32_threads_begin_on_a_name(void **state)
{
    (void)state;
    for (int round = 0; round < repetitions(5); round++) {
        struct actor *a = actor_start(the_server);
        const char *path = counter_path();

        actor_do(a, "0", "count %s 10 objects/first-%d 32", path, round);
        assert_int_equal(actor_counted(path), 320);
        actor_end(a);
    }
}

/* POSIX scenario 14: two processes begin with the same object in shared memory: one id, one mutex. */
static void test_first_lock_agrees_when_two_processes_share_the_object(void **state)
{
    struct actor *a = actor_start(the_server), *b = actor_start(the_server);
    dmutexattr_t attr;
    struct page page;

    (void)state;
    make_page(&page);
    assert_result(dmutexattr_init(&attr), 0);
    assert_result(dmutexattr_setpshared(&attr, PTHREAD_PROCESS_SHARED), 0);
    for (int i = 0; i < SLOTS; i++) {
        const char *path = counter_path();

        assert_result(dmutex_init(&page.mutexes[i], &attr), 0);
        actor_do(a, "0", "map m%d %s %zu", i, page.path, i * sizeof(dmutex_t));
        actor_do(b, "0", "map m%d %s %zu", i, page.path, i * sizeof(dmutex_t));
        actor_send(a, "count %s 10 m%d 4", path, i);
        actor_do(b, "0", "count %s 10 m%d 4", path, i);
        actor_expect(a, "0");
        assert_int_equal(actor_counted(path), 80);
        assert_int_equal(anonymous_keys(), 1);
        actor_do(b, "0", "destroy m%d", i);
        assert_int_equal(anonymous_keys(), 0);
    }
    munmap(page.mutexes, 4096);
    actor_end(a);
    actor_end(b);
}

/* Processes that share the memory share the mutex, at any address and though only one process made the id. */
static void test_shared_object_excludes_when_mapped_elsewhere(void **state)
{
    struct actor *a = actor_start(the_server);
    dmutexattr_t attr;
    struct page page;

    (void)state;
    make_page(&page);
    assert_result(dmutexattr_init(&attr), 0);
    assert_result(dmutexattr_setpshared(&attr, PTHREAD_PROCESS_SHARED), 0);
    assert_result(dmutex_init(page.mutexes, &attr), 0);
    assert_result(dmutex_lock(page.mutexes), 0);
    actor_do(a, "0", "map m %s 0", page.path);
    actor_do(a, "EBUSY", "trylock m");
    actor_do(a, "EPERM", "unlock m");
    actor_do(a, "EBUSY", "destroy m");
    actor_send(a, "lock m");
    wait_until(waiters_of(page.mutexes) == 1);
    assert_result(dmutex_unlock(page.mutexes), 0);
    actor_expect(a, "0");
    assert_result(dmutex_trylock(page.mutexes), EBUSY);
    assert_result(dmutex_destroy(page.mutexes), EBUSY);
    actor_do(a, "0", "unlock m");
    assert_result(dmutex_destroy(page.mutexes), 0);
    actor_do(a, "EINVAL", "lock m");
    munmap(page.mutexes, 4096);
    actor_end(a);
}

/* An anonymous private object in shared memory is another mutex in each process; not if the mutex is libc's. */
static void test_private_object_is_another_mutex_in_another_process(void **state)
{
    struct actor *a = actor_start(the_server);
    struct page page;

    (void)state;
    make_page(&page);
    assert_result(dmutex_lock(page.mutexes), 0);
    actor_do(a, "0", "map m %s 0", page.path);
    actor_do(a, "0", "trylock m");
    actor_do(a, "0", "unlock m");
    assert_int_equal(holdcount_of(page.mutexes), 1);
    assert_result(dmutex_unlock(page.mutexes), 0);
    actor_do(a, "0", "in-thread lock m");
    actor_kill(a);
    assert_result(dmutex_destroy(page.mutexes), 0);
    munmap(page.mutexes, 4096);
    actor_end(a);
    side_text(the_server->side, "FLUSHALL"); /* keys of the killed process would live for days */
}

/* Two anonymous objects of one process are two mutexes, and have no name. */
static void test_anonymous_objects_are_different_mutexes(void **state)
{
    dmutex_t one = DMUTEX_ANONYMOUS_INITIALIZER, two, zero;
    char name[8];

    (void)state;
    memset(&zero, 0, sizeof zero);
    assert_memory_equal(&one, &zero, sizeof zero);
    assert_result(dmutex_init(&two, NULL), 0);
    assert_result(dmutex_lock(&one), 0);
    assert_result(dmutex_trylock(&two), 0);
    assert_result(in_thread(dmutex_trylock, &one), EBUSY);
    assert_result(in_thread(dmutex_trylock, &two), EBUSY);
    assert_result(dmutex_getname_np(&one, name, sizeof name), ENOENT);
    assert_result(dmutex_unlock(&one), 0);
    assert_result(dmutex_unlock(&two), 0);
    assert_result(dmutex_destroy(&one), 0);
    assert_result(dmutex_destroy(&two), 0);
}

/* Each static initialiser gives the type and robustness that the initialiser names. */
static void test_static_initialisers_give_what_they_name(void **state)
{
    static dmutex_t normal = DMUTEX_INITIALIZER("objects/normal");
    static dmutex_t recursive = DMUTEX_RECURSIVE_INITIALIZER("objects/recursive");
    static dmutex_t errorcheck = DMUTEX_ERRORCHECK_INITIALIZER("objects/errorcheck");
    static dmutex_t robust = DMUTEX_ROBUST_INITIALIZER("objects/robust");
    dmutex_t *const all[] = { &normal, &recursive, &errorcheck, &robust };

    (void)state;
    for (int i = 0; i < 4; i++)
        assert_result(dmutex_lock(all[i]), 0);
    assert_result(dmutex_trylock(&normal), EBUSY);
    assert_result(dmutex_trylock(&recursive), 0);
    assert_result(dmutex_unlock(&recursive), 0);
    assert_result(dmutex_lock(&errorcheck), EDEADLK);
    for (int i = 0; i < 4; i++)
        assert_result(dmutex_unlock(all[i]), 0);
    for (int i = 0; i < 4; i++) {
        assert_result(in_thread(dmutex_lock, all[i]), 0);
        assert_result(dmutex_lock(all[i]), all[i] == &robust ? EOWNERDEAD : 0);
    }
    assert_result(dmutex_consistent(&robust), 0);
    for (int i = 0; i < 4; i++)
        assert_result(dmutex_unlock(all[i]), 0);
}

/* Objects keep no pointer: an object that is copied away and back is the same mutex. */
static void test_object_works_when_moved(void **state)
{
    dmutex_t *mutex = malloc(sizeof *mutex), *moved = malloc(sizeof *moved);

    (void)state;
    make_recursive(mutex, "objects/moved", 0);
    assert_result(dmutex_lock(mutex), 0);
    memcpy(moved, mutex, sizeof *moved);
    memset(mutex, 0xff, sizeof *mutex);
    free(mutex);
    assert_result(dmutex_lock(moved), 0);
    assert_int_equal(holdcount_of(moved), 2);
    assert_result(dmutex_unlock(moved), 0);
    assert_result(dmutex_unlock(moved), 0);
    free(moved);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_first_lock_agrees_when_32_threads_begin_on_zeroes),
        cmocka_unit_test(test_first_lock_agrees_when_32_threads_begin_on_a_name),
        cmocka_unit_test(test_first_lock_agrees_when_two_processes_share_the_object),
        cmocka_unit_test(test_shared_object_excludes_when_mapped_elsewhere),
        cmocka_unit_test(test_anonymous_objects_are_different_mutexes),
        cmocka_unit_test(test_static_initialisers_give_what_they_name),
        cmocka_unit_test(test_object_works_when_moved),
        cmocka_unit_test(test_nothing_is_left),
        cmocka_unit_test(test_private_object_is_another_mutex_in_another_process),
    };

    test_begin(argc, argv);
    return _cmocka_run_group_tests("objects", tests, sizeof tests / sizeof tests[0] - private_is_libc(),
                                   test_group_setup, test_group_teardown);
}
