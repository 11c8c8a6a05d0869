/* SPDX-License-Identifier: BSD-2-Clause */
#include "caller.h"

#include <dmutex/dmutex.h>

#include <errno.h>
#include <glib-unix.h>
#include <stdbool.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "life.h"
#include "say.h"
#include "shared/keeper_talk.h"

#define PAUSE_MS 50

/*
 * Lives from the connection to the answer, and no longer: every answer frees the caller. Each caller is a reason to
 * live.
 */
struct caller {
    int fd;
    guint source;
    pid_t pid;
    bool has_asked;
    int gifts[KEEPER_GIFTS];     /* -1: none */
    void (*on_gone)(void *user); /* NULL: nobody wants to know */
    void *user;
};

static caller_question_fn question_fn;

void caller_dismiss(struct caller *caller)
{
    g_source_remove(caller->source);
    close(caller->fd);
    for (int i = 0; i < KEEPER_GIFTS; i++)
        if (caller->gifts[i] >= 0)
            close(caller->gifts[i]);
    g_free(caller);
    life_remove();
}

/*
 * Never blocks the main loop: the message is the only one on its connection, and the socket's buffer has room for it.
 * An answer fails only if there is no reader.
 */
static void send_answer(struct caller *caller, const GString *texts, size_t limit)
{
    if (send(caller->fd, texts->str, MIN(texts->len, limit), MSG_NOSIGNAL | MSG_DONTWAIT) < 0)
        say(DMUTEX_LOG_DEBUG, "process %d does not wait for its answer", (int)caller->pid);
    caller_dismiss(caller);
}

/* Sends the texts, each with its final NUL. */
static void answer(struct caller *caller, const GString *texts)
{
    send_answer(caller, texts, KEEPER_ANSWER_ROOM - 1);
}

void caller_answer_text(struct caller *caller, const GString *text)
{
    send_answer(caller, text, KEEPER_LIST_ROOM);
}

void caller_answer(struct caller *caller, const char *word)
{
    GString *texts = g_string_new_len(word, (gssize)strlen(word) + 1);

    answer(caller, texts);
    g_string_free(texts, TRUE);
}

void caller_fail(struct caller *caller, int error, const char *sentence)
{
    GString *texts = g_string_new_len("errno", sizeof "errno");

    g_string_append_printf(texts, "%d%c%s%c", error, 0, sentence, 0);
    answer(caller, texts);
    g_string_free(texts, TRUE);
}

void caller_on_gone(struct caller *caller, void (*on_gone)(void *user), void *user)
{
    caller->on_gone = on_gone;
    caller->user = user;
}

pid_t caller_pid(const struct caller *caller)
{
    return caller->pid;
}

int caller_gift(const struct caller *caller, int which)
{
    return caller->gifts[which];
}

int caller_take_gift(struct caller *caller, int which)
{
    int fd = caller->gifts[which];

    caller->gifts[which] = -1;
    return fd;
}

/* Frees the caller before telling its owner, so that the owner cannot answer a closed connection. */
static void leave(struct caller *caller)
{
    void (*on_gone)(void *user) = caller->on_gone;
    void *user = caller->user;

    caller_dismiss(caller);
    if (on_gone)
        on_gone(user);
}

/* The kernel closes descriptors for which there is no room here. */
static ssize_t receive(struct caller *caller, char question[KEEPER_QUESTION_ROOM])
{
    union {
        struct cmsghdr header; /* for the alignment */
        char bytes[CMSG_SPACE(sizeof caller->gifts)];
    } room;
    struct iovec text = { .iov_base = question, .iov_len = KEEPER_QUESTION_ROOM };
    struct msghdr message = { .msg_iov = &text, .msg_iovlen = 1, .msg_control = &room, .msg_controllen = sizeof room };
    ssize_t got = recvmsg(caller->fd, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
    const struct cmsghdr *header = got >= 0 ? CMSG_FIRSTHDR(&message) : NULL;

    if (header && header->cmsg_level == SOL_SOCKET && header->cmsg_type == SCM_RIGHTS)
        memcpy(caller->gifts, CMSG_DATA(header), header->cmsg_len - CMSG_LEN(0));
    return got;
}

/*
 * Reads the caller's question, or notices its end. One message is one whole question, because the socket is
 * SOCK_SEQPACKET. A second question breaks the protocol, and counts as the end.
 */
static gboolean on_ready(gint fd, GIOCondition condition, gpointer user)
{
    struct caller *caller = user;
    char question[KEEPER_QUESTION_ROOM + 1], byte;
    ssize_t got = caller->has_asked ? recv(fd, &byte, 1, MSG_DONTWAIT) : receive(caller, question);

    (void)condition;
    if (got < 0 && (errno == EAGAIN || errno == EINTR))
        return G_SOURCE_CONTINUE;
    if (got <= 0 || caller->has_asked) {
        leave(caller);
        return G_SOURCE_CONTINUE; /* the watch has already been removed */
    }
    caller->has_asked = true;
    question[got] = '\0';
    question_fn(caller, question, (size_t)got);
    return G_SOURCE_CONTINUE;
}

/*
 * The folder is closed to other users. Root can enter all the same, but has its own keeper. The pid is only for
 * messages: the process may have ended, or have another pid in its own namespace.
 */
static bool is_own_user(int fd, pid_t *ret_pid)
{
    struct ucred peer;
    socklen_t size = sizeof peer;

    if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) < 0 || peer.uid != geteuid())
        return false;
    *ret_pid = peer.pid;
    return true;
}

static void welcome(int fd)
{
    struct caller *caller;
    pid_t pid;

    if (!is_own_user(fd, &pid)) {
        close(fd);
        return;
    }
    caller = g_new0(struct caller, 1);
    caller->fd = fd;
    caller->pid = pid;
    memset(caller->gifts, -1, sizeof caller->gifts);
    caller->source = g_unix_fd_add(fd, G_IO_IN | G_IO_HUP | G_IO_ERR, on_ready, caller);
    life_add();
}

static gboolean on_call(gint listening, GIOCondition condition, gpointer user);

static gboolean listen_again(gpointer user)
{
    (void)user;
    g_unix_fd_add(KEEPER_SOCKET_FD, G_IO_IN, on_call, NULL);
    return G_SOURCE_REMOVE;
}

/*
 * Without a free descriptor the connection stays in the queue, and poll() would return at once every time. So we stop
 * listening for a while.
 */
static gboolean on_call(gint listening, GIOCondition condition, gpointer user)
{
    int fd = accept4(listening, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);

    (void)condition;
    (void)user;
    if (fd >= 0)
        welcome(fd);
    if (fd >= 0 || errno == EAGAIN || errno == EINTR || errno == ECONNABORTED)
        return G_SOURCE_CONTINUE;
    say(DMUTEX_LOG_ERROR, "callers must wait: %s", g_strerror(errno)); /* no descriptors, no memory */
    g_timeout_add(PAUSE_MS, listen_again, NULL);
    return G_SOURCE_REMOVE;
}

void callers_begin(caller_question_fn on_question)
{
    question_fn = on_question;
    g_unix_set_fd_nonblocking(KEEPER_SOCKET_FD, TRUE, NULL);
    listen_again(NULL);
}
