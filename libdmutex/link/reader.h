/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * hiredis' reader with limits: a server is not trusted, and could announce an array without end.  Refuses replies that
 * no command of the library gets: too many elements, too long.  The map of a Cluster is longer than all other replies.
 */
#ifndef DM_LINK_READER_H
#define DM_LINK_READER_H

#include <hiredis.h>
#include <stdbool.h>
#include <stddef.h>

struct dm_reader {
    redisReader *hiredis;
    size_t bytes, elements; /* of the reply that the reader is in, so far */
    bool takes_maps;
};

/* False without memory. */
bool dm_reader_begin(struct dm_reader *reader);
void dm_reader_end(struct dm_reader *reader);

/* From now on also takes replies as long as the map of a Cluster can be. */
void dm_reader_take_maps(struct dm_reader *reader);

/* False for a reply of more than 256 KiB, or than a map, or without memory. */
bool dm_reader_feed(struct dm_reader *reader, const char *bytes, size_t length);

/* The next whole reply, or NULL; to be freed by freeReplyObject().  False for bytes that cannot be a reply of ours. */
bool dm_reader_next(struct dm_reader *reader, redisReply **ret_reply);

#endif
