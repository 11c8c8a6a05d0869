/* SPDX-License-Identifier: BSD-2-Clause */
#include "link/dial.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/descriptor.h"
#include "base/minmax.h"
#include "base/poll.h"
#include "base/thread.h"
#include "link/race.h"

enum { HOST, PORT, PATH, NAME, CACERT, CERT, KEY, TEXTS };

/* The thread's alone until `is_done`; but a forked child closes the sockets. */
struct dm_dial {
    struct dm_dial_options options; /* its texts are `texts` */
    char *texts[TEXTS];
    int64_t deadline_ns;
    struct dm_race race;
    struct dm_stream stream;
    char reason[DM_REASON_ROOM];
    int done_bell, stop_bell;
    bool is_done, is_abandoned; /* atomic */
    int users;                  /* the caller and the thread; atomic */
};

/* ---- memory -------------------------------------------------------------------------------- */

/* The last user frees. */
static void let_go(struct dm_dial *dial)
{
    if (__atomic_sub_fetch(&dial->users, 1, __ATOMIC_ACQ_REL) > 0)
        return;
    if (dial->stream.fd >= 0)
        dm_stream_close(&dial->stream);
    dm_bell_close(dial->done_bell);
    dm_bell_close(dial->stop_bell);
    for (int i = 0; i < TEXTS; i++)
        free(dial->texts[i]);
    free(dial);
}

/* Replaces the texts by copies. */
static bool copy_texts(struct dm_dial *dial)
{
    const char **slots[TEXTS] = {
        [HOST] = &dial->options.address.host, [PORT] = &dial->options.address.port,
        [PATH] = &dial->options.address.path, [NAME] = &dial->options.tls.name,
        [CACERT] = &dial->options.tls.cacert, [CERT] = &dial->options.tls.cert,
        [KEY] = &dial->options.tls.key,
    };

    for (int i = 0; i < TEXTS; i++) {
        if (!*slots[i])
            continue;
        *slots[i] = dial->texts[i] = strdup(*slots[i]);
        if (!dial->texts[i])
            return false;
    }
    return true;
}

/* ---- the thread ---------------------------------------------------------------------------- */

static bool is_abandoned(const struct dm_dial *dial)
{
    return __atomic_load_n(&dial->is_abandoned, __ATOMIC_ACQUIRE);
}

/* Sleeps until the race can go on.  False when the time is over, or nobody wants the stream. */
static bool await(struct dm_dial *dial, const struct dm_addresses *addresses)
{
    struct pollfd polled[2] = {
        { .fd = dm_race_fd(&dial->race), .events = dm_race_events(&dial->race) },
        { .fd = dial->stop_bell, .events = POLLIN },
    };
    int64_t until_ns = dm_min64(dial->deadline_ns, dm_race_due_ns(&dial->race, addresses));

    dm_poll(polled, 2, dm_max64(0, until_ns - dm_clock_boot_ns()));
    return dm_clock_boot_ns() < dial->deadline_ns && !is_abandoned(dial);
}

static int connect_to(struct dm_dial *dial, struct dm_addresses *addresses)
{
    int error, fd = -1;

    dm_race_begin(&dial->race, addresses, dial->options.connect_timeout_ms);
    while ((error = dm_race_step(&dial->race, addresses, dial->options.user_timeout_ms, &fd)) == EINPROGRESS) {
        if (!await(dial, addresses)) {
            error = ETIMEDOUT;
            break;
        }
    }
    dm_race_end(&dial->race);
    if (error)
        snprintf(dial->reason, sizeof dial->reason, "%s", dm_text_error(error));
    return fd;
}

static void dial_up(struct dm_dial *dial)
{
    struct dm_addresses *addresses = NULL;

    if (dm_addresses_find(&dial->options.address, true, &addresses, dial->reason) == DM_FOUND)
        dial->stream = dm_stream_of(connect_to(dial, addresses));
    if (addresses)
        dm_addresses_free(addresses);
    if (dial->stream.fd >= 0 && dial->options.tls.is_on &&
        !dm_stream_secure(&dial->stream, &dial->options.tls, dial->deadline_ns, dial->reason))
        dm_stream_close(&dial->stream);
}

static void *run(void *user)
{
    struct dm_dial *dial = user;

    dial_up(dial);
    __atomic_store_n(&dial->is_done, true, __ATOMIC_RELEASE);
    dm_bell_ring(&dial->done_bell);
    let_go(dial);
    return NULL;
}

/* ---- for the store ------------------------------------------------------------------------- */

struct dm_dial *dm_dial_begin(const struct dm_dial_options *options)
{
    struct dm_dial *dial = calloc(1, sizeof *dial);

    if (!dial)
        return NULL;
    dial->options = *options;
    dial->users = 2;
    dial->deadline_ns = dm_clock_boot_ns() + options->connect_timeout_ms * DM_NS_PER_MS;
    dial->stream.fd = -1;
    dm_race_init(&dial->race);
    dial->done_bell = dm_bell_open();
    dial->stop_bell = dm_bell_open();
    if (dial->done_bell >= 0 && dial->stop_bell >= 0 && copy_texts(dial) && dm_thread_start(run, dial) == 0)
        return dial;
    dial->users = 1;
    let_go(dial);
    return NULL;
}

int dm_dial_fd(const struct dm_dial *dial)
{
    return dial->done_bell;
}

bool dm_dial_take(struct dm_dial *dial, struct dm_stream *ret_stream, char ret_reason[DM_REASON_ROOM])
{
    if (!__atomic_load_n(&dial->is_done, __ATOMIC_ACQUIRE))
        return false;
    *ret_stream = dial->stream;
    dial->stream.fd = -1;
    memcpy(ret_reason, dial->reason, DM_REASON_ROOM);
    let_go(dial);
    return true;
}

void dm_dial_abandon(struct dm_dial *dial)
{
    __atomic_store_n(&dial->is_abandoned, true, __ATOMIC_RELEASE);
    dm_bell_ring(&dial->stop_bell);
    let_go(dial);
}

void dm_dial_forget(struct dm_dial *dial)
{
    dm_race_forget(&dial->race);
    if (dial->stream.fd >= 0)
        dm_stream_forget(&dial->stream);
    dm_bell_close(dial->done_bell);
    dm_bell_close(dial->stop_bell);
}
