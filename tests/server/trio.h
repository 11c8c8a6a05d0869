/* SPDX-License-Identifier: BSD-2-Clause */
/* Three servers that are a quorum, and two processes that use it. */
#ifndef TEST_TRIO_H
#define TEST_TRIO_H

#include "../lib/testlib.h"

#define TRIO 3
#define TIMES "command_timeout=500&connect_timeout=500"
#define LEASE 30000 /* long enough that nothing ends by its lease */

extern struct server *trio[TRIO];
extern struct actor *trio_holder, *trio_waiter; /* of one test */

int trio_begin_group(void **state);
int trio_end_group(void **state);
int trio_begin_test(void **state);

/* The same for a test that counts commands: a server that a busy machine stops for a while is not asked twice. */
int trio_begin_count(void **state);

int trio_end_test(void **state);

/* The URL of all three, in memory that the next call writes. */
const char *trio_url(const char *options);

/* Both processes know the mutex, fair and with LEASE. */
void trio_init(const char *name);

/* The two processes lock and unlock `times` times, one after the other. */
void trio_lock_in_turns(const char *name, int times);

/* The server has the key; how many of the servers that run have it. */
bool trio_has(int server, const char *kind, const char *name);
int trio_count(const char *kind, const char *name);

/* How many of the servers that run have a waiter of the mutex. */
int trio_waiters(const char *name);

/* All three know the same holder. */
bool trio_has_one_hold(const char *name);

#endif
