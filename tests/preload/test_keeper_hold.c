/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A hold of the keeper whose library is played by this program: so a loss comes just where a stopped keeper would have
 * the loss, between the grant and the moment when the hold's thread has returned from dmutex_lock().
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <string.h>

#include "keeper/errand.h"
#include "keeper/hold.h"
#include "keeper/say.h"

#define FIRST_TOKEN 4096

static struct hold *hold;
static sem_t is_granted, is_over;
static int grants, releases, told;
static uint64_t losses[3]; /* the token that is lost within the grant of this number; 0: none */

/* ---- the library, as far as a hold calls it ---------------------------------------------- */

/* Grants the next token, and loses a token before the return. */
int dmutex_lock(dmutex_t *mutex)
{
    uint64_t lost = losses[grants++];
    struct loss loss;

    (void)mutex;
    if (lost && hold_lose(hold, lost, &loss))
        told++;
    return 0;
}

int dmutex_trylock(dmutex_t *mutex)
{
    return dmutex_lock(mutex);
}

int dmutex_token_np(dmutex_t *mutex, uint64_t *ret_token)
{
    (void)mutex;
    *ret_token = FIRST_TOKEN * (uint64_t)grants;
    return 0;
}

int dmutex_unlock(dmutex_t *mutex)
{
    (void)mutex;
    releases++;
    return 0;
}

int dmutex_init_np(dmutex_t *mutex, const char *name, const dmutexattr_t *attr)
{
    (void)mutex;
    (void)name;
    (void)attr;
    return 0;
}

int dmutex_destroy(dmutex_t *mutex)
{
    (void)mutex;
    return 0;
}

int dmutexattr_init(dmutexattr_t *attr)
{
    (void)attr;
    return 0;
}

int dmutexattr_setlease_np(dmutexattr_t *attr, unsigned ms)
{
    (void)attr;
    (void)ms;
    return 0;
}

int dmutexattr_setlinger_np(dmutexattr_t *attr, unsigned ms)
{
    (void)attr;
    (void)ms;
    return 0;
}

const char *dmutex_strerror_np(void)
{
    return "";
}

/* ---- the keeper's other parts ------------------------------------------------------------ */

void errand_send(void (*run)(void *user), void *user)
{
    run(user);
}

void say(int level, const char *format, ...)
{
    (void)level;
    (void)format;
}

void holder_forget(struct holder *holder)
{
    (void)holder;
}

/* ---- tests ------------------------------------------------------------------------------- */

static void on_granted(void *user)
{
    (void)user;
    sem_post(&is_granted);
}

static void on_over(void *user)
{
    (void)user;
    sem_post(&is_over);
}

static void await(sem_t *event)
{
    while (sem_wait(event) < 0)
        assert_int_equal(errno, EINTR);
}

/* Starts a hold by dmutex_lock(), or by dmutex_trylock(), and awaits the hold. */
static void get(bool is_try, uint64_t first_loss, uint64_t second_loss)
{
    struct wish wish = { .is_try = is_try, .on_down = DOWN_BLOCK, .name = "f/x", .path = "/x" };

    grants = releases = told = 0;
    losses[0] = first_loss;
    losses[1] = second_loss;
    hold = hold_new(&wish, &(struct backing){ .is_there = true, .lock = wish.lock });
    assert_int_equal(hold_start(hold, on_granted, on_over), 0);
    await(&is_granted);
    assert_int_equal(hold_phase(hold), HOLD_HELD);
    assert_int_equal(told, 0);
}

static void end(void)
{
    hold_end(hold);
    await(&is_over);
    pthread_join(hold->thread, NULL);
    hold_free(hold);
}

static bool lose(uint64_t token)
{
    struct loss loss;

    return hold_lose(hold, token, &loss);
}

/* A hold that is lost before dmutex_lock() has returned is given back and asked for again, every time. */
static void test_a_hold_is_asked_for_again_when_it_is_lost_before_the_lock_returns(void **state)
{
    (void)state;
    get(false, FIRST_TOKEN, 2 * FIRST_TOKEN);
    assert_int_equal(grants, 3);
    assert_int_equal(releases, 2);
    end();
    assert_int_equal(releases, 3);
}

/* So is a try that is lost like this. */
static void test_a_try_is_repeated_when_its_hold_is_lost_before_it_returns(void **state)
{
    (void)state;
    get(true, FIRST_TOKEN, 0);
    assert_int_equal(grants, 2);
    assert_int_equal(releases, 1);
    end();
}

/* If the loss of an earlier hold of the name is reported while a hold asks, that hold is not lost. */
static void test_a_hold_is_kept_when_an_earlier_hold_of_the_name_is_lost(void **state)
{
    (void)state;
    get(false, FIRST_TOKEN - 1, 0);
    assert_int_equal(grants, 1);
    assert_int_equal(releases, 0);
    end();
}

/* A held hold is lost only by the loss of its own token, and only once. */
static void test_a_held_hold_is_lost_when_its_token_is_lost(void **state)
{
    (void)state;
    get(false, 0, 0);
    assert_false(lose(FIRST_TOKEN - 1));
    assert_int_equal(hold_phase(hold), HOLD_HELD);
    assert_true(lose(FIRST_TOKEN));
    assert_int_equal(hold_phase(hold), HOLD_LOST);
    assert_false(lose(FIRST_TOKEN));
    end();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_hold_is_asked_for_again_when_it_is_lost_before_the_lock_returns),
        cmocka_unit_test(test_a_try_is_repeated_when_its_hold_is_lost_before_it_returns),
        cmocka_unit_test(test_a_hold_is_kept_when_an_earlier_hold_of_the_name_is_lost),
        cmocka_unit_test(test_a_held_hold_is_lost_when_its_token_is_lost),
    };

    sem_init(&is_granted, 0, 0);
    sem_init(&is_over, 0, 0);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
