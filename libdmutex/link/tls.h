/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * TLS on a connected socket, by OpenSSL.  Bytes go through send() and recv() of this file: no SIGPIPE, no blocking.
 *
 * The handshake reads files, checks certificates and needs a usual stack: a thread of the library's own shakes hands.
 * Afterwards any thread with the caller's lock sends and receives.
 *
 * The application may use OpenSSL, too.  Nothing that the application could notice is changed: the library has its own
 * OSSL_LIB_CTX, sets no handler of atexit(), and leaves errno and the thread's queue of errors as found.
 *
 * The library calls all this by the table in tls_calls.h.
 */
#ifndef DM_LINK_TLS_H
#define DM_LINK_TLS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/text.h"

/* How a connection is secured.  Borrowed texts. */
struct dm_tls_options {
    bool is_on;
    bool is_verified;       /* the server's certificate: chain and name */
    const char *name;       /* host name or IP address that the certificate must have; NULL: not known */
    const char *cacert;     /* a file, or a folder with hashed names; NULL: those that the system trusts */
    const char *cert, *key; /* of this client; NULL: none; key NULL: in the file of cert */
};

struct dm_tls;

/*
 * Shakes hands on a connected socket, which stays the caller's.  Blocks until `deadline_ns` at most; no lock held.
 * NULL with the reason.  The options are used until the return.
 */
struct dm_tls *dm_tls_open(int fd, const struct dm_tls_options *options, int64_t deadline_ns,
                           char ret_reason[DM_REASON_ROOM]);

/* Sends nothing: the caller closes the socket. */
void dm_tls_free(struct dm_tls *tls);

/*
 * As dm_stream_send() and dm_stream_receive().  After a failure errno is EPROTO if dm_tls_reason() has a sentence about
 * the failure.  Bytes that were not taken are sent again by the next send, first.
 */
ssize_t dm_tls_send(struct dm_tls *tls, const char *bytes, size_t length);
ssize_t dm_tls_receive(struct dm_tls *tls, char *room, size_t length);

/*
 * False if the calling thread has less stack left than OpenSSL may need.  dm_tls_send() and dm_tls_receive() do nothing
 * then, and return 0: another thread must do both.
 */
bool dm_tls_has_stack(void);

/* A sentence about the failure; "": the socket's errno tells all. */
const char *dm_tls_reason(const struct dm_tls *tls);

/* Bytes have been read from the socket and not been received: no thread may sleep until the socket is readable. */
bool dm_tls_holds(const struct dm_tls *tls);

/* The last turn has ended by its bound, and the socket may have more. */
bool dm_tls_is_cut(const struct dm_tls *tls);

/* The events to poll the socket for; has_more: the caller has bytes to send. */
short dm_tls_events(const struct dm_tls *tls, bool has_more);

/* Around fork(): no thread shakes hands, but for its polls.  Waits for a turn at most.  The child begins anew. */
void dm_tls_fork_prepare(void);
void dm_tls_fork_parent(void);
void dm_tls_fork_child(void);

#endif
