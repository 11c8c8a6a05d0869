/* SPDX-License-Identifier: BSD-2-Clause */
#include "forks.h"

#include <dirent.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "process.h"

/* Forks as the library does.  `does` says whether all is well in the child. */
static pid_t fork_process(struct process *process, bool (*does)(struct process *process))
{
    pid_t child;

    dm_store_fork_prepare(process->store);
    child = fork();
    if (child == 0) {
        dm_store_fork_child(process->store);
        _exit(does(process) ? 0 : 1);
    }
    dm_store_fork_parent(process->store);
    assert_true(child > 0);
    return child;
}

static void await_well(pid_t child)
{
    int status;

    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
}

static void renew(struct process *process, uint64_t attempt, uint64_t token)
{
    struct dm_question question = process_question(process, DM_OP_RENEW, attempt);

    question.renew.token = token;
    assert_int_equal(process_ask(process, &question).verdict, DM_SAYS_OWNED);
}

/* The former store says nothing; a new one locks and unlocks another name, which nobody holds. */
static bool use_new_store(struct process *former)
{
    struct dm_question question = process_question(former, DM_OP_POLL, 0);
    struct process *process;
    uint64_t attempt;

    if (process_ask(former, &question).verdict == DM_SAYS_DONE)
        return false;
    process = process_start(1, true);
    process->place = dm_store_place(process->store, "ngroup/of_the_child");
    attempt = process_next_attempt(process);
    return process_acquire(process, attempt).verdict == DM_SAYS_OWNED &&
           process_release(process, attempt) == DM_SAYS_DONE;
}

void forks_parent_goes_on(void **state)
{
    struct process *process = process_start(0, true);
    uint64_t attempt = process_next_attempt(process), token = process_acquire(process, attempt).token;
    struct dm_traffic before, after;
    pid_t child;

    (void)state;
    dm_store_count(process->store, &before);
    child = fork_process(process, use_new_store);
    renew(process, attempt, token);
    await_well(child);
    renew(process, attempt, token);
    assert_int_equal(process_release(process, attempt), DM_SAYS_DONE);
    dm_store_count(process->store, &after);
    assert_int_equal(after.reconnects, before.reconnects); /* the child has not ended the parent's session */
}

/* ---- descriptors -------------------------------------------------------------------------- */

/* Sockets, bells and timers. */
static int count_descriptors(void)
{
    DIR *folder = opendir("/proc/self/fd");
    const struct dirent *entry;
    int count = 0;

    assert_non_null(folder);
    while ((entry = readdir(folder))) {
        char target[64] = "";

        if (readlinkat(dirfd(folder), entry->d_name, target, sizeof target - 1) > 0)
            count += strncmp(target, "socket:", 7) == 0 || strncmp(target, "anon_inode:", 11) == 0;
    }
    closedir(folder);
    return count;
}

static int count_before;

static bool has_no_more(struct process *former)
{
    (void)former;
    return count_descriptors() == count_before;
}

/* The loop thread's bell is the test's. */
void forks_child_closes_descriptors(void **state)
{
    struct process *process;

    (void)state;
    count_before = count_descriptors();
    process = process_start(0, false);
    count_before++;
    assert_int_equal(process_acquire(process, process_next_attempt(process)).verdict, DM_SAYS_OWNED);
    assert_true(count_descriptors() > count_before);
    await_well(fork_process(process, has_no_more));
}
