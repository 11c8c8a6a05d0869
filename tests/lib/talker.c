/* SPDX-License-Identifier: BSD-2-Clause */
#include "talker.h"

#include <netinet/in.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include "testlib.h"

static struct {
    void (*receive)(struct guest *guest);
    int door;
    pthread_t thread;
    bool is_over, has_owner;
    int guests; /* serving threads */
} talker;

bool talker_is_over(void)
{
    return __atomic_load_n(&talker.is_over, __ATOMIC_ACQUIRE);
}

/* ---- words ------------------------------------------------------------------------------- */

static bool say(struct guest *guest, const char *bytes, size_t length)
{
    return send(guest->fd, bytes, length, MSG_NOSIGNAL) == (ssize_t)length;
}

bool talker_say_text(struct guest *guest, const char *text)
{
    return guest->say(guest, text, strlen(text));
}

static long hear(struct guest *guest, char *bytes, size_t room)
{
    return recv(guest->fd, bytes, room, 0);
}

void talker_converse(struct guest *guest, bool (*serve)(struct guest *guest, const redisReply *command))
{
    redisReader *reader = redisReaderCreate();
    void *command = NULL;
    char bytes[4096];
    bool is_open = true;
    long length;

    while (is_open && (length = guest->hear(guest, bytes, sizeof bytes)) > 0) {
        redisReaderFeed(reader, bytes, (size_t)length);
        while (is_open && redisReaderGetReply(reader, &command) == REDIS_OK && command) {
            is_open = serve(guest, command);
            freeReplyObject(command);
        }
    }
    redisReaderFree(reader);
}

bool talker_is(const redisReply *command, const char *word)
{
    return command->elements > 0 && strcmp(command->element[0]->str, word) == 0;
}

bool talker_is_script(const redisReply *command)
{
    return command->elements > 3 && strncmp(command->element[0]->str, "EVAL", 4) == 0 &&
           !strstr(command->element[3]->str, "{~probe.");
}

const char *talker_answer(struct guest *guest, const redisReply *command)
{
    if (guest->is_silent)
        return "";
    if (talker_is(command, "ROLE"))
        return "*3\r\n$6\r\nmaster\r\n:0\r\n*0\r\n";
    if (talker_is(command, "CLIENT"))
        return ":7\r\n";
    if (talker_is(command, "INFO"))
        return "$50\r\n\nrun_id:0123456789abcdef0123456789abcdef01234567\r\n\r\n";
    if (talker_is(command, "SUBSCRIBE"))
        return "*3\r\n$9\r\nsubscribe\r\n$1\r\nx\r\n:1\r\n";
    if (!talker_is_script(command))
        return command->elements > 3 ? "+OK\r\n" : NULL;
    if (!strstr(command->element[3]->str, "held"))
        return "*3\r\n$4\r\nbusy\r\n:100000\r\n:0\r\n";
    guest->is_silent = __atomic_exchange_n(&talker.has_owner, true, __ATOMIC_ACQ_REL);
    return guest->is_silent ? "" : "*4\r\n$5\r\nowned\r\n:12345\r\n:0\r\n:0\r\n";
}

/* ---- connections ------------------------------------------------------------------------- */

static void *serve_guest(void *user)
{
    struct guest guest = { .fd = (int)(intptr_t)user, .say = say, .hear = hear };

    talker.receive(&guest);
    close(guest.fd);
    __atomic_sub_fetch(&talker.guests, 1, __ATOMIC_ACQ_REL);
    return NULL;
}

static void *welcome(void *user)
{
    struct timeval patience = { .tv_sec = 1 };
    pthread_t thread;
    sigset_t pipes; /* OpenSSL does not make send() suppress the signal; the serving threads inherit the mask */
    int fd;

    sigemptyset(&pipes);
    sigaddset(&pipes, SIGPIPE);
    pthread_sigmask(SIG_BLOCK, &pipes, NULL);
    while ((fd = accept4(talker.door, NULL, NULL, SOCK_CLOEXEC)) >= 0) {
        setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience); /* so that the server ends with the test */
        __atomic_add_fetch(&talker.guests, 1, __ATOMIC_ACQ_REL);
        assert_int_equal(pthread_create(&thread, NULL, serve_guest, (void *)(intptr_t)fd), 0);
        pthread_detach(thread);
    }
    return user;
}

int talker_begin(void (*receive)(struct guest *guest))
{
    struct sockaddr_in address = { .sin_family = AF_INET, .sin_addr = { htonl(INADDR_LOOPBACK) } };
    socklen_t size = sizeof address;

    memset(&talker, 0, sizeof talker);
    talker.receive = receive;
    talker.door = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_return_code(bind(talker.door, (struct sockaddr *)&address, sizeof address), errno);
    assert_return_code(listen(talker.door, 64), errno);
    assert_return_code(getsockname(talker.door, (struct sockaddr *)&address, &size), errno);
    assert_int_equal(pthread_create(&talker.thread, NULL, welcome, NULL), 0);
    return ntohs(address.sin_port);
}

void talker_end(void)
{
    __atomic_store_n(&talker.is_over, true, __ATOMIC_RELEASE);
    shutdown(talker.door, SHUT_RDWR);
    pthread_join(talker.thread, NULL);
    close(talker.door);
    wait_until(__atomic_load_n(&talker.guests, __ATOMIC_ACQUIRE) == 0);
}
