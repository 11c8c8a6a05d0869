/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A group of three servers and three sentinels.  Each replica has the data of some earlier moment; each sentinel has
 * its own view: who the master is, and the epoch of that failover.  A sentinel learns of a failover at most half of
 * `switch` after it (assumption A8).  The replaced master does not know, and stays a master until it is made a replica.
 */
#ifndef SIM_SENTINELS_H
#define SIM_SENTINELS_H

#include "server.h"

#define SENTINELS 3
#define SENTINELS_SWITCH_MS 200
#define SENTINELS_SERVERS 3

/* The first server is the master; the others are its replicas.  wait: of the processes' URL. */
void sentinels_begin(unsigned wait);
unsigned sentinels_wait(void);
void sentinels_none(void); /* no sentinels in this run */
bool sentinels_are_there(void);

/* ---- the network's side ------------------------------------------------------------------- */

/* A link to a sentinel has the server SERVERS_MAX, and more. */
bool sentinel_accept(struct link *link);
void sentinel_bytes(struct link *link, const char *bytes, size_t length);
struct link **sentinel_links(const struct link *link);

/* ---- faults ------------------------------------------------------------------------------- */

enum old_master { OLD_GOES_ON, OLD_STALLS, OLD_RESTARTS, OLD_RESTARTS_EMPTY };

/*
 * Another server becomes the master, with the data that have reached the server; the number chooses.  The old master
 * becomes a replica after `blind_ns`.  Nothing happens without two sentinels in touch, or without another server.
 * has_twin: the third server is promoted likewise, by one sentinel and the same epoch.
 */
void sentinels_fail_over(uint32_t number, enum old_master old, bool has_twin, int64_t blind_ns);

/* One sentinel at a time: it does not answer, or hears of nothing and keeps its view. */
void sentinels_lose(uint32_t number, bool is_deaf, int64_t for_ns);

#endif
