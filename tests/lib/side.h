/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A plain connection to a server, separate from the library's: to look at keys, to count commands, to do damage. For
 * one thread at a time. An error of the server or the connection fails the test.
 *
 *     assert_int_equal(side_int(the_server->side, "ZCARD %s", key), 2);
 */
#ifndef TEST_SIDE_H
#define TEST_SIDE_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

struct redisReply;
struct side;

/* NULL if the server does not answer PING. */
struct side *side_try_open(const char *path);
void side_close(struct side *side);

/* Sends a command in hiredis's format (%s, %d, %b...). Returns the number in the reply. */
int64_t side_int(struct side *side, const char *format, ...);

/* The text in the reply, NULL for nil; an array's elements joined by newlines. Valid until the next call. */
const char *side_text(struct side *side, const char *format, ...);

/* Writes a reply as such a text. */
void side_write_reply(FILE *out, const struct redisReply *reply);

/* True if the reply is no error; side_error() has the text of the error. */
bool side_try(struct side *side, const char *format, ...);
const char *side_error(const struct side *side);

/* True if the reply, as side_text() would return it, contains these words; false also if the connection breaks. */
bool side_says(struct side *side, const char *words, const char *format, ...);

/* True if the reply to INFO contains these words; a broken connection fails the test. */
bool side_info_says(struct side *side, const char *words);

/* All keys, sorted, one per line. */
const char *side_keys(struct side *side);

/* How many keys match a pattern of KEYS. */
int side_count_keys(struct side *side, const char *pattern);

/*
 * Writes the key. True if this many replicas have this write, and so all earlier ones; false also on a replica. (WAIT
 * alone only covers the writes of its own connection.)
 */
bool side_has_replicas(struct side *side, const char *key, int replicas);

/* How many channels have subscribers: inboxes. */
int side_count_channels(struct side *side);

/*
 * Commands from clients since the server started: scripts, PING, subscriptions, most of the greeting. Not counted are
 * commands called by scripts, the usual commands of a side connection, and CLIENT ID, which precedes contested releases
 * (test_news_first). Compare two readings.
 */
int64_t side_client_commands(struct side *side);

/* Calls of one command since the server started, by any client, including scripts. */
int64_t side_calls(struct side *side, const char *command);

/*
 * A control: an event `ms` from now by the server's clock, to compare another event with. The first starts it; the
 * second says whether it has come. A promised bound comes later by the lateness of the machine (late.h).
 */
void side_set_control(struct side *side, const char *name, int64_t ms);
void side_set_bound(struct side *side, const char *name, int ms);
bool side_is_control_over(struct side *side, const char *name);
void side_await_control(struct side *side, const char *name);

#endif
