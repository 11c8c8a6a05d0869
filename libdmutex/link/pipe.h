/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Sends commands and receives replies on one stream: each command sent has a slot, in the order of the bytes, and each
 * reply belongs to the first slot.
 *
 * A pipe decides nothing: a function that finds the stream broken reports it, and the caller closes the pipe.  The
 * caller's lock guards a pipe.
 */
#ifndef DM_LINK_PIPE_H
#define DM_LINK_PIPE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "link/command.h"
#include "link/reader.h"
#include "link/stream.h"

struct dm_caller;

enum dm_slot_kind {
    DM_SLOT_COMMAND,
    DM_SLOT_AHEAD, /* of a command that was sent before the actual one: its reply is dropped */
    DM_SLOT_GREETING,
    DM_SLOT_CHECK,
    DM_SLOT_CONFIRM,
    DM_SLOT_MESSAGE
};

/* Where a reply goes: to a thread that waits, to a handler or, with neither, nowhere. */
struct dm_slot {
    struct dm_slot *next;
    enum dm_slot_kind kind;
    struct dm_caller *call;
    dm_reply_fn handler;
    void *user;
    bool is_for_any; /* as the command's, also the next */
    const struct dm_summary_kind *summary;
    redisReply *reply; /* set once the slot is finished; NULL then: no reply came */
    uint64_t peer;     /* of a message: the number of the server that sent the message */
    int64_t sent_ns;
};

/*
 * How many bytes are read at once.  The buffer is not on a caller's stack, which may be as small as PTHREAD_STACK_MIN.
 */
#define DM_PIPE_READ_ROOM (16 * 1024)

/* Invariant: the slots are in the order of the bytes sent, and every command that was sent and not answered has one. */
struct dm_pipe {
    struct dm_stream stream;
    struct dm_reader reader;
    char in[DM_PIPE_READ_ROOM]; /* bytes between the stream and the reader */
    char *out;                  /* bytes that the kernel has not taken yet */
    size_t out_length;
    bool is_held;    /* bytes are kept, to be sent together */
    bool is_stopped; /* all but the first `before_stop` bytes of `out` are kept until dm_pipe_go_on() */
    size_t before_stop;
    struct dm_slot *first, *last;
    uint64_t pushed, popped; /* how many slots ever: shows how far replies have come */
    struct dm_slot *spare;
};

void dm_pipe_init(struct dm_pipe *pipe);

/* A stream has been opened: makes the reader.  False without memory. */
bool dm_pipe_begin(struct dm_pipe *pipe);

/* Closes the stream, and discards the bytes under way.  The slots stay, for the caller to take. */
void dm_pipe_close(struct dm_pipe *pipe);

/* A free slot, or NULL without memory.  The caller spares or frees it. */
struct dm_slot *dm_pipe_take_slot(struct dm_pipe *pipe);
void dm_pipe_spare_slot(struct dm_pipe *pipe, struct dm_slot *slot);

/* Sends, or keeps for dm_pipe_flush().  False with errno: broken, or without memory. */
bool dm_pipe_write(struct dm_pipe *pipe, const char *bytes, size_t length);
bool dm_pipe_flush(struct dm_pipe *pipe);

/* Keeps all bytes that are written from now on. */
void dm_pipe_stop(struct dm_pipe *pipe);
void dm_pipe_go_on(struct dm_pipe *pipe);

/* How many bytes are left to send, now or when the stream has room. */
size_t dm_pipe_pending(const struct dm_pipe *pipe);

/* Appends the slot of the bytes just written. */
void dm_pipe_push(struct dm_pipe *pipe, struct dm_slot *slot);

/* Takes the slot of the next reply; NULL: none is awaited. */
struct dm_slot *dm_pipe_pop(struct dm_pipe *pipe);

/* What dm_pipe_read() found. */
enum dm_pipe_read {
    DM_PIPE_NOTHING, /* no bytes */
    DM_PIPE_SOME,    /* all bytes that were there */
    DM_PIPE_FULL,    /* there may be more */
    DM_PIPE_ENDLESS, /* a reply has more bytes than allowed */
    DM_PIPE_CLOSED,  /* by the server */
    DM_PIPE_BROKEN   /* errno */
};

/* Reads one piece; the caller then calls dm_pipe_next() until *ret_reply is NULL. */
enum dm_pipe_read dm_pipe_read(struct dm_pipe *pipe);

/* Returns the next complete reply, which the caller frees, or NULL.  False for bytes that cannot be a reply to us. */
bool dm_pipe_next(struct dm_pipe *pipe, redisReply **ret_reply);

#endif
