/* SPDX-License-Identifier: BSD-2-Clause */
#include "sockets.h"

#include <errno.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>

#include "base/descriptor.h"
#include "base/poll.h"
#include "check.h"
#include "cluster.h"
#include "link/link_parts.h"
#include "process.h"
#include "stores/redis/parts.h"
#include "world.h"

struct descriptor {
    struct process *process;
    struct link *link; /* NULL: a bell */
    bool is_ringing;
};

static struct descriptor *descriptors;
static int count, room;

void sockets_begin(void)
{
    count = 0;
}

static int add(struct process *process, struct link *link)
{
    if (count == room) {
        room = room ? 2 * room : 256;
        descriptors = realloc(descriptors, (size_t)room * sizeof *descriptors);
        if (!descriptors)
            abort();
    }
    descriptors[count] = (struct descriptor){ process, link, false };
    return count++;
}

int sockets_add(struct link *link)
{
    return add(link->process, link);
}

/* ---- base/poll.c ------------------------------------------------------------------------- */

static short events_of(const struct descriptor *descriptor)
{
    const struct link *link = descriptor->link;

    if (!link)
        return descriptor->is_ringing ? POLLIN : 0;
    if (link->is_closed)
        return POLLIN | POLLOUT;
    return (short)((link->is_connected ? POLLOUT : 0) | (link->received.length ? POLLIN : 0));
}

static bool is_any_ready(struct pollfd *polled, unsigned number)
{
    bool is_ready = false;

    for (unsigned i = 0; i < number; i++) {
        int fd = polled[i].fd;

        polled[i].revents = fd < 0 ? 0 : (short)(events_of(&descriptors[fd]) & polled[i].events);
        is_ready |= polled[i].revents != 0;
    }
    return is_ready;
}

void dm_poll(struct pollfd *polled, unsigned number, int64_t timeout_ns)
{
    struct thread *thread = thread_current();
    int64_t until_ns = timeout_ns == DM_NEVER ? DM_NEVER : dm_clock_boot_ns() + timeout_ns;

    check_no_lock("dm_poll");
    thread_heed_cancel();
    while (!is_any_ready(polled, number) && dm_clock_boot_ns() < until_ns) {
        thread->polled = polled;
        thread->polled_count = number;
        thread_wait(until_ns);
        thread->polled_count = 0;
        thread_heed_cancel();
    }
}

static void ring(int fd)
{
    struct process *process = descriptors[fd].process;

    for (struct thread *thread = process->is_alive ? process->threads : NULL; thread; thread = thread->next) {
        for (unsigned i = 0; i < thread->polled_count; i++) {
            if (thread->polled[i].fd == fd)
                thread_wake(thread);
        }
    }
}

void sockets_ring(const struct link *link)
{
    ring(link->fd);
}

/* Gives the core to others, for the time of their turn.  Called by the linker's --wrap. */
int __wrap_sched_yield(void);

int __wrap_sched_yield(void)
{
    thread_pass(chance_delay(CHANCE_THREADS, 10 * DM_NS_PER_US, MS));
    return 0;
}

/* ---- the bells of base/descriptor.c: called by the linker's --wrap ----------------------- */

int __wrap_dm_bell_open(void);
void __wrap_dm_bell_close(int bell);
void __wrap_dm_bell_ring(int *bell);
void __wrap_dm_bell_answer(int *bell);

int __wrap_dm_bell_open(void)
{
    return add(process_current(), NULL);
}

void __wrap_dm_bell_close(int bell)
{
    (void)bell;
}

void __wrap_dm_bell_ring(int *bell)
{
    if (*bell == DM_BELL_GONE)
        return;
    descriptors[*bell].is_ringing = true;
    ring(*bell);
}

void __wrap_dm_bell_answer(int *bell)
{
    if (*bell != DM_BELL_GONE)
        descriptors[*bell].is_ringing = false;
}

/* ---- link/stream.c ----------------------------------------------------------------------- */

static struct link *link_of(const struct dm_stream *stream)
{
    return descriptors[stream->fd].link;
}

struct dm_stream dm_stream_of(int fd)
{
    return (struct dm_stream){ .fd = fd };
}

bool dm_stream_is_ours(const struct dm_stream *stream)
{
    return stream->fd >= 0;
}

bool dm_stream_secure(struct dm_stream *stream, const struct dm_tls_options *options, int64_t deadline_ns,
                      char ret_reason[DM_REASON_ROOM])
{
    (void)stream;
    (void)options;
    (void)deadline_ns;
    (void)ret_reason;
    abort(); /* no TLS here */
}

bool dm_stream_is_near(const struct dm_stream *stream)
{
    (void)stream;
    return false;
}

/* Sometimes the kernel has no room for all bytes.  What came before the end can still be read. */
ssize_t dm_stream_send(const struct dm_stream *stream, const char *bytes, size_t length)
{
    struct link *link = link_of(stream);

    if (link->is_closed && link->received.length == 0) {
        errno = EPIPE;
        return -1;
    }
    if (chance_one_in(CHANCE_NETWORK, 64))
        length = chance_below(CHANCE_NETWORK, (uint32_t)length);
    if (length > 0)
        net_send(link, TO_SERVER, bytes, length);
    return (ssize_t)length;
}

ssize_t dm_stream_receive(const struct dm_stream *stream, char *to, size_t length)
{
    struct bytes *received = &link_of(stream)->received;

    if (length > received->length)
        length = received->length;
    if (length == 0) {
        errno = 0;
        return link_of(stream)->is_closed ? -1 : 0;
    }
    memcpy(to, received->data, length);
    received->length -= length;
    memmove(received->data, received->data + length, received->length);
    return (ssize_t)length;
}

const char *dm_stream_reason(const struct dm_stream *stream)
{
    (void)stream;
    return "";
}

bool dm_stream_holds(const struct dm_stream *stream)
{
    (void)stream;
    return false;
}

bool dm_stream_is_cut(const struct dm_stream *stream)
{
    (void)stream;
    return false;
}

short dm_stream_events(const struct dm_stream *stream, bool has_more)
{
    (void)stream;
    return (short)(POLLIN | (has_more ? POLLOUT : 0));
}

bool dm_stream_is_for_thread(const struct dm_stream *stream)
{
    return stream->fd >= 0;
}

void dm_stream_end(const struct dm_stream *stream)
{
    if (stream->fd < 0 || link_of(stream)->is_shut_by_client)
        return;
    net_shut(link_of(stream));
    link_of(stream)->is_closed = true;
    ring(stream->fd);
}

void dm_stream_close(struct dm_stream *stream)
{
    dm_stream_end(stream);
    stream->fd = -1;
}

void dm_stream_forget(struct dm_stream *stream)
{
    stream->fd = -1;
}

/* ---- link/race.c: a server has one address ----------------------------------------------- */

void dm_race_init(struct dm_race *race)
{
    *race = (struct dm_race){ .crowd = -1 };
}

void dm_race_begin(struct dm_race *race, const struct dm_addresses *addresses, unsigned time_ms)
{
    (void)addresses;
    (void)time_ms;
    dm_race_init(race);
}

void dm_race_begin_with(struct dm_race *race, int fd)
{
    (void)race;
    (void)fd;
    abort(); /* no hook opens sockets here */
}

/* The port of a server is its number and one. */
static int connect_to(struct dm_addresses *addresses)
{
    socklen_t length;
    const struct sockaddr *address = dm_addresses_at(addresses, dm_addresses_take(addresses), &length);

    return net_connect(process_current(), ntohs(((const struct sockaddr_in *)(const void *)address)->sin_port) - 1)->fd;
}

int dm_race_step(struct dm_race *race, struct dm_addresses *addresses, unsigned user_timeout_ms, int *ret_fd)
{
    const struct link *link;

    (void)user_timeout_ms;
    if (race->count == 0)
        race->runners[race->count++].fd = connect_to(addresses);
    link = descriptors[race->runners[0].fd].link;
    if (!link->is_connected && !link->is_closed)
        return EINPROGRESS;
    race->count = 0;
    *ret_fd = link->fd;
    return link->is_connected ? 0 : ECONNREFUSED;
}

int dm_race_fd(const struct dm_race *race)
{
    return race->count ? race->runners[0].fd : -1;
}

short dm_race_events(const struct dm_race *race)
{
    (void)race;
    return POLLOUT;
}

int64_t dm_race_due_ns(const struct dm_race *race, const struct dm_addresses *addresses)
{
    (void)race;
    (void)addresses;
    return DM_NEVER;
}

void dm_race_end(struct dm_race *race)
{
    struct dm_stream stream = { .fd = dm_race_fd(race) };

    dm_stream_close(&stream);
    race->count = 0;
}

void dm_race_forget(struct dm_race *race)
{
    race->count = 0;
}

/* ---- links ------------------------------------------------------------------------------- */

/* Called by the linker's --wrap: a process knows its links, and frees them when it is killed. */
struct dm_link *__real_dm_link_new(const struct dm_link_options *options, const struct dm_greeter *greeter,
                                   const struct dm_link_hooks *hooks);
struct dm_link *__wrap_dm_link_new(const struct dm_link_options *options, const struct dm_greeter *greeter,
                                   const struct dm_link_hooks *hooks);
void __wrap_dm_link_free_unused(struct dm_link *link);

struct dm_link *__wrap_dm_link_new(const struct dm_link_options *options, const struct dm_greeter *greeter,
                                   const struct dm_link_hooks *hooks)
{
    struct process *process = process_current();

    if (process->link_count == LINKS_MAX)
        abort();
    process->links[process->link_count] = __real_dm_link_new(options, greeter, hooks);
    return process->links[process->link_count++];
}

void __wrap_dm_link_free_unused(struct dm_link *link)
{
    (void)link;
}

/*
 * A posted request is a block of the store's, which names one of the pump's.  A sentinel's questions are leaked, and in
 * a Cluster all requests, because some are parts of a batch.
 */
static void free_slots(struct dm_slot *slot, bool has_postings)
{
    struct dm_slot *next;

    for (; slot; slot = next) {
        struct dm_posting *posting = slot->handler && has_postings ? slot->user : NULL;

        next = slot->next;
        if (slot->reply)
            dm_reply_free(slot->reply);
        if (posting)
            free(posting->user);
        free(posting);
        free(slot);
    }
}

void sockets_free(struct dm_link *link)
{
    const char *port = link->session.options.address.port;
    bool has_postings = !cluster_is_there() && (!port || atoi(port) <= SERVERS_MAX);
    struct dm_slot *spare;

    dm_session_end(&link->session, "");
    free_slots(link->finished, has_postings);
    free_slots(link->session.finished, has_postings);
    while ((spare = link->session.pipe.spare) != NULL) {
        link->session.pipe.spare = spare->next;
        free(spare);
    }
    dm_addresses_free(link->session.addresses);
    dm_addresses_free(link->session.found);
    free(link);
}

/* Threads take turns here, as at the lock of the records.  Called by the linker's --wrap. */
void __real_dm_mutex_lock(struct dm_mutex *mutex);
void __wrap_dm_mutex_lock(struct dm_mutex *mutex);

void __wrap_dm_mutex_lock(struct dm_mutex *mutex)
{
    if ((mutex->rank == DM_RANK_CONN || mutex->rank == DM_RANK_REGISTERS) && dm_mutex_holds_none())
        thread_preempt();
    __real_dm_mutex_lock(mutex);
}

/* A run depends on its seed alone.  Called by the linker's --wrap. */
void __wrap_dm_ident_random(uint64_t *ret_words, unsigned number);

void __wrap_dm_ident_random(uint64_t *ret_words, unsigned number)
{
    for (unsigned i = 0; i < number; i++)
        ret_words[i] = chance_word(CHANCE_THREADS) | 1;
}
