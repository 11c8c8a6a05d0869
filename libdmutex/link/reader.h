/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * hiredis' reader, with limits: a server is not trusted, and could announce an endless array.  The reader refuses
 * replies that no command of ours can get: with too many elements, too deep, too long.
 *
 * One reply, the map of a Cluster's slots, may be longer than all others.  It is never in memory as a whole: the code
 * that asks for it provides a summary, which is shown each element as it arrives, and keeps what it needs in bounded
 * room.
 */
#ifndef DM_LINK_READER_H
#define DM_LINK_READER_H

#include <hiredis.h>
#include <stdbool.h>
#include <stddef.h>

/* An element of a long reply, valid only during the call.  The task has its place: index and parents. */
struct dm_element {
    int type;         /* REDIS_REPLY_ARRAY, _STRING, _INTEGER, _NIL, or another */
    const char *text; /* of a string; no NUL ends it */
    size_t length;
    long long number; /* of an integer */
};

/* Stands for a reply that is an array: the type of `reply` is DM_REPLY_SUMMARY.  One block of malloc(). */
struct dm_summary {
    redisReply reply;
};

#define DM_REPLY_SUMMARY 1000 /* no type of hiredis' */

struct dm_summary_kind {
    struct dm_summary *(*begin)(void); /* NULL without memory */
    void (*take)(struct dm_summary *summary, const redisReadTask *task, const struct dm_element *element);
};

struct dm_reader {
    redisReader *hiredis;
    size_t bytes, elements; /* of the reply that the reader is in, so far */
    const struct dm_summary_kind *kind;
};

/* False without memory. */
bool dm_reader_begin(struct dm_reader *reader);
void dm_reader_end(struct dm_reader *reader);

/*
 * If the next reply is an array, it may be long, and becomes a summary of that kind; NULL: an ordinary reply.  Called
 * before each feed and each reply.
 */
void dm_reader_expect(struct dm_reader *reader, const struct dm_summary_kind *kind);

/* False for a reply of more than 256 KiB or, where a summary is expected, if an element or the whole is too long. */
bool dm_reader_feed(struct dm_reader *reader, const char *bytes, size_t length);

/* The next complete reply, or NULL; freed by dm_reply_free().  False for bytes that cannot be a reply to us. */
bool dm_reader_next(struct dm_reader *reader, redisReply **ret_reply);

/* Frees a reply of dm_reader_next() or of hiredis itself; NULL is allowed.  Any thread may call it. */
void dm_reply_free(redisReply *reply);

#endif
