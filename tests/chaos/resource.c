/* SPDX-License-Identifier: BSD-2-Clause */
#include "resource.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "../lib/testlib.h"

#define CLIENTS 256

struct question {
    uint64_t token;
    int name, wish;
};

/* ---- the resource's process -------------------------------------------------------------- */

static void note_presence(struct guarded *guarded, const struct question *question)
{
    if (question->wish == WISH_ENTER) {
        guarded->overlaps += guarded->inside && guarded->inside != question->token;
        guarded->inside = question->token;
    } else if (question->wish == WISH_LEAVE && guarded->inside == question->token) {
        guarded->inside = 0;
    }
}

static int answer_to(struct guarded *all, const struct question *question)
{
    struct guarded *guarded = &all[question->name];

    if (question->token < guarded->token) {
        guarded->refused++;
        return EACCES;
    }
    guarded->token = question->token;
    guarded->accepted++;
    note_presence(guarded, question);
    if (question->wish == WISH_MAKE)
        guarded->made++;
    if (question->wish == WISH_TAKE && guarded->made > guarded->taken)
        guarded->taken++;
    __atomic_store_n(&guarded->things, guarded->made - guarded->taken, __ATOMIC_RELEASE);
    return 0;
}

/* False if the client has gone. */
static bool serve_client(struct guarded *all, int fd)
{
    struct question question;
    int result;

    if (recv(fd, &question, sizeof question, 0) != sizeof question)
        return false;
    result = answer_to(all, &question);
    return send(fd, &result, sizeof result, MSG_NOSIGNAL) == sizeof result;
}

static void serve(struct guarded *all, int listener)
{
    struct pollfd fds[1 + CLIENTS] = { { .fd = listener, .events = POLLIN } };
    nfds_t count = 1;

    for (;;) {
        if (poll(fds, count, -1) < 0)
            continue;
        for (nfds_t i = count - 1; i > 0; i--) {
            if (!fds[i].revents || serve_client(all, fds[i].fd))
                continue;
            close(fds[i].fd);
            fds[i] = fds[--count];
        }
        if (fds[0].revents && count < 1 + CLIENTS)
            fds[count++] = (struct pollfd){ .fd = accept(listener, NULL, NULL), .events = POLLIN };
    }
}

/* ---- the test's side --------------------------------------------------------------------- */

static struct sockaddr_un address_of(const struct resource *resource)
{
    struct sockaddr_un address = { .sun_family = AF_UNIX };

    strncpy(address.sun_path, resource->path, sizeof address.sun_path - 1);
    return address;
}

void resource_start(struct resource *resource, const char *folder)
{
    int listener = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    struct sockaddr_un address;

    snprintf(resource->path, sizeof resource->path, "%s/resource", folder);
    address = address_of(resource);
    assert_return_code(listener, errno);
    assert_return_code(bind(listener, (struct sockaddr *)&address, sizeof address), errno);
    assert_return_code(listen(listener, CLIENTS), errno);
    resource->guarded =
        mmap(NULL, NAMES * sizeof *resource->guarded, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    assert_ptr_not_equal(resource->guarded, MAP_FAILED);
    resource->pid = keeper_fork();
    if (resource->pid == 0)
        serve(resource->guarded, listener);
    close(listener);
}

void resource_end(struct resource *resource)
{
    kill(resource->pid, SIGKILL);
    keeper_reap(resource->pid);
    munmap(resource->guarded, NAMES * sizeof *resource->guarded);
}

void resource_clear(struct resource *resource)
{
    for (int i = 0; i < NAMES; i++)
        resource->guarded[i] = (struct guarded){ .token = resource->guarded[i].token };
}

/* Makes no asserts, because threads of other processes call the function. */
int resource_connect(const struct resource *resource)
{
    struct sockaddr_un address = address_of(resource);
    int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

    if (fd < 0 || connect(fd, (struct sockaddr *)&address, sizeof address)) {
        perror("# no resource");
        abort();
    }
    return fd;
}

int resource_do(int fd, enum name name, enum wish wish, uint64_t token)
{
    struct question question = { .token = token, .name = (int)name, .wish = (int)wish };
    int result;

    if (send(fd, &question, sizeof question, MSG_NOSIGNAL) != sizeof question ||
        recv(fd, &result, sizeof result, 0) != sizeof result) {
        perror("# the resource does not answer");
        abort();
    }
    return result;
}
