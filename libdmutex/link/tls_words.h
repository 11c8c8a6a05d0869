/* SPDX-License-Identifier: BSD-2-Clause */
/* Messages for people about TLS failures: what is wrong, and what to do. */
#ifndef DM_LINK_TLS_WORDS_H
#define DM_LINK_TLS_WORDS_H

#include <stdbool.h>

#include "base/text.h"

struct x509_store_ctx_st; /* OpenSSL's X509_STORE_CTX */

/* Facts about the failed connection. */
struct dm_tls_facts {
    bool is_other;       /* the server's first byte is not TLS */
    bool is_silent;      /* the server has sent nothing */
    bool lacks_cert;     /* the server has asked for a client certificate, but there is none */
    const char *cert;    /* the file of this client's certificate; NULL: none */
    unsigned long error; /* OpenSSL's; 0: none */
    int socket_error;    /* errno value of the socket; 0: none */
};

/* Explains why the server's certificate is refused; `name` and `cacert` as in struct dm_tls_options. */
void dm_tls_explain_certificate(struct x509_store_ctx_st *store, const char *name, const char *cacert,
                                char ret_reason[DM_REASON_ROOM]);

/* Explains why a handshake, or the first use of the connection, failed. */
void dm_tls_explain_failure(const struct dm_tls_facts *facts, char ret_reason[DM_REASON_ROOM]);

/* Explains why the handshake did not end in time. */
void dm_tls_explain_delay(const struct dm_tls_facts *facts, char ret_reason[DM_REASON_ROOM]);

#endif
