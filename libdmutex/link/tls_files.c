/* SPDX-License-Identifier: BSD-2-Clause */
#include "link/tls_files.h"

#include <errno.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/file.h"

/* All authorities of a system are some 200 KiB. */
#define FILE_BYTES_MOST ((size_t)16 * 1024 * 1024)

/* ---- reading ----------------------------------------------------------------------------- */

static bool complain(const char *option, const char *path, const char *why, char *ret_reason)
{
    snprintf(ret_reason, DM_REASON_ROOM, "%s \"%.120s\" cannot be used: %s", option, path, why);
    return false;
}

static bool read_file(const char *option, struct dm_tls_file *file, char *ret_reason)
{
    if (!file->path)
        return true;
    file->bytes = dm_file_read(file->path, FILE_BYTES_MOST, &file->length);
    return file->bytes || complain(option, file->path, dm_file_reason(errno), ret_reason);
}

static bool is_folder(const char *path)
{
    struct stat status;

    return path && stat(path, &status) == 0 && S_ISDIR(status.st_mode);
}

/* OpenSSL looks into a folder itself, for the one issuer that it needs. */
static bool read_trust(struct dm_tls_files *files, char *ret_reason)
{
    const char *path = files->cacert.path;

    if (!files->is_verified)
        return true;
    if (!is_folder(path))
        return read_file("cacert", &files->cacert, ret_reason);
    return dm_file_is_safe(path) || complain("cacert", path, dm_file_reason(errno), ret_reason);
}

bool dm_tls_files_read(struct dm_tls_files *files, char ret_reason[DM_REASON_ROOM])
{
    return read_trust(files, ret_reason) && read_file("cert", &files->cert, ret_reason) &&
           read_file("key", &files->key, ret_reason);
}

static void wipe(struct dm_tls_file *file)
{
    if (file->bytes)
        explicit_bzero(file->bytes, file->length);
    free(file->bytes);
    file->bytes = NULL;
}

/* The key may be in the file of the certificate. */
void dm_tls_files_free(struct dm_tls_files *files)
{
    wipe(&files->cacert);
    wipe(&files->cert);
    wipe(&files->key);
}

/* ---- OpenSSL ----------------------------------------------------------------------------- */

/* The reason of the last failure of OpenSSL. */
static bool complain_of_bytes(const char *option, const char *path, char *ret_reason)
{
    const char *text = ERR_reason_error_string(ERR_peek_last_error());

    return complain(option, path, text ? text : "out of memory", ret_reason);
}

int dm_tls_refuse_passphrase(char *room, int size, int is_writing, void *user)
{
    (void)room;
    (void)size;
    (void)is_writing;
    (void)user;
    return -1;
}

static BIO *open_bytes(const struct dm_tls_file *file)
{
    return BIO_new_mem_buf(file->bytes, (int)file->length);
}

/* True if there is a certificate in the file. */
static bool trust_all(X509_STORE *store, STACK_OF(X509_INFO) * found)
{
    bool is_any = false;

    for (int i = 0; i < sk_X509_INFO_num(found); i++) {
        X509 *certificate = sk_X509_INFO_value(found, i)->x509;

        if (certificate && !X509_STORE_add_cert(store, certificate))
            return false;
        is_any = is_any || certificate;
    }
    if (!is_any)
        ERR_raise(ERR_LIB_X509, X509_R_NO_CERTIFICATE_FOUND);
    return is_any;
}

static bool load_authorities(const struct dm_tls_file *file, OSSL_LIB_CTX *library, SSL_CTX *context)
{
    BIO *bytes = open_bytes(file);
    STACK_OF(X509_INFO) *found =
        bytes ? PEM_X509_INFO_read_bio_ex(bytes, NULL, dm_tls_refuse_passphrase, NULL, library, NULL) : NULL;
    bool is_good = found && trust_all(SSL_CTX_get_cert_store(context), found);

    sk_X509_INFO_pop_free(found, X509_INFO_free);
    BIO_free(bytes);
    return is_good;
}

static bool load_trust(const struct dm_tls_files *files, OSSL_LIB_CTX *library, SSL_CTX *context, char *ret_reason)
{
    const struct dm_tls_file *cacert = &files->cacert;
    bool is_good;

    if (!files->is_verified || (!cacert->path && SSL_CTX_set_default_verify_paths(context)))
        return true;
    if (!cacert->path) {
        snprintf(ret_reason, DM_REASON_ROOM, "the certificates that this system trusts cannot be read: add cacert");
        return false;
    }
    is_good =
        cacert->bytes ? load_authorities(cacert, library, context) : SSL_CTX_load_verify_dir(context, cacert->path);
    return is_good || complain_of_bytes("cacert", cacert->path, ret_reason);
}

/* The issuers behind the client's own certificate, up to the end of the file. */
static bool load_issuers(BIO *bytes, OSSL_LIB_CTX *library, SSL_CTX *context)
{
    X509 *issuer = X509_new_ex(library, NULL);

    while (issuer && PEM_read_bio_X509(bytes, &issuer, dm_tls_refuse_passphrase, NULL)) {
        if (!SSL_CTX_add0_chain_cert(context, issuer)) {
            X509_free(issuer);
            return false;
        }
        issuer = X509_new_ex(library, NULL);
    }
    X509_free(issuer);
    if (ERR_GET_REASON(ERR_peek_last_error()) != PEM_R_NO_START_LINE)
        return false;
    ERR_clear_error();
    return true;
}

static bool load_chain(const struct dm_tls_file *file, OSSL_LIB_CTX *library, SSL_CTX *context)
{
    BIO *bytes = open_bytes(file);
    X509 *own = bytes ? X509_new_ex(library, NULL) : NULL;
    bool is_good = own && PEM_read_bio_X509_AUX(bytes, &own, dm_tls_refuse_passphrase, NULL) &&
                   SSL_CTX_use_certificate(context, own) && load_issuers(bytes, library, context);

    X509_free(own);
    BIO_free(bytes);
    return is_good;
}

/* OpenSSL compares the key with the certificate. */
static bool load_key(const struct dm_tls_file *file, OSSL_LIB_CTX *library, SSL_CTX *context)
{
    BIO *bytes = open_bytes(file);
    EVP_PKEY *key =
        bytes ? PEM_read_bio_PrivateKey_ex(bytes, NULL, dm_tls_refuse_passphrase, NULL, library, NULL) : NULL;
    bool is_good = key && SSL_CTX_use_PrivateKey(context, key);

    EVP_PKEY_free(key);
    BIO_free(bytes);
    return is_good;
}

bool dm_tls_files_load(const struct dm_tls_files *files, OSSL_LIB_CTX *library, SSL_CTX *context,
                       char ret_reason[DM_REASON_ROOM])
{
    const struct dm_tls_file *key = files->key.path ? &files->key : &files->cert;

    if (!load_trust(files, library, context, ret_reason))
        return false;
    if (!files->cert.path)
        return true;
    if (!load_chain(&files->cert, library, context))
        return complain_of_bytes("cert", files->cert.path, ret_reason);
    return load_key(key, library, context) || complain_of_bytes("key", key->path, ret_reason);
}
