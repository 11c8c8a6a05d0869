/* SPDX-License-Identifier: BSD-2-Clause */
/* The suite of drivers on the driver of Redis: what its programs share. */
#ifndef TESTS_REGISTERS_REDISBED_H
#define TESTS_REGISTERS_REDISBED_H

#include "../lib/testlib.h"

#include "config/url.h"
#include "driver.h"

/* A URL whose timeouts only a driver that has lost an answer exceeds. */
struct dm_url *redisbed_url(const char *text);

/* A driver_bed's open(): `user` is the URL. */
struct dm_reg_driver *redisbed_open(void *user, const struct dm_reg_client *client);

/* Ends all connections of clients to the server, those of replicas and the test's own excepted. */
void redisbed_cut(struct server *server);

/* memory_redis.c: the server behind a memory of memory.h. */
struct memory;
struct server *memory_server(struct memory *memory);

#endif
