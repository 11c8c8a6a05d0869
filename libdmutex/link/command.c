/* SPDX-License-Identifier: BSD-2-Clause */
#include "link/command.h"

#include <stdlib.h>
#include <string.h>

#include "base/block.h"

/* One block: pointers, lengths, digits. */
int dm_args_init(struct dm_args *args, int count, int numbers)
{
    size_t pointers = (size_t)count * sizeof *args->texts;
    size_t lengths = (size_t)count * sizeof *args->lengths;
    char *block = dm_block_take(pointers + lengths + (size_t)numbers * DM_ARG_DIGITS + 1);

    if (!block)
        return -1;
    *args = (struct dm_args){ .texts = (const char **)block,
                              .lengths = (size_t *)(block + pointers),
                              .digits = (char(*)[DM_ARG_DIGITS])(block + pointers + lengths),
                              .room = count,
                              .numbers_room = numbers };
    return 0;
}

/*
 * The pointers to the texts come first in the block, so their address is the block's.  The texts themselves stay their
 * owners'.
 */
void dm_args_free(struct dm_args *args)
{
    dm_block_give(args->texts);
}

/*
 * A wrong count of arguments is a bug of the caller, and never caused by a server: ends the process instead of writing
 * past the block.
 */
void dm_args_bytes(struct dm_args *args, const char *text, size_t length)
{
    if (args->count == args->room)
        abort();
    args->texts[args->count] = text;
    args->lengths[args->count++] = length;
}

void dm_args_text(struct dm_args *args, const char *text)
{
    dm_args_bytes(args, text, strlen(text));
}

/* The room of several numbers is contiguous, so the caller may write one longer text there. */
char *dm_args_room(struct dm_args *args, int numbers)
{
    char *room = args->digits[args->numbers];

    args->numbers += numbers;
    if (args->numbers > args->numbers_room)
        abort();
    return room;
}

/*
 * Numbers are written by hand, here and in dm_args_format(): a lock and its unlock send some thirty arguments with
 * fifteen numbers, and printf() took more than half of all instructions of such a pair.
 */
char *dm_number_write(char *to, uint64_t number)
{
    char digits[DM_ARG_DIGITS];
    char *first = digits + sizeof digits;
    size_t length;

    do
        *--first = (char)('0' + number % 10);
    while (number /= 10);
    length = (size_t)(digits + sizeof digits - first);
    memcpy(to, first, length);
    return to + length;
}

/* Sixteen hexadecimal digits: scripts compare run ids as texts. */
static char *write_run(char *to, uint64_t run)
{
    for (int shift = 60; shift >= 0; shift -= 4)
        *to++ = "0123456789abcdef"[run >> shift & 15];
    return to;
}

void dm_args_number(struct dm_args *args, uint64_t number)
{
    char *at = dm_args_room(args, 1);

    dm_args_bytes(args, at, (size_t)(dm_number_write(at, number) - at));
}

/* Reserves the place until the command is sent, because the server may be another one by then. */
void dm_args_origin(struct dm_args *args)
{
    args->origin_at = args->count;
    dm_args_bytes(args, dm_args_room(args, 2), 0);
}

/* May be called again for another server: it overwrites the text in the same room. */
void dm_args_set_server(struct dm_args *args, int64_t since_us, uint64_t run)
{
    char *text = (char *)args->texts[args->origin_at], *end = text;

    if (!args->origin_at)
        return;
    if (since_us < 0)
        *end++ = '-';
    end = dm_number_write(end, (uint64_t)(since_us < 0 ? -since_us : since_us));
    *end++ = ' ';
    args->lengths[args->origin_at] = (size_t)(write_run(end, run) - text);
}

/* The most bytes around an argument: "$", 20 digits, and two line ends. */
#define FRAME_ROOM (1 + 20 + 2 + 2)

static char *write_frame(char *to, char kind, size_t number)
{
    *to++ = kind;
    if (number < 100) { /* most are */
        if (number >= 10)
            *to++ = (char)('0' + number / 10);
        *to++ = (char)('0' + number % 10);
    } else {
        to = dm_number_write(to, number);
    }
    *to++ = '\r';
    *to++ = '\n';
    return to;
}

static const char asking[] = "*1\r\n$6\r\nASKING\r\n";
static const char speaking[] = "*2\r\n$6\r\nCLIENT\r\n$2\r\nID\r\n";

/*
 * The command to send before this one, or "".  A server sends last to the connection that had something to send first.
 * So with the reply to `speaking`, which has no effect, the command's reply goes out after the command's messages.
 */
static const char *ahead_of(const struct dm_args *args)
{
    if (args->is_asking)
        return asking;
    return args->is_news_first ? speaking : "";
}

/*
 * An array of texts, each with its length, so that no byte of an argument can be taken for a command.  One block, with
 * room for the longest lengths, which is freed after sending.
 */
struct dm_command dm_args_format(const struct dm_args *args)
{
    const char *ahead = ahead_of(args);
    size_t room = strlen(ahead) + FRAME_ROOM + 1;
    char *bytes, *at;

    for (int i = 0; i < args->count; i++)
        room += FRAME_ROOM + args->lengths[i];
    bytes = dm_block_take(room);
    if (!bytes)
        return (struct dm_command){ 0 };
    at = write_frame(stpcpy(bytes, ahead), '*', (size_t)args->count);
    for (int i = 0; i < args->count; i++) {
        at = write_frame(at, '$', args->lengths[i]);
        memcpy(at, args->texts[i], args->lengths[i]);
        at += args->lengths[i];
        *at++ = '\r';
        *at++ = '\n';
    }
    *at = '\0'; /* for people and debuggers */
    return (struct dm_command){
        .bytes = bytes, .length = (size_t)(at - bytes), .is_for_ending = args->is_for_ending, .ahead = ahead[0] != '\0'
    };
}

/* Sets NULL, so that a second call does nothing. */
void dm_command_free(struct dm_command *command)
{
    dm_block_give(command->bytes);
    command->bytes = NULL;
}
