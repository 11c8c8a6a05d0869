/* SPDX-License-Identifier: BSD-2-Clause */
/* The proxy process: one thread, poll(). No cmocka here. */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "proxy_orders.h"
#include "testlib.h"

#define LINKS 256
#define OUTSTANDING 4096

/* Directions, and the two ends of a link: bytes from end w go way w, to end 1 - w. */
enum { UP, DOWN };

/* Bytes on the way. */
struct chunk {
    struct chunk *next;
    int64_t due_ms;
    bool is_last; /* the link is closed after these bytes */
    size_t size;
    char data[];
};

/* A client's connection, and the proxy's own one to the server. */
struct link {
    bool is_used;
    int fd[2];
    bool is_ended[2];
    char *unread[2]; /* read, but not yet a whole command or reply */
    size_t unread_size[2];
    struct chunk *first[2], **last[2];
    int64_t cut_left[2];
    int64_t trickled_ms[2]; /* when something was last sent */
    bool is_inbox;
    bool is_held;               /* by PROXY_HOLD_REPLY */
    bool is_mute;               /* nothing passes any more: a stream does not lose bytes from its middle */
    uint8_t marks[OUTSTANDING]; /* a ring: the faults of the replies to come */
    unsigned asked, answered;
};

static struct proxy_orders *orders;
static struct link links[LINKS];

/* ---- commands and replies ---------------------------------------------------------------- */

/* The end of the line that begins at `at`, after its CRLF; 0: not there yet. */
static size_t line_end(const char *data, size_t size, size_t at)
{
    const char *found = at < size ? memmem(data + at, size - at, "\r\n", 2) : NULL;

    return found ? (size_t)(found - data) + 2 : 0;
}

/* The end of the RESP value that begins at `at`; 0: incomplete. */
static size_t value_end(const char *data, size_t size, size_t at)
{
    size_t end = line_end(data, size, at);
    long count;

    if (!end)
        return 0;
    count = strtol(data + at + 1, NULL, 10);
    switch (data[at]) {
    case '$':
    case '!':
    case '=':
        end += count < 0 ? 0 : (size_t)count + 2;
        return end <= size ? end : 0;
    case '%':
        count *= 2;
        __attribute__((__fallthrough__));
    case '*':
    case '~':
    case '>':
        for (long i = 0; i < count && end; i++)
            end = value_end(data, size, end);
        return end;
    default:
        return end;
    }
}

static bool contains(const char *data, size_t size, const char *text)
{
    return memmem(data, size, text, strlen(text)) != NULL;
}

/* ---- links ------------------------------------------------------------------------------- */

static void free_chunks(struct link *link, int way)
{
    struct chunk *chunk;

    while ((chunk = link->first[way])) {
        link->first[way] = chunk->next;
        free(chunk);
    }
}

static void close_link(struct link *link)
{
    for (int end = 0; end < 2; end++) {
        close(link->fd[end]);
        free_chunks(link, end);
        free(link->unread[end]);
    }
    memset(link, 0, sizeof *link);
    proxy_set(orders->open, orders->open - 1);
}

static int connect_to(const void *address, socklen_t size, int family)
{
    int fd = socket(family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

    if (connect(fd, address, size) == 0 || errno == EINPROGRESS)
        return fd;
    close(fd);
    return -1;
}

static int connect_to_server(void)
{
    const char *path = orders->servers[proxy_get(orders->server)];
    struct sockaddr_un address = { .sun_family = AF_UNIX };
    struct sockaddr_in by_port = { .sin_family = AF_INET, .sin_addr = { htonl(INADDR_LOOPBACK) } };

    by_port.sin_port = htons((uint16_t)orders->port);
    if (orders->port)
        return connect_to(&by_port, sizeof by_port, AF_INET);
    strncpy(address.sun_path, path, sizeof address.sun_path - 1);
    return connect_to(&address, sizeof address, AF_UNIX);
}

static void accept_one(int listener)
{
    int client = accept4(listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
    struct link *link = links;
    int upstream;

    if (client < 0)
        return;
    proxy_set(orders->accepted, orders->accepted + 1);
    upstream = proxy_get(orders->is_refusing) ? -1 : connect_to_server();
    while (link < links + LINKS - 1 && link->is_used)
        link++;
    if (upstream < 0 || link->is_used) {
        close(client);
        return;
    }
    *link = (struct link){ .is_used = true, .fd = { client, upstream }, .cut_left = { -1, -1 } };
    for (int way = 0; way < 2; way++)
        link->last[way] = &link->first[way];
    proxy_set(orders->open, orders->open + 1);
}

static void put(struct link *link, int way, const char *data, size_t size, bool is_last)
{
    struct chunk *chunk = malloc(sizeof *chunk + size);

    *chunk =
        (struct chunk){ .due_ms = wait_now_ms() + proxy_get(orders->delay_ms[way]), .is_last = is_last, .size = size };
    memcpy(chunk->data, data, size);
    *link->last[way] = chunk;
    link->last[way] = &chunk->next;
}

/* ---- faults ------------------------------------------------------------------------------ */

/* True, and counted, if this command or message must suffer the fault. */
static bool takes_fault(const struct link *link, const char *data, size_t size)
{
    int side = link->is_inbox ? PROXY_INBOX : PROXY_COMMANDS;

    if (proxy_get(orders->times) <= 0 || !(proxy_get(orders->side) & side) || !contains(data, size, orders->match))
        return false;
    proxy_set(orders->times, orders->times - 1);
    return true;
}

static void note_hit(void)
{
    proxy_set(orders->hits, orders->hits + 1);
}

static void expect_reply(struct link *link, int fault)
{
    link->marks[link->asked++ % OUTSTANDING] = (uint8_t)fault;
}

static void pass_command(struct link *link, const char *data, size_t size)
{
    int fault;

    if (link->is_mute)
        return;
    if (contains(data, size, "SUBSCRIBE"))
        link->is_inbox = true;
    fault = takes_fault(link, data, size) ? orders->fault : PROXY_NONE;
    switch (fault) {
    case PROXY_SWALLOW_COMMAND:
        note_hit();
        link->is_mute = true;
        return;
    case PROXY_CUT_COMMAND:
    case PROXY_CUT_MID_COMMAND:
        note_hit();
        put(link, UP, data, fault == PROXY_CUT_COMMAND ? 0 : size / 2, true);
        return;
    default:
        expect_reply(link, fault);
        put(link, UP, data, size, false);
    }
}

static void pass_reply(struct link *link, const char *data, size_t size)
{
    bool is_message = link->is_inbox && contains(data, size < 32 ? size : 32, "\r\nmessage\r\n");
    int fault = PROXY_NONE;

    if (link->is_mute)
        return;
    if (is_message)
        fault = takes_fault(link, data, size) ? orders->fault : PROXY_NONE;
    else if (link->answered != link->asked)
        fault = link->marks[link->answered++ % OUTSTANDING];
    if (fault != PROXY_NONE)
        note_hit();
    switch (fault) {
    case PROXY_SWALLOW_REPLY:
        link->is_mute = !is_message;
        return;
    case PROXY_SWALLOW_AND_CUT:
        put(link, DOWN, data, 0, true);
        return;
    case PROXY_CUT_MID_REPLY:
        put(link, DOWN, data, size / 2, true);
        return;
    case PROXY_HOLD_REPLY:
        link->is_held = true;
        break;
    default:
        break;
    }
    put(link, DOWN, data, size, false);
}

/* ---- bytes ------------------------------------------------------------------------------- */

/* The end of a message of PostgreSQL's server: a letter, and a length that counts itself.  0: incomplete. */
static size_t message_end(const char *data, size_t size, size_t at)
{
    uint32_t length;

    if (size - at < 1 + sizeof length)
        return 0;
    memcpy(&length, data + at + 1, sizeof length);
    length = ntohl(length);
    return size - at - 1 < length ? 0 : at + 1 + length;
}

/* What a client has sent at once, with all statements of a pipeline, or a part of it. */
static void pass_statements(struct link *link, const char *data, size_t size)
{
    bool is_struck = orders->fault > PROXY_HOLD_REPLY && takes_fault(link, data, size);

    if (link->is_mute)
        return;
    if (is_struck)
        note_hit();
    if (!is_struck)
        put(link, UP, data, size, false);
    else if (orders->fault == PROXY_SWALLOW_COMMAND)
        link->is_mute = true;
    else
        put(link, UP, data, orders->fault == PROXY_CUT_COMMAND ? 0 : size / 2, true);
}

/* Notices are messages of the inbox, all others are replies. */
static void pass_result(struct link *link, const char *data, size_t size)
{
    bool is_struck;

    if (link->is_mute)
        return;
    link->is_inbox = data[0] == 'A';
    is_struck = orders->fault < PROXY_HOLD_REPLY && takes_fault(link, data, size);
    if (is_struck)
        note_hit();
    if (!is_struck)
        put(link, DOWN, data, size, false);
    else if (orders->fault != PROXY_SWALLOW_REPLY)
        put(link, DOWN, data, orders->fault == PROXY_CUT_MID_REPLY ? size / 2 : 0, true);
    else
        link->is_mute = !link->is_inbox;
    link->is_inbox = false;
}

static size_t pass_one(struct link *link, int way, const char *data, size_t size, size_t at)
{
    size_t end;

    if (orders->is_postgres)
        end = way == UP ? size : message_end(data, size, at);
    else
        end = value_end(data, size, at);
    if (end <= at)
        return 0;
    if (orders->is_postgres && way == UP)
        pass_statements(link, data + at, end - at);
    else if (orders->is_postgres)
        pass_result(link, data + at, end - at);
    else if (way == UP)
        pass_command(link, data + at, end - at);
    else
        pass_reply(link, data + at, end - at);
    return end;
}

/* Reads what is available, and passes on whole values. */
static void take(struct link *link, int way)
{
    static char bytes[65536];
    ssize_t count = recv(link->fd[way], bytes, sizeof bytes, 0);
    size_t at = 0, end;
    char *unread;

    if (count < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (count <= 0) {
        link->is_ended[way] = true;
        return;
    }
    if (orders->port) {
        put(link, way, bytes, (size_t)count, false);
        return;
    }
    unread = realloc(link->unread[way], link->unread_size[way] + (size_t)count);
    memcpy(unread + link->unread_size[way], bytes, (size_t)count);
    link->unread[way] = unread;
    link->unread_size[way] += (size_t)count;
    while ((end = pass_one(link, way, unread, link->unread_size[way], at)))
        at = end;
    link->unread_size[way] -= at;
    memmove(unread, unread + at, link->unread_size[way]);
}

static bool is_held(const struct link *link, int way)
{
    int side = orders->is_postgres ? PROXY_ALL : link->is_inbox ? PROXY_INBOX : PROXY_COMMANDS;

    return (proxy_get(orders->hold[way]) & side) || (way == DOWN && link->is_held);
}

/* How many of these bytes may pass before the cut. */
static size_t uncut(struct link *link, int way, size_t size)
{
    if (proxy_get(orders->cut_after[way]) < 0)
        return size;
    if (link->cut_left[way] < 0)
        link->cut_left[way] = orders->cut_after[way];
    return (int64_t)size < link->cut_left[way] ? size : (size_t)link->cut_left[way];
}

/* How many of these bytes may pass in this millisecond. */
static size_t trickling(struct link *link, int way, size_t size)
{
    int limit = proxy_get(orders->trickle[way]);
    int64_t now_ms = wait_now_ms();

    if (limit <= 0 || size == 0)
        return size;
    if (link->trickled_ms[way] == now_ms)
        return 0;
    link->trickled_ms[way] = now_ms;
    return size < (size_t)limit ? size : (size_t)limit;
}

/* Sends one chunk. False if a part was not sent, or the link is now closed. */
static bool send_chunk(struct link *link, int way, struct chunk *chunk)
{
    size_t size = uncut(link, way, trickling(link, way, chunk->size));
    ssize_t sent = size ? send(link->fd[1 - way], chunk->data, size, MSG_NOSIGNAL) : 0;

    if (sent < 0 && errno == EAGAIN)
        return false;
    if (link->cut_left[way] >= 0 && sent > 0)
        link->cut_left[way] -= sent;
    if (sent < 0 || link->cut_left[way] == 0 || (chunk->is_last && (size_t)sent == chunk->size)) {
        close_link(link);
        return false;
    }
    chunk->size -= (size_t)sent;
    memmove(chunk->data, chunk->data + sent, chunk->size);
    return chunk->size == 0;
}

static void send_due(struct link *link, int way)
{
    struct chunk *chunk;

    while ((chunk = link->first[way]) && chunk->due_ms <= wait_now_ms() && !is_held(link, way)) {
        if (!send_chunk(link, way, chunk))
            return;
        link->first[way] = chunk->next;
        if (!link->first[way])
            link->last[way] = &link->first[way];
        free(chunk);
    }
    if (!link->first[way] && link->is_ended[way] && !is_held(link, way))
        close_link(link);
}

/* ---- the loop ---------------------------------------------------------------------------- */

static void follow_orders(void)
{
    int cut = proxy_get(orders->cut_order), pass = proxy_get(orders->pass_order);

    for (struct link *link = links; link < links + LINKS; link++) {
        if (link->is_used && cut != orders->cut_done)
            close_link(link);
        if (pass != orders->pass_done) {
            link->is_held = false;
            link->cut_left[UP] = link->cut_left[DOWN] = -1;
        }
    }
    proxy_set(orders->cut_done, cut);
    proxy_set(orders->pass_done, pass);
}

static void answer_bell(void)
{
    char bytes[64];

    if (recv(PROXY_FD_BELL, bytes, sizeof bytes, 0) <= 0)
        exit(0);
}

/* True if something is delayed or could not be sent: look again soon. */
static bool is_anything_waiting(void)
{
    for (struct link *link = links; link < links + LINKS; link++) {
        if (link->is_used && (link->first[UP] || link->first[DOWN]))
            return true;
    }
    return false;
}

static int list_descriptors(struct pollfd fds[3 + 2 * LINKS])
{
    int count = 0;

    for (int fd = PROXY_FD_UNIX; fd <= PROXY_FD_BELL; fd++)
        fds[count++] = (struct pollfd){ .fd = fd, .events = POLLIN };
    for (struct link *link = links; link < links + LINKS; link++) {
        for (int end = 0; end < 2; end++) {
            bool is_read = link->is_used && !link->is_ended[end];

            fds[count++] = (struct pollfd){ .fd = is_read ? link->fd[end] : -1, .events = POLLIN };
        }
    }
    return count;
}

static void serve_once(void)
{
    static struct pollfd fds[3 + 2 * LINKS];
    int count = list_descriptors(fds);

    if (poll(fds, (nfds_t)count, is_anything_waiting() ? 1 : -1) < 0)
        return;
    for (int i = 0; i < LINKS; i++) {
        for (int end = 0; end < 2; end++) {
            if (links[i].is_used && fds[3 + 2 * i + end].revents)
                take(&links[i], end);
        }
    }
    if (fds[2].revents)
        answer_bell();
    follow_orders();
    for (int i = 0; i < 2 * LINKS; i++) {
        if (links[i / 2].is_used)
            send_due(&links[i / 2], i % 2);
    }
    for (int i = 0; i < 2; i++) {
        if (fds[i].revents)
            accept_one(fds[i].fd);
    }
}

void proxy_serve(void)
{
    orders = mmap(NULL, sizeof *orders, PROT_READ | PROT_WRITE, MAP_SHARED, PROXY_FD_ORDERS, 0);
    if (orders == MAP_FAILED)
        exit(2);
    for (;;)
        serve_once();
}
