/* SPDX-License-Identifier: BSD-2-Clause */
#include "registers/trial.h"

#include <stdio.h>

#include "base/clock.h"
#include "base/poll.h"

static void became_ready(void *user, const char *identity)
{
    (void)identity;
    ((struct dm_reg_trial *)user)->is_ready = true;
}

static void went_down(void *user, const char *reason, bool is_final)
{
    struct dm_reg_trial *trial = user;

    trial->is_final |= is_final;
    snprintf(trial->reason, sizeof trial->reason, "%s", reason ? reason : "");
}

static void ignore_reply(void *user, uint64_t ticket, int index, const struct dm_reg_reply *reply)
{
    (void)user;
    (void)ticket;
    (void)index;
    (void)reply;
}

static void ignore_list(void *user, uint64_t ticket, const char *const *keys, int count, bool is_last,
                        const char *reason)
{
    (void)user;
    (void)ticket;
    (void)keys;
    (void)count;
    (void)is_last;
    (void)reason;
}

static void ignore_tell(void *user, const void *text, size_t size)
{
    (void)user;
    (void)text;
    (void)size;
}

static void ignore_inbox(void *user, bool is_open)
{
    (void)user;
    (void)is_open;
}

static void pass_warning(void *user, const char *text)
{
    const struct dm_reg_trial *trial = user;

    trial->on_warning(trial->user, text);
}

struct dm_reg_client dm_reg_trial_client(struct dm_reg_trial *trial)
{
    return (struct dm_reg_client){ trial,       became_ready, went_down,    ignore_reply,
                                   ignore_list, ignore_tell,  ignore_inbox, pass_warning };
}

void dm_reg_trial_run(struct dm_reg_trial *trial, struct dm_reg_driver *driver, int64_t until_ns)
{
    struct dm_watch watch;
    int64_t left_ns;

    if (!dm_watch_init(&watch))
        return;
    driver->ops->want(driver);
    while (!trial->is_ready && !trial->is_final && dm_clock_boot_ns() < until_ns) {
        dm_watch_clear(&watch);
        driver->ops->watch(driver, &watch);
        dm_watch_until(&watch, until_ns);
        left_ns = watch.due_ns - dm_clock_boot_ns();
        if (left_ns > 0)
            dm_poll(watch.polled, (unsigned)watch.count, left_ns);
        driver->ops->turn(driver);
    }
    driver->ops->end(driver);
    dm_watch_free(&watch);
}
