/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * TLS for a user of rediss:// and tls=yes, and the sentence about each mistake, which says what to do.
 *
 * This program executes itself with --openssl SCENE URL: a process that also uses OpenSSL itself.
 */
#include <dlfcn.h>
#include <netdb.h>
#include <openssl/err.h>
#include <openssl/rand.h>
#include <openssl/ssl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../lib/testlib.h"
#include "../lib/tls.h"

#define LONG_LEASE 60000 /* longer than any answer is awaited */
#define TWO_ADDRESSES "two.test.example"

/* A URL of the server with TLS: `begin` is the URL up to the port, `options` follow the usual options. */
static const char *url_of(const struct tls_server *tls, const char *begin, const char *options)
{
    static char url[512];

    snprintf(url, sizeof url, "%s:%d?grace=off&command_timeout=1000%s", begin, tls->port, options);
    return url;
}

/* "&NAME=/path/of/file", as a part of a URL. */
static const char *file_option(const char *name, const char *file)
{
    static char texts[4][96];
    static int last;

    last = (last + 1) % 4;
    snprintf(texts[last], sizeof texts[last], "&%s=%s/%s", name, tls_folder, file);
    return texts[last];
}

static const char *trusting(void)
{
    return file_option("cacert", "ca.crt");
}

/* True once no server can be reached, and the sentence no longer mentions the previous one. */
static bool says_refused(struct actor *a)
{
    actor_do(a, "ENOLCK", "trylock tls/refused");
    actor_send(a, "strerror");
    return strstr(actor_answer(a), "Connection refused");
}

static void assert_works(const char *url)
{
    struct actor *a = actor_start_at(url);

    actor_do(a, "0", "trylock tls/works");
    actor_do(a, "0", "unlock tls/works");
    actor_end(a);
}

static void assert_refused(const char *url, const char *words)
{
    struct actor *a = actor_start_at(url);

    actor_do(a, "ENOLCK", "trylock tls/refused");
    actor_assert_words(a, words);
    actor_end(a);
}

/* ---- success ----------------------------------------------------------------------------- */

/* An acquisition each; a handoff; a wait on a condition, and its signal. */
static void use_locks(const char *url)
{
    struct actor *a = actor_start_at(url), *b = actor_start_at(url);

    actor_do(a, "0", "lock tls/x");
    actor_send(b, "lock tls/x");
    wait_until(actor_value(a, "waiters tls/x") == 1);
    actor_do(a, "0", "unlock tls/x");
    actor_expect(b, "0");
    actor_send(a, "lock tls/x");
    actor_send(b, "wait tls/c tls/x");
    actor_expect(a, "0");
    actor_do(a, "0", "signal tls/c");
    actor_do(a, "0", "unlock tls/x");
    actor_expect(b, "0");
    actor_do(b, "0", "unlock tls/x");
    actor_end(a);
    actor_end(b);
}

/* Each server that is installed; the tests below use the usual one. */
static void test_locks_and_conditions_work_when_the_server_has_tls(void **state)
{
    static const char *const programs[] = { "redis-server", "valkey-server" };
    const char *usual = getenv("DMUTEX_TEST_SERVER");
    char *kept = usual ? strdup(usual) : NULL;
    int used = 0;

    (void)state;
    for (size_t i = 0; i < 2; i++) {
        struct tls_server *tls;

        command_run("command -v %s", programs[i]);
        if (ran.status != 0)
            continue;
        setenv("DMUTEX_TEST_SERVER", programs[i], 1);
        tls = tls_server_start("server", "no", NULL);
        use_locks(tls->url);
        tls_server_end(tls);
        used++;
    }
    if (kept)
        setenv("DMUTEX_TEST_SERVER", kept, 1);
    free(kept);
    assert_true(used > 0);
}

/* The certificate has the host as a name, as an address, or as servername says; also over a unix socket. */
static void test_the_name_is_right_when_the_certificate_has_it(void **state)
{
    struct tls_server *tls = tls_server_start("server", "no", NULL);
    struct proxy *proxy = proxy_start_raw(tls->server, tls->port);
    char url[400];

    (void)state;
    assert_works(url_of(tls, "rediss://127.0.0.1", trusting()));
    assert_works(url_of(tls, "rediss://localhost", trusting()));
    snprintf(url, sizeof url, "&tls=yes&servername=any.test.example%s", trusting());
    assert_works(url_of(tls, "redis://127.0.0.1", url));
    snprintf(url, sizeof url, "&tls=yes&servername=any.test.example.%s", trusting()); /* the whole name */
    assert_works(url_of(tls, "redis://127.0.0.1", url));
    snprintf(url, sizeof url, "%s&tls=yes&servername=127.0.0.1%s", proxy_url(proxy), trusting());
    assert_works(url);
    proxy_end(proxy);
    tls_server_end(tls);
}

/* A folder of authorities has one file for each, by the hash of the subject. */
static void test_an_authority_is_found_when_cacert_is_a_folder(void **state)
{
    struct tls_server *tls = tls_server_start("server", "no", NULL);

    (void)state;
    assert_works(url_of(tls, "rediss://127.0.0.1", file_option("cacert", "hashed")));
    tls_server_end(tls);
}

/*
 * Threads of 16 KiB have too little room for OpenSSL: another thread sends and reads for them, and no call is deeper
 * than over plain TCP.  The calls are those of conformance/test_stacks.
 */
static void test_calls_have_room_when_the_stack_is_the_smallest(void **state)
{
    static const char *const scenes[][2] = { { "calls", " ETIMEDOUT dcond_timedwait" },
                                             { "ends", " EOWNERDEAD dmutex_lock(&robust)" } };
    struct tls_server *tls = tls_server_start("server", "no", NULL);
    char path[4096];

    (void)state;
    test_build_path(path, sizeof path, "tests/conformance/test_stacks");
    for (int i = 0; i < 2; i++) {
        command_run("DMUTEX_URL='%s' exec %s --stacks %s ''", tls->url, path, scenes[i][0]);
        assert_status(0);
        assert_output(scenes[i][1]);
    }
    tls_server_end(tls);
}

/* ---- refusals ---------------------------------------------------------------------------- */

/* Replaces libc's function, for the library, too: a host with two addresses, the first of which nobody listens on. */
int getaddrinfo(const char *name, const char *service, const struct addrinfo *hints, struct addrinfo **ret_found)
{
    int (*look_up)(const char *, const char *, const struct addrinfo *, struct addrinfo **);
    int error;

    *(void **)&look_up = dlsym(RTLD_NEXT, "getaddrinfo");
    if (!name || strcmp(name, TWO_ADDRESSES) != 0 || hints->ai_flags & AI_NUMERICHOST)
        return look_up(name, service, hints, ret_found);
    error = look_up("127.0.0.2", service, hints, ret_found);
    return error ? error : look_up("127.0.0.1", service, hints, &(*ret_found)->ai_next);
}

/* The addresses are tried again and again; a refusal at one says less than the server that was reached at another. */
static void test_the_sentence_is_of_the_server_that_was_reached_when_another_address_is_refused(void **state)
{
    struct tls_server *tls = tls_server_start("named", "no", NULL);
    struct actor *a = actor_start_at(url_of(tls, "rediss://" TWO_ADDRESSES, trusting()));

    (void)state;
    for (int i = 0; i < 6; i++) {
        actor_do(a, "ENOLCK", "trylock tls/refused");
        actor_assert_words(a, "certificate is for redis.test.example and not for " TWO_ADDRESSES);
    }
    tls_server_end(tls);
    wait_until(says_refused(a));
    actor_end(a);
}

/* The certificate is for another name: the sentence lists the names. */
static void test_the_sentence_lists_the_names_when_the_name_is_wrong(void **state)
{
    struct tls_server *tls = tls_server_start("named", "no", NULL);
    char options[200];

    (void)state;
    assert_refused(url_of(tls, "rediss://127.0.0.1", trusting()),
                   "certificate is for redis.test.example and not for 127.0.0.1");
    assert_refused(url_of(tls, "rediss://localhost", trusting()),
                   "certificate is for redis.test.example and not for localhost");
    snprintf(options, sizeof options, "%s&servername=redis.test.example", trusting());
    assert_works(url_of(tls, "rediss://localhost", options));
    tls_server_end(tls);
}

/* An address that the certificate has as a name is not an address; a long name is cut. */
static void test_the_sentence_says_what_is_wrong_when_the_name_looks_right(void **state)
{
    struct tls_server *tls = tls_server_start("as-name", "no", NULL);

    (void)state;
    assert_refused(url_of(tls, "rediss://127.0.0.1", trusting()),
                   "has 127.0.0.1 as a name, and not as an IP address: give it the alternative name IP:127.0.0.1");
    tls_server_end(tls);
    tls = tls_server_start("long", "no", NULL);
    assert_refused(url_of(tls, "rediss://localhost", trusting()), "certificate is for a-label-of-a-name-");
    assert_refused(url_of(tls, "rediss://localhost", trusting()), "..., ... and not for localhost");
    tls_server_end(tls);
}

/* The certificate's own authority has made it for clients. */
static void test_the_sentence_says_what_to_do_when_the_certificate_is_not_right(void **state)
{
    struct tls_server *tls = tls_server_start("purpose", "no", NULL);

    (void)state;
    assert_refused(url_of(tls, "rediss://127.0.0.1", trusting()),
                   "certificate is refused: unsuitable certificate purpose; let its authority issue another one");
    tls_server_end(tls);
}

static void test_the_sentence_says_since_when_the_certificate_is_expired(void **state)
{
    struct tls_server *tls = tls_server_start("expired", "no", NULL);
    time_t now = time(NULL) - 3600;
    struct tm then;
    char words[64];

    (void)state;
    gmtime_r(&now, &then);
    strftime(words, sizeof words, "the server's certificate expired at %Y-", &then);
    assert_refused(url_of(tls, "rediss://127.0.0.1", trusting()), words);
    tls_server_end(tls);
}

/* An authority that the system does not know, that cacert does not have, and a file that is no certificate. */
static void test_the_sentence_names_cacert_when_the_authority_is_unknown(void **state)
{
    struct tls_server *tls = tls_server_start("server", "no", NULL);

    (void)state;
    assert_refused(url_of(tls, "rediss://127.0.0.1", ""),
                   "comes from \"ca\", which this system does not trust: name the issuer's certificate by cacert");
    assert_refused(url_of(tls, "rediss://127.0.0.1", file_option("cacert", "other.crt")),
                   "comes from \"ca\", which cacert ");
    assert_refused(url_of(tls, "rediss://127.0.0.1", file_option("cacert", "ca.key")),
                   "cannot be used: no certificate in PEM is in it");
    tls_server_end(tls);
}

/* A renewed authority, by its previous certificate; one that was made again, with another key; and a folder. */
static void test_the_sentence_names_cacert_when_the_authority_is_another_than_now(void **state)
{
    struct tls_server *tls = tls_server_start("server", "no", NULL);

    (void)state;
    assert_refused(url_of(tls, "rediss://127.0.0.1", file_option("cacert", "old.crt")),
                   "which this side trusts, expired");
    assert_refused(url_of(tls, "rediss://127.0.0.1", file_option("cacert", "namesake.crt")),
                   "comes from another \"ca\" than the one that is trusted here");
    command_run("mkdir %s/bare && cp %s/ca.crt %s/bare/ca.crt", tls_folder, tls_folder, tls_folder);
    assert_refused(url_of(tls, "rediss://127.0.0.1", file_option("cacert", "bare")), "run openssl rehash");
    tls_server_end(tls);
}

/* A file that is just being written; and one that takes long to read, at each connection. */
static void test_the_sentence_says_so_when_cacert_is_cut_off_or_too_long(void **state)
{
    struct tls_server *tls = tls_server_start("server", "no", NULL);
    char variable[600], setting[96];
    struct actor *a;

    (void)state;
    command_run("cd %s && { cat ca.crt; head -c 200 other.crt; } > cut.crt", tls_folder);
    assert_refused(url_of(tls, "rediss://127.0.0.1", file_option("cacert", "cut.crt")),
                   "cut.crt\" cannot be used: what is in it is cut off, or damaged");
    command_run("cd %s && cp ca.crt huge.crt && truncate -s 1048577 huge.crt", tls_folder);
    assert_refused(url_of(tls, "rediss://127.0.0.1", file_option("cacert", "huge.crt")),
                   "huge.crt\" cannot be used: it is longer than 1 MiB");
    snprintf(variable, sizeof variable, "DMUTEX_URL=%s", url_of(tls, "rediss://127.0.0.1", ""));
    snprintf(setting, sizeof setting, "SSL_CERT_FILE=%s/huge.crt", tls_folder);
    a = actor_start_with(NULL, variable, setting, NULL);
    actor_do(a, "ENOLCK", "trylock tls/refused");
    actor_assert_words(a, "huge.crt\" cannot be used: it is longer than 1 MiB");
    actor_end(a);
    tls_server_end(tls);
}

/* Without a certificate, with the right one, with another authority's, and with another certificate's key. */
static void test_the_sentence_names_cert_when_the_server_wants_one(void **state)
{
    struct tls_server *tls = tls_server_start("server", "yes", NULL);
    char options[400];

    (void)state;
    assert_refused(url_of(tls, "rediss://127.0.0.1", trusting()),
                   "the server wants a certificate of this client: add cert and key");
    snprintf(options, sizeof options, "%s%s%s", trusting(), file_option("cert", "client.crt"),
             file_option("key", "client.key"));
    assert_works(url_of(tls, "rediss://127.0.0.1", options));
    snprintf(options, sizeof options, "%s%s%s", trusting(), file_option("cert", "stranger.crt"),
             file_option("key", "stranger.key"));
    assert_refused(url_of(tls, "rediss://127.0.0.1", options), "refuses the client certificate of cert \"");
    snprintf(options, sizeof options, "%s%s%s", trusting(), file_option("cert", "client.crt"),
             file_option("key", "stranger.key"));
    assert_refused(url_of(tls, "rediss://127.0.0.1", options),
                   "stranger.key\" cannot be used: it is not the key of the certificate");
    snprintf(options, sizeof options, "%s%s", trusting(), file_option("cert", "client.crt"));
    assert_refused(url_of(tls, "rediss://127.0.0.1", options), "client.crt\" cannot be used: no private key in PEM");
    snprintf(options, sizeof options, "%s%s", trusting(), file_option("cert", "client.key"));
    assert_refused(url_of(tls, "rediss://127.0.0.1", options), "client.key\" cannot be used: no certificate in PEM");
    tls_server_end(tls);
}

/* The log says why a holder cannot reconnect: the first reason, the break, would not say that. */
static void test_the_log_says_why_when_a_holder_cannot_come_back(void **state)
{
    struct tls_server *tls = tls_server_start("server", "no", NULL);
    char variable[600], log[128];
    struct actor *a;

    (void)state;
    command_run("cp %s/ca.crt %s/turned.crt", tls_folder, tls_folder);
    snprintf(variable, sizeof variable, "DMUTEX_URL=%s",
             url_of(tls, "rediss://127.0.0.1", file_option("cacert", "turned.crt")));
    snprintf(log, sizeof log, "DMUTEX_LOG=warn:%s/log-of-turned", tls_folder);
    a = actor_start_with(NULL, variable, log, NULL);
    actor_do(a, "0", "lock tls/turned");
    command_run("cp %s/other.crt %s/turned.crt", tls_folder, tls_folder);
    assert_true(side_try(tls->server->side, "CLIENT KILL TYPE normal SKIPME yes"));
    wait_until((command_run("grep -c 'comes from .ca., which cacert ' %s/log-of-turned", tls_folder), ran.output[0]) ==
               '1');
    command_run("cp %s/ca.crt %s/turned.crt", tls_folder, tls_folder);
    actor_do(a, "0", "unlock tls/turned");
    actor_end(a);
    tls_server_end(tls);
}

/* A FIFO has no certificates: nothing waits for its writer, and neither does fork(). */
static void test_the_sentence_names_the_file_when_it_is_a_fifo(void **state)
{
    static const char sentence[] = "/fifo\" cannot be used: it is not a regular file";
    struct tls_server *tls = tls_server_start("server", "no", NULL);
    char path[64], options[400];
    struct actor *a;

    (void)state;
    snprintf(path, sizeof path, "%s/fifo", tls_folder);
    assert_return_code(mkfifo(path, 0600), errno);
    assert_refused(url_of(tls, "rediss://127.0.0.1", file_option("cacert", "fifo")), sentence);
    snprintf(options, sizeof options, "%s%s", trusting(), file_option("cert", "fifo"));
    assert_refused(url_of(tls, "rediss://127.0.0.1", options), sentence);
    snprintf(options, sizeof options, "%s%s%s", trusting(), file_option("cert", "client.crt"),
             file_option("key", "fifo"));
    assert_refused(url_of(tls, "rediss://127.0.0.1", options), sentence);
    a = actor_start_at(url_of(tls, "rediss://127.0.0.1", options));
    actor_do(a, "0", "start timedlock tls/fifo 300");
    actor_do(a, "here", "in-child say here");
    actor_do(a, "ETIMEDOUT", "join");
    actor_end(a);
    tls_server_end(tls);
}

/* OpenSSL would open the FIFO, which has the name of the authority that it looks for. */
static void test_the_sentence_names_the_file_when_a_folder_has_a_fifo(void **state)
{
    struct tls_server *tls = tls_server_start("server", "no", NULL);
    struct actor *a;

    (void)state;
    command_run("mkdir %s/fifos && mkfifo %s/fifos/$(ls %s/hashed)", tls_folder, tls_folder, tls_folder);
    assert_status(0);
    a = actor_start_at(url_of(tls, "rediss://127.0.0.1", file_option("cacert", "fifos")));
    actor_do(a, "ENOLCK", "trylock tls/fifo");
    actor_assert_words(a, ".0 there is not a regular file");
    actor_do(a, "here", "in-child say here");
    actor_end(a);
    tls_server_end(tls);
}

/* The variables of OpenSSL name files that it opens itself. */
static void test_the_sentence_names_the_variable_when_it_leads_to_a_fifo(void **state)
{
    static const char *const names[] = { "OPENSSL_CONF", "SSL_CERT_FILE" };
    struct tls_server *tls = tls_server_start("server", "no", NULL);
    char variable[600], path[64], setting[96], words[128];

    (void)state;
    snprintf(path, sizeof path, "%s/variable", tls_folder);
    assert_return_code(mkfifo(path, 0600), errno);
    snprintf(variable, sizeof variable, "DMUTEX_URL=%s", url_of(tls, "rediss://127.0.0.1", ""));
    for (int i = 0; i < 2; i++) {
        struct actor *a;

        snprintf(setting, sizeof setting, "%s=%s", names[i], path);
        snprintf(words, sizeof words, "%s \"%s\" cannot be used: it is a FIFO", names[i], path);
        a = actor_start_with(NULL, variable, setting, NULL);
        actor_do(a, "ENOLCK", "trylock tls/fifo");
        actor_assert_words(a, words);
        actor_do(a, "here", "in-child say here");
        actor_end(a);
    }
    tls_server_end(tls);
}

/* OpenSSL takes a name that begins with a dot for all names below, in any certificate. */
static void test_a_name_is_refused_when_it_begins_with_a_dot(void **state)
{
    struct tls_server *tls = tls_server_start("named", "no", NULL);
    char options[200];

    (void)state;
    snprintf(options, sizeof options, "%s&servername=.test.example", trusting());
    assert_refused(url_of(tls, "rediss://127.0.0.1", options), ".test.example begins with a dot");
    tls_server_end(tls);
}

/* The same by TLS 1.2, where the handshake itself fails. */
static void test_the_sentence_names_cert_when_tls_is_1_2(void **state)
{
    struct tls_server *tls = tls_server_start("server", "yes", "--tls-protocols", "TLSv1.2", NULL);
    char options[400];

    (void)state;
    assert_refused(url_of(tls, "rediss://127.0.0.1", trusting()),
                   "the server wants a certificate of this client: add cert and key");
    snprintf(options, sizeof options, "%s%s%s", trusting(), file_option("cert", "client.crt"),
             file_option("key", "client.key"));
    assert_works(url_of(tls, "rediss://127.0.0.1", options));
    tls_server_end(tls);
}

static void test_tls_1_1_is_refused_with_its_remedy(void **state)
{
    struct tls_server *tls =
        tls_server_start("server", "no", "--tls-protocols", "TLSv1.1", "--tls-ciphers", "DEFAULT@SECLEVEL=0", NULL);

    (void)state;
    assert_refused(url_of(tls, "rediss://127.0.0.1", trusting()), "the server has no TLS 1.2 or later");
    tls_server_end(tls);
}

/* The system's configuration of OpenSSL, as the library of the process finds it, has this line. */
static struct actor *start_configured(const char *url, const char *line)
{
    char variables[2][600];

    command_run("printf '%%s\\n' 'openssl_conf = a' '[a]' 'ssl_conf = b' '[b]' 'system_default = c' '[c]' '%s' "
                "> %s/openssl.cnf",
                line, tls_folder);
    snprintf(variables[0], sizeof variables[0], "OPENSSL_CONF=%s/openssl.cnf", tls_folder);
    snprintf(variables[1], sizeof variables[1], "DMUTEX_URL=%s", url);
    return actor_start_with(NULL, variables[0], variables[1], NULL);
}

/* A server that shows no certificate, and one that encrypts nothing, also where the system's configuration has both. */
static void test_a_bare_cipher_is_refused_when_the_system_allows_it(void **state)
{
    static const char *const bare[] = { "aNULL:@SECLEVEL=0", "eNULL:@SECLEVEL=0" };

    (void)state;
    for (int i = 0; i < 2; i++) {
        struct tls_server *tls =
            tls_server_start("server", "no", "--tls-protocols", "TLSv1.2", "--tls-ciphers", bare[i], NULL);
        struct actor *a =
            start_configured(url_of(tls, "rediss://127.0.0.1", trusting()), "CipherString = ALL:eNULL:@SECLEVEL=0");

        actor_do(a, "ENOLCK", "trylock tls/refused");
        actor_assert_words(a, "handshake failure");
        actor_end(a);
        tls_server_end(tls);
    }
}

/* The system may require a later version than the library does, and may allow none of the library's. */
static void test_the_versions_are_the_system_s_when_it_asks_for_more(void **state)
{
    static const char *const lines[][2] = {
        { "MinProtocol = TLSv1.3", "or none that this system's configuration of OpenSSL allows" },
        { "MaxProtocol = TLSv1.1", "this system's configuration of OpenSSL allows no TLS 1.2 or later" },
    };
    struct tls_server *tls = tls_server_start("server", "no", "--tls-protocols", "TLSv1.2", NULL);

    (void)state;
    for (int i = 0; i < 2; i++) {
        struct actor *a = start_configured(url_of(tls, "rediss://127.0.0.1", trusting()), lines[i][0]);

        actor_do(a, "ENOLCK", "trylock tls/refused");
        actor_assert_words(a, lines[i][1]);
        actor_end(a);
    }
    tls_server_end(tls);
}

/* A server without TLS that speaks first: its one client is the test. */
static void test_the_sentence_says_so_when_the_server_has_no_tls(void **state)
{
    struct server *plain = server_start_with(true, "--maxclients", "1", NULL);
    char url[300];

    (void)state;
    snprintf(url, sizeof url, "rediss://127.0.0.1:%d?command_timeout=1000%s", plain->port, trusting());
    assert_refused(url, "the server does not speak TLS at this address");
    server_end(plain);
}

/* A server without TLS waits for the rest of a command, as a stopped server does. */
static void test_the_sentence_says_so_when_a_silent_server_has_no_tls(void **state)
{
    struct server *plain = server_start_with(true, NULL);
    char url[300];

    (void)state;
    server_stop(plain);
    snprintf(url, sizeof url, "rediss://127.0.0.1:%d?command_timeout=1000&connect_timeout=200%s", plain->port,
             trusting());
    assert_refused(url, "did not end within connect_timeout: the server says nothing; does it speak TLS");
    snprintf(url, sizeof url, "rediss://127.0.0.1:%d?command_timeout=1000&connect_timeout=60000%s", plain->port,
             trusting());
    assert_refused(url, "has not finished the TLS handshake: does it speak TLS at this address?");
    server_cont(plain);
    server_end(plain);
}

/* The server's kernel opens the connection, and the server does not answer the login. */
static void test_the_sentence_says_so_when_an_open_connection_brings_nothing(void **state)
{
    struct server *plain = server_start_with(true, NULL);
    char url[200];

    (void)state;
    server_stop(plain);
    snprintf(url, sizeof url, "redis://127.0.0.1:%d?command_timeout=1000&connect_timeout=200", plain->port);
    assert_refused(url, "was opened, but the server gave no answer within connect_timeout");
    server_cont(plain);
    server_end(plain);
}

/* redis:// for a server with TLS. */
static void test_the_sentence_names_rediss_when_the_server_wants_tls(void **state)
{
    struct tls_server *tls = tls_server_start("server", "no", NULL);

    (void)state;
    assert_refused(url_of(tls, "redis://127.0.0.1", ""),
                   "if the server wants TLS, write rediss:// or tls=yes; if a proxy is between, name the server");
    tls_server_end(tls);
}

/* ---- verify=none ------------------------------------------------------------------------- */

/* Nothing is checked, and the log says so. */
static void test_any_certificate_is_accepted_and_logged_when_verify_is_none(void **state)
{
    struct tls_server *tls = tls_server_start("strange", "no", NULL);
    char variable[600], log[128];
    struct actor *a;

    (void)state;
    assert_refused(url_of(tls, "rediss://127.0.0.1", trusting()), "comes from \"other\"");
    snprintf(variable, sizeof variable, "DMUTEX_URL=%s", url_of(tls, "rediss://127.0.0.1", "&verify=none"));
    snprintf(log, sizeof log, "DMUTEX_LOG=warn:%s/log-of-none", tls_folder);
    a = actor_start_with(NULL, variable, log, NULL);
    actor_do(a, "0", "trylock tls/none");
    actor_do(a, "0", "unlock tls/none");
    actor_end(a);
    command_run("grep -c 'warning: verify=none' %s/log-of-none", tls_folder);
    assert_string_equal(ran.output, "1\n");
    tls_server_end(tls);
}

/* ---- OpenSSL in the program -------------------------------------------------------------- */

static void complain_unless(bool is_good, const char *what)
{
    if (is_good)
        return;
    fprintf(stderr, "%s: %s\n", what, dmutex_strerror_np());
    _exit(1);
}

/* OpenSSL ends in a handler of atexit(), before the library gives the lock back. */
static void end_with_hold(const char *url)
{
    static dmutex_t mutex;

    complain_unless(OPENSSL_init_ssl(0, NULL) == 1, "OPENSSL_init_ssl");
    dmutex_configure_np(url);
    make_robust(&mutex, "tls/exit", LONG_LEASE);
    complain_unless(dmutex_lock(&mutex) == 0, "lock");
    exit(0);
}

/* The thread's queue contains one error before and after, even if the connection breaks; errno stays. */
static void keep_the_queue(const char *url)
{
    static dmutex_t mutex;
    unsigned long error;

    dmutex_configure_np(url);
    make_normal(&mutex, "tls/queue", 0);
    for (int i = 0; i < 4; i++) {
        struct side *side = side_try_open(getenv("SIDE"));

        ERR_clear_error();
        ERR_raise(ERR_LIB_USER, 77);
        error = ERR_peek_error();
        errno = EXDEV;
        complain_unless(dmutex_lock(&mutex) == 0 && dmutex_unlock(&mutex) == 0, "lock and unlock");
        complain_unless(side && side_try(side, "CLIENT KILL TYPE normal SKIPME yes"), "CLIENT KILL");
        complain_unless(dmutex_lock(&mutex) == 0 && dmutex_unlock(&mutex) == 0, "lock and unlock again");
        complain_unless(errno == EXDEV, "errno");
        complain_unless(ERR_get_error() == error && ERR_get_error() == 0, "the queue of errors");
        side_close(side);
    }
    _exit(0);
}

/* OpenSSL has ended before the first connection. */
static void lock_after_cleanup(const char *url)
{
    static dmutex_t mutex;

    complain_unless(OPENSSL_init_ssl(0, NULL) == 1, "OPENSSL_init_ssl");
    OPENSSL_cleanup();
    dmutex_configure_np(url);
    make_normal(&mutex, "tls/cleanup", 0);
    complain_unless(dmutex_trylock(&mutex) == 0, "trylock");
    _exit(0);
}

static int play_openssl(const char *scene, const char *url)
{
    if (strcmp(scene, "cleanup") == 0)
        lock_after_cleanup(url);
    if (strcmp(scene, "end") == 0)
        end_with_hold(url);
    keep_the_queue(url);
    return 2;
}

/* The hold is given back at exit(), not by its lease, though the program's OpenSSL has ended before. */
static void test_exit_gives_the_lock_back_when_openssl_has_ended(void **state)
{
    struct tls_server *tls = tls_server_start("server", "no", NULL);
    struct actor *a = actor_start_at(tls->url);

    (void)state;
    command_run("exec %s --openssl end '%s'", program_path, tls->url);
    assert_status(0);
    actor_do(a, "0", "init tls/exit robust lease=%d", LONG_LEASE);
    actor_do(a, "EOWNERDEAD", "lock tls/exit");
    actor_do(a, "0", "consistent tls/exit");
    actor_do(a, "0", "unlock tls/exit");
    actor_end(a);
    tls_server_end(tls);
}

static void test_the_sentence_says_so_when_openssl_has_ended(void **state)
{
    struct tls_server *tls = tls_server_start("server", "no", NULL);

    (void)state;
    command_run("exec %s --openssl cleanup '%s'", program_path, tls->url);
    assert_status(1);
    assert_errors("TLS cannot be set up (the program has called OPENSSL_cleanup(), which is for its end)");
    tls_server_end(tls);
}

static void test_the_queue_of_errors_stays_when_the_program_has_errors(void **state)
{
    struct tls_server *tls = tls_server_start("server", "no", NULL);

    (void)state;
    command_run("SIDE=%s exec %s --openssl queue '%s'", tls->server->path, program_path, tls->url);
    assert_status(0);
    tls_server_end(tls);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_locks_and_conditions_work_when_the_server_has_tls),
        cmocka_unit_test(test_the_name_is_right_when_the_certificate_has_it),
        cmocka_unit_test(test_an_authority_is_found_when_cacert_is_a_folder),
        cmocka_unit_test(test_calls_have_room_when_the_stack_is_the_smallest),
        cmocka_unit_test(test_the_sentence_lists_the_names_when_the_name_is_wrong),
        cmocka_unit_test(test_the_sentence_is_of_the_server_that_was_reached_when_another_address_is_refused),
        cmocka_unit_test(test_the_sentence_says_what_is_wrong_when_the_name_looks_right),
        cmocka_unit_test(test_the_sentence_says_what_to_do_when_the_certificate_is_not_right),
        cmocka_unit_test(test_the_sentence_says_since_when_the_certificate_is_expired),
        cmocka_unit_test(test_the_sentence_names_cacert_when_the_authority_is_unknown),
        cmocka_unit_test(test_the_sentence_names_cacert_when_the_authority_is_another_than_now),
        cmocka_unit_test(test_the_sentence_says_so_when_cacert_is_cut_off_or_too_long),
        cmocka_unit_test(test_the_sentence_names_cert_when_the_server_wants_one),
        cmocka_unit_test(test_the_sentence_names_cert_when_tls_is_1_2),
        cmocka_unit_test(test_the_sentence_names_the_file_when_it_is_a_fifo),
        cmocka_unit_test(test_the_sentence_names_the_file_when_a_folder_has_a_fifo),
        cmocka_unit_test(test_the_log_says_why_when_a_holder_cannot_come_back),
        cmocka_unit_test(test_the_sentence_names_the_variable_when_it_leads_to_a_fifo),
        cmocka_unit_test(test_a_name_is_refused_when_it_begins_with_a_dot),
        cmocka_unit_test(test_tls_1_1_is_refused_with_its_remedy),
        cmocka_unit_test(test_a_bare_cipher_is_refused_when_the_system_allows_it),
        cmocka_unit_test(test_the_versions_are_the_system_s_when_it_asks_for_more),
        cmocka_unit_test(test_the_sentence_says_so_when_the_server_has_no_tls),
        cmocka_unit_test(test_the_sentence_says_so_when_a_silent_server_has_no_tls),
        cmocka_unit_test(test_the_sentence_says_so_when_an_open_connection_brings_nothing),
        cmocka_unit_test(test_the_sentence_names_rediss_when_the_server_wants_tls),
        cmocka_unit_test(test_any_certificate_is_accepted_and_logged_when_verify_is_none),
        cmocka_unit_test(test_exit_gives_the_lock_back_when_openssl_has_ended),
        cmocka_unit_test(test_the_sentence_says_so_when_openssl_has_ended),
        cmocka_unit_test(test_the_queue_of_errors_stays_when_the_program_has_errors),
        cmocka_unit_test(test_nothing_is_left),
    };

    if (argc > 3 && strcmp(argv[1], "--openssl") == 0)
        return play_openssl(argv[2], argv[3]);
    test_begin(argc, argv);
    return cmocka_run_group_tests(tests, tls_group_setup, tls_group_teardown);
}
