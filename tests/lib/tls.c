/* SPDX-License-Identifier: BSD-2-Clause */
#include "tls.h"

#include <openssl/pem.h>
#include <openssl/x509v3.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "testlib.h"

#define DAY 86400L
#define NAMES "DNS:localhost,IP:127.0.0.1,DNS:*.test.example"
#define LABEL "a-label-of-a-name-may-have-up-to-sixty-three-bytes"

char tls_folder[32];

/* ---- certificates ------------------------------------------------------------------------ */

/* An authority, or a certificate that it has issued, with the key. */
struct identity {
    X509 *certificate;
    EVP_PKEY *key;
};

static void extend(X509 *certificate, const X509 *issuer, int kind, const char *value)
{
    X509V3_CTX context;
    X509_EXTENSION *extension;

    X509V3_set_ctx(&context, (X509 *)issuer, certificate, NULL, NULL, 0);
    extension = X509V3_EXT_conf_nid(NULL, &context, kind, value);
    assert_non_null(extension);
    assert_true(X509_add_ext(certificate, extension, -1));
    X509_EXTENSION_free(extension);
}

static void write_files(const char *name, const struct identity *identity)
{
    char path[64];
    FILE *file;

    snprintf(path, sizeof path, "%s/%s.crt", tls_folder, name);
    file = fopen(path, "w");
    assert_true(file && PEM_write_X509(file, identity->certificate));
    fclose(file);
    snprintf(path, sizeof path, "%s/%s.key", tls_folder, name);
    file = fopen(path, "w");
    assert_true(file && PEM_write_PrivateKey(file, identity->key, NULL, NULL, 0, NULL, NULL));
    fclose(file);
}

/*
 * issuer NULL: an authority; names NULL: for a client; purpose NULL: for all.  Valid from two days ago until `end_s`
 * from now.
 */
static struct identity make_file(const char *file, const char *purpose, const char *name, const struct identity *issuer,
                                 const char *names, long end_s)
{
    static long serial;
    struct identity made = { X509_new(), EVP_EC_gen("P-256") };
    X509 *certificate = made.certificate;
    X509_NAME *subject = X509_get_subject_name(certificate);

    assert_true(certificate && made.key);
    X509_set_version(certificate, 2);
    ASN1_INTEGER_set(X509_get_serialNumber(certificate), ++serial);
    X509_gmtime_adj(X509_getm_notBefore(certificate), -2 * DAY);
    X509_gmtime_adj(X509_getm_notAfter(certificate), end_s);
    X509_NAME_add_entry_by_txt(subject, "CN", MBSTRING_ASC, (const unsigned char *)name, -1, -1, 0);
    X509_set_issuer_name(certificate, issuer ? X509_get_subject_name(issuer->certificate) : subject);
    X509_set_pubkey(certificate, made.key);
    extend(certificate, issuer ? issuer->certificate : certificate, NID_basic_constraints,
           issuer ? "critical,CA:FALSE" : "critical,CA:TRUE");
    if (names)
        extend(certificate, issuer->certificate, NID_subject_alt_name, names);
    if (purpose)
        extend(certificate, issuer->certificate, NID_ext_key_usage, purpose);
    assert_true(X509_sign(certificate, issuer ? issuer->key : made.key, EVP_sha256()) > 0);
    write_files(file, &made);
    return made;
}

static struct identity make_for(const char *purpose, const char *name, const struct identity *issuer, const char *names,
                                long end_s)
{
    return make_file(name, purpose, name, issuer, names, end_s);
}

static struct identity make(const char *name, const struct identity *issuer, const char *names, long end_s)
{
    return make_for(NULL, name, issuer, names, end_s);
}

/* The authority's key and name, in another certificate. */
static void make_old(const struct identity *authority)
{
    struct identity old = { X509_dup(authority->certificate), authority->key };

    assert_non_null(old.certificate);
    X509_gmtime_adj(X509_getm_notAfter(old.certificate), -3600);
    assert_true(X509_sign(old.certificate, old.key, EVP_sha256()) > 0);
    write_files("old", &old);
    X509_free(old.certificate);
}

/* Uses the name that openssl-rehash gives. */
static void make_hashed(const struct identity *authority)
{
    char path[64], target[64];
    unsigned long hash = X509_NAME_hash_ex(X509_get_subject_name(authority->certificate), NULL, NULL, NULL);

    snprintf(path, sizeof path, "%s/hashed", tls_folder);
    assert_return_code(mkdir(path, 0700), errno);
    snprintf(path, sizeof path, "%s/hashed/%08lx.0", tls_folder, hash);
    snprintf(target, sizeof target, "%s/ca.crt", tls_folder);
    assert_return_code(symlink(target, path), errno);
}

static void drop(struct identity identity)
{
    X509_free(identity.certificate);
    EVP_PKEY_free(identity.key);
}

void tls_begin(void)
{
    struct identity ca, other;

    keeper_make_folder(tls_folder, sizeof tls_folder);
    ca = make("ca", NULL, NULL, DAY);
    make_hashed(&ca);
    make_old(&ca);
    drop(make_file("namesake", NULL, "ca", NULL, NULL, DAY));
    other = make("other", NULL, NULL, DAY);
    drop(make("server", &ca, NAMES, DAY));
    drop(make("named", &ca, "DNS:redis.test.example", DAY));
    drop(make_for("clientAuth", "purpose", &ca, NAMES, DAY));
    drop(make("as-name", &ca, "DNS:127.0.0.1", DAY));
    drop(make("long", &ca, "DNS:" LABEL "." LABEL "." LABEL "." LABEL ",DNS:other", DAY));
    drop(make("expired", &ca, NAMES, -3600));
    drop(make("strange", &other, NAMES, DAY));
    drop(make("client", &ca, NULL, DAY));
    drop(make("stranger", &other, NULL, DAY));
    drop(ca);
    drop(other);
}

void tls_end(void)
{
    keeper_remove_folder(tls_folder);
}

int tls_group_setup(void **state)
{
    tls_begin();
    return test_group_setup(state);
}

int tls_group_teardown(void **state)
{
    tls_end();
    return test_group_teardown(state);
}

/* ---- servers ----------------------------------------------------------------------------- */

struct tls_server *tls_server_start(const char *name, const char *clients, ...)
{
    struct tls_server *tls = calloc(1, sizeof *tls);
    char port[16], certificate[64], key[64], authority[64];
    const char *further[7] = { NULL }; /* ends with NULL */
    va_list more;

    assert_non_null(tls);
    tls->port = server_free_port();
    snprintf(port, sizeof port, "%d", tls->port);
    snprintf(certificate, sizeof certificate, "%s/%s.crt", tls_folder, name);
    snprintf(key, sizeof key, "%s/%s.key", tls_folder, name);
    snprintf(authority, sizeof authority, "%s/ca.crt", tls_folder);
    va_start(more, clients);
    for (int i = 0; (further[i] = va_arg(more, const char *)); i++)
        assert_true(i < 6);
    va_end(more);
    tls->server = server_start_with(false, "--tls-port", port, "--tls-cert-file", certificate, "--tls-key-file", key,
                                    "--tls-ca-cert-file", authority, "--tls-auth-clients", clients, further[0],
                                    further[1], further[2], further[3], further[4], further[5], NULL);
    snprintf(tls->url, sizeof tls->url, "rediss://127.0.0.1:%d?grace=off&cacert=%s", tls->port, authority);
    return tls;
}

void tls_server_end(struct tls_server *tls)
{
    server_end(tls->server);
    free(tls);
}
