/* SPDX-License-Identifier: BSD-2-Clause */
/* pthread_mutex_init(), destroy(), and the static initialisers. */
#include "shalls.h"

#include <stdlib.h>
#include <string.h>

/* ---- init, destroy --------------------------------------------------------------------------- */

/* The answers of a new mutex to the first uses. */
static void use_once(pthread_mutex_t *mutex)
{
    say("lock", pthread_mutex_lock(mutex));
    say("elsewhere", try_elsewhere(mutex));
    say("unlock", pthread_mutex_unlock(mutex));
    say("elsewhere", try_elsewhere(mutex));
    say("destroy", pthread_mutex_destroy(mutex));
}

static void init_null(void)
{
    pthread_mutex_t mutex;

    say("init", pthread_mutex_init(&mutex, NULL));
    use_once(&mutex);
}

static void init_default_attributes(void)
{
    pthread_mutexattr_t attr;
    pthread_mutex_t mutex;

    pthread_mutexattr_init(&attr);
    say("init", pthread_mutex_init(&mutex, &attr));
    use_once(&mutex);
}

static void init_leaves_unlocked(void)
{
    for (int i = 0; i < KINDS; i++) {
        pthread_mutex_t mutex;

        make_kind(&mutex, &kinds[i]);
        say(kinds[i].name, try_elsewhere(&mutex));
    }
}

/* The bytes before init() mean nothing. */
static void init_over_garbage(void)
{
    pthread_mutex_t mutex;

    memset(&mutex, 0xa5, sizeof mutex);
    say("init", pthread_mutex_init(&mutex, NULL));
    use_once(&mutex);
}

static void init_ignores_later_attributes(void)
{
    pthread_mutexattr_t attr;
    pthread_mutex_t mutex;

    pthread_mutexattr_init(&attr);
    pthread_mutexattr_settype(&attr, PTHREAD_MUTEX_ERRORCHECK);
    pthread_mutex_init(&mutex, &attr);
    pthread_mutexattr_settype(&attr, PTHREAD_MUTEX_RECURSIVE);
    pthread_mutexattr_setrobust(&attr, PTHREAD_MUTEX_ROBUST);
    say("attr-destroy", pthread_mutexattr_destroy(&attr));
    say("lock", pthread_mutex_lock(&mutex));
    say("again", pthread_mutex_lock(&mutex));
    say("unlock", pthread_mutex_unlock(&mutex));
}

static void init_many_by_one_attribute(void)
{
    pthread_mutexattr_t attr;
    pthread_mutex_t one, other;

    pthread_mutexattr_init(&attr);
    pthread_mutexattr_settype(&attr, PTHREAD_MUTEX_ERRORCHECK);
    say("init", pthread_mutex_init(&one, &attr));
    say("init", pthread_mutex_init(&other, &attr));
    say("lock-one", pthread_mutex_lock(&one));
    say("lock-other", pthread_mutex_lock(&other));
    say("unlock-one", pthread_mutex_unlock(&one));
    say("other-elsewhere", try_elsewhere(&other));
}

static void destroy_unlocked(void)
{
    for (int i = 0; i < KINDS; i++) {
        pthread_mutex_t mutex;

        make_kind(&mutex, &kinds[i]);
        say(kinds[i].name, pthread_mutex_destroy(&mutex));
    }
}

static void destroy_then_init(void)
{
    pthread_mutex_t mutex;

    make(&mutex, PTHREAD_MUTEX_RECURSIVE);
    say("lock", pthread_mutex_lock(&mutex));
    say("unlock", pthread_mutex_unlock(&mutex));
    say("destroy", pthread_mutex_destroy(&mutex));
    make(&mutex, PTHREAD_MUTEX_ERRORCHECK);
    say("lock", pthread_mutex_lock(&mutex));
    say("again", pthread_mutex_lock(&mutex));
    say("unlock", pthread_mutex_unlock(&mutex));
    say("destroy", pthread_mutex_destroy(&mutex));
}

/* An object with a count of users, as in the examples of the page. */
struct counted {
    pthread_mutex_t mutex;
    int users;
};

/* Leaves the object; the last user destroys and frees the object straight after the unlock. */
static int put(void *with)
{
    struct counted *counted = with;
    bool is_last;
    int result = 0;

    pthread_mutex_lock(&counted->mutex);
    is_last = --counted->users == 0;
    pthread_mutex_unlock(&counted->mutex);
    if (is_last) {
        result = pthread_mutex_destroy(&counted->mutex);
        memset(counted, 0x5a, sizeof *counted);
        free(counted);
    }
    return result;
}

static void destroy_after_unlock(void)
{
    int failures = 0;

    for (int i = 0; i < 200; i++) {
        struct counted *counted = malloc(sizeof *counted);
        struct task task;

        counted->users = 2;
        pthread_mutex_init(&counted->mutex, NULL);
        task_begin(&task, put, counted);
        failures += put(counted) != 0;
        failures += task_join(&task) != 0;
    }
    say_number("failures", failures);
}

/* ---- Static initialisers --------------------------------------------------------------------- */

static void static_normal(void)
{
    static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;

    say("try", pthread_mutex_trylock(&mutex));
    say("own-try", pthread_mutex_trylock(&mutex));
    say("unlock", pthread_mutex_unlock(&mutex));
    use_once(&mutex);
}

static void static_recursive(void)
{
    static pthread_mutex_t mutex = PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP;

    say("lock", pthread_mutex_lock(&mutex));
    say("again", pthread_mutex_lock(&mutex));
    say("unlock", pthread_mutex_unlock(&mutex));
    say("elsewhere", try_elsewhere(&mutex));
    say("unlock", pthread_mutex_unlock(&mutex));
    say("elsewhere", try_elsewhere(&mutex));
    say("unlock", pthread_mutex_unlock(&mutex));
    say("destroy", pthread_mutex_destroy(&mutex));
}

static void static_errorcheck(void)
{
    static pthread_mutex_t mutex = PTHREAD_ERRORCHECK_MUTEX_INITIALIZER_NP;

    say("lock", pthread_mutex_lock(&mutex));
    say("again", pthread_mutex_lock(&mutex));
    say("unlock-elsewhere", elsewhere(unlock_it, &mutex));
    say("unlock", pthread_mutex_unlock(&mutex));
    say("unlock", pthread_mutex_unlock(&mutex));
    say("destroy", pthread_mutex_destroy(&mutex));
}

static void static_adaptive(void)
{
    static pthread_mutex_t mutex = PTHREAD_ADAPTIVE_MUTEX_INITIALIZER_NP;

    use_once(&mutex);
}

static void static_automatic(void)
{
    pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;

    use_once(&mutex);
}

static void static_in_struct(void)
{
    static struct {
        int before;
        pthread_mutex_t mutexes[2];
        pthread_cond_t cond;
    } all = { 1, { PTHREAD_MUTEX_INITIALIZER, PTHREAD_MUTEX_INITIALIZER }, PTHREAD_COND_INITIALIZER };

    say("lock-first", pthread_mutex_lock(&all.mutexes[0]));
    say("second-elsewhere", try_elsewhere(&all.mutexes[1]));
    say("first-elsewhere", try_elsewhere(&all.mutexes[0]));
    say("unlock-first", pthread_mutex_unlock(&all.mutexes[0]));
}

const struct clause mutex_init_clauses[] = {
    { "2.1-init-null", "without attributes", init_null },
    { "2.1-init-default", "with default attributes", init_default_attributes },
    { "2.1-init-unlocked", "a new mutex is free", init_leaves_unlocked },
    { "2.1-init-garbage", "the old bytes mean nothing", init_over_garbage },
    { "2.1-init-copies-attributes", "later changes of them mean nothing", init_ignores_later_attributes },
    { "2.1-init-shares-attributes", "for two mutexes", init_many_by_one_attribute },
    { "2.1-destroy-unlocked", "of each kind", destroy_unlocked },
    { "2.1-destroy-init", "a destroyed mutex can be set up anew", destroy_then_init },
    { "2.1-destroy-after-unlock", "by the last of two users", destroy_after_unlock },
    { "2.1-static-normal", "PTHREAD_MUTEX_INITIALIZER", static_normal },
    { "2.1-static-recursive", "PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP", static_recursive },
    { "2.1-static-errorcheck", "PTHREAD_ERRORCHECK_MUTEX_INITIALIZER_NP", static_errorcheck },
    { "2.1-static-adaptive", "PTHREAD_ADAPTIVE_MUTEX_INITIALIZER_NP", static_adaptive },
    { "2.1-static-automatic", "of a local variable", static_automatic },
    { "2.1-static-in-struct", "of members", static_in_struct },
    { NULL, NULL, NULL },
};
