/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A bare blocking TLS connection: SSL_write() and SSL_read() on the socket, with hiredis's writer and reader.
 *
 * If the library is built without TLS, opening one ends the program.
 */
#ifndef DM_BENCH_SECURED_H
#define DM_BENCH_SECURED_H

#include <hiredis.h>

struct secured;

/* Connects to a port of 127.0.0.1.  The peer is not verified, which costs nothing after the handshake. */
struct secured *secured_open(int port);

/* A command with a reply that is not an error; for own_lock_by(). */
redisReply *secured_command(void *secured, int count, const char **words);

#endif
