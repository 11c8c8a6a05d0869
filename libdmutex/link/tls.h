/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * TLS on a connected socket, with OpenSSL.  Bytes go through this file's own send() and recv(): no SIGPIPE, no
 * blocking.
 *
 * The handshake reads files, checks certificates and needs a normal stack, so one of the library's own threads does it.
 * Afterwards any thread that has the caller's lock sends and receives.
 *
 * The application may use OpenSSL, too, and must not notice us: the library has its own OSSL_LIB_CTX, sets no atexit()
 * handler, and leaves errno and the thread's error queue as it finds them.
 *
 * The library makes all these calls through the table in tls_calls.h.
 */
#ifndef DM_LINK_TLS_H
#define DM_LINK_TLS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/text.h"

/* How a connection is secured.  The texts belong to the caller. */
struct dm_tls_options {
    bool is_on;
    bool is_verified;       /* check the server's certificate: chain and name */
    const char *name;       /* host name or IP address that the certificate must have; NULL: not known */
    const char *cacert;     /* a file, or a folder with hashed names; NULL: what the system trusts */
    const char *cert, *key; /* of this client; NULL: none; key NULL: it is in the file of cert */
};

struct dm_tls;

/*
 * Does the handshake on a connected socket, which stays the caller's.  Blocks until `deadline_ns` at most; no lock
 * held.  NULL with the reason.  `options` must live until the return.
 */
struct dm_tls *dm_tls_open(int fd, const struct dm_tls_options *options, int64_t deadline_ns,
                           char ret_reason[DM_REASON_ROOM]);

/* Sends nothing; the caller closes the socket. */
void dm_tls_free(struct dm_tls *tls);

/*
 * Like dm_stream_send() and dm_stream_receive().  After a failure errno is EPROTO if dm_tls_reason() explains it.
 * Bytes that were not taken are sent first by the next send.
 */
ssize_t dm_tls_send(struct dm_tls *tls, const char *bytes, size_t length);
ssize_t dm_tls_receive(struct dm_tls *tls, char *room, size_t length);

/*
 * False if the calling thread has less stack left than OpenSSL may need.  Then dm_tls_send() and dm_tls_receive() do
 * nothing and return 0, and another thread must do both.
 */
bool dm_tls_has_stack(void);

/* Explains the failure; "": the socket's errno says it all. */
const char *dm_tls_reason(const struct dm_tls *tls);

/* Bytes were read from the socket but not yet received: no thread may sleep until the socket is readable. */
bool dm_tls_holds(const struct dm_tls *tls);

/* The last turn ended at its limit; the socket may have more. */
bool dm_tls_is_cut(const struct dm_tls *tls);

/* The events to poll the socket for. has_more: the caller has bytes to send. */
short dm_tls_events(const struct dm_tls *tls, bool has_more);

/*
 * Around fork(): no thread is in a handshake except in poll().  Waits for one turn at most.  The child starts afresh.
 */
void dm_tls_fork_prepare(void);
void dm_tls_fork_parent(void);
void dm_tls_fork_child(void);

#endif
