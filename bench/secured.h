/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A bare blocking connection by TLS: SSL_write() and SSL_read() on the socket, with hiredis' writer and reader.
 *
 * Without TLS in the library there is none, and opening ends the program.
 */
#ifndef DM_BENCH_SECURED_H
#define DM_BENCH_SECURED_H

#include <hiredis.h>

struct secured;

/* To a port of 127.0.0.1; the peer is not verified, which costs nothing after the handshake. */
struct secured *secured_open(int port);

/* A command with a reply that is not an error; for own_lock_by(). */
redisReply *secured_command(void *secured, int count, const char **words);

#endif
