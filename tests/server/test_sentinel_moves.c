/* SPDX-License-Identifier: BSD-2-Clause */
/* stores/redis/sentinel/sentinel, and a sentinel that does not shake hands before another one stands in its place. */
#include <openssl/ssl.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdlib.h>
#include <string.h>

#include "../lib/proc.h"
#include "../lib/talker.h"
#include "../lib/testlib.h"
#include "../lib/tls.h"
#include "stores/redis/sentinel/sentinel.h"

#define LINKS 2 /* of a sentinel: one asks, one hears */

static SSL_CTX *context;
static sem_t may_shake; /* the first two connections */
static int guests, heard_at_first, heard_later;

static void *add(int *count)
{
    __atomic_add_fetch(count, 1, __ATOMIC_ACQ_REL);
    return NULL;
}

static int get(int *count)
{
    return __atomic_load_n(count, __ATOMIC_ACQUIRE);
}

/* The later connections are those of the other sentinel. */
static void receive(struct guest *guest)
{
    int number = __atomic_fetch_add(&guests, 1, __ATOMIC_ACQ_REL);
    SSL *ssl = SSL_new(context);
    char byte;

    if (number < LINKS)
        sem_wait(&may_shake);
    SSL_set_fd(ssl, guest->fd);
    if (SSL_accept(ssl) == 1 && SSL_read(ssl, &byte, 1) == 1)
        add(number < LINKS ? &heard_at_first : &heard_later);
    SSL_free(ssl);
}

static int begin_group(void **state)
{
    char path[64];

    (void)state;
    tls_begin();
    sem_init(&may_shake, 0, 0);
    context = SSL_CTX_new(TLS_server_method());
    snprintf(path, sizeof path, "%s/server.crt", tls_folder);
    assert_true(SSL_CTX_use_certificate_chain_file(context, path));
    snprintf(path, sizeof path, "%s/server.key", tls_folder);
    assert_true(SSL_CTX_use_PrivateKey_file(context, path, SSL_FILETYPE_PEM));
    return 0;
}

static int end_group(void **state)
{
    (void)state;
    SSL_CTX_free(context);
    tls_end();
    return 0;
}

static void hear_ready(void *user, struct dm_sentinel *sentinel, const char *id)
{
    (void)user;
    (void)sentinel;
    (void)id;
}

static void hear_nothing(void *user)
{
    (void)user;
}

/* The loop's part. */
static bool turn(struct dm_sentinel *sentinel)
{
    dm_sentinel_ask(sentinel, false);
    dm_sentinel_turn(sentinel);
    return true;
}

/* Once hands are shaken, the former sentinel gets neither a password nor a question. */
static void test_a_sentinel_hears_nothing_when_another_has_its_place_before_hands_are_shaken(void **state)
{
    const struct dm_sentinel_hooks hooks = { .on_ready = hear_ready,
                                             .on_switch = hear_nothing,
                                             .on_change = hear_nothing };
    char text[160], port[8], reason[DM_REASON_ROOM];
    static struct dm_sentinel *sentinel; /* never freed, as in the library */
    static struct dm_url *url;

    (void)state;
    snprintf(port, sizeof port, "%d", talker_begin(receive));
    snprintf(text, sizeof text,
             "redis+sentinel://127.0.0.1:%s/group?tls=yes&verify=none&connect_timeout=20000&switch=60000", port);
    url = dm_url_parse(text, reason);
    if (!url)
        fail_msg("%s", reason);
    sentinel = dm_sentinel_new(url, 0, "127.0.0.1", port, &hooks);
    assert_non_null(sentinel);
    wait_until(turn(sentinel) && get(&guests) >= LINKS);
    dm_sentinel_move(sentinel, "127.1", port);
    for (int i = 0; i < LINKS; i++)
        sem_post(&may_shake);
    wait_until(turn(sentinel) && get(&heard_later) >= LINKS);
    dm_sentinel_end(sentinel);
    talker_end();
    wait_until(proc_own_threads() == 1); /* none is left that shakes hands, and would be at the end of the program */
    assert_int_equal(heard_at_first, 0);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_sentinel_hears_nothing_when_another_has_its_place_before_hands_are_shaken),
    };

    test_begin(argc, argv);
    return cmocka_run_group_tests(tests, begin_group, end_group);
}
