/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A private server for a test, which this process uses while it exists, in a temporary directory that a reaper deletes.
 * As the public functions of <dmutex/testing.h>; all functions except dm_testserver_url() return 0 or an errno value,
 * noted.  One thread at a time.
 */
#ifndef DM_PROCESS_LIFE_TESTSERVER_H
#define DM_PROCESS_LIFE_TESTSERVER_H

#include <stdbool.h>

#include "spawn/reaper.h"

struct dmutex_test_server;

/* Redis or Valkey, or PostgreSQL. */
int dm_testserver_start(bool is_postgres, struct dmutex_test_server **ret_server);
int dm_testserver_stop(struct dmutex_test_server *server);

/* KILL, START (again; Redis is empty then), PAUSE or RESUME. */
int dm_testserver_do(struct dmutex_test_server *server, enum dm_reaper_order order);

const char *dm_testserver_url(const struct dmutex_test_server *server);

#endif
