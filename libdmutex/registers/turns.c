/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Threads that wait for the store take turns: one of them sleeps in poll() on the driver's descriptors, and works for
 * all when something comes; the others sleep on their semaphores.  The loop thread leaves the descriptors to them while
 * one is there, and for a little longer, so that a call costs it no wake-up.  A thread whose stack is too small for the
 * driver never leads: the loop thread works for it.
 */
#include <pthread.h>

#include "base/descriptor.h"
#include "base/minmax.h"
#include "base/poll.h"
#include "base/self.h"
#include "base/units.h"
#include "registers/store_parts.h"

/* For so long after the last leader the loop thread leaves the descriptors to the next. */
#define LEFT_TO_LEADER_NS (50 * DM_NS_PER_MS)

/* How often a thread looks again in any case: the program may have closed the descriptors. */
#define LOOK_NS (5 * DM_NS_PER_S)

static struct dm_reg_sleeper *next_leader(const struct dm_registers *registers)
{
    struct dm_reg_sleeper *sleeper = registers->sleepers;

    while (sleeper && !sleeper->may_lead)
        sleeper = sleeper->next;
    return sleeper;
}

/* A follower becomes the leader: it looks, and finds nobody there.  One that is called calls the next if it leaves. */
static void promote(struct dm_registers *registers)
{
    struct dm_reg_sleeper *next = next_leader(registers);

    dm_assert_held(DM_RANK_REGISTERS);
    if (registers->has_leader || registers->called || !next)
        return;
    registers->called = next;
    dm_self_wake(next->self);
}

static void take_out(struct dm_registers *registers, struct dm_reg_sleeper *me)
{
    struct dm_reg_sleeper **at = &registers->sleepers;

    while (*at && *at != me)
        at = &(*at)->next;
    if (*at)
        *at = me->next;
    if (registers->called == me)
        registers->called = NULL;
}

/* A thread in one of the two sleeps. */
struct turn {
    struct dm_registers *registers;
    struct dm_reg_sleeper me;
    bool is_leader;
};

static void leave(struct turn *turn)
{
    struct dm_registers *registers = turn->registers;

    dm_assert_held(DM_RANK_REGISTERS);
    if (turn->is_leader) {
        registers->has_leader = false;
        registers->led_ns = dm_clock_boot_ns();
    } else {
        take_out(registers, &turn->me);
        promote(registers);
    }
    dm_registers_close_bell(registers);
    /* The loop thread takes the descriptors back, unless it looks soon anyway. */
    if (turn->is_leader && registers->is_left_to_leader && !registers->sleepers &&
        registers->loop_due_ns > registers->led_ns + LEFT_TO_LEADER_NS)
        registers->tells_change = true;
}

/* Runs if the thread is cancelled, which happens only in a sleep, without the lock.  The loop thread does the rest. */
static void stop(void *user)
{
    struct turn *turn = user;

    dm_self_stop_listening(turn->me.self);
    dm_mutex_lock(&turn->registers->lock);
    leave(turn);
    promote(turn->registers);
    dm_mutex_unlock(&turn->registers->lock);
    turn->registers->host.on_change(turn->registers->host.user);
}

static int64_t sleep_ns(const struct dm_registers *registers, const struct dm_deadline *deadline)
{
    int64_t left_ns = dm_min64(dm_deadline_left_ns(deadline), LOOK_NS);

    if (registers->led.due_ns == DM_NEVER)
        return left_ns;
    return dm_max64(0, dm_min64(left_ns, registers->led.due_ns - dm_clock_boot_ns()));
}

/* Sleeps without the lock, which the caller holds before and after. */
static void lead(struct turn *turn, const struct dm_deadline *deadline, int cancel_state)
{
    struct dm_registers *registers = turn->registers;
    bool is_posted;
    struct pollfd *polled;
    int64_t for_ns;
    int bell_index, count;

    if (registers->bell == -1)
        registers->bell = dm_bell_open();
    dm_watch_clear(&registers->led);
    registers->driver->ops->watch(registers->driver, &registers->led);
    dm_watch_until(&registers->led, dm_registers_due_ns(registers));
    registers->led_sum = dm_registers_sum(&registers->led);
    bell_index = registers->led.count;
    dm_watch_poll(&registers->led, registers->bell, POLLIN);
    polled = registers->led.polled;
    count = registers->led.count;
    for_ns = sleep_ns(registers, deadline);
    registers->has_leader = turn->is_leader = true;
    dm_mutex_unlock(&registers->lock);
    is_posted = dm_self_listen(turn->me.self, &registers->bell);
    pthread_setcancelstate(cancel_state, NULL);
    if (!is_posted)
        dm_poll(polled, (unsigned)count, for_ns);
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, NULL);
    dm_self_stop_listening(turn->me.self);
    dm_mutex_pause();
    dm_mutex_lock(&registers->lock);
    if (bell_index < count && polled[bell_index].revents)
        dm_bell_answer(&registers->bell);
    leave(turn);
}

static void follow(struct turn *turn, const struct dm_deadline *deadline, int cancel_state)
{
    struct dm_registers *registers = turn->registers;
    struct dm_deadline until = dm_deadline_sooner(deadline, LOOK_NS);

    turn->me.next = registers->sleepers;
    registers->sleepers = &turn->me;
    dm_mutex_unlock(&registers->lock);
    if (!turn->me.may_lead)
        registers->host.on_change(registers->host.user);
    if (dm_self_sleep_cancellably(turn->me.self, &until, cancel_state))
        dm_self_wake(turn->me.self); /* the caller takes the post */
    dm_mutex_lock(&registers->lock);
    leave(turn);
}

/* After the sleep of a leader.  Calls the next one last, since those who have got their answers leave by themselves. */
static void work_for_all(struct dm_registers *registers)
{
    bool has_followers;

    dm_registers_work(registers);
    has_followers = registers->sleepers;
    dm_mutex_unlock(&registers->lock);
    dm_registers_deliver(registers);
    if (!has_followers)
        return;
    dm_mutex_lock(&registers->lock);
    promote(registers);
    dm_mutex_unlock(&registers->lock);
}

/* What is due now is done after a sleep of no time, which also takes what has come meanwhile. */
bool dm_registers_sleep(struct dm_registers *registers, const struct dm_deadline *deadline, int cancel_state)
{
    struct turn turn = { .registers = registers, .me.self = dm_self_get() };
    bool has_news;

    if (dm_self_take_post(turn.me.self))
        return true;
    dm_mutex_lock(&registers->lock);
    if (registers->has_leader)
        dm_registers_has_changed(registers);
    pthread_cleanup_push(stop, &turn);
    if (!dm_registers_has_news(registers) && dm_deadline_left_ns(deadline) > 0 && !registers->is_ended) {
        turn.me.may_lead = dm_registers_may_work(registers);
        if (registers->has_leader || !turn.me.may_lead)
            follow(&turn, deadline, cancel_state);
        else
            lead(&turn, deadline, cancel_state);
    } else if (!dm_registers_has_news(registers)) {
        dm_mutex_unlock(&registers->lock);
        dm_self_sleep_cancellably(turn.me.self, deadline, cancel_state);
        dm_mutex_lock(&registers->lock);
    }
    pthread_cleanup_pop(0);
    has_news = dm_registers_has_news(registers);
    if (turn.is_leader) {
        work_for_all(registers);
    } else {
        dm_mutex_unlock(&registers->lock);
        if (has_news)
            dm_registers_deliver(registers);
    }
    return dm_self_take_post(turn.me.self);
}

void dm_registers_watch(struct dm_registers *registers, struct dm_watch *watch)
{
    int64_t left_ns = registers->led_ns ? registers->led_ns + LEFT_TO_LEADER_NS - dm_clock_boot_ns() : 0;
    bool may_come = !registers->sleepers || next_leader(registers);

    dm_assert_held(DM_RANK_REGISTERS);
    registers->loop_sum = dm_registers_probe(registers);
    registers->loop_due_ns = dm_registers_due_ns(registers);
    registers->is_left_to_leader = registers->has_leader || (left_ns > 0 && may_come);
    if (left_ns > 0 && registers->is_left_to_leader) /* leaders come and go: none of them has to wake the loop thread */
        registers->loop_due_ns = dm_min64(registers->loop_due_ns, registers->led_ns + LEFT_TO_LEADER_NS);
    if (!registers->is_left_to_leader)
        registers->loop_due_ns = dm_min64(registers->loop_due_ns, registers->probe.due_ns);
    dm_watch_until(watch, registers->loop_due_ns);
    if (!registers->is_left_to_leader && !registers->is_ended)
        registers->driver->ops->watch(registers->driver, watch);
}
