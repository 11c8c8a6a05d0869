/* SPDX-License-Identifier: BSD-2-Clause */
/* stores/zookeeper: what ZooKeeper says, and what it would never say. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/clock.h"
#include "random.h"
#include "stores/zookeeper/open.h"
#include "stores/zookeeper/parts.h"

static struct dm_jute jute_of(const struct dm_bytes *bytes)
{
    return (struct dm_jute){ .at = (const uint8_t *)bytes->at, .left = bytes->size };
}

/* Numbers and bytes come back as they were written, and what is missing is noticed */
static void test_jute_is_read_as_written(void **state)
{
    struct dm_bytes bytes = { 0 };
    struct dm_jute jute;
    size_t size, begin;
    const char *text;

    (void)state;
    dm_jute_add_int(&bytes, -2);
    dm_jute_add_long(&bytes, INT64_MIN + 3);
    dm_jute_add_bool(&bytes, true);
    dm_jute_add_int(&bytes, -1);
    dm_jute_add_text(&bytes, "word");
    begin = dm_jute_begin(&bytes);
    dm_bytes_print(&bytes, "%s", "pieces");
    dm_jute_end(&bytes, begin);
    jute = jute_of(&bytes);
    assert_int_equal(dm_jute_int(&jute), -2);
    assert_true(dm_jute_long(&jute) == INT64_MIN + 3);
    assert_true(dm_jute_bool(&jute));
    assert_non_null(dm_jute_bytes(&jute, &size));
    assert_int_equal(size, 0);
    text = dm_jute_bytes(&jute, &size);
    assert_int_equal(size, 4);
    assert_memory_equal(text, "word", 4);
    text = dm_jute_bytes(&jute, &size);
    assert_int_equal(size, 6);
    assert_memory_equal(text, "pieces", 6);
    assert_false(jute.is_bad);
    assert_int_equal(jute.left, 0);
    assert_int_equal(dm_jute_int(&jute), 0);
    assert_true(jute.is_bad);
    dm_bytes_free(&bytes);
}

/* Lengths that are negative or beyond the end are no bytes */
static void test_lengths_are_checked(void **state)
{
    static const int32_t bad[] = { -2, INT32_MIN, 5, INT32_MAX };

    (void)state;
    for (int i = 0; i < 4; i++) {
        struct dm_bytes bytes = { 0 };
        struct dm_jute jute;
        size_t size = 7;

        dm_jute_add_int(&bytes, bad[i]);
        dm_bytes_print(&bytes, "four");
        jute = jute_of(&bytes);
        assert_null(dm_jute_bytes(&jute, &size));
        assert_int_equal(size, 0);
        assert_true(jute.is_bad);
        dm_bytes_free(&bytes);
    }
}

/* The first error of a multi counts, not what comes before or after it */
static void test_multi_tells_what_failed(void **state)
{
    static const int errors[] = { 0, 0, DM_ZK_NODE_EXISTS, DM_ZK_AFTER_ERROR };
    struct dm_bytes bytes = { 0 };
    struct dm_jute jute;
    struct dm_zk_multi multi;

    (void)state;
    for (int i = 0; i < 4; i++) {
        dm_jute_add_int(&bytes, -1);
        dm_jute_add_bool(&bytes, false);
        dm_jute_add_int(&bytes, errors[i]);
        dm_jute_add_int(&bytes, errors[i]);
    }
    dm_zk_add_end(&bytes);
    jute = jute_of(&bytes);
    multi = dm_zk_read_multi(&jute);
    assert_false(jute.is_bad);
    assert_int_equal(multi.error, DM_ZK_NODE_EXISTS);
    assert_int_equal(multi.part, 2);
    bytes.size = 0;
    dm_jute_add_int(&bytes, 77);
    dm_jute_add_bool(&bytes, false);
    dm_jute_add_int(&bytes, 0);
    jute = jute_of(&bytes);
    dm_zk_read_multi(&jute);
    assert_true(jute.is_bad);
    dm_bytes_free(&bytes);
}

/* ---- a driver, and a server that says anything ----------------------------------------------- */

static int replies, lists, downs;

static void on_ready(void *user, const char *identity)
{
    (void)user;
    assert_int_equal(strlen(identity), DM_ZK_EPOCH_LENGTH);
}

static void on_down(void *user, const char *reason, bool is_final)
{
    (void)user;
    (void)is_final;
    assert_true(*reason);
    downs++;
}

static void on_reply(void *user, uint64_t ticket, int index, const struct dm_reg_reply *reply)
{
    uint64_t sum = 0;

    (void)user;
    (void)ticket;
    (void)index;
    for (size_t i = 0; reply->has_value && i < reply->size; i++)
        sum += ((const uint8_t *)reply->value)[i]; /* all of it can be read */
    replies += sum < UINT64_MAX;
}

static void on_list(void *user, uint64_t ticket, const char *const *keys, int count, bool is_last, const char *reason)
{
    (void)user;
    (void)ticket;
    (void)is_last;
    (void)reason;
    for (int i = 0; i < count; i++)
        assert_true(strncmp(keys[i], "n/", 2) == 0 && (i == 0 || strcmp(keys[i - 1], keys[i]) <= 0));
    lists++;
}

static void on_tell(void *user, const void *text, size_t size)
{
    (void)user;
    (void)text;
    assert_true(size <= DM_REG_TELL_MAX);
}

static void on_inbox(void *user, bool is_open)
{
    (void)user;
    (void)is_open;
}

static void on_warning(void *user, const char *text)
{
    (void)user;
    (void)text;
}

/* A driver that is ready, on one end of a pair of sockets; the other end becomes *ret_peer. */
static struct dm_zk *open_driver(struct dm_url *url, int *ret_peer)
{
    const struct dm_reg_client client = { .on_ready = on_ready,
                                          .on_down = on_down,
                                          .on_reply = on_reply,
                                          .on_list = on_list,
                                          .on_tell = on_tell,
                                          .on_inbox = on_inbox,
                                          .on_warning = on_warning };
    char reason[DM_REASON_ROOM];
    struct dm_reg_driver *driver = dm_zookeeper_driver_open(url, &client, reason);
    struct dm_zk *zk = (struct dm_zk *)(void *)driver;
    int fds[2];

    assert_non_null(driver);
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, fds), 0);
    driver->ops->listen(driver, "me");
    zk->wire.stream = dm_stream_of(fds[0]);
    zk->phase = DM_ZK_READY;
    zk->session_ms = 30000;
    zk->sent_ns = dm_clock_boot_ns();
    memset(zk->epoch, 'e', DM_ZK_EPOCH_LENGTH);
    *ret_peer = fds[1];
    return zk;
}

static void ask_all(struct dm_zk *zk)
{
    static const char value[DM_REG_VERSION_SIZE + 1] = "v";
    const struct dm_reg_tell tell = { "other", "text", 4 };
    const struct dm_reg_item item = {
        .key = "n/k", .value = value, .size = sizeof value, .tells = &tell, .tell_count = 1
    };
    const struct dm_reg_driver_ops *ops = zk->driver.ops;

    assert_true(ops->read(&zk->driver, 1, &item, 1));
    assert_true(ops->swap(&zk->driver, 2, &item, 1));
    assert_true(ops->list(&zk->driver, 3, "n/", "", 3));
}

/* Adds an answer to each question, whole or not: its head is right, the rest is chance. */
static void add_answers(const struct dm_zk *zk, struct dm_bytes *to)
{
    static const int parts[] = { 1, 2, 5, 13, 15, -1, 0, 100 };

    for (const struct dm_zk_item *item = zk->items; item; item = item->next) {
        size_t begin = dm_jute_begin(to);

        dm_jute_add_int(to, item->xid);
        dm_jute_add_long(to, (int64_t)random_below(1000));
        dm_jute_add_int(to, random_below(4) ? 0 : DM_ZK_NO_NODE);
        for (unsigned i = random_below(8); i > 0; i--) {
            switch (random_below(4)) {
            case 0:
                dm_jute_add_int(to, parts[random_below(8)]);
                dm_jute_add_bool(to, random_below(9) == 0);
                dm_jute_add_int(to, 0);
                break;
            case 1:
                dm_jute_add_text(to, "n:some");
                break;
            case 2:
                dm_jute_add_int(to, (int32_t)random_below(1 << 20) - 8);
                break;
            default:
                dm_jute_add_bytes(to, parts, random_below(sizeof parts));
                dm_jute_add_long(to, (int64_t)random_below(1 << 30));
                break;
            }
        }
        dm_jute_end(to, begin);
    }
}

/* Whatever a server says, each question is answered once, or is given up with the connection */
static void test_every_question_is_answered_once_whatever_comes(void **state)
{
    char reason[DM_REASON_ROOM];
    struct dm_url *url = dm_url_parse("zookeeper://127.0.0.1:1", reason);

    (void)state;
    assert_non_null(url);
    for (int i = 0; i < rounds(3000); i++) {
        struct dm_bytes bytes = { 0 };
        int peer;
        struct dm_zk *zk = open_driver(url, &peer);

        replies = lists = downs = 0;
        ask_all(zk);
        add_answers(zk, &bytes);
        if (random_below(3) == 0 && bytes.size)
            bytes.at[random_below(bytes.size)] ^= (char)(1 << random_below(8));
        if (bytes.size)
            assert_int_equal(send(peer, bytes.at, bytes.size, MSG_NOSIGNAL), bytes.size);
        close(peer);
        for (int turn = 0; turn < 4 && zk->phase == DM_ZK_READY; turn++)
            zk->driver.ops->turn(&zk->driver);
        assert_int_equal(downs, 1);
        assert_int_equal(replies, 2);
        assert_int_equal(lists, 1);
        zk->driver.ops->end(&zk->driver);
        free(zk);
        dm_bytes_free(&bytes);
    }
    dm_url_free(url);
}

/* What is no frame ends the connection before anything is kept for it */
static void test_other_servers_are_told(void **state)
{
    char reason[DM_REASON_ROOM];
    struct dm_url *url = dm_url_parse("zookeeper://127.0.0.1:1", reason);
    int peer;
    struct dm_zk *zk = open_driver(url, &peer);

    (void)state;
    downs = 0;
    assert_int_equal(send(peer, "HTTP/1.1 400 Bad Request\r\n", 26, MSG_NOSIGNAL), 26);
    zk->driver.ops->turn(&zk->driver);
    assert_int_equal(downs, 1);
    assert_string_equal(zk->doom, "what answers there is no ZooKeeper");
    close(peer);
    zk->driver.ops->end(&zk->driver);
    free(zk);
    dm_url_free(url);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_jute_is_read_as_written),
        cmocka_unit_test(test_lengths_are_checked),
        cmocka_unit_test(test_multi_tells_what_failed),
        cmocka_unit_test(test_every_question_is_answered_once_whatever_comes),
        cmocka_unit_test(test_other_servers_are_told),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
