/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * dmutex wait: returns when the current hold has ended.
 *
 * It polls instead of queueing.  So it delays nobody, needs no right to write, and ends even if others hold the lock
 * one after the other without a pause.  The holds that a process hands on between its own threads count as one.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "api/view.h"
#include "base/clock.h"
#include "json.h"
#include "tool.h"

#define LOOK_MS 100

struct look {
    uint64_t token; /* of the current hold; 0: free */
    bool is_faulty;
};

static void keep(void *user, const struct dm_seen *seen)
{
    *(struct look *)user = (struct look){ seen->info.shown.locked ? seen->info.shown.token : 0, seen->fault != NULL };
}

static void nap(int64_t ms)
{
    struct timespec pause = { ms / 1000, ms % 1000 * DM_NS_PER_MS };

    nanosleep(&pause, NULL);
}

/* Returns 0, TOOL_HELD at the deadline, or another status. */
static int await(const char *name, const struct dm_deadline *deadline)
{
    char key[DM_MUTEX_KEY_ROOM];
    uint64_t awaited = 0;
    struct look look;

    snprintf(key, sizeof key, "n%s", name);
    for (;;) {
        int64_t left_ms = dm_deadline_left_ns(deadline) / DM_NS_PER_MS;

        if (dm_view_one(key, 0, keep, &look) != 0)
            return tool_failed(name);
        if (look.is_faulty)
            return tool_foreign(name);
        awaited = awaited ? awaited : look.token;
        if (look.token != awaited || !look.token)
            return 0;
        if (left_ms == 0)
            return TOOL_HELD;
        nap(left_ms < LOOK_MS ? left_ms : LOOK_MS);
    }
}

static void print(const char *name, bool is_over)
{
    struct json json = json_begin(stdout);

    json_open(&json, NULL, '{');
    json_name(&json, name);
    json_bool(&json, "ended", is_over);
    json_close(&json);
    json_end(&json);
}

static int run(int argc, char **argv)
{
    static const struct option options[] = {
        { "wait", required_argument, NULL, 'w' },
        { "json", no_argument, NULL, 'j' },
        { NULL, 0, NULL, 0 },
    };
    struct dm_deadline deadline = dm_deadline_endless;
    bool is_json = false;
    double seconds;
    int option, status;

    while ((option = tool_option(argc, argv, "+w:", options)) != -1) {
        if (option == '?')
            return TOOL_USAGE;
        is_json |= option == 'j';
        if (option == 'w' && !tool_read_seconds(optarg, &seconds))
            return tool_misused(argv, "-w %s: not a number of seconds", optarg);
        if (option == 'w')
            deadline = dm_deadline_in_ms((int64_t)(seconds * 1000));
    }
    status = tool_take_name(argc, argv);
    if (status)
        return status;
    status = await(argv[optind], &deadline);
    if (is_json && (status == 0 || status == TOOL_HELD))
        print(argv[optind], status == 0);
    return status;
}

const struct subcommand subcommand_wait = {
    .name = "wait",
    .arguments = "[-w SECONDS] [--json] NAME",
    .purpose = "wait until the current holder of a lock has released it",
    .options = "  -w, --wait SECONDS    give up after this time, with exit status 75\n",
    .run = run,
};
