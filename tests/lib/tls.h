/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * TLS for tests: certificates of a new authority, and servers that use them.
 *
 *     tls_begin();                                       // in a group's setup
 *     struct tls_server *tls = tls_server_start("server", "no", NULL);
 *     struct actor *a = actor_start_at(tls->url);
 *     ...
 *     tls_server_end(tls);
 *     tls_end();                                         // in the teardown
 *
 * The files, NAME.crt and NAME.key in tls_folder:
 *
 *     ca         the authority, also in the folder `hashed`
 *     other      another authority, which nobody trusts
 *     namesake   another authority, with the name of ca
 *     old        the authority's previous certificate, with its key, until an hour ago
 *     server     for localhost, 127.0.0.1 and *.test.example
 *     named      only for redis.test.example
 *     as-name    for 127.0.0.1, as a name instead of an address
 *     purpose    like server, but for clients only
 *     long       for a name of 200 bytes, and another one
 *     expired    like server, until an hour ago
 *     strange    like server, issued by the other authority
 *     client     for a client          stranger   for a client, issued by the other authority
 */
#ifndef TEST_TLS_H
#define TEST_TLS_H

#include "server.h"

extern char tls_folder[32];

/* Make the files in a new folder, and delete the folder. */
void tls_begin(void);
void tls_end(void);

/* The same, with test_group_setup() and test_group_teardown(). */
int tls_group_setup(void **state);
int tls_group_teardown(void **state);

struct tls_server {
    struct server *server; /* also on its unix socket, without TLS */
    int port;              /* of 127.0.0.1, with TLS */
    char url[160];         /* rediss://127.0.0.1:port, with the authority; append options with & */
};

/*
 * Starts a server with the certificate `name`. clients: "no", "yes" or "optional", as in tls-auth-clients.  Further
 * arguments are those of server_start_with().
 */
struct tls_server *tls_server_start(const char *name, const char *clients, ...) __attribute__((__sentinel__));
void tls_server_end(struct tls_server *tls);

#endif
