/* SPDX-License-Identifier: BSD-2-Clause */
#include "impostor.h"

#include <fcntl.h>
#include <hiredis.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "testlib.h"

#define GUESTS 64
#define ORDERS 8
#define DOORS 2 /* a path and a port */

/* One thread serves all; the manner may be changed at any time, under the guard. */
static struct {
    pthread_mutex_t guard;
    pthread_t thread;
    char path[64], url[192];
    int doors[DOORS], port, bell[2];
    enum manner manner;
    const char *nonsense;
    size_t length;
    const char *redirect; /* "MOVED", "ASK" */
    int slot;
    int said; /* number of answers since the last change */
    struct {
        const char *words, *reply;
    } orders[ORDERS];
    int order_count;
    struct {
        int fd;
        redisReader *reader; /* a client's commands are arrays of bulks, as replies are */
    } guests[GUESTS];
} fake = { .guard = PTHREAD_MUTEX_INITIALIZER };

static void say(int fd, const char *bytes, size_t length)
{
    ssize_t sent = send(fd, bytes, length, MSG_NOSIGNAL | MSG_DONTWAIT);

    (void)sent; /* a client that has gone hears nothing */
}

static void say_nonsense(int fd)
{
    fake.said++;
    say(fd, fake.nonsense, fake.length);
}

static void say_text(int fd, const char *text)
{
    say(fd, text, strlen(text));
}

/* To another port each time, where nobody may be listening. */
static void say_redirect(int fd)
{
    char text[80];

    snprintf(text, sizeof text, "-%s %d 127.0.0.1:%d\r\n", fake.redirect, fake.slot, 1 + fake.said++ % 65535);
    say_text(fd, text);
}

/* The answer to CLUSTER SLOTS: all slots are here. */
static void say_map(int fd)
{
    char text[160];

    if (fake.manner == MANNER_REFUSING_ONCE) {
        if (fake.said++ == 0)
            say_text(fd, "-NOPERM this user may not ask\r\n");
        return;
    }
    snprintf(text, sizeof text, "*1\r\n*3\r\n:0\r\n:16383\r\n*3\r\n$9\r\n127.0.0.1\r\n:%d\r\n$40\r\n%040d\r\n",
             fake.port, 7);
    say_text(fd, text);
}

static void say_info(int fd)
{
    static const char of_node[] =
        "# Server\r\nredis_mode:cluster\r\nrun_id:0123456789012345678901234567890123456789\r\n";
    char text[160];

    if (fake.manner == MANNER_REDIRECTING || fake.manner == MANNER_REFUSING_ONCE)
        snprintf(text, sizeof text, "$%zu\r\n%s\r\n", sizeof of_node - 1, of_node);
    else
        snprintf(text, sizeof text, "$0\r\n\r\n");
    say_text(fd, text);
}

/* A good server's short answer to a command of the greeting; NULL for any other command. */
static const char *proper_answer(const char *word, const redisReply *command)
{
    if (strcmp(word, "ROLE") == 0)
        return "*3\r\n$6\r\nmaster\r\n:0\r\n*0\r\n";
    if (strcmp(word, "CLIENT") == 0)
        return ":7\r\n";
    if (strcmp(word, "ASKING") == 0)
        return "+OK\r\n";
    if (strcmp(word, "SUBSCRIBE") == 0)
        return "*3\r\n$9\r\nsubscribe\r\n$1\r\nx\r\n:1\r\n";
    if (strcmp(word, "EVAL") == 0 && command->elements > 3 && strstr(command->element[3]->str, "{~probe."))
        return "+OK\r\n";
    return NULL;
}

/* Answers anything but the greeting.  False if the connection must be closed. */
static bool say_as_told(int fd)
{
    if (fake.manner == MANNER_FLAPPING)
        fake.said++;
    else if (fake.manner == MANNER_REDIRECTING)
        say_redirect(fd);
    else
        say_nonsense(fd);
    return fake.manner != MANNER_FLAPPING;
}

/* The answer set by impostor_answer(); NULL if there is none for this command. */
static const char *ordered_answer(const redisReply *command)
{
    char words[200] = "";

    for (size_t i = 0; i < command->elements && strlen(words) + command->element[i]->len + 2 < sizeof words; i++)
        sprintf(words + strlen(words), "%s%s", i ? " " : "", command->element[i]->str);
    for (int i = 0; i < fake.order_count; i++)
        if (strncmp(words, fake.orders[i].words, strlen(fake.orders[i].words)) == 0)
            return fake.orders[i].reply;
    return NULL;
}

/* False if the connection must be closed. */
static bool serve_command(int fd, const redisReply *command)
{
    const char *word = command->elements ? command->element[0]->str : "";
    const char *answer = ordered_answer(command);

    if (answer && !*answer)
        return false;
    if (!answer)
        answer = proper_answer(word, command);
    if (answer)
        say_text(fd, answer);
    else if (strcmp(word, "INFO") == 0)
        say_info(fd);
    else if (strcmp(word, "CLUSTER") == 0)
        say_map(fd);
    else
        return say_as_told(fd);
    return true;
}

/* False if the connection must be closed. */
static bool serve(int guest, const char *bytes, size_t length)
{
    int fd = fake.guests[guest].fd;
    void *command = NULL;
    bool is_welcome = true;

    switch (fake.manner) {
    case MANNER_SILENT:
        return true;
    case MANNER_CLOSING:
        return false;
    case MANNER_BABBLING:
        say_nonsense(fd);
        return true;
    case MANNER_CLOSING_HALFWAY:
        fake.said++;
        say(fd, "*3\r\n$6\r\nmas", 11);
        return false;
    case MANNER_FLAPPING:
    case MANNER_LYING:
    case MANNER_REDIRECTING:
    case MANNER_REFUSING_ONCE:
        redisReaderFeed(fake.guests[guest].reader, bytes, length);
        while (redisReaderGetReply(fake.guests[guest].reader, &command) == REDIS_OK && command) {
            is_welcome = is_welcome && serve_command(fd, command);
            freeReplyObject(command);
            command = NULL;
        }
        return is_welcome;
    }
    return false;
}

static void dismiss(int guest)
{
    close(fake.guests[guest].fd);
    redisReaderFree(fake.guests[guest].reader);
    fake.guests[guest].fd = -1;
}

static void welcome(int door)
{
    int fd = accept4(door, NULL, NULL, SOCK_CLOEXEC);
    int guest = 0;

    while (guest < GUESTS && fake.guests[guest].fd >= 0)
        guest++;
    if (fd >= 0 && guest < GUESTS) {
        fake.guests[guest].fd = fd;
        fake.guests[guest].reader = redisReaderCreate();
        if (fake.manner == MANNER_CLOSING) {
            fake.said++;
            dismiss(guest);
        }
    } else if (fd >= 0) {
        close(fd);
    }
}

static void listen_to(int guest)
{
    char bytes[65536];
    ssize_t length = recv(fake.guests[guest].fd, bytes, sizeof bytes, MSG_DONTWAIT);

    if (length <= 0 || !serve(guest, bytes, (size_t)length))
        dismiss(guest);
}

static void *run_fake(void *user)
{
    struct pollfd ready[GUESTS + DOORS + 1];

    do {
        for (int i = 0; i < DOORS; i++)
            ready[GUESTS + i] = (struct pollfd){ .fd = fake.doors[i], .events = POLLIN };
        ready[GUESTS + DOORS] = (struct pollfd){ .fd = fake.bell[0], .events = POLLIN };
        for (int i = 0; i < GUESTS; i++)
            ready[i] = (struct pollfd){ .fd = fake.guests[i].fd, .events = POLLIN };
        poll(ready, GUESTS + DOORS + 1, -1);
        pthread_mutex_lock(&fake.guard);
        for (int i = 0; i < GUESTS; i++) {
            if (ready[i].fd >= 0 && ready[i].revents)
                listen_to(i);
        }
        for (int i = 0; i < DOORS; i++) {
            if (ready[GUESTS + i].revents)
                welcome(fake.doors[i]);
        }
        pthread_mutex_unlock(&fake.guard);
    } while (!ready[GUESTS + DOORS].revents);
    return user;
}

static void become(enum manner manner)
{
    fake.manner = manner;
    fake.said = 0;
    fake.order_count = 0;
}

void impostor_be(enum manner manner, const char *nonsense, size_t length)
{
    pthread_mutex_lock(&fake.guard);
    become(manner);
    fake.nonsense = nonsense;
    fake.length = length;
    pthread_mutex_unlock(&fake.guard);
}

void impostor_redirect(const char *redirect, int slot)
{
    pthread_mutex_lock(&fake.guard);
    become(MANNER_REDIRECTING);
    fake.redirect = redirect;
    fake.slot = slot;
    pthread_mutex_unlock(&fake.guard);
}

void impostor_answer(const char *words, const char *reply)
{
    pthread_mutex_lock(&fake.guard);
    assert_true(fake.order_count < ORDERS);
    fake.orders[fake.order_count].words = words;
    fake.orders[fake.order_count++].reply = reply;
    pthread_mutex_unlock(&fake.guard);
}

int impostor_said(void)
{
    int said;

    pthread_mutex_lock(&fake.guard);
    said = fake.said;
    pthread_mutex_unlock(&fake.guard);
    return said;
}

const char *impostor_path(void)
{
    return fake.path;
}

const char *impostor_url(void)
{
    return fake.url;
}

int impostor_port(void)
{
    return fake.port;
}

static int open_door(int family, const void *address, socklen_t size)
{
    int door = socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0);

    assert_return_code(bind(door, address, size), errno);
    assert_return_code(listen(door, GUESTS), errno);
    return door;
}

static int port_of(int door)
{
    struct sockaddr_in address;
    socklen_t size = sizeof address;

    assert_return_code(getsockname(door, (struct sockaddr *)&address, &size), errno);
    return ntohs(address.sin_port);
}

void impostor_begin(const char *folder)
{
    struct sockaddr_un path = { .sun_family = AF_UNIX };
    struct sockaddr_in port = { .sin_family = AF_INET, .sin_addr = { htonl(INADDR_LOOPBACK) } };

    snprintf(fake.path, sizeof fake.path, "%s/fake", folder);
    snprintf(fake.url, sizeof fake.url, "unix://%s?grace=off&command_timeout=80&connect_timeout=80", fake.path);
    strcpy(path.sun_path, fake.path);
    for (int i = 0; i < GUESTS; i++)
        fake.guests[i].fd = -1;
    fake.doors[0] = open_door(AF_UNIX, &path, sizeof path);
    fake.doors[1] = open_door(AF_INET, &port, sizeof port);
    fake.port = port_of(fake.doors[1]);
    assert_return_code(pipe2(fake.bell, O_CLOEXEC), errno);
    impostor_be(MANNER_SILENT, "", 0);
    assert_int_equal(pthread_create(&fake.thread, NULL, run_fake, NULL), 0);
}

void impostor_end(void)
{
    assert_int_equal(write(fake.bell[1], "", 1), 1);
    assert_int_equal(pthread_join(fake.thread, NULL), 0);
    for (int i = 0; i < GUESTS; i++) {
        if (fake.guests[i].fd >= 0)
            dismiss(i);
    }
    for (int i = 0; i < DOORS; i++)
        close(fake.doors[i]);
    close(fake.bell[0]);
    close(fake.bell[1]);
    unlink(fake.path);
}
