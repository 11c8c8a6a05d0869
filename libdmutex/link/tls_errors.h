/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A thread's queue of OpenSSL errors belongs to the application.  OpenSSL sometimes clears it by itself, for a session
 * ticket for example.  So we take the application's errors out before a call, and put them back after it.
 */
#ifndef DM_LINK_TLS_ERRORS_H
#define DM_LINK_TLS_ERRORS_H

/* The application's errors; NULL: there are none, which is usual, or there was no memory for them. */
struct dm_tls_errors;

/* Empties the queue. */
struct dm_tls_errors *dm_tls_errors_take(void);

/* Puts the errors back, frees them, and returns the last error that our calls added; 0: none. */
unsigned long dm_tls_errors_put_back(struct dm_tls_errors *errors);

#endif
