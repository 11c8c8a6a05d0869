/* SPDX-License-Identifier: BSD-2-Clause */
#include "base/self.h"

#include <limits.h>
#include <pthread.h>
#include <unistd.h>

#include "base/attrs.h"
#include "base/descriptor.h"

static __thread struct dm_self self;
static __thread int ends_seen;

__thread struct dm_self_fast dm_self_fast;

/* The process is ending; this thread ends it; the questions of other threads are given up. */
static bool is_ending;
static __thread bool is_ending_here;
static bool are_questions_over;

static uint64_t threads; /* how many threads have had a serial */
/* Set once by the library's constructor, before any thread has a record, and so read without a lock. */
static pthread_key_t end_key;
static void (*end_report)(struct dm_self *);

/*
 * Other libraries' destructors may still use a mutex, so ours puts itself off until the last pass, or the one before
 * under ThreadSanitizer, which forgets the thread in the last.  The value of the key is the thread's dm_self.
 */
#define LAST_PASS (PTHREAD_DESTRUCTOR_ITERATIONS - DM_UNDER_TSAN)

static void thread_ends(void *value)
{
    if (++ends_seen < LAST_PASS)
        pthread_setspecific(end_key, value);
    else {
        end_report(value);
        dm_self_fast.serial = 0;
    }
}

bool dm_self_on_thread_end(void (*report)(struct dm_self *))
{
    if (pthread_key_create(&end_key, thread_ends) != 0)
        return false;
    end_report = report;
    return true;
}

static void draw_serial(void)
{
    self.serial = __atomic_add_fetch(&threads, 1, __ATOMIC_RELAXED) << DM_SELF_TID_BITS | (uint64_t)gettid();
    dm_self_fast.serial = self.serial;
}

struct dm_self *dm_self_get(void)
{
    if (self.serial == 0) {
        draw_serial();
        sem_init(&self.wake, 0, 0);
        if (end_report)
            pthread_setspecific(end_key, &self);
    }
    return &self;
}

/*
 * Also returns false after a signal handler (EINTR): the caller checks the deadline itself.  Both waits are
 * cancellation points; the caller decides whether cancellation is enabled.
 */
bool dm_self_sleep(struct dm_self *sleeper, const struct dm_deadline *deadline)
{
    if (deadline->is_endless)
        return sem_wait(&sleeper->wake) == 0;
    return sem_clockwait(&sleeper->wake, deadline->clock, &deadline->at) == 0;
}

/*
 * The sleeper sets the bell, then checks for a post; dm_self_wake() posts, then checks for a bell.  Both, and
 * dm_self_stop_listening(), change the bell by an atomic read-modify-write (dm_self_wake() adds 0), so that the later
 * of two sees everything that came before the earlier.  Fences would do, but ThreadSanitizer does not understand them.
 */
bool dm_self_listen(struct dm_self *sleeper, int *bell)
{
    int posts = 0;

    (void)__atomic_exchange_n(&sleeper->bell, bell, __ATOMIC_ACQ_REL);
    sem_getvalue(&sleeper->wake, &posts);
    return posts > 0;
}

void dm_self_stop_listening(struct dm_self *sleeper)
{
    if (__atomic_load_n(&sleeper->bell, __ATOMIC_RELAXED))
        (void)__atomic_exchange_n(&sleeper->bell, NULL, __ATOMIC_ACQ_REL);
}

bool dm_self_take_post(struct dm_self *sleeper)
{
    return sem_trywait(&sleeper->wake) == 0;
}

/*
 * Needs no lock.  It is usually called with STATE or CONN held, which keeps the sleeper inside its call and so its
 * memory valid.
 */
void dm_self_wake(struct dm_self *sleeper)
{
    int *bell;

    sem_post(&sleeper->wake);
    bell = __atomic_fetch_add(&sleeper->bell, 0, __ATOMIC_ACQ_REL);
    if (bell)
        dm_bell_ring(bell);
}

void dm_self_end_process(void)
{
    __atomic_store_n(&is_ending, true, __ATOMIC_RELAXED);
    is_ending_here = true;
}

bool dm_self_is_ending(void)
{
    return __atomic_load_n(&is_ending, __ATOMIC_RELAXED);
}

bool dm_self_must_park(void)
{
    return dm_self_is_ending() && !is_ending_here;
}

void dm_self_end_questions(void)
{
    __atomic_store_n(&are_questions_over, true, __ATOMIC_RELAXED);
}

bool dm_self_is_given_up(void)
{
    return __atomic_load_n(&are_questions_over, __ATOMIC_RELAXED) && !is_ending_here;
}

void dm_self_park(void)
{
    for (;;)
        pause();
}

/* The claims are forgotten and not freed: their registry is the parent's. */
void dm_self_fork_child(void)
{
    is_ending = is_ending_here = are_questions_over = false;
    if (self.serial == 0)
        return;
    sem_init(&self.wake, 0, 1); /* a wait in which a handler has forked checks again, and ends */
    self.bell = NULL;
    self.claims = NULL;
    draw_serial();
    dm_self_fast.misled = NULL;
}
