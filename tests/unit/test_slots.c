/* SPDX-License-Identifier: BSD-2-Clause */
/* stores/redis/wire/slots: the slots of keys, the map of a Cluster, and redirects. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "../lib/range.h"
#include "link/reader.h"
#include "stores/redis/wire/slots.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))
#define ASKED "asked.example"
#define PIECE (16 * 1024) /* read at once, as by the pipe */

/* ---- slots ------------------------------------------------------------------------------- */

static unsigned slot_of(const char *key)
{
    return dm_slot_of(key, strlen(key));
}

/* Slots that Redis 7.0 answers to CLUSTER KEYSLOT; the first is 0x31C3, the usual example of this CRC. */
static void test_a_key_has_the_slot_that_redis_gives_it(void **state)
{
    static const struct {
        const char *key;
        unsigned slot;
    } known[] = {
        { "123456789", 0x31C3 },
        { "", 0 },
        { "foo", 12182 },
        { "dmutex:{foo}:lock:a", 12182 },
        { "{foo}{bar}", 12182 },
        { "}{foo}", 12182 },
        { "dmutex:{group}:lock:leaf", 12148 },
        { "foo{}{bar}", 8363 },
        { "foo{{bar}}zap", 4015 },
        { "{", 4092 },
        { "{}", 15257 },
        { "a{foo", 113 },
        { "\xFF\x80", 4727 },
    };

    (void)state;
    for (size_t i = 0; i < COUNT(known); i++) {
        if (slot_of(known[i].key) != known[i].slot)
            fail_msg("\"%s\" has slot %u, not %u", known[i].key, slot_of(known[i].key), known[i].slot);
    }
}

/* A brace after the end of a key is not part of the key. */
static void test_a_key_ends_at_its_length(void **state)
{
    (void)state;
    assert_int_equal(dm_slot_of("a{foo}", 5), slot_of("a{foo"));
    assert_int_equal(dm_slot_of("foo{bar}", 3), slot_of("foo"));
    assert_int_equal(dm_slot_of("a\0{foo}", 7), slot_of("foo"));
}

/* Each slot has a tag of four letters, and the tag in a key leads back to the slot. */
static void test_a_tag_has_its_slot(void **state)
{
    (void)state;
    for (unsigned slot = 0; slot < DM_SLOTS; slot++) {
        char tag[DM_SLOT_TAG_ROOM], key[40];

        dm_slot_tag(slot, tag);
        assert_int_equal(strspn(tag, "abcdefghijklmnopqrstuvwxyz"), 4);
        assert_int_equal(tag[4], '\0');
        snprintf(key, sizeof key, "dmutex:{%s}:server", tag);
        assert_int_equal(slot_of(key), slot);
    }
}

/* ---- maps -------------------------------------------------------------------------------- */

static char taken[2000]; /* a line for each call of take() */

static void take(void *user, unsigned first, unsigned last, const char *host, const char *port)
{
    size_t used = strlen(taken);

    assert_ptr_equal(user, taken);
    snprintf(taken + used, sizeof taken - used, "%u-%u %s %s\n", first, last, host, port);
}

static int calls;

static void count_call(void *user, unsigned first, unsigned last, const char *host, const char *port)
{
    (void)host;
    (void)port;
    assert_ptr_equal(user, &calls);
    assert_true(first == last && first == (unsigned)calls);
    calls++;
}

/* Reads an answer as a server writes it, piece by piece as it comes; NULL if it is not ours. */
static redisReply *parse(const char *resp, size_t length)
{
    struct dm_reader reader;
    redisReply *reply = NULL;
    bool is_good = true;

    assert_true(dm_reader_begin(&reader));
    dm_reader_expect(&reader, &dm_slots_summary);
    for (size_t at = 0; is_good && !reply && at < length; at += PIECE) {
        size_t piece = length - at < PIECE ? length - at : PIECE;

        is_good = dm_reader_feed(&reader, resp + at, piece) && dm_reader_next(&reader, &reply);
    }
    dm_reader_end(&reader);
    return reply;
}

static bool read_bytes(const char *resp, size_t length)
{
    redisReply *reply = parse(resp, length);
    bool is_good;

    taken[0] = '\0';
    if (!reply)
        fail_msg("no whole reply: %s", resp);
    is_good = dm_slots_read(reply, ASKED, take, taken);
    dm_reply_free(reply);
    return is_good;
}

static bool read_map(const char *resp)
{
    return read_bytes(resp, strlen(resp));
}

#define ID "$40\r\n0123456789012345678901234567890123456789\r\n"
#define SERVER(host, port) "*4\r\n" host ":" port "\r\n" ID "*0\r\n"
#define A_HOST "$9\r\n127.0.0.1\r\n"
#define A_SERVER SERVER(A_HOST, "7001")
#define B_SERVER SERVER(A_HOST, "7002")
#define RANGE(first, last, server) "*3\r\n:" first "\r\n:" last "\r\n" server

/* Three masters, of which one has two ranges and one has a replica: one call for each range. */
static void test_a_map_is_read(void **state)
{
    (void)state;
    assert_true(read_map("*4\r\n" RANGE("0", "5460", A_SERVER) "*4\r\n:5461\r\n:10922\r\n" B_SERVER A_SERVER RANGE(
        "10923", "16382", SERVER("$9\r\n127.0.0.3\r\n", "65535")) RANGE("16383", "16383", A_SERVER)));
    assert_string_equal(taken, "0-5460 127.0.0.1 7001\n5461-10922 127.0.0.1 7002\n"
                               "10923-16382 127.0.0.3 65535\n16383-16383 127.0.0.1 7001\n");
}

/* A Cluster without slots, and a Cluster with holes, have valid maps; old servers report no ids. */
static void test_a_map_may_have_holes(void **state)
{
    (void)state;
    assert_true(read_map("*0\r\n"));
    assert_string_equal(taken, "");
    assert_true(read_map("*2\r\n" RANGE("9", "9", A_SERVER) RANGE("3", "5", "*2\r\n" A_HOST ":1\r\n")));
    assert_string_equal(taken, "9-9 127.0.0.1 7001\n3-5 127.0.0.1 1\n");
}

/* Each slot apart, as moves can leave them, on masters with five replicas: more bytes than are ever kept. */
static void test_a_map_is_read_when_each_slot_is_a_range(void **state)
{
    static char resp[16 * 1024 * 1024];
    redisReply *reply;
    size_t used;

    (void)state;
    used = (size_t)sprintf(resp, "*%d\r\n", DM_SLOTS);
    for (int slot = 0; slot < DM_SLOTS; slot++)
        used += (size_t)sprintf(
            resp + used, "*8\r\n:%d\r\n:%d\r\n" A_SERVER A_SERVER A_SERVER A_SERVER A_SERVER A_SERVER, slot, slot);
    reply = parse(resp, used);
    assert_non_null(reply);
    calls = 0;
    assert_true(dm_slots_read(reply, ASKED, count_call, &calls));
    assert_int_equal(calls, DM_SLOTS);
    dm_reply_free(reply);
}

/* A Cluster has no more than 1000 nodes. */
static void test_a_map_is_read_when_it_names_a_thousand_hosts(void **state)
{
    static char resp[256 * 1024];

    (void)state;
    for (int hosts = 1024; hosts <= 1025; hosts++) {
        size_t used = (size_t)sprintf(resp, "*%d\r\n", hosts);
        redisReply *reply;

        for (int slot = 0; slot < hosts; slot++)
            used += (size_t)sprintf(resp + used, "*3\r\n:%d\r\n:%d\r\n*2\r\n$6\r\nn-%04d\r\n:1\r\n", slot, slot, slot);
        reply = parse(resp, used);
        assert_non_null(reply);
        calls = 0;
        assert_int_equal(dm_slots_read(reply, ASKED, count_call, &calls), hosts == 1024);
        dm_reply_free(reply);
    }
}

/* The bytes that the reader takes of `begin` and then, again and again, of `piece`. */
static size_t feed_for_ever(const char *begin, const char *piece)
{
    struct dm_reader reader;
    redisReply *reply = NULL;
    size_t fed = 0;

    assert_true(dm_reader_begin(&reader));
    dm_reader_expect(&reader, &dm_slots_summary);
    assert_true(dm_reader_feed(&reader, begin, strlen(begin)));
    for (; dm_reader_feed(&reader, piece, strlen(piece)) && dm_reader_next(&reader, &reply); fed += strlen(piece))
        assert_null(reply);
    dm_reader_end(&reader);
    return fed;
}

/* More elements than any map has, a text longer than all other replies, and more bytes than any map has. */
static void test_a_reader_that_expects_a_map_has_limits(void **state)
{
    static const char *const texts[] = { "*16385\r\n", "*1000000000\r\n", "*2\r\n*1000000\r\n" };
    char range[1200];
    size_t fed;

    (void)state;
    for (size_t i = 0; i < COUNT(texts); i++)
        assert_null(parse(texts[i], strlen(texts[i])));
    snprintf(range, sizeof range, "*1\r\n$1100\r\n%01100d\r\n", 0);
    fed = feed_for_ever("*1\r\n$500000000\r\n", range);
    assert_within(fed, 200 * 1024, 256 * 1024);
    fed = feed_for_ever("*16384\r\n", range);
    assert_within(fed, 15 * 1024 * 1024, 16 * 1024 * 1024);
}

/* Hosts as cluster-announce-ip, cluster-announce-hostname and cluster-preferred-endpoint-type make them. */
static void test_a_host_is_read_as_it_is_announced(void **state)
{
    static const struct {
        const char *server, *host;
    } good[] = {
        { SERVER("$3\r\n::1\r\n", "7001"), "::1" },
        { SERVER("$11\r\nfe80::1%lo0\r\n", "7001"), "fe80::1%lo0" },
        { SERVER("$12\r\nnode.example\r\n", "7001"), "node.example" },
        { SERVER("$-1\r\n", "7001"), ASKED },
        { SERVER("$0\r\n\r\n", "7001"), ASKED },
        { SERVER("$1\r\n?\r\n", "7001"), ASKED },
        { "*3\r\n$1\r\n?\r\n:7001\r\n" ID, ASKED },
        { "*4\r\n$1\r\n?\r\n:7001\r\n" ID "*2\r\n$2\r\nip\r\n$8\r\n10.0.0.7\r\n", "10.0.0.7" },
        { "*4\r\n$1\r\n?\r\n:7001\r\n" ID "*4\r\n$1\r\nx\r\n$1\r\ny\r\n$2\r\nip\r\n$0\r\n\r\n", ASKED },
        { "*4\r\n$1\r\n?\r\n:7001\r\n" ID "*1\r\n$2\r\nip\r\n", ASKED },
        { "*4\r\n$1\r\n?\r\n:7001\r\n" ID "$2\r\nip\r\n", ASKED },
        { "*4\r\n$2\r\nh1\r\n:7001\r\n" ID "*2\r\n$2\r\nip\r\n$8\r\n10.0.0.7\r\n", "h1" },
    };

    (void)state;
    for (size_t i = 0; i < COUNT(good); i++) {
        char resp[400], expected[100];

        snprintf(resp, sizeof resp, "*1\r\n*3\r\n:1\r\n:2\r\n%s", good[i].server);
        snprintf(expected, sizeof expected, "1-2 %s 7001\n", good[i].host);
        if (!read_map(resp))
            fail_msg("refused: %s", resp);
        assert_string_equal(taken, expected);
    }
}

/* Nonsense after a valid range: refused as a whole, so there is no call for the valid range either. */
static void test_a_map_is_refused_when_a_range_is_nonsense(void **state)
{
    static const char *const bad[] = {
        RANGE("101", "100", A_SERVER),
        RANGE("100", "16384", A_SERVER),
        RANGE("-1", "100", A_SERVER),
        RANGE("4294967396", "4294967397", A_SERVER),
        RANGE("50", "100", B_SERVER),
        RANGE("0", "49", B_SERVER),
        RANGE("0", "16383", A_SERVER),
        RANGE("100", "101", "*0\r\n"),
        RANGE("100", "101", "*1\r\n" A_HOST),
        RANGE("100", "101", A_HOST),
        RANGE("100", "101", "*-1\r\n"),
        RANGE("100", "101", SERVER(A_HOST, "0")),
        RANGE("100", "101", SERVER(A_HOST, "65536")),
        RANGE("100", "101", SERVER(A_HOST, "-7001")),
        RANGE("100", "101", "*2\r\n" A_HOST "$4\r\n7001\r\n"),
        RANGE("100", "101", SERVER(":127\r\n", "7001")),
        RANGE("100", "101", SERVER("$3\r\na b\r\n", "7001")),
        RANGE("100", "101", SERVER("$3\r\na\tb\r\n", "7001")),
        RANGE("100", "101", SERVER("$2\r\n\xC3\xA4\r\n", "7001")),
        RANGE("100", "101", SERVER("$2\r\na\x7F\r\n", "7001")),
        RANGE("100", "101", SERVER("+abc\r\n", "7001")),
        RANGE("100", "101", "*4\r\n$1\r\n?\r\n:7001\r\n" ID "*2\r\n$2\r\nip\r\n:7\r\n"),
        RANGE("100", "101", "*4\r\n$1\r\n?\r\n:7001\r\n" ID "*2\r\n$2\r\nip\r\n$1\r\n \r\n"),
        "*2\r\n:100\r\n:101\r\n",
        "*3\r\n$1\r\n0\r\n:1\r\n" A_SERVER,
        "*0\r\n",
        "*-1\r\n",
        ":100\r\n",
    };
    static const char good[] = RANGE("40", "60", A_SERVER);
    char resp[400];

    (void)state;
    snprintf(resp, sizeof resp, "*2\r\n%s%s", good, RANGE("100", "101", B_SERVER));
    assert_true(read_map(resp));
    for (size_t i = 0; i < COUNT(bad); i++) {
        snprintf(resp, sizeof resp, "*2\r\n%s%s", good, bad[i]);
        if (read_map(resp))
            fail_msg("accepted: %s", bad[i]);
        assert_string_equal(taken, "");
    }
}

/* Answers of no map: of a server outside a Cluster, and of something else. */
static void test_a_map_is_refused_when_it_is_no_list(void **state)
{
    static const char *const bad[] = {
        "-ERR This instance has cluster support disabled\r\n", "+OK\r\n", ":0\r\n", "$-1\r\n", "$4\r\n0-10\r\n",
    };

    (void)state;
    for (size_t i = 0; i < COUNT(bad); i++) {
        if (read_map(bad[i]))
            fail_msg("accepted: %s", bad[i]);
        assert_string_equal(taken, "");
    }
}

/* A host with a NUL in the middle, and a host that is too long for any name. */
static void test_a_map_is_refused_when_a_host_is_no_text(void **state)
{
    static const char with_nul[] = "*1\r\n" RANGE("1", "1", SERVER("$3\r\na\0b\r\n", "1"));
    char resp[500], server[400];

    (void)state;
    assert_false(read_bytes(with_nul, sizeof with_nul - 1));
    for (int length = 255; length <= 256; length++) {
        snprintf(server, sizeof server, "*2\r\n$%d\r\n%0*d\r\n:1\r\n", length, length, 7);
        snprintf(resp, sizeof resp, "*1\r\n*3\r\n:1\r\n:1\r\n%s", server);
        assert_int_equal(read_map(resp), length == 255);
    }
}

/* The pairs are of the last word "ip" before them: that of another master does not count. */
static void test_an_address_is_of_its_own_master(void **state)
{
    (void)state;
    assert_true(read_map("*2\r\n" RANGE("1", "1", "*4\r\n$1\r\n?\r\n:1\r\n" ID "*1\r\n$2\r\nip\r\n")
                             RANGE("2", "2", "*4\r\n$1\r\n?\r\n:2\r\n" ID "*2\r\n$1\r\nx\r\n$3\r\n::1\r\n")));
    assert_string_equal(taken, "1-1 " ASKED " 1\n2-2 " ASKED " 2\n");
}

/* ---- redirects --------------------------------------------------------------------------- */

static void test_a_redirect_is_read(void **state)
{
    static const struct {
        const char *error;
        bool is_ask;
        unsigned slot;
        const char *host, *port;
    } good[] = {
        { "MOVED 3999 127.0.0.1:6381", false, 3999, "127.0.0.1", "6381" },
        { "ASK 16383 node.example:65535", true, 16383, "node.example", "65535" },
        { "MOVED 0 ::1:6379", false, 0, "::1", "6379" },
        { "ASK 1 [fe80::1]:6379", true, 1, "fe80::1", "6379" },
        { "MOVED 7 :6379", false, 7, ASKED, "6379" },
        { "MOVED 7 a:06379", false, 7, "a", "6379" },
    };

    (void)state;
    for (size_t i = 0; i < COUNT(good); i++) {
        struct dm_redirect redirect;

        if (!dm_redirect_read(good[i].error, ASKED, &redirect))
            fail_msg("refused: %s", good[i].error);
        assert_int_equal(redirect.is_ask, good[i].is_ask);
        assert_int_equal(redirect.slot, good[i].slot);
        assert_string_equal(redirect.host, good[i].host);
        assert_string_equal(redirect.port, good[i].port);
    }
}

/* Refused, and the result is unchanged.  "?" is for a name that the server does not have. */
static void test_a_redirect_is_refused_when_it_is_nonsense(void **state)
{
    static const char *const bad[] = {
        "",
        "MOVED",
        "MOVED ",
        "MOVED 1",
        "MOVED 1 ",
        "MOVED 1 a",
        "MOVED 1 a:",
        "MOVED 1 :",
        "MOVED 1 a:0",
        "MOVED 1 a:65536",
        "MOVED 1 a:-1",
        "MOVED 1 a:6379 ",
        "MOVED 1 a b:6379",
        "MOVED 1 a\n:6379",
        "MOVED 1 ?:6379",
        "MOVED 1  a:6379",
        "MOVED 16384 a:6379",
        "MOVED -1 a:6379",
        "MOVED 4294967297 a:6379",
        "MOVED 99999999999999999999 a:6379",
        "MOVED x a:6379",
        "MOVED  a:6379",
        "MOVED1 a:6379",
        "MOVEDX 1 a:6379",
        "moved 1 a:6379",
        "ASK",
        "ASK 1 a",
        "ASKING 1 a:6379",
        "ERR MOVED 1 a:6379",
        "TRYAGAIN Multiple keys request during rehashing of slot",
        "CLUSTERDOWN Hash slot not served",
    };
    const struct dm_redirect before = { .slot = 77, .host = "untouched", .port = "1" };

    (void)state;
    for (size_t i = 0; i < COUNT(bad); i++) {
        struct dm_redirect redirect = before;

        if (dm_redirect_read(bad[i], ASKED, &redirect))
            fail_msg("accepted: \"%s\"", bad[i]);
        assert_memory_equal(&redirect, &before, sizeof before);
    }
}

/* The host of a redirect, and the host that was asked, fit or are refused. */
static void test_a_redirect_is_refused_when_its_host_is_too_long(void **state)
{
    char error[400], asked[300];
    struct dm_redirect redirect;

    (void)state;
    for (int length = 255; length <= 256; length++) {
        snprintf(error, sizeof error, "ASK 1 %0*d:6379", length, 7);
        snprintf(asked, sizeof asked, "%0*d", length, 7);
        assert_int_equal(dm_redirect_read(error, ASKED, &redirect), length == 255);
        assert_int_equal(dm_redirect_read("ASK 1 :6379", asked, &redirect), length == 255);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_key_has_the_slot_that_redis_gives_it),
        cmocka_unit_test(test_a_key_ends_at_its_length),
        cmocka_unit_test(test_a_tag_has_its_slot),
        cmocka_unit_test(test_a_map_is_read),
        cmocka_unit_test(test_a_map_may_have_holes),
        cmocka_unit_test(test_a_map_is_read_when_each_slot_is_a_range),
        cmocka_unit_test(test_a_reader_that_expects_a_map_has_limits),
        cmocka_unit_test(test_a_host_is_read_as_it_is_announced),
        cmocka_unit_test(test_a_map_is_refused_when_a_range_is_nonsense),
        cmocka_unit_test(test_a_map_is_refused_when_it_is_no_list),
        cmocka_unit_test(test_an_address_is_of_its_own_master),
        cmocka_unit_test(test_a_map_is_read_when_it_names_a_thousand_hosts),
        cmocka_unit_test(test_a_map_is_refused_when_a_host_is_no_text),
        cmocka_unit_test(test_a_redirect_is_read),
        cmocka_unit_test(test_a_redirect_is_refused_when_it_is_nonsense),
        cmocka_unit_test(test_a_redirect_is_refused_when_its_host_is_too_long),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
