/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The files of a connection's certificates, which are read for each connection, so that a new certificate needs no
 * restart.  OpenSSL gets the bytes and not the paths: it would wait for the writer of a FIFO, and its descriptors would
 * outlive an exec() of another thread.
 */
#ifndef DM_LINK_TLS_FILES_H
#define DM_LINK_TLS_FILES_H

#include <stdbool.h>
#include <stddef.h>

#include "base/text.h"

struct ossl_lib_ctx_st; /* OpenSSL's OSSL_LIB_CTX and SSL_CTX */
struct ssl_ctx_st;

struct dm_tls_file {
    const char *path; /* NULL: none */
    char *bytes;      /* once read */
    size_t length;
};

/* The paths are the caller's, as in struct dm_tls_options. */
struct dm_tls_files {
    bool is_verified;
    struct dm_tls_file cacert, cert, key;
};

/* Reads; OpenSSL is not used.  False with the reason; to be freed in any case. */
bool dm_tls_files_read(struct dm_tls_files *files, char ret_reason[DM_REASON_ROOM]);

/*
 * Gives all to a context of OpenSSL, and calls give_way() after each certificate of cacert: many take long, and fork()
 * waits for whoever is inside OpenSSL.  False with the reason.
 */
bool dm_tls_files_load(const struct dm_tls_files *files, struct ossl_lib_ctx_st *library, struct ssl_ctx_st *context,
                       void (*give_way)(void), char ret_reason[DM_REASON_ROOM]);

/* Wipes the key. */
void dm_tls_files_free(struct dm_tls_files *files);

/* In the place of OpenSSL's own, which would ask for a passphrase at the terminal. */
int dm_tls_refuse_passphrase(char *room, int size, int is_writing, void *user);

#endif
