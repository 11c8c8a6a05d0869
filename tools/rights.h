/* SPDX-License-Identifier: BSD-2-Clause */
/* The rights that a user of the server needs: one table for `dmutex acl` and `dmutex doctor`. */
#ifndef DM_TOOLS_RIGHTS_H
#define DM_TOOLS_RIGHTS_H

#include <stdbool.h>
#include <stddef.h>

#include "probe.h"

/*
 * In a Cluster, messages use channels that belong to slots, and commands of their own.  RIGHT_OF_REPLICAS: for option
 * `wait`.
 */
enum right_place { RIGHT_ANYWHERE, RIGHT_OF_SERVER, RIGHT_OF_CLUSTER, RIGHT_OF_REPLICAS };

struct right {
    const char *rule; /* "+hget" */
    const char
        *words[6];   /* a command that needs the right; "%h", "%z", "%c": a hash, a zset, a channel of the prefix */
    bool is_for_ops; /* needed to look at locks, not to use them */
    enum right_place place;
};

extern const struct right rights[];
extern const size_t right_count;

/* The rules for the sentinels' user: the library asks the sentinels for the master, and for the other sentinels. */
#define SENTINEL_RULES                                                                                    \
    "resetchannels &+switch-master -@all +subscribe +sentinel|myid +sentinel|sentinels +sentinel|master " \
    "+sentinel|get-master-addr-by-name"

/* True if a user needs this right, on a Cluster's node or a single server, with or without the option wait. */
bool right_is_of(const struct right *right, bool is_cluster, bool has_wait);

/* The pattern that covers the channels of the inboxes, without its '&'. */
void rights_channels(const char *prefix, bool is_cluster, char *ret_pattern, size_t room);

enum { RIGHTS_MOST = 48 };

struct rights_missing {
    const struct right *rights[RIGHTS_MOST];
    int count;
    bool misses_keys;             /* the pattern ~PREFIX:* */
    bool misses_channels;         /* the pattern of rights_channels() */
    bool misses_database;         /* of the URL */
    char refusal[DM_REASON_ROOM]; /* a refusal of another kind, in the server's words; "": none */
    char write[DM_REASON_ROOM];   /* the server refuses writes by anyone; "": it does not */
    char reason[DM_REASON_ROOM];  /* why no answer came; "": all questions were answered */
};

/*
 * Tries each right except the subscription, on temporary keys.  `tag`: on a node of a Cluster, a tag of a slot that the
 * node serves; else "".
 */
void rights_try(struct probe *probe, const struct dm_url *url, const char *tag, struct rights_missing *ret_missing);

/* What a user may not use, as the text of an error says. */
enum refused { REFUSED_NOTHING, REFUSED_COMMAND, REFUSED_KEY, REFUSED_CHANNEL, REFUSED_DATABASE, REFUSED_OTHERWISE };
enum refused rights_refused(const char *error);

#endif
