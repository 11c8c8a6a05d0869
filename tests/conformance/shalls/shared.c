/* SPDX-License-Identifier: BSD-2-Clause */
/* Mutexes in memory that several processes share, and fork(). */
#include "shalls.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static void excludes(void)
{
    for (int kind = 0; kind < KINDS; kind++) {
        struct torture *torture = shared_memory(sizeof *torture);
        pid_t pids[3];

        make_shared(&torture->mutex, &kinds[kind]);
        torture->rounds = 200;
        for (int i = 0; i < 3; i++)
            pids[i] = process_begin(torture_add, torture);
        for (int i = 0; i < 3; i++)
            process_end(pids[i]);
        say_number(kinds[kind].name, torture->number);
        say_number("meetings", torture->meetings);
    }
}

static void child_does_not_own(void)
{
    for (int i = 0; i < KINDS; i++) {
        pthread_mutex_t *mutex = shared_memory(sizeof *mutex);

        make_shared(mutex, &kinds[i]);
        pthread_mutex_lock(mutex);
        say(kinds[i].name, in_process(trylock_it, mutex));
        say("unlock", pthread_mutex_unlock(mutex));
    }
}

static void child_cannot_unlock(void)
{
    for (int i = 0; i < KINDS; i++) {
        pthread_mutex_t *mutex = shared_memory(sizeof *mutex);

        if (!is_owner_checked(&kinds[i]))
            continue;
        make_shared(mutex, &kinds[i]);
        pthread_mutex_lock(mutex);
        say(kinds[i].name, in_process(unlock_it, mutex));
        say("elsewhere", try_elsewhere(mutex));
        say("unlock", pthread_mutex_unlock(mutex));
    }
}

/* The child's lock blocks until the parent's unlock. */
struct pair {
    pthread_mutex_t mutex;
    _Atomic bool has_begun;
    _Atomic bool is_released;
    _Atomic bool was_released;
};

static int wait_in_child(void *with)
{
    struct pair *pair = with;
    int result;

    pair->has_begun = true;
    result = pthread_mutex_lock(&pair->mutex);
    pair->was_released = pair->is_released;
    pthread_mutex_unlock(&pair->mutex);
    return result;
}

static void child_waits(void)
{
    struct pair *pair = shared_memory(sizeof *pair);
    pid_t pid;

    make_shared(&pair->mutex, &kinds[1]);
    pthread_mutex_lock(&pair->mutex);
    pid = process_begin(wait_in_child, pair);
    await(pair->has_begun);
    process_await_sleep(pid);
    pair->is_released = true;
    say("unlock", pthread_mutex_unlock(&pair->mutex));
    say("child", process_end(pid));
    say_text("unlocked", pair->was_released ? "before" : "later");
}

static void child_gives_back(void)
{
    for (int i = 0; i < KINDS; i++) {
        pthread_mutex_t *mutex = shared_memory(sizeof *mutex);

        make_shared(mutex, &kinds[i]);
        say(kinds[i].name, in_process(lock_and_unlock_it, mutex));
        say("parent", pthread_mutex_trylock(mutex));
    }
}

/* For the leak sanitizer, when a process exits: memory known only to the parent's threads is lost in a forked child. */
int __lsan_is_turned_off(void);
int __lsan_is_turned_off(void)
{
    return 1;
}

static int end_by_exit(void *with)
{
    (void)with;
    exit(0);
}

static void child_ends(void)
{
    pthread_mutex_t *mutex = shared_memory(sizeof *mutex);

    make_shared(mutex, &kinds[4]);
    pthread_mutex_lock(mutex);
    say("end", in_process(end_by_exit, NULL));
    say("elsewhere", try_elsewhere(mutex));
    say("unlock", pthread_mutex_unlock(mutex));
    say("lock", pthread_mutex_lock(mutex));
}

/* A private mutex, free at fork(), works in the child. */
static void private_in_child(void)
{
    pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;

    say("parent", lock_and_unlock_it(&mutex));
    say("child", in_process(lock_and_unlock_it, &mutex));
    say("parent", lock_and_unlock_it(&mutex));
}

/* A mutex that the forking thread holds is held in the child, by the same thread. */
static int unlock_and_lock(void *mutex)
{
    int result = pthread_mutex_unlock(mutex);

    return result == 0 ? pthread_mutex_lock(mutex) : result;
}

static void private_held_at_fork(void)
{
    pthread_mutex_t mutex;

    make(&mutex, PTHREAD_MUTEX_NORMAL);
    pthread_mutex_lock(&mutex);
    say("child-unlock", in_process(unlock_and_lock, &mutex));
    say("unlock", pthread_mutex_unlock(&mutex));
}

/* One mutex at two addresses. */
static void two_addresses(void)
{
    int fd = memfd_create("shalls", MFD_CLOEXEC);
    pthread_mutex_t *one, *other;

    if (ftruncate(fd, 4096) != 0)
        abort();
    one = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    other = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    make_shared(one, &kinds[2]);
    say("lock", pthread_mutex_lock(one));
    say("other-elsewhere", try_elsewhere(other));
    say("other-again", pthread_mutex_lock(other));
    say("other-unlock", pthread_mutex_unlock(other));
    say("elsewhere", try_elsewhere(one));
}

const struct clause shared_clauses[] = {
    { "2.1-shared-excludes", "3 processes add to a number", excludes },
    { "2.1-shared-child-not-owner", "of what its parent owns", child_does_not_own },
    { "2.1-shared-child-unlock", "of what its parent owns", child_cannot_unlock },
    { "2.1-shared-child-waits", "until the parent's unlock", child_waits },
    { "2.1-shared-child-gives-back", "to its parent", child_gives_back },
    { "2.1-shared-child-ends", "and the parent owns on", child_ends },
    { "2.1-shared-two-addresses", "of one object", two_addresses },
    { "2.1-fork-private", "a private mutex, free", private_in_child },
    { "2.1-fork-private-held", "a private mutex, held by the forking thread", private_held_at_fork },
    { NULL, NULL, NULL },
};
