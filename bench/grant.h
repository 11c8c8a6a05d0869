/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A bare lock whose release grants it to the first waiter: the least that a handoff can cost.
 *
 * Two scripts, one blocking connection for both, and a thread that blocks reading the process's inbox and posts the
 * semaphore on which a waiter sleeps. No lease is renewed, no death noticed, and a lost message is not survived.
 */
#ifndef DM_BENCH_GRANT_H
#define DM_BENCH_GRANT_H

struct bench_server;
struct grant;

/* Opens the lock as owner number `owner`. */
struct grant *grant_open(const struct bench_server *server, int owner);

void grant_lock(struct grant *grant);
void grant_unlock(struct grant *grant);

#endif
