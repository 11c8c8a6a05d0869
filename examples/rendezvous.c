/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A rendezvous: processes work in rounds, and none begins a round before all have finished the previous one. One of
 * them is killed while it owns the mutex; the others learn of it, and go on without it.
 *
 * Each process's round is in shared memory only to keep the example short. The mutex and the condition have names, so a
 * table or a file would work as well, on any number of hosts.
 */
#include <dmutex/dmutex.h>
#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { MEMBERS = 5, ROUNDS = 6, VICTIM = 3, LAST_ROUND_OF_VICTIM = 2 };

static dmutex_t guard;
static dcond_t met = DCOND_INITIALIZER("example/met");

/* Guarded by `guard`. A member changes only its own number, so a death leaves nothing half done. */
struct meeting {
    int round[MEMBERS]; /* how many rounds each member has finished */
    bool is_gone[MEMBERS];
    int inside; /* the member that owns the mutex, or owned it last */
};
static struct meeting *meeting;

static void check(int error, const char *what)
{
    if (error == 0)
        return;
    fprintf(stderr, "rendezvous: %s: %s: %s\n", what, strerror(error), dmutex_strerror_np());
    exit(1);
}

/* Robust, so that a death is reported. It is noticed when the lease ends, by default after 10 s. */
static void set_up(void)
{
    dmutexattr_t attr;

    check(dmutexattr_init(&attr), "attr");
    check(dmutexattr_setrobust(&attr, PTHREAD_MUTEX_ROBUST), "robust");
    check(dmutexattr_setlease_np(&attr, 3000), "lease");
    check(dmutex_init_np(&guard, "example/meeting", &attr), "init");
    dmutexattr_destroy(&attr);
    meeting = mmap(NULL, sizeof *meeting, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (meeting == MAP_FAILED)
        check(ENOMEM, "mmap");
}

/* Called after each call that may acquire the mutex. Returns the result, unless it is handled here. */
static int own(int member, int result)
{
    if (result == EOWNERDEAD) {
        printf("member %d: %d died, we go on without it\n", member, meeting->inside);
        meeting->is_gone[meeting->inside] = true;
        check(dmutex_consistent(&guard), "consistent");
        check(dcond_broadcast(&met), "broadcast"); /* perhaps only the dead member was missing */
        result = 0;
    }
    meeting->inside = member;
    return result;
}

static bool all_are_at(int round)
{
    for (int i = 0; i < MEMBERS; i++) {
        if (!meeting->is_gone[i] && meeting->round[i] < round)
            return false;
    }
    return true;
}

/*
 * Waits for a signal, at most a second: an owner's death is reported only to threads that want the mutex, and while all
 * wait for the condition, none does.
 */
static int wait_a_while(int member)
{
    struct timespec until;
    int result;

    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec++;
    result = own(member, dcond_timedwait(&met, &guard, &until));
    return result == ETIMEDOUT ? 0 : result;
}

/* Returns when all living members have finished the round. */
static void meet(int member, int round)
{
    check(own(member, dmutex_lock(&guard)), "lock");
    meeting->round[member] = round;
    if (member == VICTIM && round == LAST_ROUND_OF_VICTIM)
        raise(SIGKILL);
    if (all_are_at(round))
        check(dcond_broadcast(&met), "broadcast");
    while (!all_are_at(round))
        check(wait_a_while(member), "wait");
    check(dmutex_unlock(&guard), "unlock");
}

/* Returns how often another living member was behind when a round ended; it must be 0. */
static int take_part(int member)
{
    int unmet = 0;

    for (int round = 1; round <= ROUNDS; round++) {
        usleep((useconds_t)(member * round % 4) * 1000); /* the work, sometimes short, sometimes long */
        meet(member, round);
        for (int i = 0; i < MEMBERS; i++)
            unmet += !meeting->is_gone[i] && meeting->round[i] < round;
    }
    return unmet;
}

/* True if a member ended as planned. */
static bool ended_well(int member, pid_t pid)
{
    int status;

    waitpid(pid, &status, 0);
    if (member == VICTIM)
        return WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL;
    return WIFEXITED(status) && WEXITSTATUS(status) == 0 && meeting->round[member] == ROUNDS;
}

int main(void)
{
    pid_t pids[MEMBERS];
    int failed = 0;

    set_up();
    for (int i = 0; i < MEMBERS; i++) {
        pids[i] = fork();
        if (pids[i] < 0)
            check(errno, "fork");
        if (pids[i] == 0)
            exit(take_part(i));
    }
    for (int i = 0; i < MEMBERS; i++)
        failed += !ended_well(i, pids[i]);
    failed += !meeting->is_gone[VICTIM];
    printf("%d processes, %d rounds: one was killed in round %d, %s\n", MEMBERS, ROUNDS, LAST_ROUND_OF_VICTIM,
           failed ? "and not all of the others met" : "the others met in all of them");
    return failed != 0;
}
