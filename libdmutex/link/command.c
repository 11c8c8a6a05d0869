/* SPDX-License-Identifier: BSD-2-Clause */
#include "link/command.h"

#include <hiredis.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* One block: pointers, lengths, digits. */
int dm_args_init(struct dm_args *args, int count, int numbers)
{
    size_t pointers = (size_t)count * sizeof *args->texts;
    size_t lengths = (size_t)count * sizeof *args->lengths;
    char *block = malloc(pointers + lengths + (size_t)numbers * DM_ARG_DIGITS + 1);

    if (!block)
        return -1;
    args->texts = (const char **)block;
    args->lengths = (size_t *)(block + pointers);
    args->digits = (char(*)[DM_ARG_DIGITS])(block + pointers + lengths);
    args->count = args->numbers = args->born_at = args->run_at = 0;
    args->room = count;
    args->numbers_room = numbers;
    return 0;
}

/* The texts come first in the block, so their address is the block's.  Borrowed texts stay their owners'. */
void dm_args_free(struct dm_args *args)
{
    free(args->texts);
}

/*
 * A miscount of arguments is a bug of the caller, and never the server's doing: ends the process instead of writing
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

/* Room of several numbers lies together, because `digits` is one array: the caller may write one longer text there. */
char *dm_args_room(struct dm_args *args, int numbers)
{
    char *room = args->digits[args->numbers];

    args->numbers += numbers;
    if (args->numbers > args->numbers_room)
        abort();
    return room;
}

void dm_args_number(struct dm_args *args, uint64_t number)
{
    char *at = dm_args_room(args, 1);

    dm_args_bytes(args, at, (size_t)snprintf(at, DM_ARG_DIGITS, "%" PRIu64, number));
}

/* Holds the place with 0 until the command is sent: the server that answers then may not be the server of now. */
void dm_args_born(struct dm_args *args)
{
    args->born_at = args->count;
    dm_args_number(args, 0);
}

/* As dm_args_born(): the run id of no server yet. */
void dm_args_run(struct dm_args *args)
{
    args->run_at = args->count;
    dm_args_number(args, 0);
}

/* May be called again for another server: texts and lengths are written anew, in the same room. */
void dm_args_set_server(struct dm_args *args, uint64_t born_us, uint64_t run)
{
    int born_at = args->born_at, run_at = args->run_at;

    /* Both are of `digits`. */
    if (born_at)
        args->lengths[born_at] = (size_t)snprintf((char *)args->texts[born_at], DM_ARG_DIGITS, "%" PRIu64, born_us);
    if (run_at)
        args->lengths[run_at] = (size_t)snprintf((char *)args->texts[run_at], DM_ARG_DIGITS, "%016" PRIx64, run);
}

struct dm_command dm_args_format(const struct dm_args *args)
{
    struct dm_command command = { 0 };
    /* int in hiredis 0.14, long long from 1.0 on */
    long long length = redisFormatCommandArgv(&command.bytes, args->count, args->texts, args->lengths);

    if (length < 0)
        command.bytes = NULL;
    else
        command.length = (size_t)length;
    return command;
}

/* Sets NULL, so that a second call frees nothing.  hiredis made the bytes, and may have an allocator of its own. */
void dm_command_free(struct dm_command *command)
{
    if (command->bytes)
        redisFreeCommand(command->bytes);
    command->bytes = NULL;
}
