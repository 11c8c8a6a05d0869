/* SPDX-License-Identifier: BSD-2-Clause */
/* The rights that a user of the server needs, one table for `dmutex acl` and `dmutex doctor`. */
#ifndef DM_TOOLS_RIGHTS_H
#define DM_TOOLS_RIGHTS_H

#include <stdbool.h>
#include <stddef.h>

#include "probe.h"

/* Messages of a Cluster go by channels that belong to slots, and have commands of their own; `wait` is an option. */
enum right_place { RIGHT_ANYWHERE, RIGHT_OF_SERVER, RIGHT_OF_CLUSTER, RIGHT_OF_REPLICAS };

struct right {
    const char *rule; /* "+hget" */
    const char
        *words[6];   /* a command that needs the right; "%h", "%z", "%c": a hash, a zset, a channel of the prefix */
    bool is_for_ops; /* for looking at locks; locking needs no such right */
    enum right_place place;
};

extern const struct right rights[];
extern const size_t right_count;

/* The rules of the sentinels' user: the library asks them who is the master and which sentinels there are. */
#define SENTINEL_RULES                                                                                    \
    "resetchannels &+switch-master -@all +subscribe +sentinel|myid +sentinel|sentinels +sentinel|master " \
    "+sentinel|get-master-addr-by-name"

/* True if a user needs the right, on a node of a Cluster or on a server by itself, with the option wait or without. */
bool right_is_of(const struct right *right, bool is_cluster, bool has_wait);

/* The pattern of the inboxes' channels, without its '&'. */
void rights_channels(const char *prefix, bool is_cluster, char *ret_pattern, size_t room);

enum { RIGHTS_MOST = 48 };

struct rights_missing {
    const struct right *rights[RIGHTS_MOST];
    int count;
    bool misses_keys;             /* the pattern ~PREFIX:* */
    bool misses_channels;         /* the pattern of rights_channels() */
    bool misses_database;         /* of the URL */
    char refusal[DM_REASON_ROOM]; /* a refusal that is none of these, in the server's words; "": there was none */
    char write[DM_REASON_ROOM];   /* the server refuses to write, whoever asks; "": it does not */
    char reason[DM_REASON_ROOM];  /* no answer came; "": all were answered */
};

/*
 * Tries each right but the subscription, on keys that are gone afterwards.  tag: on a node of a Cluster, of a slot that
 * the node serves; else "".
 */
void rights_try(struct probe *probe, const struct dm_url *url, const char *tag, struct rights_missing *ret_missing);

/* What a user may not use, as the text of an error says. */
enum refused { REFUSED_NOTHING, REFUSED_COMMAND, REFUSED_KEY, REFUSED_CHANNEL, REFUSED_DATABASE, REFUSED_OTHERWISE };
enum refused rights_refused(const char *error);

#endif
