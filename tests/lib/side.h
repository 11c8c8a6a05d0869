/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A plain connection to a server beside the library's: to look at keys, to count commands, to do
 * damage.  For one thread at a time; an error of the server or the connection fails the test.
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

/* NULL when the server does not answer PING. */
struct side *side_try_open(const char *path);
void side_close(struct side *side);

/* Sends a command in hiredis' format (%s, %d, %b...).  The number it answers. */
int64_t side_int(struct side *side, const char *format, ...);

/*
 * The text it answers, NULL for nil; an array's elements joined by newlines.  Until the next call.
 */
const char *side_text(struct side *side, const char *format, ...);

/* A reply as such a text. */
void side_write_reply(FILE *out, const struct redisReply *reply);

/* True if it answers without an error; the error's text is side_error(). */
bool side_try(struct side *side, const char *format, ...);
const char *side_error(const struct side *side);

/* All keys, sorted, one per line. */
const char *side_keys(struct side *side);

/* Number of keys that match a pattern as KEYS takes it. */
int side_count_keys(struct side *side, const char *pattern);

/* Number of channels that somebody has subscribed: inboxes. */
int side_count_channels(struct side *side);

/*
 * Commands that clients have sent since the server started: scripts, PING, subscriptions, most of
 * the greeting.  What scripts call is not counted, nor what a side connection usually sends.  Two
 * readings are compared.
 */
int64_t side_client_commands(struct side *side);

/* Calls of one command since the server started, by anybody, scripts included. */
int64_t side_calls(struct side *side, const char *command);

/*
 * A control: an event that comes `ms` from now by the server's clock, to compare something with.
 * Starts it; has it come?  A promised bound comes later by what the machine is late (late.h).
 */
void side_set_control(struct side *side, const char *name, int64_t ms);
void side_set_bound(struct side *side, const char *name, int ms);
bool side_is_control_over(struct side *side, const char *name);

#endif
