/* SPDX-License-Identifier: BSD-2-Clause */
#include "link/race.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "base/attrs.h"
#include "base/clock.h"
#include "base/descriptor.h"
#include "base/minmax.h"

/* The pause that RFC 8305 recommends; it allows none below 10 ms. */
#define PACE_MS 250
#define PACE_MIN_MS 10

void dm_race_init(struct dm_race *race)
{
    *race = (struct dm_race){ .crowd = -1 };
}

/* If no descriptor is left for an epoll, the connects are made one after another. */
void dm_race_begin(struct dm_race *race, const struct dm_addresses *addresses, unsigned time_ms)
{
    unsigned left = dm_addresses_left(addresses);

    dm_race_init(race);
    race->pace_ns = dm_max64(dm_min64(PACE_MS, time_ms / 2 / (left ? left : 1)), PACE_MIN_MS) * DM_NS_PER_MS;
    race->next_ns = dm_clock_boot_ns();
    race->error = ECONNREFUSED;
    if (left > 1)
        race->crowd = dm_descriptor_move_up(epoll_create1(EPOLL_CLOEXEC));
    if (race->crowd >= 0)
        dm_descriptor_tag(race->crowd, DM_TAG_EPOLL);
}

static void enter(struct dm_race *race, int fd, unsigned address)
{
    race->runners[race->count++] = (struct dm_runner){ fd, dm_fileid_of(fd), address };
}

void dm_race_begin_with(struct dm_race *race, int fd)
{
    dm_race_init(race);
    enter(race, fd, 0);
}

/* ---- connects ---------------------------------------------------------------------------- */

/*
 * Commands are small and awaited, so Nagle's algorithm is off.  A peer that has silently gone is noticed by keepalive
 * if we only listen, and by the user timeout if we have sent bytes.
 */
static void tune(int fd, unsigned user_timeout_ms)
{
    const struct {
        int level, option, value;
    } settings[] = {
        { IPPROTO_TCP, TCP_NODELAY, 1 },   { IPPROTO_TCP, TCP_USER_TIMEOUT, (int)user_timeout_ms },
        { SOL_SOCKET, SO_KEEPALIVE, 1 },   { IPPROTO_TCP, TCP_KEEPIDLE, 5 },
        { IPPROTO_TCP, TCP_KEEPINTVL, 2 }, { IPPROTO_TCP, TCP_KEEPCNT, 3 },
    };

    for (size_t i = 0; i < DM_COUNT(settings); i++)
        setsockopt(fd, settings[i].level, settings[i].option, &settings[i].value, sizeof settings[i].value);
}

/*
 * The connect continues in the background, and POLLOUT reports its end.  A Unix socket is non-blocking, too: with a
 * full backlog connect() would block, and so gives EAGAIN.  Returns -1 with errno.
 */
static int open_to(const struct sockaddr *address, socklen_t length, unsigned user_timeout_ms)
{
    int fd = dm_descriptor_move_up(socket(address->sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));

    if (fd < 0)
        return -1;
    if (address->sa_family != AF_UNIX)
        tune(fd, user_timeout_ms);
    if (connect(fd, address, length) < 0 && errno != EINPROGRESS) {
        int error = errno;

        close(fd);
        errno = error;
        return -1;
    }
    return fd;
}

static bool has_crowd(const struct dm_race *race)
{
    return dm_descriptor_is(race->crowd, DM_TAG_EPOLL);
}

static bool watch(const struct dm_race *race, int fd)
{
    struct epoll_event event = { .events = EPOLLOUT };

    return race->crowd < 0 || epoll_ctl(race->crowd, EPOLL_CTL_ADD, fd, &event) == 0;
}

/* The socket is removed from the epoll before it is closed: if a forked child has a copy, it would stay there. */
static void leave(struct dm_race *race, unsigned i)
{
    if (has_crowd(race))
        epoll_ctl(race->crowd, EPOLL_CTL_DEL, race->runners[i].fd, NULL);
    race->runners[i] = race->runners[--race->count];
}

static void drop(struct dm_race *race, unsigned i)
{
    struct dm_runner runner = race->runners[i];

    leave(race, i);
    dm_fileid_close(&runner.file, runner.fd);
}

/* Begins the next connect; a failure makes the one after it due at once. */
static void begin_next(struct dm_race *race, struct dm_addresses *addresses, unsigned user_timeout_ms, int64_t now_ns)
{
    unsigned index = dm_addresses_take(addresses);
    socklen_t length;
    const struct sockaddr *address = dm_addresses_at(addresses, index, &length);
    int fd = open_to(address, length, user_timeout_ms);

    race->next_ns = now_ns;
    if (fd < 0) {
        race->error = errno;
        return;
    }
    enter(race, fd, index);
    race->next_ns += race->pace_ns;
    if (!watch(race, fd)) {
        race->error = errno;
        drop(race, race->count - 1);
    }
}

/* ---- the race ---------------------------------------------------------------------------- */

/* Connects that had too little time count as not tried: their servers may turn out better than the winner. */
static int win(struct dm_race *race, struct dm_addresses *addresses, unsigned i)
{
    int fd = race->runners[i].fd;

    race->winner = race->runners[i].address;
    leave(race, i);
    for (unsigned other = 0; other < race->count; other++)
        dm_addresses_put_back(addresses, race->runners[other].address);
    dm_race_end(race);
    return fd;
}

/*
 * SO_ERROR is read only after an event: before the connect has ended it is 0, as after success.  The program may have
 * closed the socket.
 */
static int error_of(const struct dm_runner *runner, short events)
{
    int error = 0;
    socklen_t length = sizeof error;

    if (!dm_fileid_has(&runner->file, runner->fd))
        return EBADF;
    if (!events)
        return EINPROGRESS;
    return getsockopt(runner->fd, SOL_SOCKET, SO_ERROR, &error, &length) < 0 ? errno : error;
}

/* Returns the connect that has succeeded, or -1.  Closes those that have failed, and makes the next one due. */
static int look(struct dm_race *race, int64_t now_ns)
{
    struct pollfd pollers[DM_ADDRESSES_MOST];

    for (unsigned i = 0; i < race->count; i++)
        pollers[i] = (struct pollfd){ .fd = race->runners[i].fd, .events = POLLOUT };
    if (race->count)
        poll(pollers, race->count, 0);
    for (unsigned i = race->count; i-- > 0;) {
        int error = error_of(&race->runners[i], pollers[i].revents);

        if (error == 0)
            return (int)i;
        if (error == EINPROGRESS)
            continue;
        race->error = error;
        race->next_ns = now_ns;
        drop(race, i);
    }
    return -1;
}

static bool may_begin(const struct dm_race *race, const struct dm_addresses *addresses)
{
    return (race->count == 0 || race->crowd >= 0) && dm_addresses_left(addresses) > 0;
}

int dm_race_step(struct dm_race *race, struct dm_addresses *addresses, unsigned user_timeout_ms, int *ret_fd)
{
    int64_t now_ns = dm_clock_boot_ns();
    int winner;

    if (race->crowd >= 0 && !has_crowd(race)) /* the program has closed it, and the number may now be its own */
        race->crowd = -1;
    winner = look(race, now_ns);
    while (winner < 0 && race->next_ns <= now_ns && may_begin(race, addresses)) {
        begin_next(race, addresses, user_timeout_ms, now_ns);
        winner = look(race, now_ns);
    }
    if (winner >= 0) {
        *ret_fd = win(race, addresses, (unsigned)winner);
        return 0;
    }
    return race->count ? EINPROGRESS : race->error;
}

int dm_race_fd(const struct dm_race *race)
{
    if (race->crowd >= 0)
        return race->crowd;
    return race->count ? race->runners[0].fd : -1;
}

short dm_race_events(const struct dm_race *race)
{
    return race->crowd >= 0 ? POLLIN : POLLOUT;
}

int64_t dm_race_due_ns(const struct dm_race *race, const struct dm_addresses *addresses)
{
    return may_begin(race, addresses) ? race->next_ns : DM_NEVER;
}

static void close_crowd(struct dm_race *race)
{
    if (has_crowd(race))
        close(race->crowd);
    race->crowd = -1;
}

void dm_race_end(struct dm_race *race)
{
    while (race->count)
        drop(race, race->count - 1);
    close_crowd(race);
}

/* Does not use EPOLL_CTL_DEL: the parent shares the epoll. */
void dm_race_forget(struct dm_race *race)
{
    for (unsigned i = 0; i < race->count; i++)
        dm_fileid_close(&race->runners[i].file, race->runners[i].fd);
    race->count = 0;
    close_crowd(race);
}
