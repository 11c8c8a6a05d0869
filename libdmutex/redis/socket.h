/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Sockets to the server: non-blocking, closed on exec, noticed dead by the kernel.  Addresses are
 * found beforehand, because a name look-up can block for long.
 */
#ifndef DM_REDIS_SOCKET_H
#define DM_REDIS_SOCKET_H

#include <stdbool.h>

#include "store/url.h"

struct dm_addresses;

/*
 * The addresses of the server, to be given to dm_addresses_free().  With may_block false only addresses that need no
 * look-up.  NULL with the reason; *ret_reason is "" when a look-up is needed.
 */
struct dm_addresses *dm_addresses_find(const struct dm_url *url, bool may_block, char ret_reason[DM_REASON_ROOM]);
void dm_addresses_free(struct dm_addresses *addresses);

/* True if there is an address that dm_socket_connect() has not tried yet. */
bool dm_addresses_has_more(const struct dm_addresses *addresses);

/*
 * Begins to connect to the next address in turn; poll for POLLOUT, then ask dm_socket_error().
 * Returns the socket, or -1 with errno.
 */
int dm_socket_connect(struct dm_addresses *addresses, unsigned user_timeout_ms);

/* The errno value of a connect that has ended, 0 for success. */
int dm_socket_error(int fd);

#endif
