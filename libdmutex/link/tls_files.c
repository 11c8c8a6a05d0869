/* SPDX-License-Identifier: BSD-2-Clause */
#include "link/tls_files.h"

#include <dirent.h>
#include <errno.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/file.h"

/*
 * All authorities of a system are some 200 KiB.  Each connection reads them again, in a third of a millisecond, and
 * gives them to OpenSSL, whose time grows with the square of their number.
 */
#define FILE_BYTES_MOST ((size_t)1024 * 1024)

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
    return file->bytes ||
           complain(option, file->path,
                    errno == EFBIG ? "it is longer than 1 MiB: leave what your servers need" : dm_file_reason(errno),
                    ret_reason);
}

static bool is_folder(const char *path)
{
    struct stat status;

    return path && stat(path, &status) == 0 && S_ISDIR(status.st_mode);
}

/* As openssl-rehash names certificates. */
static bool is_hash(const char *name)
{
    return strspn(name, "0123456789abcdef") == 8 && name[8] == '.';
}

/*
 * OpenSSL searches a folder itself, for the one issuer that it needs, and would wait for a FIFO there.  It does not
 * wait for a folder or a dangling link.
 */
static bool check_folder(const char *path, char *ret_reason)
{
    DIR *folder = opendir(path);
    const struct dirent *entry;
    struct stat status;
    bool is_good = true;

    if (!folder)
        return complain("cacert", path, dm_text_error(errno), ret_reason);
    while (is_good && (entry = readdir(folder))) {
        is_good = !is_hash(entry->d_name) || fstatat(dirfd(folder), entry->d_name, &status, 0) < 0 ||
                  S_ISREG(status.st_mode) || S_ISDIR(status.st_mode);
        if (!is_good)
            snprintf(ret_reason, DM_REASON_ROOM, "cacert \"%.120s\" cannot be used: %.20s there is not a regular file",
                     path, entry->d_name);
    }
    closedir(folder);
    return is_good;
}

/* OpenSSL opens the file that its variable names, and would wait for a FIFO.  /dev/null is a usual value. */
static bool check_variable(const char *name, char *ret_reason)
{
    const char *path = secure_getenv(name);
    struct stat status;

    if (!path || stat(path, &status) < 0 || !S_ISFIFO(status.st_mode))
        return true;
    return complain(name, path, "it is a FIFO", ret_reason);
}

/*
 * The system has some 140 authorities, which take 60 ms.  So we read its file instead of OpenSSL, which would do it in
 * one turn.  A file that is missing or unreadable is no failure, as with OpenSSL: there is a folder, too.
 */
static bool read_system(struct dm_tls_file *system, char *ret_reason)
{
    const char *variable = X509_get_default_cert_file_env(), *path = secure_getenv(variable);

    if (!check_variable(variable, ret_reason))
        return false;
    system->path = path ? path : X509_get_default_cert_file();
    system->bytes = dm_file_read(system->path, FILE_BYTES_MOST, &system->length);
    if (system->bytes || (errno != EFBIG && errno != EPERM))
        return true;
    return complain(path ? variable : "the system's file", system->path,
                    errno == EFBIG ? "it is longer than 1 MiB: name your authority by cacert" : dm_file_reason(errno),
                    ret_reason);
}

static bool read_trust(struct dm_tls_files *files, char *ret_reason)
{
    const char *path = files->cacert.path;

    if (!files->is_verified)
        return true;
    if (!path)
        return read_system(&files->system, ret_reason);
    if (!is_folder(path))
        return read_file("cacert", &files->cacert, ret_reason);
    if (!dm_file_is_safe(path))
        return complain("cacert", path, dm_file_reason(errno), ret_reason);
    return check_folder(path, ret_reason);
}

bool dm_tls_files_read(struct dm_tls_files *files, char ret_reason[DM_REASON_ROOM])
{
    return check_variable("OPENSSL_CONF", ret_reason) && read_trust(files, ret_reason) &&
           read_file("cert", &files->cert, ret_reason) && read_file("key", &files->key, ret_reason);
}

static void wipe(struct dm_tls_file *file)
{
    if (file->bytes)
        explicit_bzero(file->bytes, file->length);
    free(file->bytes);
    file->bytes = NULL;
}

/* The key may be in the certificate's file. */
void dm_tls_files_free(struct dm_tls_files *files)
{
    wipe(&files->cacert);
    wipe(&files->cert);
    wipe(&files->key);
    wipe(&files->system);
}

/* ---- OpenSSL ----------------------------------------------------------------------------- */

/* Names the usual mistakes; NULL: another one.  A file that is being written is cut off. */
static const char *mistake_of(unsigned long error)
{
    int place = ERR_GET_LIB(error);

    switch (error) {
    case ERR_PACK(ERR_LIB_PEM, 0, PEM_R_NO_START_LINE):
        return "no certificate in PEM is in it";
    case ERR_PACK(ERR_LIB_PEM, 0, PEM_R_BAD_PASSWORD_READ):
        return "it is encrypted, and a key has no passphrase here";
    case ERR_PACK(ERR_LIB_OSSL_DECODER, 0, ERR_R_UNSUPPORTED):
        return "no private key in PEM is in it";
    case ERR_PACK(ERR_LIB_X509, 0, X509_R_KEY_VALUES_MISMATCH):
    case ERR_PACK(ERR_LIB_X509, 0, X509_R_KEY_TYPE_MISMATCH):
        return "it is not the key of the certificate";
    default:
        return place == ERR_LIB_PEM || place == ERR_LIB_ASN1 ? "what is in it is cut off, or damaged" : NULL;
    }
}

/* Gives the reason for OpenSSL's last failure. */
static bool complain_of_bytes(const char *option, const char *path, char *ret_reason)
{
    unsigned long error = ERR_peek_last_error();
    const char *mistake = mistake_of(error), *text = mistake ? mistake : ERR_reason_error_string(error);

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

/* True at the end of the file; any other error is a failure. */
static bool is_end(void)
{
    if (ERR_GET_REASON(ERR_peek_last_error()) != PEM_R_NO_START_LINE)
        return false;
    ERR_clear_error();
    return true;
}

/* Other contents of the file, such as keys, are passed over. */
static bool load_authorities(const struct dm_tls_file *file, OSSL_LIB_CTX *library, SSL_CTX *context,
                             void (*give_way)(void))
{
    X509_STORE *store = SSL_CTX_get_cert_store(context);
    BIO *bytes = open_bytes(file);
    X509 *authority = bytes ? X509_new_ex(library, NULL) : NULL;
    bool is_any = false, is_good = true;

    while (is_good && authority && PEM_read_bio_X509_AUX(bytes, &authority, dm_tls_refuse_passphrase, NULL)) {
        is_good = X509_STORE_add_cert(store, authority);
        is_any = true;
        X509_free(authority);
        give_way();
        authority = X509_new_ex(library, NULL);
    }
    is_good = is_good && authority && is_any && is_end(); /* without any, the error says so */
    X509_free(authority);
    BIO_free(bytes);
    return is_good;
}

/* What is wrong with the file is no failure, as with OpenSSL.  In the folder it opens only the issuer that it needs. */
static bool load_system(const struct dm_tls_file *system, OSSL_LIB_CTX *library, SSL_CTX *context,
                        void (*give_way)(void), char *ret_reason)
{
    if (system->bytes && !load_authorities(system, library, context, give_way))
        ERR_clear_error();
    if (SSL_CTX_set_default_verify_dir(context) && SSL_CTX_set_default_verify_store(context))
        return true;
    snprintf(ret_reason, DM_REASON_ROOM, "the certificates that this system trusts cannot be read: add cacert");
    return false;
}

static bool load_trust(const struct dm_tls_files *files, OSSL_LIB_CTX *library, SSL_CTX *context,
                       void (*give_way)(void), char *ret_reason)
{
    const struct dm_tls_file *cacert = &files->cacert;
    bool is_good;

    if (!files->is_verified)
        return true;
    if (!cacert->path)
        return load_system(&files->system, library, context, give_way, ret_reason);
    is_good = cacert->bytes ? load_authorities(cacert, library, context, give_way)
                            : SSL_CTX_load_verify_dir(context, cacert->path);
    return is_good || complain_of_bytes("cacert", cacert->path, ret_reason);
}

/* Loads the issuers that follow the client's certificate, to the end of the file. */
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
    return is_end();
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

/* OpenSSL checks that the key fits the certificate. */
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
                       void (*give_way)(void), char ret_reason[DM_REASON_ROOM])
{
    const struct dm_tls_file *key = files->key.path ? &files->key : &files->cert;

    if (!load_trust(files, library, context, give_way, ret_reason))
        return false;
    if (!files->cert.path)
        return true;
    if (!load_chain(&files->cert, library, context))
        return complain_of_bytes("cert", files->cert.path, ret_reason);
    return load_key(key, library, context) || complain_of_bytes("key", key->path, ret_reason);
}
