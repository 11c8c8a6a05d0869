/* SPDX-License-Identifier: BSD-2-Clause */
#include "spawn/outside.h"

#include <linux/netlink.h>
#include <linux/sock_diag.h>
#include <linux/unix_diag.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

/* ---- sock_diag(7) ------------------------------------------------------------------------ */

#define ANSWER_ROOM (1 << 14) /* more than the kernel puts into one message */

/* Opens a socket and asks for all listening sockets of this network namespace; -1: the kernel cannot be asked. */
static int ask_kernel(void)
{
    const struct {
        struct nlmsghdr header;
        struct unix_diag_req request;
    } question = {
        .header = { .nlmsg_len = sizeof question,
                    .nlmsg_type = SOCK_DIAG_BY_FAMILY,
                    .nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP },
        .request = { .sdiag_family = AF_UNIX,
                     .udiag_states = 1u << TCP_LISTEN,
                     .udiag_show = UDIAG_SHOW_NAME | UDIAG_SHOW_UID },
    };
    const struct timeval limit = { .tv_sec = 1 };
    int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_SOCK_DIAG);

    if (fd >= 0 && setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit) == 0 &&
        send(fd, &question, sizeof question, 0) == (ssize_t)sizeof question)
        return fd;
    if (fd >= 0)
        close(fd);
    return -1;
}

static bool is_name(const void *value, size_t length, const char *path)
{
    return length == strlen(path) + 1 && memcmp(value, path, length) == 0;
}

static bool is_own(const void *value, size_t length)
{
    uid_t user;

    if (length != sizeof user)
        return false;
    memcpy(&user, value, sizeof user);
    return user == geteuid();
}

/* Linux before 5.3 does not report the user, so any listener may be this user's. */
static bool is_own_listener(const struct nlmsghdr *message, const char *path)
{
    const char *at = (const char *)message + NLMSG_SPACE(sizeof(struct unix_diag_msg));
    const char *end = (const char *)message + message->nlmsg_len;
    bool is_named = false, is_of_other = false;

    while (at + NLA_HDRLEN <= end) {
        const struct nlattr *attribute = (const void *)at;
        size_t length = attribute->nla_len;

        if (length < NLA_HDRLEN || length > (size_t)(end - at))
            return false;
        if (attribute->nla_type == UNIX_DIAG_NAME)
            is_named = is_name(at + NLA_HDRLEN, length - NLA_HDRLEN, path);
        else if (attribute->nla_type == UNIX_DIAG_UID)
            is_of_other = !is_own(at + NLA_HDRLEN, length - NLA_HDRLEN);
        at += NLA_ALIGN(length);
    }
    return is_named && !is_of_other;
}

/* Reads one message of the kernel, which describes several sockets.  False: it was the last one. */
static bool read_answers(int fd, char *room, const char *path, bool *ret_is_found, bool *ret_is_good)
{
    ssize_t got = recv(fd, room, ANSWER_ROOM, 0);
    unsigned left = got > 0 ? (unsigned)got : 0;

    *ret_is_good = false;
    for (const struct nlmsghdr *message = (const void *)room; NLMSG_OK(message, left);
         message = NLMSG_NEXT(message, left)) {
        *ret_is_good = message->nlmsg_type != NLMSG_ERROR;
        if (message->nlmsg_type != SOCK_DIAG_BY_FAMILY)
            return false;
        *ret_is_found |= is_own_listener(message, path);
    }
    return *ret_is_good;
}

/*
 * False if the kernel cannot be asked.  Unlike /proc/net/unix, this reports exact names and their owners: in a mount
 * namespace any user may bind a socket to any path, or to a name that looks like a line of that file.
 */
static bool find_own_listener(const char *path, bool *ret_is_found)
{
    char *room = malloc(ANSWER_ROOM);
    int fd = room ? ask_kernel() : -1;
    bool is_good = false;

    *ret_is_found = false;
    while (fd >= 0 && read_answers(fd, room, path, ret_is_found, &is_good))
        continue;
    if (fd >= 0)
        close(fd);
    free(room);
    return is_good;
}

/* ---- /proc/net/unix ---------------------------------------------------------------------- */

/* Bit 16 of the flags: the socket listens. */
#define LISTENS 0x10000ul

/* "Num: RefCount Protocol Flags Type St Inode Path"; the path may have blanks. */
static bool is_listener(const char *line, const char *path)
{
    unsigned long flags;
    int at = 0;

    if (sscanf(line, "%*s %*s %*s %lx %*s %*s %*s%n", &flags, &at) != 1 || at == 0)
        return false;
    return (flags & LISTENS) && line[at] == ' ' && strcmp(line + at + 1, path) == 0;
}

/* thread-self, because /proc/self/net is gone once the first thread has ended. */
static bool has_any_listener(const char *path)
{
    FILE *list = fopen("/proc/thread-self/net/unix", "re");
    char *line = NULL;
    size_t room = 0;
    bool is_found = false;
    ssize_t length;

    while (list && !is_found && (length = getline(&line, &room, list)) > 0) {
        line[length - 1] = '\0';
        is_found = is_listener(line, path);
    }
    free(line);
    if (list)
        fclose(list);
    return is_found;
}

bool dm_outside_has_listener(const char *path)
{
    bool is_found;

    return find_own_listener(path, &is_found) ? is_found : has_any_listener(path);
}

/* ---- the unit ---------------------------------------------------------------------------- */

/* systemd puts a service into a cgroup of its name, in its own hierarchy or in the only one. */
static bool read_line(const char *line, size_t length, char *ret_unit)
{
    static const char suffix[] = ".service";
    const char *colon = memchr(line, ':', length), *slash = memrchr(line, '/', length), *name;
    size_t size;

    if (!colon || !slash || (strncmp(colon, "::", 2) != 0 && strncmp(colon, ":name=systemd:", 14) != 0))
        return false;
    name = slash + 1;
    size = length - (size_t)(name - line);
    if (size <= strlen(suffix) || size >= DM_OUTSIDE_UNIT_ROOM ||
        memcmp(name + size - strlen(suffix), suffix, strlen(suffix)) != 0)
        return false;
    memcpy(ret_unit, name, size);
    ret_unit[size] = '\0';
    return true;
}

bool dm_outside_read_unit(const char *cgroups, char ret_unit[DM_OUTSIDE_UNIT_ROOM])
{
    for (const char *line = cgroups; *line;) {
        size_t length = strcspn(line, "\n");

        if (read_line(line, length, ret_unit))
            return true;
        line += length + (line[length] == '\n');
    }
    return false;
}

bool dm_outside_unit(char ret_unit[DM_OUTSIDE_UNIT_ROOM])
{
    FILE *file = fopen("/proc/self/cgroup", "re");
    char text[1024];
    size_t length = file ? fread(text, 1, sizeof text - 1, file) : 0;

    text[length] = '\0';
    if (file)
        fclose(file);
    return dm_outside_read_unit(text, ret_unit);
}
