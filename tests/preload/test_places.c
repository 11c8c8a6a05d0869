/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A named mutex is distributed everywhere in a program: before and after main(), in libraries, threads, handlers and
 * children; and with other preloaded libraries besides the module.
 */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "programs.h"

/* Longer than the test: a hold without an unlock stays. */
#define LEASE " lease=10min"

static const char rules[] = "sym:places:lock => p/x" LEASE "; sym:libplaces.so:library_lock => p/x" LEASE
                            "; sym:module.so:library_lock => p/x" LEASE;

/* Each place, with the number of passes; the program is started twice. */
static const struct {
    const char *place;
    int times;
} places[] = {
    { "linked-constructor", 2 },
    { "main-constructor", 2 },
    { "handler", 2 },
    { "main", 1 },
    { "linked-function", 1 },
    { "thread", 1 },
    { "thread-end", 1 },
    { "module-constructor", 1 },
    { "module-function", 1 },
    { "module-destructor", 1 },
    { "child", 1 },
    { "grandchild", 1 },
    { "child-atexit", 1 },
    { "child-destructor", 1 },
    { "spawned", 1 },
    { "main-atexit", 1 },
    { "main-destructor", 2 },
    { "linked-destructor", 3 },
};

static dmutex_t mutex;

static int build_all(void **state)
{
    if (programs_setup(state) != 0)
        return -1;
    build("libplaces.so", "places_library.c", "-fPIC -shared '-DPLACE=\"linked\"' -DPLACE_function=linked_function");
    build("module.so", "places_library.c", "-fPIC -shared '-DPLACE=\"module\"' -DPLACE_function=module_function");
    build("places", "places.c", "-L$folder -lplaces -Wl,-rpath,$folder");
    build("libforker.so", "forker.c", "-fPIC -shared -DLIBRARY");
    build("forker", "forker.c", "-L$folder -lforker -Wl,-rpath,$folder");
    make_normal(&mutex, "p/x", 60000);
    return 0;
}

static int count_lines(const char *line)
{
    int count = 0;

    for (const char *at = ran.output; (at = strstr(at, line)); at++)
        count += at == ran.output || at[-1] == '\n';
    return count;
}

/* Runs the program with further preloaded libraries; in each place the snippet must have the result. */
static void check_places(const char *preloads, const char *result)
{
    char command[400];
    int total = 0, lines = 0;

    snprintf(command, sizeof command, "sh -c 'LD_PRELOAD=%s exec ./places ./module.so'", preloads);
    run_under(rules, command);
    assert_status(0);
    assert_string_equal(ran.errors, "");
    for (size_t i = 0; i < sizeof places / sizeof places[0]; i++) {
        char line[64];

        snprintf(line, sizeof line, "%s %s\n", places[i].place, result);
        if (count_lines(line) != places[i].times)
            fail_msg("\"%s %s\" was expected %d times in:\n%s", places[i].place, result, places[i].times, ran.output);
        total += places[i].times;
    }
    for (const char *at = ran.output; (at = strchr(at, '\n')); at++)
        lines++;
    assert_int_equal(lines, total);
}

/*
 * While this test holds the name, the mutex is busy everywhere; afterwards the mutex is locked and unlocked everywhere.
 */
static void check_with(const char *preloads)
{
    assert_result(dmutex_lock(&mutex), 0);
    setenv("PLACES_TRY", "1", 1);
    check_places(preloads, "EBUSY");
    unsetenv("PLACES_TRY");
    assert_result(dmutex_unlock(&mutex), 0);
    check_places(preloads, "0");
    wait_until(dmutex_trylock(&mutex) == 0);
    assert_result(dmutex_unlock(&mutex), 0);
}

/* A mutex is distributed everywhere with only the module. */
static void test_a_mutex_is_distributed_wherever_it_is_locked(void **state)
{
    (void)state;
    check_with(module_path());
}

/* If fork() waits for a mutex of a thread that uses a named mutex for the first time, neither waits forever. */
static void test_a_mutex_is_distributed_while_another_thread_is_in_fork(void **state)
{
    (void)state;
    run_under("sym:forker:outer => p/x" LEASE, "./forker");
    assert_status(0);
    assert_string_equal(ran.output, "126\n");
    assert_non_null(strstr(ran.errors, "libdmutex was being opened while this process was forked"));
}

/* The path of an installed library, or NULL. */
static const char *find_library(const char *name)
{
    static char path[4096];

    command_run("for folder in /usr/lib/*-linux-gnu* /usr/lib64 /usr/lib /usr/local/lib; do "
                "for file in $folder/%s; do [ -e $file ] && echo $file && exit; done; done",
                name);
    snprintf(path, sizeof path, "%.*s", (int)strcspn(ran.output, "\n"), ran.output);
    return path[0] ? path : NULL;
}

/* Checks with the library after the module and before it. */
static void check_beside(const char *path)
{
    char preloads[8192];

    snprintf(preloads, sizeof preloads, "%s:%s", module_path(), path);
    check_with(preloads);
    snprintf(preloads, sizeof preloads, "%s:%s", path, module_path());
    check_with(preloads);
}

/* A mutex is distributed with a preloaded allocator that contains a mutex and has its own pthread_mutex_lock(). */
static void test_a_mutex_is_distributed_with_another_preload(void **state)
{
    char path[100];

    (void)state;
    if (is_sanitized())
        return; /* the sanitizer's allocator must be the first of all */
    build("beside.so", "beside.c", "-fPIC -shared -fno-builtin");
    snprintf(path, sizeof path, "%s/beside.so", folder);
    check_beside(path);
}
/* The first lock of a thread that has not allocated yet comes to an end with an allocator that makes threads. */
static void test_a_mutex_is_distributed_with_an_allocator_that_makes_threads(void **state)
{
    (void)state;
    if (is_sanitized())
        return;
    build("spawning_malloc.so", "spawning_malloc.c", "-fPIC -shared -fno-builtin");
    build("other_thread", "other_thread.c", "");
    assert_result(dmutex_lock(&mutex), 0);
    run_under("sym:other_thread:lock => p/x" LEASE,
              "sh -c 'LD_PRELOAD=$LD_PRELOAD:./spawning_malloc.so exec ./other_thread'");
    assert_result(dmutex_unlock(&mutex), 0);
    assert_string_equal(ran.errors, "");
    assert_string_equal(ran.output, "16\n"); /* EBUSY */
}

/* A mutex is distributed with well-known preloads, if they are installed. */
static void test_a_mutex_is_distributed_with_well_known_preloads(void **state)
{
    static const char *const names[] = { "libjemalloc.so.2", "libtcmalloc_minimal.so.4", "libeatmydata.so",
                                         "faketime/libfaketimeMT.so.1" };

    (void)state;
    if (is_sanitized())
        return;
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        const char *path = find_library(names[i]);

        if (path)
            check_beside(path);
    }
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_mutex_is_distributed_wherever_it_is_locked),
        cmocka_unit_test(test_a_mutex_is_distributed_while_another_thread_is_in_fork),
        cmocka_unit_test(test_a_mutex_is_distributed_with_another_preload),
        cmocka_unit_test(test_a_mutex_is_distributed_with_an_allocator_that_makes_threads),
        cmocka_unit_test(test_a_mutex_is_distributed_with_well_known_preloads),
        cmocka_unit_test(test_nothing_is_left),
    };

    test_begin(argc, argv);
    return cmocka_run_group_tests(tests, build_all, programs_teardown);
}
