/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A store on registers for the tests of the public functions, mutexes.c, conditions.c and tls.c.  Each store has a
 * bed.c, and these programs are built for each.
 */
#ifndef TESTS_REGISTERS_BED_H
#define TESTS_REGISTERS_BED_H

#include <stdbool.h>

/* False if the store's server is not installed; the line for TAP has been printed. */
bool bed_is_possible(void);

/* A private server, on which no lock waits for earlier owners. */
void bed_begin(void);
/* The same, reached with TLS. */
void bed_begin_with_tls(const char *certificate, const char *key);
void bed_end(void);

const char *bed_url(void);
/* For a lease so long that nobody would wait for earlier owners. */
const char *bed_url_without_grace(void);
/* With TLS, for a client that trusts the authority in this file. */
const char *bed_url_with_authority(const char *path);
const char *bed_folder(void);

/* SIGKILL, and the same data again. */
void bed_crash(void);
/* The server closes the connections of all actors. */
void bed_cut(void);
/* Makes the data those of somebody else, as a restored backup does. */
void bed_change_data(void);

/* Changes with each swap of the key.  Valid until the next call. */
const char *bed_version_of(const char *key);

/* Those of processes that were killed stay for a day. */
int bed_count_sessions(void);
/* Connections to the server, and how many each process has. */
int bed_count_connections(void);
extern const int bed_connections_each;

#endif
