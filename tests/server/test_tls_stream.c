/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * link/stream with TLS, against a peer that uses OpenSSL in this process: records that end anywhere, sockets without
 * room, and what the peer may ask for (new keys, another handshake).  The peer has a thread only for the handshake;
 * afterwards the test moves both ends itself.
 */
#include <fcntl.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "../lib/proc.h"
#include "../lib/testlib.h"
#include "../lib/tls.h"
#include "base/clock.h"
#include "link/stream.h"
#include "link/tls.h"
#include "link/tls_files.h"

#define ROOM_MOST 65536

/* The library's end, and the peer's. */
struct ends {
    struct dm_stream stream;
    SSL_CTX *context;
    SSL *peer;
    int peer_fd; /* the socket below peer: -1 closed */
    pthread_t thread;
};

static int begin_group(void **state)
{
    (void)state;
    tls_begin();
    return 0;
}

static int end_group(void **state)
{
    (void)state;
    tls_end();
    return 0;
}

static void *accept_peer(void *user)
{
    struct ends *ends = user;

    return SSL_accept(ends->peer) == 1 ? ends : NULL;
}

static void make_peer(struct ends *ends, int version)
{
    char path[64];

    ends->context = SSL_CTX_new(TLS_server_method());
    SSL_CTX_set_max_proto_version(ends->context, version);
    snprintf(path, sizeof path, "%s/server.crt", tls_folder);
    assert_true(SSL_CTX_use_certificate_chain_file(ends->context, path));
    snprintf(path, sizeof path, "%s/server.key", tls_folder);
    assert_true(SSL_CTX_use_PrivateKey_file(ends->context, path, SSL_FILETYPE_PEM));
    ends->peer = SSL_new(ends->context);
    assert_true(SSL_set_fd(ends->peer, ends->peer_fd));
}

static void begin_sockets(struct ends *ends, int version)
{
    int fds[2];

    assert_return_code(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds), errno);
    ends->stream = (struct dm_stream){ .fd = fds[0] };
    ends->peer_fd = fds[1];
    make_peer(ends, version);
}

/* Both ends have completed the handshake; the peer's socket no longer blocks. */
static void begin(struct ends *ends, int version)
{
    char cacert[64], reason[DM_REASON_ROOM] = "";
    struct dm_tls_options options = { .is_on = true, .is_verified = true, .name = "localhost", .cacert = cacert };
    void *is_accepted;

    snprintf(cacert, sizeof cacert, "%s/ca.crt", tls_folder);
    begin_sockets(ends, version);
    pthread_create(&ends->thread, NULL, accept_peer, ends);
    if (!dm_stream_secure(&ends->stream, &options, dm_clock_boot_ns() + WAIT_LIMIT_MS * DM_NS_PER_MS, reason))
        fail_msg("%s", reason);
    pthread_join(ends->thread, &is_accepted);
    assert_non_null(is_accepted);
    assert_return_code(fcntl(ends->peer_fd, F_SETFL, O_NONBLOCK), errno);
}

static void end(struct ends *ends)
{
    dm_stream_close(&ends->stream);
    SSL_free(ends->peer);
    SSL_CTX_free(ends->context);
    if (ends->peer_fd >= 0)
        close(ends->peer_fd);
}

/* Bytes each of which shows its position. */
static char *make_bytes(size_t length)
{
    char *bytes = malloc(length);

    for (size_t i = 0; i < length; i++)
        bytes[i] = (char)(i * 31 + i / 251);
    return bytes;
}

/*
 * Receives as a session does: sleeps until the socket says so, but not while the stream holds bytes.  A stream that
 * holds bytes and does not say so leaves the test in poll().
 */
static void receive_exactly(struct ends *ends, const char *wanted, size_t length, size_t room)
{
    static char bytes[ROOM_MOST];
    size_t got = 0;

    while (got < length) {
        struct pollfd poller = { .fd = ends->stream.fd, .events = dm_stream_events(&ends->stream, false) };
        ssize_t more;

        if (!dm_stream_holds(&ends->stream))
            assert_int_equal(poll(&poller, 1, WAIT_LIMIT_MS), 1);
        more = dm_stream_receive(&ends->stream, bytes, room);
        assert_true(more >= 0 && got + (size_t)more <= length);
        assert_memory_equal(bytes, wanted + got, (size_t)more);
        got += (size_t)more;
    }
    assert_false(dm_stream_holds(&ends->stream));
    assert_int_equal(dm_stream_receive(&ends->stream, bytes, room), 0);
}

/* The peer reads all bytes that were sent, unchanged. */
static void read_at_peer(struct ends *ends, const char *wanted, size_t length)
{
    static char bytes[ROOM_MOST];
    size_t got = 0, more;

    while (got < length && SSL_read_ex(ends->peer, bytes, sizeof bytes, &more)) {
        assert_memory_equal(bytes, wanted + got, more);
        got += more;
    }
    assert_int_equal(got, length);
}

/* ---- the end of a thread ----------------------------------------------------------------- */

static struct {
    struct dm_stream *stream;
    sem_t has_sent, may_end;
    pid_t id;
    bool is_ending;
} ending;

static void *send_and_end(void *user)
{
    ending.id = gettid();
    assert_int_equal(dm_stream_send(ending.stream, "x", 1), 1);
    sem_post(&ending.has_sent);
    sem_wait(&ending.may_end);
    __atomic_store_n(&ending.is_ending, true, __ATOMIC_RELEASE);
    return user;
}

/* A thread gives its data back to OpenSSL, under OpenSSL's locks, before or after a fork, and not during it. */
static void test_a_thread_that_ends_waits_for_a_fork(void **state)
{
    pthread_t thread;
    struct ends ends;

    (void)state;
    begin(&ends, TLS1_3_VERSION);
    ending.stream = &ends.stream;
    sem_init(&ending.has_sent, 0, 0);
    sem_init(&ending.may_end, 0, 0);
    pthread_create(&thread, NULL, send_and_end, NULL);
    sem_wait(&ending.has_sent);
    dm_tls_fork_prepare();
    sem_post(&ending.may_end);
    wait_until(__atomic_load_n(&ending.is_ending, __ATOMIC_ACQUIRE) && strchr("SX", proc_state(ending.id)));
    assert_int_equal(proc_state(ending.id), 'S');
    dm_tls_fork_parent();
    pthread_join(thread, NULL);
    end(&ends);
}

/* ---- reading ----------------------------------------------------------------------------- */

/* All bytes come before the caller may sleep, in rooms smaller and larger than records, and in records of any size. */
static void test_all_bytes_come_when_records_and_rooms_differ(void **state)
{
    static const size_t rooms[] = { 1, 100, 4096, 16384, ROOM_MOST };
    static const size_t records[] = { 1, 50, 5000, 16384 };
    const size_t length = 40000;
    char *bytes = make_bytes(length);
    struct ends ends;

    (void)state;
    begin(&ends, TLS1_3_VERSION);
    for (size_t r = 0; r < sizeof rooms / sizeof rooms[0]; r++) {
        for (size_t s = 0; s < sizeof records / sizeof records[0]; s++) {
            size_t part = records[s] * 50 < length ? records[s] * 50 : length, written, sent = 0;

            while (sent < part) {
                size_t left = part - sent;

                assert_true(SSL_write_ex(ends.peer, bytes + sent, left < records[s] ? left : records[s], &written));
                sent += written;
            }
            receive_exactly(&ends, bytes, part, rooms[r]);
        }
    }
    end(&ends);
    free(bytes);
}

/* The connection ends in the middle of a record: the whole records come, then the end, and no error. */
static void test_whole_records_come_when_the_last_is_cut(void **state)
{
    char *bytes = make_bytes(3000), room[4000];
    struct ends ends;
    BIO *memory;
    char *raw;
    long length;
    size_t written;

    (void)state;
    begin(&ends, TLS1_3_VERSION);
    receive_exactly(&ends, "", 0, 100);
    memory = BIO_new(BIO_s_mem()); /* takes the peer's records instead of its socket */
    SSL_set0_wbio(ends.peer, memory);
    assert_true(SSL_write_ex(ends.peer, bytes, 1000, &written));
    assert_true(SSL_write_ex(ends.peer, bytes + 1000, 2000, &written));
    length = BIO_get_mem_data(memory, &raw);
    assert_int_equal(send(ends.peer_fd, raw, (size_t)length - 700, 0), length - 700);
    receive_exactly(&ends, bytes, 1000, sizeof room);
    close(ends.peer_fd);
    ends.peer_fd = -1;
    assert_int_equal(dm_stream_receive(&ends.stream, room, sizeof room), -1);
    assert_int_equal(errno, 0);
    assert_string_equal(dm_stream_reason(&ends.stream), "");
    end(&ends);
    free(bytes);
}

/* A byte of a record is wrong: the stream is broken, with a sentence. */
static void test_the_stream_breaks_when_a_record_was_changed(void **state)
{
    struct ends ends;
    BIO *memory;
    char *raw, room[100];
    long length;
    size_t written;

    (void)state;
    begin(&ends, TLS1_3_VERSION);
    receive_exactly(&ends, "", 0, 100);
    memory = BIO_new(BIO_s_mem());
    SSL_set0_wbio(ends.peer, memory);
    assert_true(SSL_write_ex(ends.peer, "+OK\r\n", 5, &written));
    length = BIO_get_mem_data(memory, &raw);
    raw[length - 1] ^= 1;
    assert_int_equal(send(ends.peer_fd, raw, (size_t)length, 0), length);
    assert_int_equal(dm_stream_receive(&ends.stream, room, sizeof room), -1);
    assert_int_equal(errno, EPROTO);
    assert_non_null(strstr(dm_stream_reason(&ends.stream), "TLS failed: "));
    assert_int_equal(dm_stream_send(&ends.stream, "x", 1), -1); /* it stays failed */
    end(&ends);
}

/* ---- writing ----------------------------------------------------------------------------- */

/* A socket without room takes a part; the rest goes first with the next send, as a pipe sends it. */
static void test_all_bytes_go_when_the_socket_has_little_room(void **state)
{
    const size_t length = 1000000;
    char *bytes = make_bytes(length);
    struct ends ends;
    size_t sent = 0, got = 0, more;
    static char room[ROOM_MOST];
    int stops = 0;

    (void)state;
    begin(&ends, TLS1_3_VERSION);
    while (got < length) {
        char *moved = malloc(length - sent); /* a pipe moves the bytes that are left */
        ssize_t taken;

        memcpy(moved, bytes + sent, length - sent);
        taken = dm_stream_send(&ends.stream, moved, length - sent);
        free(moved);
        assert_true(taken >= 0);
        sent += (size_t)taken;
        if (sent < length) {
            stops++;
            assert_int_equal(dm_stream_events(&ends.stream, true), POLLIN | POLLOUT);
        }
        while (SSL_read_ex(ends.peer, room, sizeof room, &more)) {
            assert_memory_equal(room, bytes + got, more);
            got += more;
        }
    }
    assert_true(stops > 2);
    end(&ends);
    free(bytes);
}

/* The peer is gone: no SIGPIPE, but an error. */
static void test_a_send_fails_when_the_peer_is_gone(void **state)
{
    struct ends ends;

    (void)state;
    begin(&ends, TLS1_3_VERSION);
    close(ends.peer_fd);
    ends.peer_fd = -1;
    assert_int_equal(dm_stream_send(&ends.stream, "x", 1), -1);
    assert_int_equal(errno, EPIPE);
    end(&ends);
}

/* ---- the peer's wishes ------------------------------------------------------------------- */

/* The peer changes its keys, and asks this end to change its own: bytes still flow in both directions. */
static void test_bytes_go_on_when_the_peer_wants_other_keys(void **state)
{
    char *bytes = make_bytes(2000);
    struct ends ends;
    size_t written;

    (void)state;
    begin(&ends, TLS1_3_VERSION);
    for (int i = 0; i < 3; i++) {
        assert_true(SSL_key_update(ends.peer, SSL_KEY_UPDATE_REQUESTED));
        assert_true(SSL_write_ex(ends.peer, bytes, 2000, &written));
        receive_exactly(&ends, bytes, 2000, 700);
        assert_int_equal(dm_stream_send(&ends.stream, bytes, 2000), 2000);
        read_at_peer(&ends, bytes, 2000);
    }
    end(&ends);
    free(bytes);
}

/* The peer sends other keys, again and again, at once. */
static void send_keys(struct ends *ends, int count)
{
    BIO *memory = BIO_new(BIO_s_mem()), *socket = SSL_get_rbio(ends->peer);
    char *raw;
    long length;

    BIO_up_ref(socket);
    SSL_set0_wbio(ends->peer, memory); /* takes the peer's records instead of the socket */
    for (int i = 0; i < count; i++) {
        assert_true(SSL_key_update(ends->peer, SSL_KEY_UPDATE_NOT_REQUESTED));
        assert_int_equal(SSL_do_handshake(ends->peer), 1);
    }
    length = BIO_get_mem_data(memory, &raw);
    assert_int_equal(send(ends->peer_fd, raw, (size_t)length, 0), length);
    SSL_set0_wbio(ends->peer, socket);
}

static int unread(const struct ends *ends)
{
    int bytes;

    assert_return_code(ioctl(ends->stream.fd, FIONREAD, &bytes), errno);
    return bytes;
}

/* One turn processes this many bytes and no more; the caller must not sleep before the others. */
static void test_a_turn_has_an_end_when_the_peer_has_much_to_say(void **state)
{
    char room[100];
    struct ends ends;
    size_t written;
    int before;

    (void)state;
    begin(&ends, TLS1_3_VERSION);
    receive_exactly(&ends, "", 0, 100);
    send_keys(&ends, 2000);
    while ((before = unread(&ends)) > 0) {
        assert_true(dm_stream_events(&ends.stream, false) & POLLIN);
        assert_int_equal(dm_stream_receive(&ends.stream, room, sizeof room), 0);
        assert_true(before - unread(&ends) <= 16384);
    }
    assert_true(SSL_write_ex(ends.peer, "after", 5, &written));
    receive_exactly(&ends, "after", 5, sizeof room);
    end(&ends);
}

/* 64 KiB of messages of TLS without a byte for the application: the stream is of no use. */
static void test_the_stream_breaks_when_the_peer_says_nothing_but_keys(void **state)
{
    char room[100];
    struct ends ends;
    ssize_t got = 0;

    (void)state;
    begin(&ends, TLS1_3_VERSION);
    receive_exactly(&ends, "", 0, 100);
    send_keys(&ends, 3000);
    while (got == 0 && unread(&ends) > 0)
        got = dm_stream_receive(&ends.stream, room, sizeof room);
    assert_int_equal(got, -1);
    assert_int_equal(errno, EPROTO);
    assert_non_null(strstr(dm_stream_reason(&ends.stream), "the server sends TLS messages without end"));
    assert_int_equal(dm_stream_send(&ends.stream, "x", 1), -1); /* it stays failed */
    end(&ends);
}

/* By TLS 1.2 a server may ask for another handshake: refused. */
static void test_another_handshake_is_refused_when_the_peer_asks(void **state)
{
    struct ends ends;
    char room[100];
    size_t more;

    (void)state;
    begin(&ends, TLS1_2_VERSION);
    assert_true(SSL_renegotiate(ends.peer));
    assert_int_equal(SSL_do_handshake(ends.peer), 1); /* the question is sent */
    assert_int_equal(dm_stream_receive(&ends.stream, room, sizeof room), 0);
    ERR_clear_error();
    assert_false(SSL_read_ex(ends.peer, room, sizeof room, &more));
    assert_int_equal(ERR_GET_REASON(ERR_peek_error()), SSL_R_NO_RENEGOTIATION);
    ERR_clear_error();
    end(&ends);
}

/* The peer ends the connection in good order. */
static void test_the_end_is_no_error_when_the_peer_closes_properly(void **state)
{
    struct ends ends;
    char room[100];
    size_t written;

    (void)state;
    begin(&ends, TLS1_3_VERSION);
    assert_true(SSL_write_ex(ends.peer, "last", 4, &written));
    SSL_shutdown(ends.peer);
    assert_int_equal(dm_stream_receive(&ends.stream, room, sizeof room), 4);
    assert_true(dm_stream_holds(&ends.stream)); /* the end: no sleep before it is reported */
    assert_int_equal(dm_stream_receive(&ends.stream, room, sizeof room), -1);
    assert_int_equal(errno, 0);
    end(&ends);
}

/* ---- a number that is the program's by now ----------------------------------------------- */

/* Once the handshake, in the program's first thread, waits for the peer, the number of its socket is another file's. */
static void *replace_socket(void *user)
{
    const struct ends *ends = user;
    char hello[4096];
    int fds[2], looks = 0;

    assert_true(read(ends->peer_fd, hello, sizeof hello) > 0);
    wait_until((looks = proc_state(getpid()) == 'S' ? looks + 1 : 0) == 20);
    assert_return_code(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, fds), errno);
    assert_int_equal(write(fds[1], "mine", 4), 4);
    assert_int_equal(dup2(fds[0], ends->stream.fd), ends->stream.fd);
    send(ends->peer_fd, "x", 1, MSG_NOSIGNAL); /* wakes a poll() of the socket, if there is one */
    close(fds[0]);
    return (void *)(intptr_t)fds[1];
}

/* As a program does that closes all descriptors, and opens some. */
static void test_a_file_of_the_program_is_left_alone_when_it_closes_the_socket_of_a_handshake(void **state)
{
    struct dm_tls_options options = { .is_on = true };
    char reason[DM_REASON_ROOM] = "", bytes[8] = "";
    struct ends ends;
    void *other;

    (void)state;
    begin_sockets(&ends, TLS1_3_VERSION);
    pthread_create(&ends.thread, NULL, replace_socket, &ends);
    assert_false(dm_stream_secure(&ends.stream, &options, dm_clock_boot_ns() + WAIT_LIMIT_MS * DM_NS_PER_MS, reason));
    pthread_join(ends.thread, &other);
    assert_string_equal(reason, "lost its descriptor: the program has closed it");
    assert_int_equal(recv(ends.stream.fd, bytes, sizeof bytes, MSG_DONTWAIT), 4);
    assert_string_equal(bytes, "mine");
    assert_int_equal(recv((int)(intptr_t)other, bytes, sizeof bytes, MSG_DONTWAIT), -1);
    close((int)(intptr_t)other);
    close(ends.stream.fd);
    end(&ends);
}

/* ---- keys that take long ----------------------------------------------------------------- */

/* The peer computes with a key of this group, and with no other, which TLS 1.2 lets it choose. */
static void use_group(struct ends *ends, const char *group)
{
    EVP_PKEY_CTX *context = EVP_PKEY_CTX_new_from_name(NULL, "DH", NULL);
    EVP_PKEY *parameters = NULL;

    assert_int_equal(EVP_PKEY_paramgen_init(context), 1);
    assert_int_equal(EVP_PKEY_CTX_ctrl_str(context, "dh_param", group), 1);
    assert_int_equal(EVP_PKEY_paramgen(context, &parameters), 1);
    assert_true(SSL_set0_tmp_dh_pkey(ends->peer, parameters));
    assert_true(SSL_set_cipher_list(ends->peer, "DHE"));
    EVP_PKEY_CTX_free(context);
}

/* The groups are only for RSA: the peer has its own certificate, which nobody checks. */
static void use_rsa(struct ends *ends)
{
    EVP_PKEY *key = EVP_RSA_gen(2048);
    X509 *certificate = X509_new();

    X509_gmtime_adj(X509_getm_notBefore(certificate), 0);
    X509_gmtime_adj(X509_getm_notAfter(certificate), 3600);
    X509_set_pubkey(certificate, key);
    assert_true(X509_sign(certificate, key, EVP_sha256()) > 0);
    assert_true(SSL_use_certificate(ends->peer, certificate));
    assert_true(SSL_use_PrivateKey(ends->peer, key));
    X509_free(certificate);
    EVP_PKEY_free(key);
}

/* False with the reason. */
static bool shakes_hands(const char *group, char reason[DM_REASON_ROOM])
{
    struct dm_tls_options options = { .is_on = true };
    struct ends ends;
    bool is_open;

    begin_sockets(&ends, TLS1_2_VERSION);
    use_rsa(&ends);
    use_group(&ends, group);
    pthread_create(&ends.thread, NULL, accept_peer, &ends);
    is_open = dm_stream_secure(&ends.stream, &options, dm_clock_boot_ns() + WAIT_LIMIT_MS * DM_NS_PER_MS, reason);
    shutdown(ends.peer_fd, SHUT_RDWR);
    pthread_join(ends.thread, NULL);
    end(&ends);
    return is_open;
}

/* A key of any size that a server makes up could take seconds, in which no fork() comes back. */
static void test_a_key_is_refused_when_computing_with_it_takes_long(void **state)
{
    char reason[DM_REASON_ROOM] = "";

    (void)state;
    if (!shakes_hands("ffdhe4096", reason))
        fail_msg("%s", reason);
    assert_false(shakes_hands("ffdhe6144", reason));
    assert_non_null(strstr(reason, "Diffie-Hellman key of 6144 bits"));
}

/* ---- failed openings --------------------------------------------------------------------- */

/* A thread that shakes hands with a server for which nobody vouches, and that ends when the test says so. */
struct opener {
    struct ends ends;
    sem_t has_failed, may_end;
};

static void *open_in_vain(void *user)
{
    struct opener *opener = user;
    char cacert[64], reason[DM_REASON_ROOM] = "";
    struct dm_tls_options options = { .is_on = true, .is_verified = true, .name = "localhost", .cacert = cacert };
    bool is_open;

    snprintf(cacert, sizeof cacert, "%s/other.crt", tls_folder);
    is_open =
        dm_stream_secure(&opener->ends.stream, &options, dm_clock_boot_ns() + WAIT_LIMIT_MS * DM_NS_PER_MS, reason);
    sem_post(&opener->has_failed);
    sem_wait(&opener->may_end);
    return is_open ? opener : NULL;
}

/* Returns in the middle of the handshake. */
static void begin_in_vain(struct opener *opener)
{
    struct pollfd poller = { .events = POLLIN };

    begin_sockets(&opener->ends, TLS1_3_VERSION);
    sem_init(&opener->has_failed, 0, 0);
    sem_init(&opener->may_end, 0, 0);
    pthread_create(&opener->ends.thread, NULL, open_in_vain, opener);
    poller.fd = opener->ends.peer_fd;
    assert_int_equal(poll(&poller, 1, WAIT_LIMIT_MS), 1);
}

static void let_fail(struct opener *opener)
{
    assert_int_not_equal(SSL_accept(opener->ends.peer), 1);
    sem_wait(&opener->has_failed);
}

static void let_end(struct opener *opener)
{
    void *is_open;

    sem_post(&opener->may_end);
    pthread_join(opener->ends.thread, &is_open);
    assert_null(is_open);
    sem_destroy(&opener->has_failed);
    sem_destroy(&opener->may_end);
    end(&opener->ends);
}

/* Finding 108: OpenSSL keeps data of the thread for each context, and the last of the openers frees the context. */
static void test_a_thread_ends_when_another_has_failed_to_open_after_it(void **state)
{
    struct opener first, last;

    (void)state;
    for (int i = 0; i < 20; i++) {
        begin_in_vain(&first);
        begin_in_vain(&last);
        let_fail(&first);
        let_fail(&last);
        let_end(&first);
        let_end(&last);
    }
}

/* ---- files ------------------------------------------------------------------------------- */

static int ways_given;

static void give_way(void)
{
    ways_given++;
}

/* Three certificates; a key among them is none.  fork() waits for one, and not for all. */
static void check_turns(const char *cacert)
{
    char reason[DM_REASON_ROOM];
    struct dm_tls_files files = { .is_verified = true, .cacert.path = cacert };
    SSL_CTX *context = SSL_CTX_new(TLS_client_method());
    STACK_OF(X509_OBJECT) * trusted;

    assert_true(dm_tls_files_read(&files, reason));
    ways_given = 0;
    assert_true(dm_tls_files_load(&files, NULL, context, give_way, reason));
    assert_int_equal(ways_given, 3);
    trusted = X509_STORE_get0_objects(SSL_CTX_get_cert_store(context));
    assert_int_equal(sk_X509_OBJECT_num(trusted), 3);
    dm_tls_files_free(&files);
    SSL_CTX_free(context);
}

static const char *many_certificates(void)
{
    static char path[64];

    snprintf(path, sizeof path, "%s/many.crt", tls_folder);
    command_run("cd %s && cat ca.crt other.key other.crt server.crt > many.crt", tls_folder);
    assert_status(0);
    return path;
}

static void test_a_fork_has_its_turn_after_each_certificate_of_cacert(void **state)
{
    (void)state;
    check_turns(many_certificates());
}

/* The variable names a file in place of the system's. */
static void test_a_fork_has_its_turn_after_each_certificate_of_the_system(void **state)
{
    (void)state;
    setenv("SSL_CERT_FILE", many_certificates(), true);
    check_turns(NULL);
    unsetenv("SSL_CERT_FILE");
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        /* First: once a handshake has succeeded, no context is freed. */
        cmocka_unit_test(test_a_thread_ends_when_another_has_failed_to_open_after_it),
        cmocka_unit_test(test_a_thread_that_ends_waits_for_a_fork),
        cmocka_unit_test(test_all_bytes_come_when_records_and_rooms_differ),
        cmocka_unit_test(test_whole_records_come_when_the_last_is_cut),
        cmocka_unit_test(test_the_stream_breaks_when_a_record_was_changed),
        cmocka_unit_test(test_all_bytes_go_when_the_socket_has_little_room),
        cmocka_unit_test(test_a_send_fails_when_the_peer_is_gone),
        cmocka_unit_test(test_bytes_go_on_when_the_peer_wants_other_keys),
        cmocka_unit_test(test_a_turn_has_an_end_when_the_peer_has_much_to_say),
        cmocka_unit_test(test_the_stream_breaks_when_the_peer_says_nothing_but_keys),
        cmocka_unit_test(test_a_file_of_the_program_is_left_alone_when_it_closes_the_socket_of_a_handshake),
        cmocka_unit_test(test_a_key_is_refused_when_computing_with_it_takes_long),
        cmocka_unit_test(test_another_handshake_is_refused_when_the_peer_asks),
        cmocka_unit_test(test_the_end_is_no_error_when_the_peer_closes_properly),
        cmocka_unit_test(test_a_fork_has_its_turn_after_each_certificate_of_cacert),
        cmocka_unit_test(test_a_fork_has_its_turn_after_each_certificate_of_the_system),
    };

    test_begin(argc, argv);
    return cmocka_run_group_tests(tests, begin_group, end_group);
}
