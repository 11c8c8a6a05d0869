/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A bare lock that stays with its owner after the unlock, until another owner asks for the lock: the least cost of a
 * lease that is asked back.
 *
 * The asking script tells the owner; the owner's reader gives the lock back, or, while the lock is used, the unlock
 * does. Two scripts and two messages are the way. No lease is renewed, no death noticed, no lost message survived.
 */
#ifndef DM_BENCH_ASKED_H
#define DM_BENCH_ASKED_H

struct bench_server;
struct asked;

/* Takes the lock from owners that have ended. */
void asked_clear(const struct bench_server *server);

/* The lock, as owner number `owner`; for one thread of this process. */
struct asked *asked_open(const struct bench_server *server, int owner);

void asked_lock(struct asked *asked);
void asked_unlock(struct asked *asked);

/* Gives a kept lock back. To be called before the owner ends: nobody else would wake those who wait. */
void asked_leave(struct asked *asked);

#endif
