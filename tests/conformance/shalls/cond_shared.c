/* SPDX-License-Identifier: BSD-2-Clause */
/* Condition variables in memory that several processes share, and fork(). */
#include "shalls.h"

#include <stdlib.h>

/* A meeting in shared memory. */
static struct meeting *share_meeting(void)
{
    struct meeting *meeting = shared_memory(sizeof *meeting);
    pthread_condattr_t attr;

    make_shared(&meeting->mutex, &kinds[0]);
    if (pthread_condattr_init(&attr) != 0 || pthread_condattr_setpshared(&attr, PTHREAD_PROCESS_SHARED) != 0 ||
        pthread_cond_init(&meeting->cond, &attr) != 0)
        abort();
    return meeting;
}

/* ---- Two processes --------------------------------------------------------------------------- */

#define PASSES 500

/* `waiting` is the player with the next turn. */
static int play(struct meeting *game, int me)
{
    int errors = 0;

    for (int i = 0; i < PASSES; i++) {
        pthread_mutex_lock(&game->mutex);
        while (game->waiting != me)
            errors += pthread_cond_wait(&game->cond, &game->mutex) != 0;
        game->waiting = !me;
        errors += pthread_cond_signal(&game->cond) != 0;
        pthread_mutex_unlock(&game->mutex);
    }
    return errors > 255 ? 255 : errors;
}

static int play_second(void *game)
{
    return play(game, 1);
}

static void pingpong(void)
{
    struct meeting *game = share_meeting();
    pid_t pid = process_begin(play_second, game);

    say_number("errors", play(game, 0));
    say_number("others", process_end(pid));
}

static int signal_meeting(void *with)
{
    return pthread_cond_signal(&((struct meeting *)with)->cond);
}

static int broadcast_meeting(void *with)
{
    return pthread_cond_broadcast(&((struct meeting *)with)->cond);
}

static void signal_by_a_stranger(void)
{
    struct meeting *meeting = share_meeting();
    pid_t pid = process_begin(wait_for_ticket, meeting);

    meeting_await(meeting, 1);
    meeting_add(meeting, 1);
    say("signal", in_process(signal_meeting, meeting));
    say("wait", process_end(pid));
}

static void signal_to_a_child(void)
{
    struct meeting *meeting = share_meeting();
    pid_t pid = process_begin(wait_for_ticket, meeting);

    meeting_await(meeting, 1);
    pthread_mutex_lock(&meeting->mutex);
    meeting->tickets = 1;
    say("signal", pthread_cond_signal(&meeting->cond));
    say("unlock", pthread_mutex_unlock(&meeting->mutex));
    say("wait", process_end(pid));
}

/* ---- More ------------------------------------------------------------------------------------ */

/* A child in which four threads wait. */
static int wait_in_four_threads(void *meeting)
{
    struct task tasks[4];
    int errors = 0;

    for (int i = 0; i < 4; i++)
        task_begin(&tasks[i], wait_for_ticket, meeting);
    for (int i = 0; i < 4; i++)
        errors += task_join(&tasks[i]) != 0;
    return errors;
}

static void broadcast_to_processes(void)
{
    struct meeting *meeting = share_meeting();
    pid_t pids[3];

    for (int i = 0; i < 3; i++)
        pids[i] = process_begin(wait_in_four_threads, meeting);
    meeting_await(meeting, 12);
    meeting_add(meeting, 12);
    say("broadcast", in_process(broadcast_meeting, meeting));
    for (int i = 0; i < 3; i++)
        say_number("errors", process_end(pids[i]));
    say_number("returned", meeting->returned);
}

/* The first of two waiters is killed: the signal is the other's. */
static void waiter_is_killed(void)
{
    struct meeting *meeting = share_meeting();
    pid_t first, second;

    first = process_begin(wait_for_ticket, meeting);
    meeting_await(meeting, 1);
    second = process_begin(wait_for_ticket, meeting);
    meeting_await(meeting, 2);
    kill(first, SIGKILL);
    say("first", process_end(first));
    meeting_add(meeting, 1);
    say("signal", pthread_cond_signal(&meeting->cond));
    say("second", process_end(second));
}

/* The same by broadcast, with two killed and two living waiters. */
static void waiters_are_killed(void)
{
    struct meeting *meeting = share_meeting();
    pid_t pids[4];

    for (int i = 0; i < 4; i++) {
        pids[i] = process_begin(wait_for_ticket, meeting);
        meeting_await(meeting, i + 1);
    }
    for (int i = 0; i < 4; i += 2) {
        kill(pids[i], SIGKILL);
        say("killed", process_end(pids[i]));
    }
    meeting_add(meeting, 2);
    say("broadcast", pthread_cond_broadcast(&meeting->cond));
    for (int i = 1; i < 4; i += 2)
        say("wait", process_end(pids[i]));
}

/* ---- fork() ---------------------------------------------------------------------------------- */

static int meet_in_child(void *meeting)
{
    struct task task;

    task_begin(&task, wait_for_ticket, meeting);
    meeting_await(meeting, 1);
    meeting_add(meeting, 1);
    signal_meeting(meeting);
    return task_join(&task);
}

static void private_in_child(void)
{
    struct meeting meeting;

    meeting_make(&meeting);
    say("parent", meet_in_child(&meeting));
    meeting.waiting = 0;
    say("child", in_process(meet_in_child, &meeting));
    say("parent", meet_in_child(&meeting));
}

const struct clause cond_shared_clauses[] = {
    { "2.3-shared-pingpong", "of two processes", pingpong },
    { "2.3-shared-signal", "to a child", signal_to_a_child },
    { "2.3-shared-stranger", "signals, and never waited", signal_by_a_stranger },
    { "2.3-shared-broadcast", "to 12 threads of 3 processes", broadcast_to_processes },
    { "2.3-shared-killed-signal", "is the next waiter's", waiter_is_killed },
    { "2.3-shared-killed-broadcast", "reaches those who live", waiters_are_killed },
    { "2.3-fork-private", "both go on for themselves", private_in_child },
    { NULL, NULL, NULL },
};
