/* SPDX-License-Identifier: BSD-2-Clause */
/* Where a server listens, and the addresses of a name, with a record of which have been tried. */
#ifndef DM_LINK_ADDRESS_H
#define DM_LINK_ADDRESS_H

#include <stdbool.h>
#include <sys/socket.h>

#include "base/text.h"

/* TCP if there is a host, otherwise the path of a Unix socket.  The texts stay the caller's. */
struct dm_address {
    const char *host, *port;
    const char *path;
};

/* Further addresses of a name are ignored. */
#define DM_ADDRESSES_MOST 16

enum dm_found {
    DM_FOUND,
    DM_FOUND_LATER,  /* a name, which is looked up only with may_block */
    DM_FOUND_AWAY,   /* no name server could be asked: the name may exist */
    DM_FOUND_NOTHING /* there is no such name, or no memory */
};

/* The addresses of one server, in the order in which they are tried.  A round tries each once. */
struct dm_addresses;

/*
 * Finds the addresses; the caller passes them to dm_addresses_free().  Without may_block, finds only those that need no
 * look-up.  AWAY and NOTHING come with the reason.
 */
enum dm_found dm_addresses_find(const struct dm_address *address, bool may_block, struct dm_addresses **ret_addresses,
                                char ret_reason[DM_REASON_ROOM]);
void dm_addresses_free(struct dm_addresses *addresses);

/* True if the addresses are those of `address`.  NULL: false, as below. */
bool dm_addresses_are_of(const struct dm_addresses *addresses, const struct dm_address *address);

/* How many have not been tried in this round. */
unsigned dm_addresses_left(const struct dm_addresses *addresses);

/* Takes the next one that has not been tried, and marks it as tried.  Only if one is left. */
unsigned dm_addresses_take(struct dm_addresses *addresses);
const struct sockaddr *dm_addresses_at(const struct dm_addresses *addresses, unsigned index, socklen_t *ret_length);

/* The address was not tried after all. */
void dm_addresses_put_back(struct dm_addresses *addresses, unsigned index);

/* A server answers at this address: the round is over, and later rounds begin with it. */
void dm_addresses_note_good(struct dm_addresses *addresses, unsigned index);
bool dm_addresses_have_good(const struct dm_addresses *addresses);

/* If the good address of `before` is among these, it is the good one here, too. */
void dm_addresses_prefer(struct dm_addresses *addresses, const struct dm_addresses *before);

/* Begins another round. */
void dm_addresses_begin(struct dm_addresses *addresses);

#endif
