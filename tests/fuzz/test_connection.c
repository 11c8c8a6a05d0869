/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * All bytes that a server can send over a link, from the greeting on: the link accepts them or is closed; each handler
 * is called once, and nothing is left.
 *
 * The first byte of an input chooses between the node's two links, and how the bytes are cut into pieces. The server is
 * the other end of a socket pair.
 */
#include <stdbool.h>
#include <string.h>
#include <unistd.h>

#include "far_end.h"
#include "fuzz.h"
#include "link/link_parts.h"
#include "stores/redis/node/node.h"

#define POSTS 3
#define GREETED "*3\r\n$6\r\nmaster\r\n:0\r\n*0\r\n:7\r\n$31\r\n\nrun_id:0123456789abcdef01234567\r\n+OK\r\n:9\r\n"
#define LISTENING "*3\r\n$6\r\nmaster\r\n:0\r\n*0\r\n$-1\r\n*3\r\n$9\r\nsubscribe\r\n$5\r\ninbox\r\n:1\r\n"

static const char *const seeds[] = {
    "a" GREETED "*2\r\n$8\r\nreleased\r\n:0\r\n:1\r\n:2\r\n",
    "b" GREETED "-READONLY You can't write\r\n",
    "c" GREETED "$-1\r\n*-1\r\n",
    "A" LISTENING "*3\r\n$7\r\nmessage\r\n$5\r\ninbox\r\n$5\r\nask 1\r\n",
    "B" LISTENING "*3\r\n$7\r\nmessage\r\n$5\r\ninbox\r\n:1\r\n+PONG\r\n",
    "a*3\r\n$5\r\nslave\r\n",
    "b-NOAUTH\r\n",
    "a-LOADING\r\n-LOADING\r\n",
    NULL,
};

static const char *const words[] = {
    "\r\n",        GREETED,
    LISTENING,     "*3\r\n$7\r\nmessage\r\n$5\r\ninbox\r\n$6\r\nlost 1\r\n",
    "+OK\r\n",     ":1\r\n",
    "$-1\r\n",     "*-1\r\n",
    "*1025\r\n",   "$2147483647\r\n",
    "-NOAUTH\r\n", "-ERR\r\n",
    "*2\r\n",      "*1\r\n*1\r\n*1\r\n*1\r\n",
    "$0\r\n\r\n",  ">2\r\n+a\r\n+b\r\n",
    NULL,
};

const struct fuzzer fuzzer = { "connection", seeds, words, 15000, 800000 };

/* ---- the socket -------------------------------------------------------------------------- */

static int open_pair(struct dm_url *url, bool may_start, char ret_reason[DM_REASON_ROOM])
{
    (void)url;
    (void)may_start;
    (void)ret_reason;
    must(server_fd < 0);
    return open_ends();
}

/* ---- a link ------------------------------------------------------------------------------ */

static int posted, answered;

static void take_reply(void *user, const struct redisReply *reply)
{
    (void)user;
    (void)reply;
    answered++;
}

static void take_message(void *user, const char *text, const struct dm_server *server)
{
    (void)user;
    must(text && server);
}

static void post(struct dm_link *link)
{
    char ping[] = "PING\r\n";
    const struct dm_command command = { .bytes = ping, .length = strlen(ping) };
    enum dm_link_result result = dm_link_post(link, &command, take_reply, NULL);

    must(result == DM_LINK_OK || result == DM_LINK_DOWN);
    posted += result == DM_LINK_OK;
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length)
{
    static struct dm_url url = { .kind = DM_URL_LOCAL,
                                 .path = (char *)"/s",
                                 .prefix = (char *)"dmutex",
                                 .has_grace = true,
                                 .connect_timeout_ms = 60000,
                                 .command_timeout_ms = 60000 };
    static struct dm_node node;
    const struct dm_node_hooks hooks = { .open_local = open_pair, .on_message = take_message };
    struct dm_link *link;
    size_t piece;

    if (length < 1)
        return 0;
    posted = answered = 0;
    server_fd = -1;
    must(dm_node_init(&node, &url, "inbox", &hooks));
    link = bytes[0] & 32 ? node.commands.link : node.inbox.link;
    dm_link_want(link);
    dm_link_work(link);
    piece = 1 + (length - 1) / (1 + bytes[0] % 4u);
    for (size_t at = 1; at < length; at += piece) {
        send_bytes(bytes + at, piece < length - at ? piece : length - at);
        dm_link_work(link);
        for (int i = 0; i < POSTS; i++)
            post(link);
        dm_link_work(link);
    }
    close(server_fd);
    dm_link_work(link);
    dm_node_end(&node);
    must(posted == answered);
    free_link(node.commands.link);
    free_link(node.inbox.link);
    return 0;
}
