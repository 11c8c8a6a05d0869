/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * All bytes that a sentinel can send, from the greeting on: ids, masters, other sentinels, switches.  Only whole
 * addresses and ids come through, each question is answered once at most, and a council takes all of it.  The first
 * byte of an input chooses between the links, with and without a login, and how the bytes are cut into pieces.  The
 * sentinel is the other end of a pair of sockets.
 */
#include <stdbool.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "far_end.h"
#include "fuzz.h"
#include "link/link_parts.h"
#include "stores/redis/sentinel/council.h"
#include "stores/redis/sentinel/sentinel.h"

#define ID "0123456789abcdef0123456789abcdef01234567"
#define OTHER_ID "fedcba9876543210fedcba9876543210fedcba98"
#define GREETED "$40\r\n" ID "\r\n"
#define MASTER "*2\r\n$9\r\n127.0.0.1\r\n$4\r\n6379\r\n"
#define OTHERS \
    "*1\r\n*6\r\n$2\r\nip\r\n$9\r\n127.0.0.2\r\n$4\r\nport\r\n$5\r\n26379\r\n$5\r\nrunid\r\n$40\r\n" OTHER_ID "\r\n"
#define LISTENING "*3\r\n$9\r\nsubscribe\r\n$14\r\n+switch-master\r\n:1\r\n"
#define SWITCHED "*3\r\n$7\r\nmessage\r\n$14\r\n+switch-master\r\n$28\r\nm 127.0.0.1 6379 127.0.0.2 1\r\n"

static const char *const seeds[] = {
    "a" GREETED OTHERS MASTER MASTER,
    "b" GREETED "*0\r\n*-1\r\n" MASTER,
    "c" GREETED "*0\r\n*2\r\n$4\r\nhost\r\n$5\r\n65535\r\n",
    "i+OK\r\n" GREETED OTHERS MASTER,
    "A" LISTENING SWITCHED SWITCHED,
    "I+OK\r\n" LISTENING SWITCHED,
    "a-ERR unknown command 'SENTINEL'\r\n",
    "i-WRONGPASS\r\n-NOAUTH\r\n",
    "a" GREETED "-IDONTKNOW\r\n-ERR No such master with that name\r\n",
    NULL,
};

static const char *const words[] = {
    "\r\n",
    GREETED,
    OTHERS,
    MASTER,
    LISTENING,
    SWITCHED,
    "*0\r\n",
    "*1\r\n",
    "*2\r\n",
    "*-1\r\n",
    "$-1\r\n",
    "$0\r\n\r\n",
    "$5\r\n65536\r\n",
    "$1\r\n0\r\n",
    "$4\r\nport\r\n",
    "$2\r\nip\r\n",
    "$5\r\nrunid\r\n",
    ":1\r\n",
    "+OK\r\n",
    "-ERR\r\n",
    "$40\r\n" OTHER_ID "\r\n",
    NULL,
};

const struct fuzzer fuzzer = { "sentinel", seeds, words, 15000, 800000 };

/* ---- the socket -------------------------------------------------------------------------- */

static int open_pair(void *user, bool may_block, char ret_reason[DM_REASON_ROOM])
{
    (void)user;
    (void)may_block;
    (void)ret_reason;
    if (server_fd >= 0) /* reopened after a break */
        close(server_fd);
    return open_ends();
}

/* ---- the sentinel's hooks ---------------------------------------------------------------- */

static struct dm_council council;
static int asked, answered;

static void take_ready(void *user, struct dm_sentinel *sentinel, const char *id)
{
    (void)user;
    must(strlen(id) == DM_SENTINEL_ID - 1);
    dm_council_name(&council, sentinel->index, id);
}

/* True if the text may be part of a line of the log. */
static bool is_plain(const char *text)
{
    for (const char *at = text; *at; at++) {
        if (*at <= ' ' || *at > '~')
            return false;
    }
    return *text;
}

static void take_master(void *user, struct dm_sentinel *sentinel, const struct dm_master *master, int64_t asked_ns)
{
    int port = atoi(master->port);

    (void)user;
    answered++;
    must(!master->host[0] || (is_plain(master->host) && port >= 1 && port <= 65535));
    dm_council_take(&council, sentinel->index, master, asked_ns, dm_clock_boot_ns());
    must(!council.until_ns || council.word.host[0]);
}

static void take_others(void *user, struct dm_sentinel *sentinel, const struct dm_other *others, int count)
{
    (void)user;
    dm_council_take_list(&council, sentinel->index, others, count);
    for (int i = 0; i < count; i++) {
        int place = dm_council_place_for(&council, &others[i]);

        must(strlen(others[i].id) == DM_SENTINEL_ID - 1 && is_plain(others[i].host) && is_plain(others[i].port));
        if (place >= 0)
            dm_council_learn(&council, place, &others[i]);
    }
    must(council.count <= DM_COUNCIL_MOST);
}

static void take_nothing(void *user)
{
    (void)user;
}

/* ------------------------------------------------------------------------------------------- */

static void end(struct dm_sentinel *sentinel)
{
    dm_sentinel_end(sentinel);
    dm_addresses_free(sentinel->asks->session.addresses);
    dm_addresses_free(sentinel->hears->session.addresses);
    free_link(sentinel->asks);
    free_link(sentinel->hears);
    sentinel->asks = sentinel->hears = NULL;
    dm_sentinel_free_unused(sentinel);
}

static void ask(struct dm_sentinel *sentinel)
{
    asked++;
    dm_sentinel_ask(sentinel, true);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length)
{
    static const struct dm_sentinel_hooks hooks = { .on_ready = take_ready,
                                                    .on_master = take_master,
                                                    .on_others = take_others,
                                                    .on_switch = take_nothing,
                                                    .on_change = take_nothing };
    struct dm_url url = { .kind = DM_URL_SENTINEL,
                          .master = (char *)"m",
                          .switch_ms = 120000,
                          .connect_timeout_ms = 60000,
                          .command_timeout_ms = 60000 };
    struct dm_sentinel *sentinel;
    struct dm_link *link;
    size_t piece;

    if (length < 1)
        return 0;
    url.sentinel_password = bytes[0] & 8 ? (char *)"secret" : NULL;
    council = (struct dm_council){ .fresh_ns = DM_NS_PER_S };
    asked = answered = 0;
    server_fd = -1;
    dm_council_add_listed(&council);
    sentinel = dm_sentinel_new(&url, 0, "127.0.0.1", "26379", &hooks);
    must(sentinel);
    link = bytes[0] & 32 ? sentinel->asks : sentinel->hears;
    link->session.options.open = open_pair;
    dm_link_want(link);
    dm_link_work(link);
    piece = 1 + (length - 1) / (1 + bytes[0] % 4u);
    for (size_t at = 1; at < length; at += piece) {
        send_bytes(bytes + at, piece < length - at ? piece : length - at);
        dm_link_work(link);
        ask(sentinel);
        dm_link_work(link);
    }
    close(server_fd);
    server_fd = -1;
    dm_link_work(link);
    must(answered <= asked);
    dm_council_clear(&council);
    end(sentinel);
    if (server_fd >= 0)
        close(server_fd);
    return 0;
}
