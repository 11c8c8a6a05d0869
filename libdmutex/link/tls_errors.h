/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The thread's queue of OpenSSL's errors belongs to the application.  OpenSSL empties the queue on its own at times, as
 * for a session ticket, so the application's errors are taken out before a call, and put back behind the call.
 */
#ifndef DM_LINK_TLS_ERRORS_H
#define DM_LINK_TLS_ERRORS_H

/* The application's errors; NULL: none, as usual, or no memory for them. */
struct dm_tls_errors;

/* Empties the queue. */
struct dm_tls_errors *dm_tls_errors_take(void);

/* Puts the errors back, frees them, and returns the last error that has come meanwhile; 0: none. */
unsigned long dm_tls_errors_put_back(struct dm_tls_errors *errors);

#endif
