/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * hiredis' reader with limits: we do not trust a server, which could announce an array without end.  The reader refuses
 * replies that no command of ours gets: too many elements, too deep, too long.  The map of a Cluster's slots is longer
 * than all other replies.
 */
#ifndef DM_LINK_READER_H
#define DM_LINK_READER_H

#include <hiredis.h>
#include <stdbool.h>
#include <stddef.h>

struct dm_reader {
    redisReader *hiredis;
    size_t bytes, elements; /* of the reply that the reader is in, so far */
    bool is_map_next;
};

/* False without memory. */
bool dm_reader_begin(struct dm_reader *reader);
void dm_reader_end(struct dm_reader *reader);

/* Whether the next reply may be as long as the map of a Cluster; asked for before each feed and each reply. */
void dm_reader_expect(struct dm_reader *reader, bool is_map);

/* False for a reply of more than 256 KiB, or longer than any map where a map is expected, or without memory. */
bool dm_reader_feed(struct dm_reader *reader, const char *bytes, size_t length);

/* The next whole reply, or NULL; to be freed by dm_reply_free().  False for bytes that cannot be a reply of ours. */
bool dm_reader_next(struct dm_reader *reader, redisReply **ret_reply);

/* Frees a reply of dm_reader_next(), or of hiredis' own making; NULL is allowed.  Any thread. */
void dm_reply_free(redisReply *reply);

#endif
