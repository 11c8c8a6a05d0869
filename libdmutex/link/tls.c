/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * We process a peer's bytes in turns.  A turn takes at most TURN_BYTES from the socket; then OpenSSL returns to us, and
 * the caller checks its deadline.  So no peer can keep a thread here by talking.
 *
 * No thread is inside OpenSSL at fork(), because the child could never take a lock that another thread held there.  A
 * thread in a handshake enters through the door for each turn; fork() closes the door and waits for those inside, which
 * is one turn at most.  Handshakes do not wait for each other.  Afterwards the caller's lock guards the connection, and
 * fork() takes that lock, too.
 */
#include "link/tls.h"

#include <arpa/inet.h>
#include <errno.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "base/clock.h"
#include "base/fileid.h"
#include "base/poll.h"
#include "base/rank.h"
#include "base/thread.h"
#include "link/tls_errors.h"
#include "link/tls_files.h"
#include "link/tls_words.h"

/*
 * A turn ends after this many bytes, or with the piece during which its time runs out.  The smallest messages that cost
 * work, TLS 1.3 key updates, have 27 bytes and take some 40 us each: a piece full of them takes 3 ms.
 */
#define TURN_BYTES ((size_t)16 * 1024)
#define PIECE_BYTES ((size_t)2 * 1024)
#define TURN_NS (2 * DM_NS_PER_MS)

/* Limits a handshake.  Its longest part is the server's certificate chain, of which OpenSSL accepts 100 KiB. */
#define HANDSHAKE_BYTES_MOST ((size_t)256 * 1024)

/* Limits records without application data.  A server sends a few tickets, and new keys about once a day. */
#define IDLE_BYTES_MOST ((size_t)64 * 1024)

/* Computing with a key of any size that the server makes up could take a second. */
#define DH_BITS_MOST 4096

struct dm_tls {
    SSL *ssl;
    int fd;
    struct dm_fileid file; /* of fd: the program may close this number during the handshake */
    bool has_heard;        /* the server has sent a byte */
    bool is_other;         /* and that byte was not TLS */
    bool is_over;          /* the socket has ended, or failed with `error` */
    int error;             /* errno value of the socket; 0: the server has closed it */
    size_t left;           /* bytes that this turn may still take from the socket */
    int64_t turn_ns;       /* when this turn asked for its second piece; 0: not yet */
    bool is_cut;           /* this turn ended at its limit */
    size_t idle;           /* bytes received since the last application data */
    bool lacks_cert;       /* see struct dm_tls_facts */
    bool has_failed;       /* OpenSSL must not be called any more */
    bool holds;            /* see dm_tls_holds() */
    short blocked;         /* POLLIN or POLLOUT if the socket was not ready in the current call; 0: it was */
    bool reads_first;      /* a send waits for bytes from the server */
    bool writes_first;     /* a receive waits for room in the socket */
    char cert[DM_REASON_ROOM / 2];
    char reason[DM_REASON_ROOM];

    /* Until the handshake has ended. */
    const struct dm_tls_options *options;
    char *name; /* from the options, without a trailing dot; NULL: none */
};

/*
 * Its own OSSL_LIB_CTX makes the library independent of the providers and properties that the application sets, and
 * lets it send after the application's OPENSSL_cleanup().  A context that once ran out of memory may lack algorithms
 * forever, so we keep a context only once a handshake has succeeded; from then on it is never freed.  OpenSSL keeps
 * data per thread and context, and frees them when the thread ends, so a thread must release them before the context
 * can be freed.
 */
static struct {
    OSSL_LIB_CTX *context;
    BIO_METHOD *socket;
    bool is_proven; /* a handshake has succeeded with this context */
    int openers;    /* threads in dm_tls_open() that use the context */
} shared;

/* Guards `shared`; taken inside the door. */
static struct dm_mutex lock = DM_MUTEX_INITIALIZER(DM_RANK_TLS);

/* ---- the door ---------------------------------------------------------------------------- */

static struct {
    struct dm_mutex lock; /* taken to enter; fork() keeps it to close the door */
    sem_t left;           /* while the door is closed, posted when the last thread has left */
    int inside;           /* atomic */
    bool is_closed;       /* atomic */
} door = { .lock = DM_MUTEX_INITIALIZER(DM_RANK_TLS) };

static void enter(void)
{
    dm_mutex_lock(&door.lock);
    __atomic_add_fetch(&door.inside, 1, __ATOMIC_SEQ_CST);
    dm_mutex_unlock(&door.lock);
}

static void leave(void)
{
    if (__atomic_sub_fetch(&door.inside, 1, __ATOMIC_SEQ_CST) == 0 &&
        __atomic_load_n(&door.is_closed, __ATOMIC_SEQ_CST))
        sem_post(&door.left);
}

static void give_way(void)
{
    leave();
    enter();
}

/*
 * A post may be left over from a door that was found empty, so only the count decides. fork() is no cancellation point,
 * but sem_wait() is.
 */
static void close_door(void)
{
    int cancel_state;

    dm_mutex_lock(&door.lock);
    __atomic_store_n(&door.is_closed, true, __ATOMIC_SEQ_CST);
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel_state);
    while (__atomic_load_n(&door.inside, __ATOMIC_SEQ_CST) > 0)
        sem_wait(&door.left);
    pthread_setcancelstate(cancel_state, NULL);
}

static void open_door(void)
{
    __atomic_store_n(&door.is_closed, false, __ATOMIC_SEQ_CST);
    dm_mutex_unlock(&door.lock);
}

/* ---- the end of a thread ----------------------------------------------------------------- */

/* Its destructor runs before OpenSSL's own (tried with glibc 2.36 and OpenSSL 3.0, whichever key was created first). */
static pthread_key_t end_key;
static bool has_end_key;

/* OpenSSL frees a thread's data under a process-wide lock, at a time when no fork() would wait for it. */
static void end_thread(void *user)
{
    (void)user;
    enter();
    OPENSSL_thread_stop();
    leave();
}

/* Called when an application thread is about to call OpenSSL, with the lock of its connection held. */
static void note_thread(void)
{
    if (has_end_key && !pthread_getspecific(end_key))
        pthread_setspecific(end_key, &end_key);
}

/* ---- bytes between OpenSSL and the socket ------------------------------------------------ */

static int write_socket(BIO *bio, const char *bytes, int length)
{
    struct dm_tls *tls = BIO_get_data(bio);
    ssize_t sent = send(tls->fd, bytes, (size_t)length, MSG_NOSIGNAL | MSG_DONTWAIT);

    BIO_clear_retry_flags(bio);
    if (sent >= 0)
        return (int)sent;
    if (errno == EAGAIN || errno == EINTR) {
        BIO_set_retry_write(bio);
        tls->blocked = POLLOUT;
    } else {
        tls->is_over = true;
        tls->error = errno;
    }
    return -1;
}

/* A server's first record belongs to the handshake, or is an alert. */
static void note_first_byte(struct dm_tls *tls, char byte)
{
    tls->is_other = !tls->has_heard && byte != SSL3_RT_HANDSHAKE && byte != SSL3_RT_ALERT;
    tls->has_heard = true;
}

static void begin_turn(struct dm_tls *tls)
{
    tls->blocked = 0;
    tls->left = TURN_BYTES;
    tls->turn_ns = 0;
    tls->is_cut = false;
}

/* The first piece is read in any case, and most turns have no other; so the clock starts with the second. */
static bool is_turn_over(struct dm_tls *tls)
{
    int64_t now_ns;

    if (tls->left == TURN_BYTES)
        return false;
    now_ns = dm_clock_boot_ns();
    if (tls->turn_ns == 0)
        tls->turn_ns = now_ns;
    return tls->left == 0 || now_ns > tls->turn_ns + TURN_NS;
}

/* At the end of a turn we report an empty socket.  If it is not empty, poll() returns at once. */
static ssize_t receive(struct dm_tls *tls, char *room, size_t length)
{
    ssize_t got;

    tls->is_cut = is_turn_over(tls);
    if (tls->is_cut) {
        errno = EAGAIN;
        return -1;
    }
    length = length < PIECE_BYTES ? length : PIECE_BYTES;
    got = recv(tls->fd, room, length < tls->left ? length : tls->left, MSG_DONTWAIT);
    if (got > 0) {
        tls->left -= (size_t)got;
        tls->idle += (size_t)got;
    }
    return got;
}

static int read_socket(BIO *bio, char *room, int length)
{
    struct dm_tls *tls = BIO_get_data(bio);
    ssize_t got = receive(tls, room, (size_t)length);

    BIO_clear_retry_flags(bio);
    if (got > 0) {
        if (!tls->has_heard)
            note_first_byte(tls, room[0]);
        return (int)got;
    }
    if (got < 0 && (errno == EAGAIN || errno == EINTR)) {
        BIO_set_retry_read(bio);
        tls->blocked = POLLIN;
    } else if (!tls->is_over) { /* else a send has failed, and its error says more */
        tls->is_over = true;
        tls->error = got < 0 ? errno : 0;
    }
    return got < 0 ? -1 : 0;
}

/* OpenSSL asks to flush, but nothing is buffered here. */
static long control_socket(BIO *bio, int command, long number, void *pointer)
{
    const struct dm_tls *tls = BIO_get_data(bio);

    (void)number;
    (void)pointer;
    if (command == BIO_CTRL_EOF)
        return tls->is_over;
    return command == BIO_CTRL_FLUSH;
}

/* After OPENSSL_cleanup() OpenSSL stays unusable in the whole process. */
static void explain_no_set_up(char *ret_reason)
{
    bool is_ended = !OPENSSL_init_crypto(0, NULL);

    snprintf(ret_reason, DM_REASON_ROOM, "TLS cannot be set up (%s)",
             is_ended ? "the program has called OPENSSL_cleanup(), which is for its end" : "out of memory");
}

static bool make_shared(void)
{
    BIO_METHOD *socket;

    if (!has_end_key)
        has_end_key = pthread_key_create(&end_key, end_thread) == 0;
    OPENSSL_init_ssl(OPENSSL_INIT_NO_ATEXIT, NULL);
    if (!shared.context)
        shared.context = OSSL_LIB_CTX_new();
    if (!shared.context || shared.socket)
        return shared.context;
    socket = BIO_meth_new(BIO_TYPE_SOURCE_SINK, "socket of libdmutex");
    if (!socket || !BIO_meth_set_write(socket, write_socket) || !BIO_meth_set_read(socket, read_socket) ||
        !BIO_meth_set_ctrl(socket, control_socket)) {
        BIO_meth_free(socket);
        return false;
    }
    shared.socket = socket;
    return true;
}

/* ---- certificates ------------------------------------------------------------------------ */

/* Called when the server asks for a client certificate. */
static int note_request(SSL *ssl, void *user)
{
    struct dm_tls *tls = user;

    (void)ssl;
    tls->lacks_cert = !tls->options->cert;
    return 1;
}

/* Called for each finding about the server's chain; the first failure is reported. */
static int check_certificate(int is_good, X509_STORE_CTX *store)
{
    const SSL *ssl = X509_STORE_CTX_get_ex_data(store, SSL_get_ex_data_X509_STORE_CTX_idx());
    struct dm_tls *tls = SSL_get_app_data(ssl);

    if (!is_good && !tls->reason[0])
        dm_tls_explain_certificate(store, tls->name, tls->options->cacert, tls->reason);
    return is_good;
}

static int (*usual_check)(const SSL *, const SSL_CTX *, int, int, int, void *, void *);

/* True for ciphers without a server certificate or without encryption. */
static bool is_bare(const SSL_CIPHER *cipher)
{
    return SSL_CIPHER_get_auth_nid(cipher) == NID_auth_null || SSL_CIPHER_get_cipher_nid(cipher) == NID_undef;
}

/* Called for each cipher, key and algorithm, as `subject`.  The system's configuration might allow all of them. */
static int check_strength(const SSL *ssl, const SSL_CTX *context, int what, int bits, int number, void *subject,
                          void *user)
{
    struct dm_tls *tls = ssl ? SSL_get_app_data(ssl) : NULL;
    int key_bits = what == SSL_SECOP_TMP_DH && subject ? EVP_PKEY_get_bits(subject) : 0;

    if ((what & SSL_SECOP_OTHER_TYPE) == SSL_SECOP_OTHER_CIPHER && is_bare(subject))
        return 0;
    if (key_bits <= DH_BITS_MOST)
        return usual_check(ssl, context, what, bits, number, subject, user);
    if (tls)
        snprintf(
            tls->reason, DM_REASON_ROOM,
            "the server wants a Diffie-Hellman key of %d bits, and the maximum is %d: let it offer ciphers with ECDHE",
            key_bits, DH_BITS_MOST);
    return 0;
}

/* ---- the handshake ----------------------------------------------------------------------- */

/*
 * A renegotiation could change the server within a connection.  Replies are delimited, so an early end truncates
 * nothing.
 */
static SSL_CTX *make_context(struct dm_tls *tls, const struct dm_tls_files *files, char *ret_reason)
{
    const struct dm_tls_options *options = tls->options;
    SSL_CTX *context = SSL_CTX_new_ex(shared.context, NULL, TLS_client_method());

    explain_no_set_up(ret_reason);
    if (!context)
        return NULL;
    if (SSL_CTX_get_min_proto_version(context) < TLS1_2_VERSION) /* else the system demands more */
        SSL_CTX_set_min_proto_version(context, TLS1_2_VERSION);
    SSL_CTX_set_options(context, SSL_OP_NO_RENEGOTIATION | SSL_OP_IGNORE_UNEXPECTED_EOF | SSL_OP_NO_COMPRESSION);
    SSL_CTX_set_mode(context, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
    SSL_CTX_set_read_ahead(context, 1);
    SSL_CTX_set_session_cache_mode(context, SSL_SESS_CACHE_OFF);
    SSL_CTX_set_default_passwd_cb(context, dm_tls_refuse_passphrase);
    SSL_CTX_set_cert_cb(context, note_request, tls);
    __atomic_store_n(&usual_check, SSL_CTX_get_security_callback(context), __ATOMIC_RELAXED);
    SSL_CTX_set_security_callback(context, check_strength);
    SSL_CTX_set_verify(context, options->is_verified ? SSL_VERIFY_PEER : SSL_VERIFY_NONE,
                       options->is_verified ? check_certificate : NULL);
    if (dm_tls_files_load(files, shared.context, context, give_way, ret_reason))
        return context;
    SSL_CTX_free(context);
    return NULL;
}

static bool is_ip(const char *name)
{
    unsigned char address[sizeof(struct in6_addr)];

    return inet_pton(AF_INET, name, address) == 1 || inet_pton(AF_INET6, name, address) == 1;
}

/*
 * TLS does not allow an IP address to be sent as the server name.  To OpenSSL, a name that begins with a dot stands for
 * all names below it.
 */
static bool set_name(SSL *ssl, const char *name, char *ret_reason)
{
    snprintf(ret_reason, DM_REASON_ROOM, "TLS cannot be set up for this name, or without memory");
    if (!name)
        return true;
    if (name[0] == '.') {
        snprintf(ret_reason, DM_REASON_ROOM,
                 "%.80s begins with a dot, and no certificate is for such a name: give the server's whole name as host "
                 "or as servername",
                 name);
        return false;
    }
    if (is_ip(name))
        return X509_VERIFY_PARAM_set1_ip_asc(SSL_get0_param(ssl), name);
    SSL_set_hostflags(ssl, X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS);
    return SSL_set1_host(ssl, name) && SSL_set_tlsext_host_name(ssl, name);
}

static bool begin(struct dm_tls *tls, const struct dm_tls_files *files, char *ret_reason)
{
    SSL_CTX *context = make_context(tls, files, ret_reason);
    BIO *bio;

    if (!context)
        return false;
    tls->ssl = SSL_new(context);
    SSL_CTX_free(context); /* the connection holds a reference */
    bio = tls->ssl ? BIO_new_ex(shared.context, shared.socket) : NULL;
    if (!bio || !SSL_set_app_data(tls->ssl, tls) || !set_name(tls->ssl, tls->name, ret_reason)) {
        BIO_free(bio);
        return false;
    }
    BIO_set_data(bio, tls);
    BIO_set_init(bio, 1);
    SSL_set_bio(tls->ssl, bio, bio);
    SSL_set_connect_state(tls->ssl);
    return true;
}

static struct dm_tls_facts facts_of(const struct dm_tls *tls, unsigned long error)
{
    return (struct dm_tls_facts){
        .is_other = tls->is_other,
        .is_silent = !tls->has_heard,
        .lacks_cert = tls->lacks_cert,
        .cert = tls->cert[0] ? tls->cert : NULL,
        .error = error,
        .socket_error = tls->error,
    };
}

/*
 * Finds out why OpenSSL does not go on.  SSL_want() is left unchanged when a call fails, and a failing call may block
 * on its alert.
 */
static bool is_only_blocked(const struct dm_tls *tls, unsigned long error)
{
    return tls->blocked && !tls->is_over && !error;
}

/* One turn.  Returns 0 when the handshake is complete, -1 if it has failed, else the events to wait for. */
static short shake(struct dm_tls *tls)
{
    struct dm_tls_facts facts;

    ERR_clear_error();
    begin_turn(tls);
    if (SSL_do_handshake(tls->ssl) == 1)
        return 0;
    if (is_only_blocked(tls, ERR_peek_error()))
        return tls->blocked;
    facts = facts_of(tls, ERR_peek_error());
    if (!tls->reason[0])
        dm_tls_explain_failure(&facts, tls->reason);
    return -1;
}

/* Called between turns, outside the door.  False with the reason if there must not be another turn. */
static bool await(struct dm_tls *tls, short events, int64_t deadline_ns)
{
    struct pollfd poller = { .fd = tls->fd, .events = events };
    int64_t left_ns = deadline_ns - dm_clock_boot_ns();
    struct dm_tls_facts facts;

    if (tls->idle > HANDSHAKE_BYTES_MOST) {
        snprintf(tls->reason, DM_REASON_ROOM,
                 "the server's TLS handshake does not end: more than %zu KiB; is this a Redis server?",
                 HANDSHAKE_BYTES_MOST / 1024);
        return false;
    }
    if (left_ns <= 0) {
        facts = facts_of(tls, 0);
        dm_tls_explain_delay(&facts, tls->reason);
        return false;
    }
    leave();
    dm_poll(&poller, 1, left_ns);
    enter();
    if (dm_fileid_has(&tls->file, tls->fd))
        return true;
    snprintf(tls->reason, DM_REASON_ROOM, "lost its descriptor: the program has closed it");
    return false;
}

static bool shake_hands(struct dm_tls *tls, int64_t deadline_ns)
{
    short events;

    while ((events = shake(tls)) > 0) {
        if (!await(tls, events, deadline_ns))
            return false;
    }
    return events == 0;
}

/* The trusted certificates take up to a megabyte, and only the handshake needs them. */
static void forget_trust(struct dm_tls *tls)
{
    X509_STORE *empty = X509_STORE_new();

    if (empty)
        SSL_CTX_set_cert_store(SSL_get_SSL_CTX(tls->ssl), empty);
}

static bool begin_opening(void)
{
    bool is_made;

    dm_mutex_lock(&lock);
    shared.openers++;
    is_made = make_shared();
    dm_mutex_unlock(&lock);
    return is_made;
}

static bool open_inside(struct dm_tls *tls, const struct dm_tls_files *files, int64_t deadline_ns, char *ret_reason)
{
    if (!begin_opening()) {
        explain_no_set_up(ret_reason);
        return false;
    }
    if (!begin(tls, files, ret_reason))
        return false;
    if (dm_clock_boot_ns() >= deadline_ns) {
        snprintf(ret_reason, DM_REASON_ROOM,
                 "connect_timeout was over before the TLS handshake began: give it more time, or cacert fewer "
                 "certificates");
        return false;
    }
    if (!shake_hands(tls, deadline_ns)) {
        snprintf(ret_reason, DM_REASON_ROOM, "%s", tls->reason);
        return false;
    }
    forget_trust(tls);
    tls->idle = 0;
    return true;
}

/* After the last opener, frees a context that may be unusable. */
static void end_opening(bool is_open)
{
    dm_mutex_lock(&lock);
    shared.is_proven = shared.is_proven || is_open;
    shared.openers--;
    if (!shared.is_proven && shared.openers == 0) {
        OSSL_LIB_CTX_free(shared.context);
        shared.context = NULL;
    }
    dm_mutex_unlock(&lock);
}

/*
 * A trailing dot, which tells name servers that the name is complete, belongs neither to a certificate's name nor to
 * TLS.
 */
static bool copy_name(struct dm_tls *tls, const char *name)
{
    size_t length = name ? strlen(name) : 0;

    if (length > 1 && name[length - 1] == '.')
        length--;
    tls->name = name ? strndup(name, length) : NULL;
    return !name || tls->name;
}

struct dm_tls *dm_tls_open(int fd, const struct dm_tls_options *options, int64_t deadline_ns,
                           char ret_reason[DM_REASON_ROOM])
{
    struct dm_tls *tls = calloc(1, sizeof *tls);
    struct dm_tls_files files = {
        .is_verified = options->is_verified,
        .cacert.path = options->cacert,
        .cert.path = options->cert,
        .key.path = options->cert ? options->key : NULL,
    };
    bool is_open;

    if (!tls || !copy_name(tls, options->name)) {
        snprintf(ret_reason, DM_REASON_ROOM, "cannot be opened (out of memory)");
        free(tls);
        return NULL;
    }
    tls->fd = fd;
    tls->file = dm_fileid_of(fd);
    tls->options = options;
    snprintf(tls->cert, sizeof tls->cert, "%s", options->cert ? options->cert : "");
    if (!dm_tls_files_read(&files, ret_reason)) {
        dm_tls_files_free(&files);
        dm_tls_free(tls);
        return NULL;
    }
    enter();
    is_open = open_inside(tls, &files, deadline_ns, ret_reason);
    if (!is_open) {
        dm_tls_free(tls);
        tls = NULL;
    }
    ERR_clear_error();     /* this thread is ours, so the queue has no errors of the application */
    OPENSSL_thread_stop(); /* here, because at the end of the thread OpenSSL would take a lock outside the door */
    end_opening(is_open);
    leave();
    dm_tls_files_free(&files);
    return tls;
}

void dm_tls_free(struct dm_tls *tls)
{
    if (!tls)
        return;
    SSL_free(tls->ssl);
    free(tls->name);
    free(tls);
}

/* ---- stack -------------------------------------------------------------------------------- */

/*
 * A thread may have only PTHREAD_STACK_MIN bytes; in a wait on a condition, what is left is too little for OpenSSL.
 * Such a thread writes into the pipe's buffer and waits, and the loop thread sends and receives.
 */
bool dm_tls_has_stack(void)
{
    return dm_thread_has_stack(DM_OPENSSL_STACK);
}

/* ---- use --------------------------------------------------------------------------------- */

/* True if OpenSSL only waits for the socket; else records the failure. */
static bool is_waiting(struct dm_tls *tls, unsigned long error)
{
    struct dm_tls_facts facts;

    if (is_only_blocked(tls, error))
        return true;
    tls->has_failed = true;
    facts = facts_of(tls, error);
    if (facts.lacks_cert || facts.error)
        dm_tls_explain_failure(&facts, tls->reason);
    return false;
}

/* Sets errno as dm_tls_send() and dm_tls_receive() promise. */
static ssize_t fail(const struct dm_tls *tls)
{
    errno = tls->reason[0] ? EPROTO : tls->error;
    return -1;
}

/*
 * True if OpenSSL took everything.  In TLS 1.3 a server refuses a client certificate only after the handshake, by an
 * alert before it closes the socket.  So a send that fails reads the alert.
 */
static bool write_all(struct dm_tls *tls, const char *bytes, size_t length, size_t *ret_sent)
{
    size_t more;
    char unused;

    while (*ret_sent < length) {
        if (!SSL_write_ex(tls->ssl, bytes + *ret_sent, length - *ret_sent, &more)) {
            if (tls->is_over)
                SSL_read_ex(tls->ssl, &unused, 1, &more);
            return false;
        }
        *ret_sent += more;
    }
    return true;
}

ssize_t dm_tls_send(struct dm_tls *tls, const char *bytes, size_t length)
{
    size_t sent = 0;
    struct dm_tls_errors *others;
    unsigned long error;
    bool is_stuck;

    if (tls->has_failed)
        return fail(tls);
    if (!dm_tls_has_stack())
        return 0;
    note_thread();
    others = dm_tls_errors_take();
    begin_turn(tls);
    is_stuck = !write_all(tls, bytes, length, &sent);
    error = dm_tls_errors_put_back(others);
    tls->reads_first = is_stuck && is_waiting(tls, error) && tls->blocked == POLLIN;
    return tls->has_failed ? fail(tls) : (ssize_t)sent;
}

/* True if the server talks without saying anything; such a connection is useless. */
static bool is_idle_talk(struct dm_tls *tls)
{
    if (tls->has_failed || tls->idle <= IDLE_BYTES_MOST)
        return tls->has_failed;
    tls->has_failed = true;
    snprintf(tls->reason, DM_REASON_ROOM,
             "the server sends TLS messages without end, but no reply: is this a Redis server?");
    return true;
}

/*
 * One read of the socket may bring many records: we receive them all, as far as there is room.  A failure after
 * received bytes is reported by the next call, for which the caller must not wait.
 */
ssize_t dm_tls_receive(struct dm_tls *tls, char *room, size_t length)
{
    size_t got = 0, more;
    struct dm_tls_errors *others;
    unsigned long error;
    bool is_stuck = false;

    if (tls->has_failed)
        return fail(tls);
    if (!dm_tls_has_stack())
        return 0;
    note_thread();
    others = dm_tls_errors_take();
    begin_turn(tls);
    do {
        is_stuck = !SSL_read_ex(tls->ssl, room + got, length - got, &more);
        got += is_stuck ? 0 : more;
    } while (!is_stuck && got < length && SSL_has_pending(tls->ssl));
    error = dm_tls_errors_put_back(others);
    if (got > 0) {
        tls->lacks_cert = false; /* the server has accepted this client */
        tls->idle = 0;
    }
    tls->writes_first = is_stuck && is_waiting(tls, error) && tls->blocked == POLLOUT;
    tls->holds = got > 0 && (tls->has_failed || (!is_stuck && SSL_has_pending(tls->ssl)));
    if (got > 0)
        return (ssize_t)got;
    return is_idle_talk(tls) ? fail(tls) : 0;
}

const char *dm_tls_reason(const struct dm_tls *tls)
{
    return tls->reason;
}

bool dm_tls_holds(const struct dm_tls *tls)
{
    return tls->holds;
}

bool dm_tls_is_cut(const struct dm_tls *tls)
{
    return tls->is_cut;
}

/* A send that waits for the server's bytes must not poll for room: there is room, so the poll would spin. */
short dm_tls_events(const struct dm_tls *tls, bool has_more)
{
    bool is_room_wanted = (has_more && !tls->reads_first) || tls->writes_first;

    return (short)(POLLIN | (is_room_wanted ? POLLOUT : 0));
}

/* ---- fork -------------------------------------------------------------------------------- */

void dm_tls_fork_prepare(void)
{
    close_door();
}

void dm_tls_fork_parent(void)
{
    open_door();
}

/*
 * After a bare fork another thread may have been inside, so we leave the parent's context as it is, and make a new one.
 */
void dm_tls_fork_child(void)
{
    dm_mutex_reset(&door.lock);
    dm_mutex_reset(&lock);
    door.inside = 0;
    door.is_closed = false;
    sem_init(&door.left, 0, 0);
    memset(&shared, 0, sizeof shared);
}
