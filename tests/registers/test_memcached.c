/* SPDX-License-Identifier: BSD-2-Clause */
/* The driver of memcached on real servers: what is flushed, full or set up wrongly, and what is no memcached. */
#include "../lib/testlib.h"

#include <stdlib.h>
#include <string.h>

#include "../lib/talker.h"
#include "asker.h"
#include "mcserver.h"
#include "stores/memcached/open.h"

static struct mcserver *server;
static const struct dm_reg_version absent;

/* Drivers keep their URLs. */
static struct dm_reg_driver *open_memcached(const char *version, const struct dm_reg_place *place,
                                            const struct dm_reg_client *client, char ret_reason[DM_REASON_ROOM])
{
    struct dm_url *url = dm_url_parse(place->url, ret_reason);

    (void)version;
    if (!url)
        fail_msg("%s", ret_reason);
    return dm_memcached_driver_open(url, client, ret_reason);
}

/* A flush between two questions is seen with the next answer, which is not believed, and the data are others */
static void test_flush_is_another_identity(void **state)
{
    struct asker *asker, *other;
    struct dm_reg_version version = absent, another = absent;
    char identity[DM_REG_IDENTITY_ROOM];

    (void)state;
    server = mcserver_start("-M");
    asker = asker_start(server->url, "me");
    other = asker_start(server->url, "other");
    memcpy(identity, asker->identity, sizeof identity);
    assert_outcome(asker_swap(asker, "n/f", &version, "x"), DM_REG_DONE);
    mcserver_ask(server, "flush_all");
    assert_outcome(asker_read(asker, "n/f", NULL), DM_REG_UNKNOWN);
    assert_outcome(asker_swap(other, "n/g", &another, "x"), DM_REG_UNKNOWN);
    asker_until(asker, asker->is_up);
    asker_until(other, other->is_up);
    assert_string_not_equal(asker->identity, identity);
    assert_string_equal(asker->identity, other->identity);
    assert_outcome(asker_read(asker, "n/f", NULL), DM_REG_DONE);
    asker_end(asker);
    asker_end(other);
    mcserver_end(server);
}

/* CAS numbers begin again with each start: none from before fits, although the same number is there again */
static void test_restart_fits_no_number_from_before(void **state)
{
    struct asker *asker;
    struct dm_reg_version version = absent, old;

    (void)state;
    server = mcserver_start("-M");
    asker = asker_start(server->url, "me");
    assert_outcome(asker_swap(asker, "n/r", &version, "x"), DM_REG_DONE);
    old = version;
    mcserver_kill(server);
    mcserver_restart(server);
    asker_until(asker, asker->down && asker->is_up);
    version = absent;
    assert_outcome(asker_swap(asker, "n/r", &version, "y"), DM_REG_DONE);
    assert_int_equal(mcserver_version_of(server, "n/r"), 2);
    assert_outcome(asker_swap(asker, "n/r", &old, "z"), DM_REG_CONFLICT);
    assert_string_equal(asker_read(asker, "n/r", NULL)->value, "y");
    asker_end(asker);
    mcserver_end(server);
}

/* More versions than the driver remembers: swaps look first, and take the values for which they were asked */
static void test_forgotten_versions_are_looked_up(void **state)
{
    static struct dm_reg_version versions[700];
    struct dm_reg_version wrong;
    struct asker *asker;
    char key[16];

    (void)state;
    server = mcserver_start("-M");
    asker = asker_start(server->url, "me");
    for (int pass = 0; pass < 3; pass++) {
        for (int i = 0; i < 700; i++) {
            snprintf(key, sizeof key, "n/%d", i);
            wrong = versions[(i + 1) % 700];
            if (pass)
                assert_outcome(asker_swap(asker, key, &wrong, "wrong"), DM_REG_CONFLICT);
            if (pass < 2)
                assert_outcome(asker_swap(asker, key, &versions[i], "x"), DM_REG_DONE);
            else
                assert_outcome(asker_delete(asker, key, &versions[i]), DM_REG_DONE);
        }
    }
    assert_int_equal(mcserver_count(server, "n/"), 0);
    asker_end(asker);
    mcserver_end(server);
}

/* A full server refuses to write, and loses nothing: what is there can be read, and deleted */
static void test_full_server_loses_nothing(void **state)
{
    struct asker *asker;
    struct dm_reg_version version = absent, none = absent;

    (void)state;
    server = mcserver_start("-M -m 2");
    asker = asker_start(server->url, "me");
    assert_outcome(asker_swap(asker, "n/full", &version, "x"), DM_REG_DONE);
    mcserver_fill(server);
    for (int i = 0; i < 3; i++) {
        assert_outcome(asker_swap(asker, "n/full", &version, "y"), DM_REG_REFUSED);
        assert_outcome(asker_swap(asker, "n/full", &none, "y"), DM_REG_REFUSED);
        assert_outcome(asker_swap(asker, "n/more", &none, "y"), DM_REG_REFUSED);
    }
    assert_string_equal(asker_read(asker, "n/full", NULL)->value, "x");
    assert_outcome(asker_delete(asker, "n/full", &version), DM_REG_DONE);
    assert_int_equal(asker->down, 0);
    asker_end(asker);
    mcserver_end(server);
}

/* Sessions that nobody renews go by themselves; names stay */
static void test_sessions_expire(void **state)
{
    struct asker *asker;
    struct dm_reg_version name = absent, session = absent;

    (void)state;
    server = mcserver_start("-M");
    asker = asker_start(server->url, "me");
    assert_outcome(asker_swap(asker, "n/t", &name, "x"), DM_REG_DONE);
    assert_outcome(asker_swap(asker, "s/t", &session, "x"), DM_REG_DONE);
    assert_string_equal(mcserver_ask(server, "mg dmutex:r/n/t t"), "HD t-1\r\n");
    assert_string_equal(mcserver_ask(server, "mg dmutex:r/s/t t"), "HD t86400\r\n");
    asker_end(asker);
    mcserver_end(server);
}

/* Who may evict is warned of, once */
static void test_eviction_is_warned_of(void **state)
{
    struct asker *asker;

    (void)state;
    server = mcserver_start("-M");
    asker = asker_start(server->url, "me");
    assert_string_equal(asker->warning, "");
    asker_end(asker);
    mcserver_end(server);
    server = mcserver_start("");
    asker = asker_start(server->url, "me");
    assert_non_null(strstr(asker->warning, "drops locks when its memory is full: start it with -M"));
    asker->warning[0] = '\0';
    mcserver_ask(server, "flush_all");
    assert_outcome(asker_read(asker, "n/w", NULL), DM_REG_UNKNOWN);
    asker_until(asker, asker->is_up);
    assert_string_equal(asker->warning, "");
    asker_end(asker);
    mcserver_end(server);
}

static void assert_down(const char *url, bool is_final, const char *words)
{
    struct asker *asker = asker_open(url, "dmutex", 0);

    asker->driver->ops->want(asker->driver);
    asker_until(asker, asker->down);
    if (!strstr(asker->reason, words))
        fail_msg("%s: %s", words, asker->reason);
    assert_int_equal(asker->is_final, is_final);
    asker_end(asker);
}

/* A server on which no lock can be kept says why, and what to do */
static void test_wrong_servers_are_told(void **state)
{
    static const struct {
        const char *options, *words;
    } rows[] = {
        { "-M -C", "no CAS numbers: start it without -C" },
        { "-M -Y login", "wants a login" },
    };

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        server = mcserver_start(rows[i].options);
        assert_down(server->url, true, rows[i].words);
        mcserver_end(server);
    }
    server = mcserver_start("-M");
    mcserver_ask(server, "ms dmutex:epoch 4\r\nmine");
    assert_down(server->url, true, "the key dmutex:epoch has been changed by hand: delete it");
    mcserver_ask(server, "md dmutex:epoch");
    mcserver_ask(server, "ms dmutex:r/n/hand 4\r\nmine");
    {
        struct asker *asker = asker_start(server->url, "me");
        struct dm_reg_version version = absent;

        assert_outcome(asker_swap(asker, "n/hand", &version, "x"), DM_REG_REFUSED);
        assert_outcome(asker_read(asker, "n/hand", NULL), DM_REG_REFUSED);
        asker_end(asker);
    }
    mcserver_end(server);
}

/* What comes to a question: a text, again and again if it ends with a blank */
static const char *said;

static void talk(struct guest *guest)
{
    char asked[4096];
    bool is_endless = said[0] && said[strlen(said) - 1] == ' ';

    if (guest->hear(guest, asked, sizeof asked) <= 0)
        return;
    while (talker_say_text(guest, said) && is_endless && !talker_is_over())
        continue;
    while (!is_endless && guest->hear(guest, asked, sizeof asked) > 0)
        continue;
}

/* What is no memcached, or an old one, or never ends */
static void test_what_is_no_memcached_is_told(void **state)
{
    static const struct {
        const char *text, *words;
        bool is_final;
    } rows[] = {
        { "HTTP/1.1 400 Bad Request\r\n", "does not speak as memcached does", true },
        { "-ERR unknown command\r\n", "does not speak as memcached does", true },
        { "ERROR\r\n", "is no memcached: it says \"ERROR\"", true },
        { "VERSION 1.5.22\r\n", "is 1.5.22, and locks need 1.6.18 or later", true },
        { "VERSION 1.6.18\r\nSTAT item_size_max 4096\r\n", "takes 4096 bytes for a value at most: start it with -I 1m",
          true },
        { "VERSION 1.6.18\r\nERROR\r\n", "does not tell its settings", true },
        { "VERSION 1.6.18\r\nEND\r\nEN\r\nERROR\r\n", "cannot begin to keep locks: it says \"ERROR\"", false },
        { "VERSION 1.6.18\r\nEND\r\nEN\r\nNOT_STORED\r\nEN\r\n", "has been flushed just now", false },
        { "VERSION 1.6.18\r\nEND\r\nVA -1\r\n", "does not speak as memcached does", true },
        { "VERSION 1.6.18\r\nEND\r\nVA 32\r\n0123456789abcdef0123456789abcdef\r\nHD\r\n",
          "it speaks before it is asked", false },
        { "x ", "does not speak as memcached does", true },
    };

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        char url[96];

        said = rows[i].text;
        snprintf(url, sizeof url, "memcached://127.0.0.1:%d?lossy=yes", talker_begin(talk));
        assert_down(url, rows[i].is_final, rows[i].words);
        talker_end();
    }
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_flush_is_another_identity),
        cmocka_unit_test(test_restart_fits_no_number_from_before),
        cmocka_unit_test(test_forgotten_versions_are_looked_up),
        cmocka_unit_test(test_full_server_loses_nothing),
        cmocka_unit_test(test_sessions_expire),
        cmocka_unit_test(test_eviction_is_warned_of),
        cmocka_unit_test(test_wrong_servers_are_told),
        cmocka_unit_test(test_what_is_no_memcached_is_told),
    };

    if (!mcserver_is_possible())
        return 0;
    test_begin(argc, argv);
    asker_driver = open_memcached;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
