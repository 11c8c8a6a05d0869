/* SPDX-License-Identifier: BSD-2-Clause */
/* The library's own thread: the scheduling is the process's, not the scheduling of the thread that locked first. */
#include <dirent.h>
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "../lib/testlib.h"

static dmutex_t mutex;

/* The thread of this process with the name; 0: none. */
static pid_t find_thread(const char *wanted)
{
    DIR *tasks = opendir("/proc/self/task");
    struct dirent *entry;
    pid_t found = 0;

    while (tasks && !found && (entry = readdir(tasks)) != NULL) {
        char path[300], name[32] = "";
        FILE *file;

        snprintf(path, sizeof path, "/proc/self/task/%s/comm", entry->d_name);
        file = fopen(path, "r");
        if (file && fscanf(file, "%31s", name) == 1 && strcmp(name, wanted) == 0)
            found = (pid_t)atoi(entry->d_name);
        if (file)
            fclose(file);
    }
    if (tasks)
        closedir(tasks);
    return found;
}

static bool is_as_main(pid_t thread)
{
    return sched_getscheduler(thread) == sched_getscheduler(getpid()) &&
           getpriority(PRIO_PROCESS, (id_t)thread) == getpriority(PRIO_PROCESS, (id_t)getpid());
}

static bool has_cores_of_main(pid_t thread)
{
    cpu_set_t its, mains;

    return sched_getaffinity(thread, sizeof its, &its) == 0 && sched_getaffinity(getpid(), sizeof mains, &mains) == 0 &&
           CPU_EQUAL(&its, &mains);
}

/* Gives this thread the lowest priority, on one core only: then does the first lock of the process. */
static void *lock_as_the_least(void *user)
{
    struct sched_param none = { 0 };
    cpu_set_t cores, one;
    int first = 0;

    sched_getaffinity(0, sizeof cores, &cores);
    while (!CPU_ISSET(first, &cores))
        first++;
    CPU_ZERO(&one);
    CPU_SET(first, &one);
    *(int *)user = sched_setaffinity(0, sizeof one, &one) || setpriority(PRIO_PROCESS, 0, 19) ||
                   sched_setscheduler(0, SCHED_IDLE, &none) || dmutex_lock(&mutex) || dmutex_unlock(&mutex);
    return NULL;
}

/* 0, or the number of the fault. Without the right to raise a priority only the cores can be checked. */
static int look_at_thread(void)
{
    pthread_t thread;
    int result = -1;
    int64_t until_ms;
    pid_t loop;

    if (pthread_create(&thread, NULL, lock_as_the_least, &result) != 0 || pthread_join(thread, NULL) != 0 || result)
        return 1;
    until_ms = wait_now_ms() + WAIT_LIMIT_MS; /* it begins as the least, and names itself once it has run */
    while (!(loop = find_thread("dmutex"))) {
        if (wait_now_ms() > until_ms)
            return 2;
        wait_nap();
    }
    if (!has_cores_of_main(loop))
        return 3;
    return geteuid() == 0 && !is_as_main(loop) ? 4 : 0;
}

/* Attack C12: renewals of all holds hang on that thread. */
static void test_the_thread_has_the_process_s_scheduling_when_a_lesser_one_locks_first(void **state)
{
    pid_t pid;

    (void)state;
    make_normal(&mutex, "loop/first", 0);
    pid = keeper_fork();
    if (pid == 0)
        _exit(look_at_thread());
    assert_int_equal(WEXITSTATUS(keeper_reap(pid)), 0);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_thread_has_the_process_s_scheduling_when_a_lesser_one_locks_first),
        cmocka_unit_test(test_nothing_is_left),
    };

    test_begin(argc, argv);
    return cmocka_run_group_tests(tests, test_group_setup, test_group_teardown);
}
