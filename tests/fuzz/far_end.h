/* SPDX-License-Identifier: BSD-2-Clause */
/* The other end of a link, which is a pair of sockets: the server that sends the bytes of an input. */
#ifndef TEST_FUZZ_FAR_END_H
#define TEST_FUZZ_FAR_END_H

#include <stddef.h>
#include <stdint.h>

struct dm_link;

/* The server's end; -1 none. */
extern int server_fd;

/* Makes the pair: returns the link's end. */
int open_ends(void);

/* The server sends, if it has an end. */
void send_bytes(const uint8_t *bytes, size_t length);

/*
 * Frees the link, which the end of its owner leaves: the library never frees links, because a thread may still be about
 * to use a link.
 */
void free_link(struct dm_link *link);

#endif
