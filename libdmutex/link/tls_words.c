/* SPDX-License-Identifier: BSD-2-Clause */
#include "link/tls_words.h"

#include <arpa/inet.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#define NAMES_ROOM 160
#define NAME_ROOM 80
#define TIME_ROOM 32

/* ---- facts of a certificate -------------------------------------------------------------- */

/*
 * Appends a name after a comma.  A full list ends with "...", and so does a first name that is too long.  A NUL would
 * end the name for us, but not for whoever made the certificate.
 */
static void append(char *names, const char *name, size_t length)
{
    static const char more[] = ", ...";
    size_t used = strlen(names), room = NAMES_ROOM - 2 * sizeof more;

    if (used + length > room && used > 0) {
        if (used < sizeof more || strcmp(names + used - sizeof more + 1, more) != 0)
            snprintf(names + used, NAMES_ROOM - used, "%s", more);
        return;
    }
    if (used > 0)
        used += (size_t)snprintf(names + used, NAMES_ROOM - used, ", ");
    for (size_t i = 0; i < length && i < room; i++)
        names[used++] = name[i] ? name[i] : '?';
    snprintf(names + used, NAMES_ROOM - used, "%s", length > room ? "..." : "");
}

static void append_ip(char *names, const ASN1_OCTET_STRING *ip)
{
    char text[INET6_ADDRSTRLEN];
    int family = ASN1_STRING_length(ip) == 4 ? AF_INET : AF_INET6;

    if ((family == AF_INET || ASN1_STRING_length(ip) == 16) &&
        inet_ntop(family, ASN1_STRING_get0_data(ip), text, sizeof text))
        append(names, text, strlen(text));
}

static void append_alternative(char *names, const GENERAL_NAME *name)
{
    if (name->type == GEN_DNS)
        append(names, (const char *)ASN1_STRING_get0_data(name->d.dNSName),
               (size_t)ASN1_STRING_length(name->d.dNSName));
    else if (name->type == GEN_IPADD)
        append_ip(names, name->d.iPAddress);
}

/* The common name, else the organization, else "".  May contain any byte: the log and the error sentences clean it. */
static void name_of(X509_NAME *subject, char name[NAME_ROOM])
{
    name[0] = '\0';
    if (subject && X509_NAME_get_text_by_NID(subject, NID_commonName, name, NAME_ROOM) < 0)
        X509_NAME_get_text_by_NID(subject, NID_organizationName, name, NAME_ROOM);
}

/* As OpenSSL does: the common name counts only if there is no alternative name. */
static void names_of(X509 *certificate, char names[NAMES_ROOM])
{
    GENERAL_NAMES *alternatives = X509_get_ext_d2i(certificate, NID_subject_alt_name, NULL, NULL);
    char name[NAME_ROOM];

    names[0] = '\0';
    for (int i = 0; i < sk_GENERAL_NAME_num(alternatives); i++)
        append_alternative(names, sk_GENERAL_NAME_value(alternatives, i));
    GENERAL_NAMES_free(alternatives);
    if (names[0])
        return;
    name_of(X509_get_subject_name(certificate), name);
    snprintf(names, NAMES_ROOM, "%s", name[0] ? name : "nothing");
}

static void write_time(const ASN1_TIME *time, char text[TIME_ROOM])
{
    struct tm parts;

    if (!ASN1_TIME_to_tm(time, &parts) || !strftime(text, TIME_ROOM, "%Y-%m-%d %H:%M UTC", &parts))
        snprintf(text, TIME_ROOM, "an unreadable time");
}

/* Writes "the server's certificate", or describes one further up the chain. */
static void describe(X509 *certificate, int depth, char text[NAME_ROOM + 32])
{
    char name[NAME_ROOM];

    name_of(X509_get_subject_name(certificate), name);
    if (depth == 0)
        snprintf(text, NAME_ROOM + 32, "the server's certificate");
    else
        snprintf(text, NAME_ROOM + 32, "the certificate of the issuer \"%s\"", name);
}

/* ---- the server's certificate ------------------------------------------------------------ */

static void explain_name(X509 *certificate, const char *wanted, char *ret_reason)
{
    char names[NAMES_ROOM];

    if (X509_check_host(certificate, wanted, 0, 0, NULL) == 1) {
        snprintf(ret_reason, DM_REASON_ROOM,
                 "the server's certificate has %.80s as a name, and not as an IP address: give it the alternative name "
                 "IP:%.80s",
                 wanted, wanted);
        return;
    }
    names_of(certificate, names);
    snprintf(ret_reason, DM_REASON_ROOM,
             "the server's certificate is for %s and not for %.80s: use one of its names as host or as servername",
             names, wanted);
}

/* True for a certificate that this side trusts by its own files. */
static bool is_trusted(X509_STORE_CTX *store, int depth)
{
    return depth > 0 && depth >= X509_STORE_CTX_get_num_untrusted(store);
}

static void explain_time(X509 *certificate, int depth, bool is_over, bool is_ours, char *ret_reason)
{
    char whose[NAME_ROOM + 32], when[TIME_ROOM];

    describe(certificate, depth, whose);
    write_time(is_over ? X509_get0_notAfter(certificate) : X509_get0_notBefore(certificate), when);
    if (is_over && is_ours)
        snprintf(ret_reason, DM_REASON_ROOM, "%s, which this side trusts, expired at %s: name its new one by cacert",
                 whose, when);
    else if (is_over)
        snprintf(ret_reason, DM_REASON_ROOM, "%s expired at %s: give the server a new one", whose, when);
    else
        snprintf(ret_reason, DM_REASON_ROOM, "%s is valid from %s on: look at this host's clock", whose, when);
}

static bool is_folder(const char *path)
{
    struct stat status;

    return path && stat(path, &status) == 0 && S_ISDIR(status.st_mode);
}

static void explain_issuer(X509 *certificate, const char *cacert, char *ret_reason)
{
    char name[NAME_ROOM];

    name_of(X509_get_issuer_name(certificate), name);
    if (is_folder(cacert))
        snprintf(ret_reason, DM_REASON_ROOM,
                 "the server's certificate comes from \"%s\", which the folder cacert \"%.80s\" does not have: put "
                 "the issuer's certificate there, and run openssl rehash",
                 name, cacert);
    else if (cacert)
        snprintf(ret_reason, DM_REASON_ROOM,
                 "the server's certificate comes from \"%s\", which cacert \"%.80s\" does not have: name the issuer's "
                 "certificate by cacert",
                 name, cacert);
    else
        snprintf(ret_reason, DM_REASON_ROOM,
                 "the server's certificate comes from \"%s\", which this system does not trust: name the issuer's "
                 "certificate by cacert",
                 name);
}

/* An authority that was made again has a new key under the old name. */
static void explain_signature(X509 *certificate, int depth, char *ret_reason)
{
    char whose[NAME_ROOM + 32], name[NAME_ROOM];

    describe(certificate, depth, whose);
    name_of(X509_get_issuer_name(certificate), name);
    snprintf(ret_reason, DM_REASON_ROOM,
             "%s comes from another \"%s\" than the one that is trusted here: name the issuer's present certificate by "
             "cacert",
             whose, name);
}

/* For a certificate that is itself bad: its key too short, not for servers, or beyond its issuer's rights. */
static void explain_refusal(X509 *certificate, int depth, const char *why, char *ret_reason)
{
    char whose[NAME_ROOM + 32];

    describe(certificate, depth, whose);
    snprintf(ret_reason, DM_REASON_ROOM, "%s is refused: %s; let its authority issue another one", whose, why);
}

void dm_tls_explain_certificate(X509_STORE_CTX *store, const char *name, const char *cacert,
                                char ret_reason[DM_REASON_ROOM])
{
    X509 *certificate = X509_STORE_CTX_get_current_cert(store);
    int error = X509_STORE_CTX_get_error(store), depth = X509_STORE_CTX_get_error_depth(store);

    if (!certificate) {
        snprintf(ret_reason, DM_REASON_ROOM, "the server's certificate is refused: %s",
                 X509_verify_cert_error_string(error));
        return;
    }
    switch (error) {
    case X509_V_ERR_HOSTNAME_MISMATCH:
    case X509_V_ERR_IP_ADDRESS_MISMATCH:
        explain_name(certificate, name ? name : "this server", ret_reason);
        return;
    case X509_V_ERR_CERT_HAS_EXPIRED:
    case X509_V_ERR_CERT_NOT_YET_VALID:
        explain_time(certificate, depth, error == X509_V_ERR_CERT_HAS_EXPIRED, is_trusted(store, depth), ret_reason);
        return;
    case X509_V_ERR_CERT_SIGNATURE_FAILURE:
        explain_signature(certificate, depth, ret_reason);
        return;
    case X509_V_ERR_DEPTH_ZERO_SELF_SIGNED_CERT:
    case X509_V_ERR_SELF_SIGNED_CERT_IN_CHAIN:
    case X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT:
    case X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT_LOCALLY:
    case X509_V_ERR_UNABLE_TO_VERIFY_LEAF_SIGNATURE:
        explain_issuer(certificate, cacert, ret_reason);
        return;
    default:
        explain_refusal(certificate, depth, X509_verify_cert_error_string(error), ret_reason);
        return;
    }
}

/* ---- other failures ---------------------------------------------------------------------- */

/* TLS's name of an alert, without the version that introduced it; NULL: the error is not an alert from the server. */
static const char *alert_of(unsigned long error)
{
    int alert = ERR_GET_REASON(error) - SSL_AD_REASON_OFFSET;

    return ERR_GET_LIB(error) == ERR_LIB_SSL && alert >= 0 && alert <= UINT8_MAX ? SSL_alert_desc_string_long(alert)
                                                                                 : NULL;
}

/* Explains the server's alerts: about our certificate, about the version, and all others. */
static bool explain_alert(const struct dm_tls_facts *facts, char *ret_reason)
{
    const char *alert = alert_of(facts->error);

    switch (ERR_GET_REASON(facts->error)) {
    case SSL_R_TLSV1_ALERT_PROTOCOL_VERSION:
    case SSL_R_UNSUPPORTED_PROTOCOL:
        snprintf(
            ret_reason, DM_REASON_ROOM,
            "the server has no TLS 1.2 or later, or none that this system's configuration of OpenSSL allows: let it "
            "offer tls-protocols \"TLSv1.2 TLSv1.3\"");
        return true;
    case SSL_R_NO_PROTOCOLS_AVAILABLE:
        snprintf(
            ret_reason, DM_REASON_ROOM,
            "this system's configuration of OpenSSL allows no TLS 1.2 or later: look at MaxProtocol in openssl.cnf");
        return true;
    case SSL_R_TLSV1_ALERT_UNKNOWN_CA:
    case SSL_R_SSLV3_ALERT_BAD_CERTIFICATE:
    case SSL_R_SSLV3_ALERT_CERTIFICATE_EXPIRED:
    case SSL_R_SSLV3_ALERT_CERTIFICATE_REVOKED:
    case SSL_R_SSLV3_ALERT_CERTIFICATE_UNKNOWN:
    case SSL_R_SSLV3_ALERT_UNSUPPORTED_CERTIFICATE:
        if (!facts->cert)
            break;
        snprintf(ret_reason, DM_REASON_ROOM, "the server refuses the client certificate of cert \"%.100s\": %s",
                 facts->cert, alert);
        return true;
    default:
        break;
    }
    if (alert)
        snprintf(ret_reason, DM_REASON_ROOM, "the server has ended TLS with the alert \"%s\": look at the server's log",
                 alert);
    return alert;
}

/*
 * The most certain cause first: a missing certificate can show as many errors, even as a silent end of the connection.
 */
void dm_tls_explain_failure(const struct dm_tls_facts *facts, char ret_reason[DM_REASON_ROOM])
{
    const char *text = facts->error ? ERR_reason_error_string(facts->error) : NULL;

    if (facts->is_other)
        snprintf(ret_reason, DM_REASON_ROOM,
                 "the server does not speak TLS at this address: name its tls-port, or write redis:// without tls");
    else if (facts->lacks_cert)
        snprintf(ret_reason, DM_REASON_ROOM, "the server wants a certificate of this client: add cert and key");
    else if (facts->error && explain_alert(facts, ret_reason))
        return;
    else if (facts->socket_error)
        snprintf(ret_reason, DM_REASON_ROOM, "broke in the TLS handshake (%s)", dm_text_error(facts->socket_error));
    else if (facts->error)
        snprintf(ret_reason, DM_REASON_ROOM, "TLS failed: %s", text ? text : "for an unknown reason");
    else if (facts->is_silent)
        snprintf(ret_reason, DM_REASON_ROOM, "was closed by the server in the TLS handshake: does it speak TLS there?");
    else
        snprintf(ret_reason, DM_REASON_ROOM, "was closed by the server in the TLS handshake");
}

void dm_tls_explain_delay(const struct dm_tls_facts *facts, char ret_reason[DM_REASON_ROOM])
{
    snprintf(ret_reason, DM_REASON_ROOM, "the TLS handshake did not end within connect_timeout%s",
             facts->is_silent ? ": the server says nothing; does it speak TLS at this address?" : "");
}
