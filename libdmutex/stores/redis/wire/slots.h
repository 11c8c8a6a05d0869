/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The slots of a Cluster: the slot of a key, the ranges that CLUSTER SLOTS tells, and the redirects MOVED and ASK.
 * Decides only; has no socket, no thread and no clock.
 *
 * Nothing that a server sends is trusted: a text of another shape is refused as a whole.
 */
#ifndef DM_REDIS_WIRE_SLOTS_H
#define DM_REDIS_WIRE_SLOTS_H

#include <hiredis.h>
#include <stdbool.h>
#include <stddef.h>

#include "link/reader.h"

#define DM_SLOTS 16384
#define DM_SLOT_TAG_ROOM 5 /* bytes of a tag with its NUL */

/* The slot of a key: of the text in the first braces, if there is a text; else of the whole key. */
unsigned dm_slot_of(const char *key, size_t length);

/* A text of four letters for a key in that slot; the same text for each call. */
void dm_slot_tag(unsigned slot, char ret_tag[DM_SLOT_TAG_ROOM]);

/* The slots first..last belong to the master at host:port.  The texts are valid during the call. */
typedef void (*dm_slots_fn)(void *user, unsigned first, unsigned last, const char *host, const char *port);

/* For the question CLUSTER SLOTS: ranges and masters in less than half a MiB, whatever the server sends. */
extern const struct dm_summary_kind dm_slots_summary;

/*
 * Reads the answer to CLUSTER SLOTS, which is a summary or no map, and calls `take` once for each range.  A slot may be
 * in no range: no master serves the slot now.  asked_host: the host that has answered; a master without a host of its
 * own is there, too.  False, and no call: the answer is nonsense, or names more than 1024 hosts, or memory is missing.
 */
bool dm_slots_read(const redisReply *reply, const char *asked_host, dm_slots_fn take, void *user);

/* The text of an error MOVED or ASK. */
struct dm_redirect {
    bool is_ask; /* for one request, behind ASKING; false: the slot belongs to the server at host:port from now on */
    unsigned slot;
    char host[256];
    char port[8];
};

/*
 * False if the error is no redirect, or no redirect that can be followed.  A server without the name that it is to tell
 * writes "?" for its host: the answer to CLUSTER SLOTS has the address then, and the redirect has no address.
 */
bool dm_redirect_read(const char *error, const char *asked_host, struct dm_redirect *ret_redirect);

#endif
