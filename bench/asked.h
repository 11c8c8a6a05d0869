/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A bare lock that stays with its owner after the unlock, until another owner asks for it: the least that a kept lease
 * which is asked back can cost.
 *
 * The asking script notifies the owner. Its reader gives the lock back or, while the lock is in use, the unlock does.
 * That is two scripts and two messages. No lease is renewed, no death noticed, and a lost message is not survived.
 */
#ifndef DM_BENCH_ASKED_H
#define DM_BENCH_ASKED_H

struct bench_server;
struct asked;

/* Takes the lock away from owners that have ended. */
void asked_clear(const struct bench_server *server);

/* Opens the lock as owner number `owner`, for one thread of this process. */
struct asked *asked_open(const struct bench_server *server, int owner);

void asked_lock(struct asked *asked);
void asked_unlock(struct asked *asked);

/* Gives a kept lock back. Call it before the owner ends: nobody else would wake the waiters. */
void asked_leave(struct asked *asked);

#endif
