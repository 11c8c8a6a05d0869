/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The certificate files of a connection.  Each connection reads them again, so that a new certificate needs no restart.
 * OpenSSL gets the bytes instead of the paths, because it would wait for the writer of a FIFO, and its descriptors
 * would survive an exec() by another thread.
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
    char *bytes;      /* NULL until read */
    size_t length;
};

/* The paths belong to the caller, as in struct dm_tls_options. */
struct dm_tls_files {
    bool is_verified;
    struct dm_tls_file cacert, cert, key;
    struct dm_tls_file system; /* the system's authorities, without cacert */
};

/* Reads the files without using OpenSSL.  False with the reason.  Must be freed in either case. */
bool dm_tls_files_read(struct dm_tls_files *files, char ret_reason[DM_REASON_ROOM]);

/*
 * Gives everything to an OpenSSL context, and calls give_way() after each certificate of an authority: many take long,
 * and fork() waits for whoever is inside OpenSSL.  False with the reason.
 */
bool dm_tls_files_load(const struct dm_tls_files *files, struct ossl_lib_ctx_st *library, struct ssl_ctx_st *context,
                       void (*give_way)(void), char ret_reason[DM_REASON_ROOM]);

/* Wipes the key. */
void dm_tls_files_free(struct dm_tls_files *files);

/* Replaces OpenSSL's own callback, which would ask for a passphrase on the terminal. */
int dm_tls_refuse_passphrase(char *room, int size, int is_writing, void *user);

#endif
