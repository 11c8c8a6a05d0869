/* SPDX-License-Identifier: BSD-2-Clause */
/* stores/redis/sentinel/sentinel: a sentinel that cannot be reached, until another one takes its place. */
#include <dlfcn.h>
#include <netdb.h>
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
static sem_t may_shake, may_be_found;
static int shakers; /* how many of the first connections wait for may_shake */
static int guests, heard_at_first, heard_later, look_ups;
static struct dm_sentinel *sentinel; /* never freed, as in the library */
static struct dm_url *url;
static char port[8];

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

    if (number < shakers)
        sem_wait(&may_shake);
    SSL_set_fd(ssl, guest->fd);
    if (SSL_accept(ssl) == 1 && SSL_read(ssl, &byte, 1) == 1)
        add(number < shakers ? &heard_at_first : &heard_later);
    SSL_free(ssl);
}

#define SLOW_NAME "slow.test.example"

/* Replaces libc's function, for the library, too. */
int getaddrinfo(const char *name, const char *service, const struct addrinfo *hints, struct addrinfo **ret_found)
{
    int (*look_up)(const char *, const char *, const struct addrinfo *, struct addrinfo **);

    *(void **)&look_up = dlsym(RTLD_NEXT, "getaddrinfo");
    if (strcmp(name, SLOW_NAME) != 0 || hints->ai_flags & AI_NUMERICHOST)
        return look_up(name, service, hints, ret_found);
    add(&look_ups);
    sem_wait(&may_be_found);
    sem_post(&may_be_found); /* for the next one */
    return EAI_AGAIN;
}

static int begin_group(void **state)
{
    char path[64];

    (void)state;
    tls_begin();
    sem_init(&may_shake, 0, 0);
    sem_init(&may_be_found, 0, 0);
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

static void hear_ready(void *user, struct dm_sentinel *of, const char *id)
{
    (void)user;
    (void)of;
    (void)id;
}

static void hear_nothing(void *user)
{
    (void)user;
}

/* The loop's part. */
static bool turn(struct dm_sentinel *of)
{
    dm_sentinel_ask(of, false);
    dm_sentinel_turn(of);
    return true;
}

/* Asks for a sentinel at that host, and waits until it is being reached. */
static void begin_sentinel(const char *host, int *is_under_way, int enough)
{
    static const struct dm_sentinel_hooks hooks = { .on_ready = hear_ready,
                                                    .on_switch = hear_nothing,
                                                    .on_change = hear_nothing };
    char text[160], reason[DM_REASON_ROOM];

    guests = heard_at_first = heard_later = 0;
    snprintf(port, sizeof port, "%d", talker_begin(receive));
    snprintf(text, sizeof text,
             "redis+sentinel://127.0.0.1:%s/group?tls=yes&verify=none&connect_timeout=900000&switch=3600000", port);
    url = dm_url_parse(text, reason);
    if (!url)
        fail_msg("%s", reason);
    sentinel = dm_sentinel_new(url, 0, host, port, &hooks);
    assert_non_null(sentinel);
    wait_until(turn(sentinel) && get(is_under_way) >= enough);
}

static void end_sentinel(void)
{
    dm_sentinel_end(sentinel);
    talker_end();
    wait_until(proc_own_threads() == 1); /* none is left that shakes hands, and would be at the end of the program */
}

/*
 * The former sentinel, which never completes a handshake, gets neither a password nor a question, and nobody waits for
 * it.
 */
static void test_another_is_asked_when_it_takes_the_place_of_one_that_does_not_shake_hands(void **state)
{
    (void)state;
    shakers = LINKS;
    begin_sentinel("127.0.0.1", &guests, LINKS);
    dm_sentinel_move(sentinel, "127.1", port);
    wait_until(turn(sentinel) && get(&heard_later) >= LINKS);
    for (int i = 0; i < LINKS; i++)
        sem_post(&may_shake);
    end_sentinel();
    assert_int_equal(heard_at_first, 0);
}

static void test_another_is_asked_when_the_name_of_the_former_is_still_looked_up(void **state)
{
    (void)state;
    shakers = 0;
    begin_sentinel(SLOW_NAME, &look_ups, LINKS);
    dm_sentinel_move(sentinel, "127.0.0.1", port);
    wait_until(turn(sentinel) && get(&heard_later) >= LINKS);
    sem_post(&may_be_found);
    end_sentinel();
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_another_is_asked_when_it_takes_the_place_of_one_that_does_not_shake_hands),
        cmocka_unit_test(test_another_is_asked_when_the_name_of_the_former_is_still_looked_up),
    };

    test_begin(argc, argv);
    return cmocka_run_group_tests(tests, begin_group, end_group);
}
