/* SPDX-License-Identifier: BSD-2-Clause */
#include "link/pipe.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"

/* -1 means "no stream" to all functions of stream.c; the rest of a pipe begins as zeros. */
void dm_pipe_init(struct dm_pipe *pipe)
{
    pipe->stream.fd = -1;
}

bool dm_pipe_begin(struct dm_pipe *pipe)
{
    return dm_reader_begin(&pipe->reader);
}

/*
 * The reader goes with its buffer, because half a reply of one connection must not be joined to the next connection's
 * bytes.
 */
void dm_pipe_close(struct dm_pipe *pipe)
{
    dm_stream_close(&pipe->stream);
    dm_reader_end(&pipe->reader);
    free(pipe->out);
    pipe->out = NULL;
    pipe->out_length = 0;
    pipe->is_stopped = false;
}

/* ---- slots ------------------------------------------------------------------------------- */

/* Slots are reused, so that commands of a busy link need no malloc(): a release must not fail for lack of memory. */
struct dm_slot *dm_pipe_take_slot(struct dm_pipe *pipe)
{
    struct dm_slot *slot = pipe->spare;

    if (!slot)
        return calloc(1, sizeof *slot);
    pipe->spare = slot->next;
    memset(slot, 0, sizeof *slot);
    return slot;
}

/* The list never shrinks: a link keeps as many slots as were ever in use at once. */
void dm_pipe_spare_slot(struct dm_pipe *pipe, struct dm_slot *slot)
{
    slot->next = pipe->spare;
    pipe->spare = slot;
}

/* `pushed` is never reset, so that a drain can wait for all slots up to a moment, and for none after it. */
void dm_pipe_push(struct dm_pipe *pipe, struct dm_slot *slot)
{
    slot->next = NULL;
    slot->sent_ns = dm_clock_boot_ns();
    if (pipe->last)
        pipe->last->next = slot;
    else
        pipe->first = slot;
    pipe->last = slot;
    pipe->pushed++;
}

/* The slot is the caller's, which hands it out, spares it or frees it. */
struct dm_slot *dm_pipe_pop(struct dm_pipe *pipe)
{
    struct dm_slot *slot = pipe->first;

    if (!slot)
        return NULL;
    pipe->first = slot->next;
    if (!pipe->first)
        pipe->last = NULL;
    pipe->popped++;
    return slot;
}

/* ---- sending ----------------------------------------------------------------------------- */

/* Without memory the caller must close the pipe, because half a command is in the kernel. */
static bool keep_for_later(struct dm_pipe *pipe, const char *bytes, size_t length)
{
    char *out = realloc(pipe->out, pipe->out_length + length);

    if (!out)
        return false;
    memcpy(out + pipe->out_length, bytes, length);
    pipe->out = out;
    pipe->out_length += length;
    return true;
}

/* The pipe keeps bytes that the kernel does not take; nothing overtakes them. */
bool dm_pipe_write(struct dm_pipe *pipe, const char *bytes, size_t length)
{
    bool is_kept = pipe->out_length || pipe->is_held || pipe->is_stopped;
    ssize_t sent = is_kept ? 0 : dm_stream_send(&pipe->stream, bytes, length);

    if (sent < 0)
        return false;
    if ((size_t)sent == length)
        return true;
    return keep_for_later(pipe, bytes + sent, length - (size_t)sent);
}

/* The block keeps its size for the next use; it is freed with the connection. */
bool dm_pipe_flush(struct dm_pipe *pipe)
{
    size_t pending = dm_pipe_pending(pipe);
    ssize_t sent;

    if (pending == 0)
        return true;
    sent = dm_stream_send(&pipe->stream, pipe->out, pending);
    if (sent < 0)
        return false;
    pipe->before_stop = pending - (size_t)sent;
    pipe->out_length -= (size_t)sent;
    memmove(pipe->out, pipe->out + sent, pipe->out_length);
    return true;
}

void dm_pipe_stop(struct dm_pipe *pipe)
{
    pipe->is_stopped = true;
    pipe->before_stop = pipe->out_length;
}

void dm_pipe_go_on(struct dm_pipe *pipe)
{
    pipe->is_stopped = false;
}

size_t dm_pipe_pending(const struct dm_pipe *pipe)
{
    if (pipe->is_held)
        return 0;
    return pipe->is_stopped ? pipe->before_stop : pipe->out_length;
}

/* ---- reading ----------------------------------------------------------------------------- */

/* The first slot is that of the next reply; a listener has none. */
static void expect(struct dm_pipe *pipe)
{
    dm_reader_expect(&pipe->reader, pipe->first ? pipe->first->summary : NULL);
}

/*
 * errno 0 distinguishes the end of the stream from an error.  If the buffer is full there may or may not be more bytes;
 * a second read finds out.
 */
enum dm_pipe_read dm_pipe_read(struct dm_pipe *pipe)
{
    ssize_t got = dm_stream_receive(&pipe->stream, pipe->in, sizeof pipe->in);

    if (got < 0)
        return errno ? DM_PIPE_BROKEN : DM_PIPE_CLOSED;
    if (got == 0)
        return DM_PIPE_NOTHING;
    expect(pipe);
    if (!dm_reader_feed(&pipe->reader, pipe->in, (size_t)got))
        return DM_PIPE_ENDLESS;
    return got == sizeof pipe->in ? DM_PIPE_FULL : DM_PIPE_SOME;
}

bool dm_pipe_next(struct dm_pipe *pipe, redisReply **ret_reply)
{
    expect(pipe);
    return dm_reader_next(&pipe->reader, ret_reply);
}
