/* SPDX-License-Identifier: BSD-2-Clause */
/* Jute, in which ZooKeeper writes its messages: numbers with the high byte first, and bytes after their length. */
#ifndef DM_ZOOKEEPER_JUTE_H
#define DM_ZOOKEEPER_JUTE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/bytes.h"

/* What has not been read of a message. */
struct dm_jute {
    const uint8_t *at;
    size_t left;
    bool is_bad; /* something was asked for that is not there: what was read before is worth nothing */
};

/* Each returns 0, or NULL, from a message that is bad. */
int32_t dm_jute_int(struct dm_jute *jute);
int64_t dm_jute_long(struct dm_jute *jute);
bool dm_jute_bool(struct dm_jute *jute);
/* Bytes, or a text without a NUL after it.  Absent ones (length -1) are as empty ones. */
const char *dm_jute_bytes(struct dm_jute *jute, size_t *ret_size);

void dm_jute_add_int(struct dm_bytes *to, int32_t number);
void dm_jute_add_long(struct dm_bytes *to, int64_t number);
void dm_jute_add_bool(struct dm_bytes *to, bool is_true);
void dm_jute_add_bytes(struct dm_bytes *to, const void *bytes, size_t size);
void dm_jute_add_text(struct dm_bytes *to, const char *text);

/* For bytes that are added piece by piece, between the two calls: the first returns where they begin. */
size_t dm_jute_begin(struct dm_bytes *to);
void dm_jute_end(struct dm_bytes *to, size_t begin);

/* What a node has beside its data, as far as we use it. */
struct dm_jute_stat {
    int64_t changed_zxid, changed_ms; /* the last change of the data, by the leader's clock */
};
struct dm_jute_stat dm_jute_stat(struct dm_jute *jute);

#endif
