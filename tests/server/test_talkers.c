/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A server that goes on talking for ever, in each state of a connection.  Calls with a deadline end, fork() returns, a
 * loss is told, and the memory stays bounded, all while the server talks: the end of each test tells it to stop.
 */
#include <hiredis.h>
#include <netinet/in.h>
#include <openssl/ssl.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "../lib/testlib.h"
#include "../lib/tls.h"

#define LEASE 1000
#define TALKS 50 /* pieces of 16 KiB and more, which are worth a look at the memory */
#define GROWTH_MAX_KIB (2 * 1024)

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))
#define MESSAGE "*3\r\n$7\r\nmessage\r\n$5\r\ninbox\r\n$6\r\nask 99\r\n"

/* ---- the server: a thread for each connection -------------------------------------------- */

enum when {
    WHEN_GREETED, /* the client has said its first bytes, of TLS or of Redis */
    WHEN_SECURED, /* hands are shaken, and the client has said nothing yet */
    WHEN_LOCKED,  /* the client has the lock "held", and sends another script */
    WHEN_LISTENED /* the client has subscribed its inbox */
};

enum words {
    WORDS_KEYS,     /* by TLS 1.3: other keys, and the client is to change its own */
    WORDS_TICKETS,  /* by TLS 1.3: tickets for the next connection */
    WORDS_BOTH,     /* messages of an inbox, and other keys between them */
    WORDS_HELLO,    /* by TLS: the server wants a handshake */
    WORDS_MESSAGES, /* whole messages of an inbox */
    WORDS_REPLY     /* one reply without end */
};

struct talk {
    const char *what;
    bool has_tls;
    enum when when;
    enum words words;
};

static struct {
    const struct talk *kind;
    SSL_CTX *context;
    int door, port;
    pthread_t thread;
    bool is_over, has_owner;
    int guests; /* serving threads */
    long talks; /* pieces of 16 KiB and more */
} fake;

#define get(field) __atomic_load_n(&fake.field, __ATOMIC_ACQUIRE)
#define set(field, value) __atomic_store_n(&fake.field, value, __ATOMIC_RELEASE)

struct guest {
    int fd;
    SSL *ssl; /* NULL: plain */
    bool is_silent;
};

static bool say(struct guest *guest, const char *bytes, size_t length)
{
    size_t written;

    if (guest->ssl)
        return SSL_write_ex(guest->ssl, bytes, length, &written) && written == length;
    return send(guest->fd, bytes, length, MSG_NOSIGNAL) == (ssize_t)length;
}

static bool say_text(struct guest *guest, const char *text)
{
    return say(guest, text, strlen(text));
}

static bool say_many(struct guest *guest, const char *text)
{
    char bytes[16 * 1024];
    size_t used = 0;

    for (size_t length = strlen(text); used + length <= sizeof bytes; used += length)
        memcpy(bytes + used, text, length);
    return say(guest, bytes, used);
}

/* A record of TLS with messages that any client passes over in the handshake. */
static bool say_hello(struct guest *guest)
{
    static const char head[] = { 22, 3, 3, 64, 0 }; /* of a handshake, 16384 bytes */
    char bytes[sizeof head + 16384] = { 0 };

    memcpy(bytes, head, sizeof head);
    return send(guest->fd, bytes, sizeof bytes, MSG_NOSIGNAL) == (ssize_t)sizeof bytes;
}

static bool say_keys(struct guest *guest)
{
    return SSL_key_update(guest->ssl, SSL_KEY_UPDATE_REQUESTED) && SSL_do_handshake(guest->ssl) == 1;
}

static bool say_ticket(struct guest *guest)
{
    return SSL_new_session_ticket(guest->ssl) && SSL_do_handshake(guest->ssl) == 1;
}

static bool say_words(struct guest *guest)
{
    switch (fake.kind->words) {
    case WORDS_HELLO:
        return say_hello(guest);
    case WORDS_KEYS:
        return say_keys(guest);
    case WORDS_TICKETS:
        return say_ticket(guest);
    case WORDS_MESSAGES:
        return say_many(guest, MESSAGE);
    case WORDS_BOTH:
        return say_keys(guest) && say_text(guest, MESSAGE);
    case WORDS_REPLY:
        return say_many(guest, "*1000\r\n");
    }
    return false;
}

/* Sends many messages of TLS at once, so that the client never finds its socket empty. */
static bool say_at_once(struct guest *guest, BIO *memory)
{
    char *bytes;
    long length;
    bool is_sent;

    for (int i = 0; i < 1000; i++) {
        if (!say_words(guest))
            return false;
    }
    length = BIO_get_mem_data(memory, &bytes);
    is_sent = send(guest->fd, bytes, (size_t)length, MSG_NOSIGNAL) == length;
    BIO_reset(memory);
    return is_sent;
}

/* Until the client goes, or the test ends. */
static bool talk(struct guest *guest)
{
    BIO *memory = NULL;

    if (guest->ssl && fake.kind->words <= WORDS_BOTH) {
        memory = BIO_new(BIO_s_mem());
        SSL_set0_wbio(guest->ssl, memory);
    }
    while (!get(is_over) && (memory ? say_at_once(guest, memory) : say_words(guest)))
        __atomic_add_fetch(&fake.talks, 1, __ATOMIC_ACQ_REL);
    return false;
}

/* The first script about "held" is answered "owned", a later one ends all answers; other mutexes are "busy". */
static bool serve_script(struct guest *guest, const redisReply *command)
{
    const char *key = command->element[3]->str;

    if (strstr(key, "{~probe."))
        return say_text(guest, "+OK\r\n");
    if (strstr(key, "held") && !__atomic_exchange_n(&fake.has_owner, true, __ATOMIC_ACQ_REL))
        return say_text(guest, "*4\r\n$5\r\nowned\r\n:12345\r\n:0\r\n:0\r\n");
    if (fake.kind->when == WHEN_LOCKED)
        return talk(guest);
    guest->is_silent = strstr(key, "held");
    return guest->is_silent || say_text(guest, "*3\r\n$4\r\nbusy\r\n:100000\r\n:0\r\n");
}

static bool serve(struct guest *guest, const redisReply *command)
{
    const char *word = command->elements ? command->element[0]->str : "";

    if (guest->is_silent)
        return true;
    if (fake.kind->when == WHEN_GREETED)
        return talk(guest);
    if (strcmp(word, "ROLE") == 0)
        return say_text(guest, "*3\r\n$6\r\nmaster\r\n:0\r\n*0\r\n");
    if (strcmp(word, "CLIENT") == 0)
        return say_text(guest, ":7\r\n");
    if (strcmp(word, "INFO") == 0)
        return say_text(guest, "$50\r\n\nrun_id:0123456789abcdef0123456789abcdef01234567\r\n\r\n");
    if (strcmp(word, "SUBSCRIBE") == 0)
        return say_text(guest, "*3\r\n$9\r\nsubscribe\r\n$1\r\nx\r\n:1\r\n") &&
               (fake.kind->when != WHEN_LISTENED || talk(guest));
    return command->elements > 3 && serve_script(guest, command);
}

static long hear(struct guest *guest, char *bytes, size_t room)
{
    size_t got;

    if (guest->ssl)
        return SSL_read_ex(guest->ssl, bytes, room, &got) ? (long)got : 0;
    return recv(guest->fd, bytes, room, 0);
}

static void converse(struct guest *guest)
{
    redisReader *reader = redisReaderCreate();
    void *command = NULL;
    char bytes[4096];
    long length;
    bool is_open = fake.kind->when != WHEN_SECURED || talk(guest);

    while (is_open && (length = hear(guest, bytes, sizeof bytes)) > 0) {
        redisReaderFeed(reader, bytes, (size_t)length);
        while (is_open && redisReaderGetReply(reader, &command) == REDIS_OK && command) {
            is_open = serve(guest, command);
            freeReplyObject(command);
        }
    }
    redisReaderFree(reader);
}

static void *serve_guest(void *user)
{
    struct guest guest = { .fd = (int)(intptr_t)user };
    char byte;

    if (fake.kind->words == WORDS_HELLO) {
        if (recv(guest.fd, &byte, 1, 0) == 1)
            talk(&guest);
    } else if (fake.kind->has_tls) {
        guest.ssl = SSL_new(fake.context);
        SSL_set_fd(guest.ssl, guest.fd);
        if (SSL_accept(guest.ssl) == 1)
            converse(&guest);
        SSL_free(guest.ssl);
    } else {
        converse(&guest);
    }
    close(guest.fd);
    __atomic_sub_fetch(&fake.guests, 1, __ATOMIC_ACQ_REL);
    return NULL;
}

static void *welcome(void *user)
{
    struct timeval patience = { .tv_sec = 1 };
    pthread_t thread;
    sigset_t pipes; /* OpenSSL does not ask send() to spare us the signal; the serving threads inherit the mask */
    int fd;

    sigemptyset(&pipes);
    sigaddset(&pipes, SIGPIPE);
    pthread_sigmask(SIG_BLOCK, &pipes, NULL);
    while ((fd = accept4(fake.door, NULL, NULL, SOCK_CLOEXEC)) >= 0) {
        setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience); /* so that the server ends with the test */
        __atomic_add_fetch(&fake.guests, 1, __ATOMIC_ACQ_REL);
        assert_int_equal(pthread_create(&thread, NULL, serve_guest, (void *)(intptr_t)fd), 0);
        pthread_detach(thread);
    }
    return user;
}

static SSL_CTX *make_context(void)
{
    SSL_CTX *context = SSL_CTX_new(TLS_server_method());
    char path[64];

    snprintf(path, sizeof path, "%s/server.crt", tls_folder);
    assert_true(SSL_CTX_use_certificate_chain_file(context, path));
    snprintf(path, sizeof path, "%s/server.key", tls_folder);
    assert_true(SSL_CTX_use_PrivateKey_file(context, path, SSL_FILETYPE_PEM));
    return context;
}

static void begin_talker(const struct talk *kind)
{
    struct sockaddr_in address = { .sin_family = AF_INET, .sin_addr = { htonl(INADDR_LOOPBACK) } };
    socklen_t size = sizeof address;

    memset(&fake, 0, sizeof fake);
    fake.kind = kind;
    fake.context = make_context();
    fake.door = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_return_code(bind(fake.door, (struct sockaddr *)&address, sizeof address), errno);
    assert_return_code(listen(fake.door, 64), errno);
    assert_return_code(getsockname(fake.door, (struct sockaddr *)&address, &size), errno);
    fake.port = ntohs(address.sin_port);
    assert_int_equal(pthread_create(&fake.thread, NULL, welcome, NULL), 0);
}

static void end_talker(struct actor *a)
{
    actor_kill(a);
    actor_end(a);
    set(is_over, true);
    shutdown(fake.door, SHUT_RDWR);
    pthread_join(fake.thread, NULL);
    close(fake.door);
    wait_until(get(guests) == 0);
    SSL_CTX_free(fake.context);
}

static int begin_group(void **state)
{
    tls_begin();
    return test_group_setup(state);
}

static int end_group(void **state)
{
    tls_end();
    return test_group_teardown(state);
}

/* ---- the client -------------------------------------------------------------------------- */

/* The connection's own times are so long that only the caller's deadline can end a call. */
static struct actor *begin_client(const char *scheme, const char *path)
{
    char url[300];

    snprintf(url, sizeof url, "%s://127.0.0.1:%d%s?grace=off&connect_timeout=60000%s", scheme, fake.port, path,
             fake.kind->has_tls ? "&tls=yes&verify=none" : "");
    return actor_start_at(url);
}

/* A thread waits for a lock until its deadline, and others fork meanwhile; nobody has told the server to stop. */
static void check_calls(struct actor *a)
{
    actor_do(a, "0", "init talk/x lease=%d", LEASE);
    actor_do(a, "0", "start timedlock talk/x 500");
    wait_until(get(talks) > 0);
    for (int i = 0; i < 10; i++)
        actor_do(a, "here", "in-child say here");
    actor_do(a, "ETIMEDOUT", "join");
}

static void check(const char *scheme, const char *path, const struct talk *kind)
{
    struct actor *a;

    begin_talker(kind);
    a = begin_client(scheme, path);
    check_calls(a);
    end_talker(a);
}

/* The server talks before anybody has checked its certificate, or has logged in. */
static void test_calls_and_forks_come_back_when_a_server_talks_before_the_login(void **state)
{
    static const struct talk talks[] = {
        { "plain", false, WHEN_GREETED, WORDS_MESSAGES },     { "a plain reply", false, WHEN_GREETED, WORDS_REPLY },
        { "the handshake", true, WHEN_GREETED, WORDS_HELLO }, { "keys", true, WHEN_SECURED, WORDS_KEYS },
        { "tickets", true, WHEN_SECURED, WORDS_TICKETS },     { "messages", true, WHEN_SECURED, WORDS_MESSAGES },
        { "a reply", true, WHEN_GREETED, WORDS_REPLY },
    };

    (void)state;
    for (size_t i = 0; i < COUNT(talks); i++)
        check("redis", "", &talks[i]);
}

/* A sentinel, and a node of a Cluster, that talk instead of shaking hands, or instead of the greeting. */
static void test_calls_and_forks_come_back_when_a_sentinel_or_a_node_talks(void **state)
{
    static const struct talk talks[] = {
        { "plain", false, WHEN_GREETED, WORDS_REPLY },
        { "the handshake", true, WHEN_GREETED, WORDS_HELLO },
        { "keys", true, WHEN_SECURED, WORDS_KEYS },
        { "messages", true, WHEN_SECURED, WORDS_MESSAGES },
    };

    (void)state;
    for (size_t i = 0; i < COUNT(talks); i++) {
        check("redis+sentinel", "/group", &talks[i]);
        check("redis+cluster", "", &talks[i]);
    }
}

/* The other servers of a quorum shake hands meanwhile, and are a majority. */
static void test_a_quorum_locks_when_one_of_its_servers_talks(void **state)
{
    static const struct talk talks[] = {
        { "the handshake", true, WHEN_GREETED, WORDS_HELLO },
        { "keys", true, WHEN_SECURED, WORDS_KEYS },
        { "a reply", true, WHEN_GREETED, WORDS_REPLY },
    };
    struct tls_server *others[] = { tls_server_start("server", "no", NULL), tls_server_start("server", "no", NULL) };
    struct actor *a;
    char url[300];

    (void)state;
    for (size_t i = 0; i < COUNT(talks); i++) {
        begin_talker(&talks[i]);
        snprintf(url, sizeof url,
                 "redis+quorum://127.0.0.1:%d,127.0.0.1:%d,127.0.0.1:%d?tls=yes&verify=none&grace=off"
                 "&connect_timeout=20000&command_timeout=20000",
                 fake.port, others[0]->port, others[1]->port);
        a = actor_start_at(url);
        actor_do(a, "0", "lock talk/quorum");
        wait_until(get(talks) > 0);
        for (int j = 0; j < 10; j++)
            actor_do(a, "here", "in-child say here");
        actor_do(a, "0", "unlock talk/quorum");
        end_talker(a);
    }
    tls_server_end(others[0]);
    tls_server_end(others[1]);
}

static const struct talk after_login[] = {
    { "keys", true, WHEN_LOCKED, WORDS_KEYS },
    { "tickets", true, WHEN_LOCKED, WORDS_TICKETS },
    { "keys to the inbox", true, WHEN_LISTENED, WORDS_KEYS },
    { "both to the inbox", true, WHEN_LISTENED, WORDS_BOTH },
    { "messages to the inbox", true, WHEN_LISTENED, WORDS_MESSAGES },
    { "plain messages to the inbox", false, WHEN_LISTENED, WORDS_MESSAGES },
    { "a plain reply", false, WHEN_LOCKED, WORDS_REPLY },
};

/* Holds one mutex, waits for another, so that the inbox is subscribed. */
static void hold_and_wait(struct actor *a)
{
    actor_do(a, "0", "init talk/held lease=%d", LEASE);
    actor_do(a, "0", "lock talk/held");
    actor_do(a, "0", "start timedlock talk/other 800");
    wait_until(get(talks) > 0);
}

/* Renewals are not answered: the loss is told, and forks and calls come back, while the server talks. */
static void test_a_loss_is_told_when_a_server_talks_after_the_login(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(after_login); i++) {
        struct actor *a;

        begin_talker(&after_login[i]);
        a = begin_client("redis", "");
        hold_and_wait(a);
        for (int j = 0; j < 10; j++)
            actor_do(a, "here", "in-child say here");
        wait_until(actor_losses(a) == 1);
        actor_do(a, "ETIMEDOUT", "join");
        end_talker(a);
    }
}

/* The process's memory now, in KiB. */
static long resident_kib(struct actor *a)
{
    char path[64], line[200];
    long kib = 0;
    FILE *file;

    snprintf(path, sizeof path, "/proc/%d/status", (int)actor_pid(a));
    file = fopen(path, "re");
    assert_non_null(file);
    while (fgets(line, sizeof line, file))
        sscanf(line, "VmRSS: %ld", &kib);
    fclose(file);
    assert_true(kib > 0);
    return kib;
}

/* A talk that the client cannot call useless, because there are whole messages in it. */
static void test_memory_stays_bounded_when_a_server_talks_by_tls(void **state)
{
    static const struct talk talks[] = {
        { "both", true, WHEN_LISTENED, WORDS_BOTH },
        { "messages", true, WHEN_LISTENED, WORDS_MESSAGES },
    };

    (void)state;
    for (size_t i = 0; i < COUNT(talks); i++) {
        struct actor *a;
        long before_kib;

        begin_talker(&talks[i]);
        a = begin_client("redis", "");
        hold_and_wait(a);
        wait_until(get(talks) > TALKS);
        before_kib = resident_kib(a);
        wait_until(get(talks) > 4 * TALKS);
        if (resident_kib(a) - before_kib > GROWTH_MAX_KIB)
            fail_msg("%s: grew from %ld to %ld KiB", talks[i].what, before_kib, resident_kib(a));
        end_talker(a);
    }
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_calls_and_forks_come_back_when_a_server_talks_before_the_login),
        cmocka_unit_test(test_calls_and_forks_come_back_when_a_sentinel_or_a_node_talks),
        cmocka_unit_test(test_a_quorum_locks_when_one_of_its_servers_talks),
        cmocka_unit_test(test_a_loss_is_told_when_a_server_talks_after_the_login),
        cmocka_unit_test(test_memory_stays_bounded_when_a_server_talks_by_tls),
        cmocka_unit_test(test_nothing_is_left),
    };

    test_begin(argc, argv);
    test_tell_asan("quarantine_size_mb=1"); /* freed memory that the sanitizer keeps is no growth of the client's */
    return cmocka_run_group_tests(tests, begin_group, end_group);
}
