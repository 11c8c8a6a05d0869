/* SPDX-License-Identifier: BSD-2-Clause */
#include "keeper_call.h"

#include <errno.h>
#include <pthread.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/fileid.h"
#include "base/stderr.h"
#include "keeper_place.h"
#include "module/base/settings.h"
#include "shared/keeper_talk.h"
#include "shared/rules.h"
#include "shared/text.h"

/* A keeper that is just ending has not read the question: ask again. One that never answers is broken. */
#define TRIES 5
#define TEXTS 10
#define NUMBERS_ROOM 64

/* Not an errno value: the keeper went away without an answer. */
#define GONE (-1)

/* ---- a question -------------------------------------------------------------------------- */

/* Points to the texts of the question; the bytes belong to the caller. */
struct question {
    struct iovec texts[TEXTS];
    int count;
    int file; /* sent with the texts, perhaps together with standard error; -1: none */
};

static void add(struct question *question, const char *text)
{
    question->texts[question->count++] = (struct iovec){ .iov_base = (char *)text, .iov_len = strlen(text) + 1 };
}

static void add_number(struct question *question, struct text *room, unsigned number)
{
    const char *start = room->bytes + room->length;

    text_add_number(room, number);
    add(question, start);
    text_add_bytes(room, "", 1); /* the text's NUL */
}

static ssize_t send_message(int connection, const struct msghdr *message)
{
    ssize_t sent;

    do {
        sent = sendmsg(connection, message, MSG_NOSIGNAL);
    } while (sent < 0 && errno == EINTR);
    return sent;
}

/*
 * Whether the keeper may have this process's standard error. Not if it is a file, to which we do not write. Nor after a
 * change of user: the kernel keeps the new user's other processes away from this one's descriptors, and the keeper is
 * such a process.
 */
static bool is_voice_for_keeper(void)
{
    struct stat status;

    return prctl(PR_GET_DUMPABLE) == 1 && dm_stderr_is_usable() && fstat(STDERR_FILENO, &status) == 0 &&
           !S_ISREG(status.st_mode);
}

/* If standard error is not for the keeper, or was just closed, sends only the file. */
static ssize_t send_with_gifts(int connection, struct msghdr *message, int file)
{
    int gifts[KEEPER_GIFTS] = { [KEEPER_GIFT_FILE] = file, [KEEPER_GIFT_STDERR] = STDERR_FILENO };
    union {
        struct cmsghdr header;
        char bytes[CMSG_SPACE(sizeof gifts)];
    } room = { .header = { .cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS } };
    ssize_t sent;

    memcpy(CMSG_DATA(&room.header), gifts, sizeof gifts);
    message->msg_control = &room;
    if (is_voice_for_keeper()) {
        room.header.cmsg_len = CMSG_LEN(sizeof gifts);
        message->msg_controllen = sizeof room;
        sent = send_message(connection, message);
        if (sent >= 0 || errno != EBADF)
            return sent;
    }
    room.header.cmsg_len = CMSG_LEN(sizeof gifts[KEEPER_GIFT_FILE]);
    message->msg_controllen = CMSG_SPACE(sizeof gifts[KEEPER_GIFT_FILE]);
    return send_message(connection, message);
}

static bool send_question(int connection, const struct question *question)
{
    struct msghdr message = { .msg_iov = (struct iovec *)question->texts, .msg_iovlen = (size_t)question->count };

    if (question->file < 0)
        return send_message(connection, &message) >= 0;
    return send_with_gifts(connection, &message, question->file) >= 0;
}

/* ---- an answer --------------------------------------------------------------------------- */

/* During the wait another thread of the program may have closed all descriptors, and reused the number. */
struct connection {
    int fd;
    struct dm_fileid file;
};

static void close_connection(void *user)
{
    const struct connection *connection = user;

    dm_fileid_close(&connection->file, connection->fd);
}

/*
 * A signal handler ends the wait as the kernel ends flock(): recv() restarts by itself if the handler was installed
 * with SA_RESTART.
 */
static ssize_t wait_for_answer(struct connection *connection, char *answer, int cancel_state)
{
    int state;
    ssize_t got;

    pthread_cleanup_push(close_connection, connection);
    pthread_setcancelstate(cancel_state, &state);
    got = recv(connection->fd, answer, KEEPER_ANSWER_ROOM - 1, 0);
    pthread_setcancelstate(state, NULL);
    pthread_cleanup_pop(false);
    return got;
}

static ssize_t take_answer(int connection, char *answer)
{
    ssize_t got;

    do {
        got = recv(connection, answer, KEEPER_ANSWER_ROOM - 1, 0);
    } while (got < 0 && errno == EINTR);
    return got;
}

/* errno NUMBER SENTENCE */
static int read_failure(const char *answer)
{
    const char *number = answer + strlen(answer) + 1, *sentence = number + strlen(number) + 1;
    uint64_t error;

    if (strcmp(answer, "errno") != 0 || !text_number(number, &error)) {
        text_say("the keeper of lock files gave an answer that is none", NULL);
        return ENOLCK;
    }
    text_say(sentence, NULL);
    return (int)error;
}

/* There are always three texts to read from the answer. */
static int read_answer(const char *answer)
{
    if (strcmp(answer, "ok") == 0 || strcmp(answer, "free") == 0)
        return 0;
    if (strcmp(answer, "busy") == 0 || strcmp(answer, "held") == 0)
        return EAGAIN;
    return read_failure(answer);
}

/* ---- both -------------------------------------------------------------------------------- */

/*
 * Returns the result of read_answer(), EINTR, or GONE. A separate function, so that its buffer is not on the stack
 * while a keeper is started.
 */
static __attribute__((__noinline__)) int ask_at(struct connection *connection, const struct question *question,
                                                bool is_wait, int cancel_state)
{
    char answer[KEEPER_ANSWER_ROOM + 3];
    ssize_t got;

    if (!send_question(connection->fd, question))
        return GONE;
    got = is_wait ? wait_for_answer(connection, answer, cancel_state) : take_answer(connection->fd, answer);
    if (got < 0 && errno == EINTR)
        return EINTR;
    if (got <= 0)
        return GONE;
    memset(answer + got, 0, 3);
    return read_answer(answer);
}

/* Refuses the lock if there is no keeper, unless the rule allows a local lock. */
static int do_without(const struct rule *rule)
{
    return rule->on_down == DOWN_LOCAL ? 0 : ENOLCK;
}

static int ask(const struct rule *rule, const struct question *question, bool is_wait, int cancel_state)
{
    struct keeper_place place;
    struct dm_fault fault;
    int result = GONE;

    if (settings_get()->url_fault) {
        settings_say_url_fault();
        return do_without(rule);
    }
    if (!keeper_find_place(&place))
        return do_without(rule);
    for (int i = 0; i < TRIES && result == GONE; i++) {
        struct connection connection = { .fd = keeper_connect(&place, &fault) };

        if (connection.fd < 0)
            connection.fd = keeper_start(&place);
        if (connection.fd < 0)
            return do_without(rule);
        connection.file = dm_fileid_of(connection.fd);
        result = ask_at(&connection, question, is_wait, cancel_state);
        close_connection(&connection);
    }
    if (result != GONE)
        return result;
    text_say("the keeper of lock files ends without an answer", NULL);
    return do_without(rule);
}

int keeper_lock(const struct keeper_wish *wish)
{
    const struct rule *rule = wish->rule;
    char numbers[NUMBERS_ROOM], lock[NUMBERS_ROOM + sizeof wish->lock.inode];
    struct text number_room = text_in(numbers, sizeof numbers), lock_text = text_in(lock, sizeof lock);
    struct question question = { .file = wish->file };

    kernel_lock_write(&wish->lock, &lock_text);
    add(&question, "lock");
    add(&question, wish->is_wait ? "wait" : "try");
    add(&question, wish->is_again ? "again" : "new");
    add_number(&question, &number_room, rule->lease_ms);
    add_number(&question, &number_room, rule->linger_ms);
    add_number(&question, &number_room, rule->on_down);
    add_number(&question, &number_room, (unsigned)rule->on_lost);
    add(&question, lock);
    add(&question, wish->name);
    add(&question, wish->path);
    return ask(rule, &question, wish->is_wait, wish->cancel_state);
}

int keeper_test(const struct rule *rule, const char *name, const char *path)
{
    struct question question = { .file = -1 };

    add(&question, "test");
    add(&question, name);
    add(&question, path);
    return ask(rule, &question, false, PTHREAD_CANCEL_DISABLE);
}

/* -1: there is no keeper. */
static int connect_if_there(void)
{
    struct keeper_place place;
    struct dm_fault fault;

    return keeper_find_place(&place) ? keeper_connect(&place, &fault) : -1;
}

void keeper_look(void)
{
    struct question question = { .file = -1 };
    int connection = connect_if_there();

    if (connection < 0)
        return;
    add(&question, "unlock");
    send_question(connection, &question);
    close(connection);
}

bool keeper_settle(void)
{
    struct question question = { .file = -1 };
    struct connection connection = { .fd = connect_if_there() };
    int result;

    if (connection.fd < 0)
        return false;
    connection.file = dm_fileid_of(connection.fd);
    add(&question, "settle");
    result = ask_at(&connection, &question, false, PTHREAD_CANCEL_DISABLE);
    close_connection(&connection);
    return result == 0;
}
