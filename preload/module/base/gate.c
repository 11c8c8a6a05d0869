/* SPDX-License-Identifier: BSD-2-Clause */
#include "gate.h"

#include <sched.h>
#include <stdint.h>

#include "now.h"

#define PATIENCE_NS 3000000000

/*
 * A thread first counts itself in, then looks for the other kind. So if two threads come at once, at least one of them
 * sees the other.
 */
static unsigned changes, forks;
static uint64_t forks_since; /* since when a fork() is in progress; a thread that waits for all forks waits once */
static __thread unsigned own_changes __attribute__((tls_model("initial-exec")));
static __thread unsigned own_forks __attribute__((tls_model("initial-exec")));

/* Waits until no more are left than the thread's own. */
static void await(const unsigned *count, unsigned own, uint64_t since)
{
    while (__atomic_load_n(count, __ATOMIC_SEQ_CST) > own && now_ns() - since < PATIENCE_NS)
        sched_yield();
}

void gate_await_forks(void)
{
    await(&forks, own_forks, __atomic_load_n(&forks_since, __ATOMIC_RELAXED));
}

/* Steps back for a fork(); otherwise both would wait. */
void gate_enter(void)
{
    if (own_changes++ > 0)
        return;
    __atomic_add_fetch(&changes, 1, __ATOMIC_SEQ_CST);
    if (__atomic_load_n(&forks, __ATOMIC_SEQ_CST) == own_forks)
        return;
    __atomic_sub_fetch(&changes, 1, __ATOMIC_SEQ_CST);
    gate_await_forks();
    __atomic_add_fetch(&changes, 1, __ATOMIC_SEQ_CST); /* the next fork() waits */
}

void gate_leave(void)
{
    if (--own_changes == 0)
        __atomic_sub_fetch(&changes, 1, __ATOMIC_SEQ_CST);
}

void gate_before_fork(void)
{
    uint64_t now = now_ns();

    if (__atomic_load_n(&forks, __ATOMIC_RELAXED) == 0)
        __atomic_store_n(&forks_since, now, __ATOMIC_RELAXED);
    own_forks++;
    __atomic_add_fetch(&forks, 1, __ATOMIC_SEQ_CST);
    await(&changes, own_changes > 0, now);
}

void gate_after_fork(void)
{
    own_forks--;
    __atomic_sub_fetch(&forks, 1, __ATOMIC_SEQ_CST);
}

void gate_in_child(void)
{
    own_forks = 0;
    forks = 0;
    changes = own_changes > 0;
}
