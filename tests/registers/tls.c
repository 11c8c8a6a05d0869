/* SPDX-License-Identifier: BSD-2-Clause */
/* TLS to a store on registers: the same tests for each store, see bed.h. */
#include "../lib/testlib.h"

#include <limits.h>
#include <pthread.h>
#include <stdlib.h>

#include "../lib/tls.h"
#include "bed.h"

#define LONG "lease=10000"

static int setup(void **state)
{
    char certificate[64], key[64];

    (void)state;
    tls_begin();
    snprintf(certificate, sizeof certificate, "%s/server.crt", tls_folder);
    snprintf(key, sizeof key, "%s/server.key", tls_folder);
    bed_begin_with_tls(certificate, key);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    bed_end();
    tls_end();
    return 0;
}

static const char *url_with(const char *authority)
{
    char path[64];

    snprintf(path, sizeof path, "%s/%s", tls_folder, authority);
    return bed_url_with_authority(path);
}

/* A server with a certificate of our authority keeps locks; with another one no lock is granted */
static void test_certificate_is_verified(void **state)
{
    struct actor *good = actor_start_at(url_with("ca.crt")), *bad = actor_start_at(url_with("other.crt"));

    (void)state;
    actor_do(good, "0", "init t " LONG);
    actor_do(good, "0", "lock t");
    actor_do(good, "0", "unlock t");
    actor_do(bad, "0", "init t " LONG);
    actor_do(bad, "ENOLCK", "trylock t");
    actor_end(good);
    actor_end(bad);
}

struct small {
    dmutex_t mutex;
    int count, error;
};

static void *lock_in_turns(void *user)
{
    struct small *small = user;

    for (int i = 0; i < 50 && !small->error; i++) {
        small->error = dmutex_lock(&small->mutex);
        if (small->error)
            break;
        small->count++;
        small->error = dmutex_unlock(&small->mutex);
    }
    return NULL;
}

/*
 * OpenSSL needs more stack than a thread may have: such threads lock and wait all the same, also if there are no
 * others.
 */
static void test_threads_with_the_least_stack_lock(void **state)
{
    static struct small small = { .mutex = DMUTEX_INITIALIZER("small") };
    struct actor *other = actor_start_at(url_with("ca.crt"));
    pthread_t threads[3];
    pthread_attr_t attributes;

    (void)state;
    assert_int_equal(dmutex_configure_np(url_with("ca.crt")), 0);
    assert_int_equal(pthread_attr_init(&attributes), 0);
    if (!IS_THREAD_SANITIZED && !IS_ADDRESS_SANITIZED)
        assert_int_equal(pthread_attr_setstacksize(&attributes, (size_t)PTHREAD_STACK_MIN), 0);
    actor_do(other, "0", "init small " LONG);
    actor_do(other, "0", "lock small");
    for (int i = 0; i < 3; i++)
        assert_int_equal(pthread_create(&threads[i], &attributes, lock_in_turns, &small), 0);
    wait_until(bed_count_sessions() > 1);
    actor_do(other, "0", "unlock small");
    for (int i = 0; i < 3; i++)
        pthread_join(threads[i], NULL);
    assert_int_equal(small.error, 0);
    assert_int_equal(small.count, 150);
    pthread_attr_destroy(&attributes);
    actor_end(other);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_certificate_is_verified),
        cmocka_unit_test(test_threads_with_the_least_stack_lock),
    };

    if (!bed_is_possible())
        return 0;
    test_begin(argc, argv);
    return cmocka_run_group_tests(tests, setup, teardown);
}
