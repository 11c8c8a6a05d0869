/* SPDX-License-Identifier: BSD-2-Clause */
/* A command as it is sent: made of arguments, sent as bytes, answered by a reply. */
#ifndef DM_LINK_COMMAND_H
#define DM_LINK_COMMAND_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct redisReply; /* hiredis stays below */
struct dm_summary_kind;

/*
 * Takes a reply, or NULL if the connection broke before it came; it is then not known whether the command was executed.
 * Called once, without locks, by any thread.
 */
typedef void (*dm_reply_fn)(void *user, const struct redisReply *reply);

struct dm_command {
    char *bytes; /* NULL without memory */
    size_t length;
    uint64_t peer;      /* the number of the server for which the command was written (struct dm_greeter); 0: any */
    bool is_for_any;    /* asks what any server can answer: may_send() of struct dm_belief is not asked */
    bool is_for_ending; /* sent also by a thread whose questions are given up (base/self.h) */
    int ahead;          /* how many commands come before this one in the bytes; their replies are dropped */
    const struct dm_summary_kind *summary; /* the reply is long, and becomes a summary (link/reader.h); or NULL */
};

/*
 * Arguments being collected.  Texts stay the caller's, and must live until dm_args_format(); numbers are written into
 * `digits`.  Too many arguments or digits are a bug of ours: the room is checked at each use.
 */
#define DM_ARG_DIGITS 21 /* of a number, with a NUL or a sign */

struct dm_args {
    bool is_asking;     /* the command follows "ASKING": the slot is on its way to this node of a Cluster */
    bool is_news_first; /* the server must send the command's messages to others before the command's reply */
    bool is_for_ending; /* as the command's */
    const char **texts;
    size_t *lengths;
    char (*digits)[DM_ARG_DIGITS];
    int count, room;
    int numbers, numbers_room;
    int origin_at; /* facts about the server itself, written before the command is sent; 0: none */
};

/* Makes room for `count` arguments, of which `numbers` are numbers.  Freed by dm_args_free(). */
int dm_args_init(struct dm_args *args, int count, int numbers);
void dm_args_free(struct dm_args *args);

void dm_args_text(struct dm_args *args, const char *text);
void dm_args_bytes(struct dm_args *args, const char *text, size_t length);
void dm_args_number(struct dm_args *args, uint64_t number);

/* Returns room for a text made of `numbers` numbers, which counts as that many.  Write it before the next call. */
char *dm_args_room(struct dm_args *args, int numbers);

/*
 * An argument that dm_args_set_server() writes when the command is sent, about the server of that moment: since when it
 * has been there, a number, negative for a server of a quorum; a space; its run id, 16 hexadecimal digits.  It counts
 * as two numbers for dm_args_init().
 */
void dm_args_origin(struct dm_args *args);
void dm_args_set_server(struct dm_args *args, int64_t since_us, uint64_t run);

/* Writes the decimal digits of a number, without a NUL, and returns their end. */
char *dm_number_write(char *to, uint64_t number);

struct dm_command dm_args_format(const struct dm_args *args);
void dm_command_free(struct dm_command *command);

#endif
