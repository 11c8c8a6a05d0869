/* SPDX-License-Identifier: BSD-2-Clause */
#include "voice.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

/* ---- what may be written to -------------------------------------------------------------- */

static bool is_for_writing(int fd)
{
    int flags = fcntl(fd, F_GETFL);

    return flags >= 0 && !(flags & O_PATH) && (flags & O_ACCMODE) != O_RDONLY;
}

/* If standard error is a TCP connection, it is a service's dialogue with its client, and our line would corrupt it. */
static bool is_local_socket(int fd)
{
    int domain = 0;
    socklen_t size = sizeof domain;

    return getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &domain, &size) == 0 && domain == AF_UNIX;
}

/* Whether the file is of a kind that has a reader. *ret_can_open: it is no socket. */
static bool is_for_people(int fd, bool *ret_can_open)
{
    struct stat status;

    if (fstat(fd, &status) < 0)
        return false;
    *ret_can_open = !S_ISSOCK(status.st_mode);
    if (S_ISSOCK(status.st_mode))
        return is_local_socket(fd);
    return S_ISFIFO(status.st_mode) || (S_ISCHR(status.st_mode) && isatty(fd));
}

/* ---- by O_PATH --------------------------------------------------------------------------- */

/* The path of a descriptor of our own: opening it opens the very pipe or terminal that was handed over. */
static int open_descriptor(int fd, int flags)
{
    char path[32];

    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    return open(path, flags | O_CLOEXEC);
}

/*
 * O_NONBLOCK, because the reader may be slow; O_NOCTTY, because the keeper, a session leader, would get the terminal.
 */
static int open_anew(int weak)
{
    return open_descriptor(weak, O_WRONLY | O_NONBLOCK | O_NOCTTY);
}

/* 0: another user's, which the keeper may not open. A FIFO that has no reader now (ENXIO) may get one later. */
static int weaken(int fd)
{
    int weak = open_descriptor(fd, O_PATH), anew;

    if (weak < 0)
        return 0;
    anew = open_anew(weak);
    if (anew >= 0)
        close(anew);
    if (anew >= 0 || errno != EACCES)
        return weak;
    close(weak);
    return 0;
}

/* ---- a voice ----------------------------------------------------------------------------- */

static int open_process(pid_t pid)
{
    char path[32];
    int folder;

    snprintf(path, sizeof path, "/proc/%d", (int)pid);
    folder = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    return folder < 0 ? 0 : folder;
}

void voice_take(struct voice *ret_voice, int given, pid_t pid)
{
    struct voice voice = { .fd = 0 };
    bool can_open = false;

    if (given >= 0 && is_for_writing(given) && is_for_people(given, &can_open)) {
        voice.fd = can_open ? weaken(given) : 0;
        voice.process = voice.fd ? 0 : open_process(pid);
        if (voice.process)
            voice.fd = given;
    }
    if (given >= 0 && voice.fd != given)
        close(given);
    *ret_voice = voice;
}

/* If a process can no longer be inspected, because it has become another user, it still has its standard error. */
static bool has_still(const struct voice *voice)
{
    struct stat own, now;

    if (fstatat(voice->process, "fd/2", &now, 0) < 0)
        return errno != ENOENT && errno != ESRCH;
    return fstat(voice->fd, &own) == 0 && own.st_dev == now.st_dev && own.st_ino == now.st_ino;
}

void voice_look(struct voice *voice)
{
    if (voice->process && !has_still(voice))
        voice_dismiss(voice);
}

void voice_dismiss(struct voice *voice)
{
    if (voice->fd)
        close(voice->fd);
    if (voice->process)
        close(voice->process);
    *voice = (struct voice){ .fd = 0 };
}

/* ---- the line ---------------------------------------------------------------------------- */

static ssize_t write_anew(int weak, const char *line)
{
    int fd = open_anew(weak);
    ssize_t written = fd >= 0 ? write(fd, line, strlen(line)) : -1;

    if (fd >= 0)
        close(fd);
    return written;
}

/*
 * The flags are shared with the job, so they stay as they are. Before Linux 6.4 pipes do not know RWF_NOWAIT, and the
 * check before the write has to do.
 */
static ssize_t write_now(int fd, const char *line)
{
    struct iovec text = { .iov_base = (char *)line, .iov_len = strlen(line) };
    struct pollfd room = { .fd = fd, .events = POLLOUT };
    ssize_t written = pwritev2(fd, &text, 1, -1, RWF_NOWAIT);

    if (written < 0 && errno == EOPNOTSUPP && poll(&room, 1, 0) > 0 && (room.revents & POLLOUT))
        written = write(fd, line, text.iov_len);
    return written;
}

bool voice_say(int fd, const char *line)
{
    struct stat status;

    if (fcntl(fd, F_GETFL) & O_PATH)
        return write_anew(fd, line) > 0;
    if (fstat(fd, &status) == 0 && S_ISSOCK(status.st_mode))
        return send(fd, line, strlen(line), MSG_NOSIGNAL | MSG_DONTWAIT) > 0;
    return write_now(fd, line) > 0;
}
