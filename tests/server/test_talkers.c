/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A server that never stops talking, in each state of a connection.  Calls with a deadline end, fork() returns, a loss
 * is reported, and the memory stays bounded, all while the server talks: the end of each test makes it stop.
 */
#include <openssl/ssl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "../lib/talker.h"
#include "../lib/testlib.h"
#include "../lib/tls.h"

#define LEASE 1000
#define TALKS 50 /* pieces of 16 KiB or more, enough to measure the memory */
#define GROWTH_MAX_KIB (2 * 1024)

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))
#define MESSAGE "*3\r\n$7\r\nmessage\r\n$5\r\ninbox\r\n$6\r\nask 99\r\n"

/* ---- the server -------------------------------------------------------------------------- */

enum when {
    WHEN_GREETED, /* the client has said its first bytes, of TLS or of Redis */
    WHEN_SECURED, /* hands are shaken, and the client has said nothing yet */
    WHEN_LOCKED,  /* the client has the lock "held", and sends another script */
    WHEN_LISTENED /* the client has subscribed its inbox */
};

enum words {
    WORDS_KEYS,     /* with TLS 1.3: new keys, and the client must change its own, too */
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
    int port;
    long talks; /* pieces of 16 KiB and more */
} fake;

#define get(field) __atomic_load_n(&fake.field, __ATOMIC_ACQUIRE)

static bool say_by_tls(struct guest *guest, const char *bytes, size_t length)
{
    size_t written;

    return SSL_write_ex(guest->tls, bytes, length, &written) && written == length;
}

static long hear_by_tls(struct guest *guest, char *bytes, size_t room)
{
    size_t got;

    return SSL_read_ex(guest->tls, bytes, room, &got) ? (long)got : 0;
}

static bool say_many(struct guest *guest, const char *text)
{
    char bytes[16 * 1024];
    size_t used = 0;

    for (size_t length = strlen(text); used + length <= sizeof bytes; used += length)
        memcpy(bytes + used, text, length);
    return guest->say(guest, bytes, used);
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
    return SSL_key_update(guest->tls, SSL_KEY_UPDATE_REQUESTED) && SSL_do_handshake(guest->tls) == 1;
}

static bool say_ticket(struct guest *guest)
{
    return SSL_new_session_ticket(guest->tls) && SSL_do_handshake(guest->tls) == 1;
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
        return say_keys(guest) && talker_say_text(guest, MESSAGE);
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

    if (guest->tls && fake.kind->words <= WORDS_BOTH) {
        memory = BIO_new(BIO_s_mem());
        SSL_set0_wbio(guest->tls, memory);
    }
    while (!talker_is_over() && (memory ? say_at_once(guest, memory) : say_words(guest)))
        __atomic_add_fetch(&fake.talks, 1, __ATOMIC_ACQ_REL);
    return false;
}

/* The first script gets the lock "held"; the end of all answers is a later one, or a renewal. */
static bool serve(struct guest *guest, const redisReply *command)
{
    const char *answer = talker_answer(guest, command);
    bool is_owned = answer && strstr(answer, "owned");

    if (fake.kind->when == WHEN_GREETED)
        return talk(guest);
    if (!answer || (talker_is_script(command) && !is_owned && fake.kind->when == WHEN_LOCKED))
        return answer && talk(guest);
    return talker_say_text(guest, answer) &&
           (fake.kind->when != WHEN_LISTENED || !talker_is(command, "SUBSCRIBE") || talk(guest));
}

static void receive(struct guest *guest)
{
    char byte;

    if (fake.kind->words == WORDS_HELLO) {
        if (recv(guest->fd, &byte, 1, 0) == 1)
            talk(guest);
        return;
    }
    if (fake.kind->has_tls) {
        guest->tls = SSL_new(fake.context);
        guest->say = say_by_tls;
        guest->hear = hear_by_tls;
        SSL_set_fd(guest->tls, guest->fd);
    }
    if ((!guest->tls || SSL_accept(guest->tls) == 1) && (fake.kind->when != WHEN_SECURED || talk(guest)))
        talker_converse(guest, serve);
    SSL_free(guest->tls);
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
    memset(&fake, 0, sizeof fake);
    fake.kind = kind;
    fake.context = make_context();
    fake.port = talker_begin(receive);
}

static void end_talker(struct actor *a)
{
    actor_kill(a);
    actor_end(a);
    talker_end();
    SSL_CTX_free(fake.context);
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

/* A thread waits for a lock until its deadline while others fork; nobody has told the server to stop. */
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

/* Meanwhile the other servers of a quorum complete their handshakes, and are a majority. */
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

/* Renewals are not answered: the loss is reported, and forks and calls return, while the server talks. */
static void test_a_loss_is_reported_when_a_server_talks_after_the_login(void **state)
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
        before_kib = proc_kib(actor_pid(a), "RssAnon");
        for (int part = 2; part <= 4; part++)
            wait_until(get(talks) > part * TALKS);
        if (proc_kib(actor_pid(a), "RssAnon") - before_kib > GROWTH_MAX_KIB)
            fail_msg("%s: grew from %ld to %ld KiB", talks[i].what, before_kib, proc_kib(actor_pid(a), "RssAnon"));
        end_talker(a);
    }
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_calls_and_forks_come_back_when_a_server_talks_before_the_login),
        cmocka_unit_test(test_calls_and_forks_come_back_when_a_sentinel_or_a_node_talks),
        cmocka_unit_test(test_a_quorum_locks_when_one_of_its_servers_talks),
        cmocka_unit_test(test_a_loss_is_reported_when_a_server_talks_after_the_login),
        cmocka_unit_test(test_memory_stays_bounded_when_a_server_talks_by_tls),
        cmocka_unit_test(test_nothing_is_left),
    };

    test_begin(argc, argv);
    /* freed memory that the sanitizer keeps is no growth of the client's */
    test_tell_asan("quarantine_size_mb=1:thread_local_quarantine_size_kb=64");
    return cmocka_run_group_tests(tests, tls_group_setup, tls_group_teardown);
}
