/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The slots of a Cluster: the slot of a key, the ranges in the reply to CLUSTER SLOTS, and the redirects MOVED and ASK.
 * Pure functions, without sockets, threads or clocks.
 *
 * Nothing that a server sends is trusted: a text of another form is refused as a whole.
 */
#ifndef DM_REDIS_WIRE_SLOTS_H
#define DM_REDIS_WIRE_SLOTS_H

#include <hiredis.h>
#include <stdbool.h>
#include <stddef.h>

#include "link/reader.h"

#define DM_SLOTS 16384
#define DM_SLOT_TAG_ROOM 5 /* bytes of a tag with its NUL */

/* The slot of a key: that of the text in the first braces, if there is any; else of the whole key. */
unsigned dm_slot_of(const char *key, size_t length);

/* A text of four letters for a key in that slot, always the same. */
void dm_slot_tag(unsigned slot, char ret_tag[DM_SLOT_TAG_ROOM]);

/* The slots first..last belong to the master at host:port.  The texts are valid during the call. */
typedef void (*dm_slots_fn)(void *user, unsigned first, unsigned last, const char *host, const char *port);

/* For CLUSTER SLOTS: ranges and masters in less than half a MiB, whatever the server sends. */
extern const struct dm_summary_kind dm_slots_summary;

/*
 * Reads the answer to CLUSTER SLOTS, which is a summary or no map, and calls `take` once for each range.  A slot in no
 * range has no master now.  asked_host: the host that has answered, which is also that of a master without a host of
 * its own.  False, without any call, if the answer is nonsense, or names more than 1024 hosts, or there is no memory.
 */
bool dm_slots_read(const redisReply *reply, const char *asked_host, dm_slots_fn take, void *user);

/* The text of an error MOVED or ASK. */
struct dm_redirect {
    bool is_ask; /* for one request, after ASKING; false: the slot belongs to the server at host:port from now on */
    unsigned slot;
    char host[256];
    char port[8];
};

/*
 * False if the error is no redirect, or one that cannot be followed.  A server that lacks the host name that it should
 * announce writes "?": then only the answer to CLUSTER SLOTS has the address.
 */
bool dm_redirect_read(const char *error, const char *asked_host, struct dm_redirect *ret_redirect);

#endif
