/* SPDX-License-Identifier: BSD-2-Clause */
/* dmutex show: the server's data of one mutex: holder, queue, health, and conditions that are bound to the mutex. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <dmutex/dmutex.h>

#include "api/view.h"
#include "say.h"
#include "seen.h"
#include "tool.h"

/* The conditions of a mutex. */
struct conditions {
    const char *mutex; /* the key */
    struct seen *seen;
    int count;
    bool are_known;
};

/* ---- asking ------------------------------------------------------------------------------ */

static void keep(void *user, const struct dm_seen *seen)
{
    *(struct seen *)user = seen_copy(seen);
}

/* SCAN may tell a name twice. */
static bool is_kept(const struct conditions *conditions, const char *key)
{
    for (int i = 0; i < conditions->count; i++)
        if (strcmp(conditions->seen[i].key, key) == 0)
            return true;
    return false;
}

static void keep_condition(void *user, const struct dm_seen *seen)
{
    struct conditions *conditions = user;
    struct seen *more;

    if ((seen->key[0] != 'c' && seen->key[0] != 'd') || seen->fault || strcmp(seen->mutex, conditions->mutex) != 0 ||
        seen->info.shown.waiters == 0 || is_kept(conditions, seen->key))
        return;
    more = reallocarray(conditions->seen, (size_t)conditions->count + 1, sizeof *more);
    if (!more)
        return;
    conditions->seen = more;
    more[conditions->count++] = seen_copy(seen);
}

/* ---- words ------------------------------------------------------------------------------- */

static void print_hold(const struct seen *seen)
{
    const dmutex_info_t *shown = &seen->data.info.shown;
    char party[SEEN_PARTY_ROOM], time[SAY_TIME_ROOM], path[SAY_NAME_ROOM];

    printf("  held by   %s, thread %" PRIu64 "\n", seen_holder(seen, party), shown->thread);
    if (seen->job.pid)
        printf("  file      %s\n", say_name(seen->job.path, path));
    printf("  for       %s\n", say_time(seen->data.info.held_ms, time));
    printf("  lease     %s", say_time(seen->data.lease_ms, time));
    printf(", %s left\n", say_time(shown->remaining_ms, time));
    if (shown->hold_count > 1)
        printf("  depth     %" PRIu32 "\n", shown->hold_count);
    if (seen->data.is_kept)
        puts("  kept      perhaps no thread is inside: the process keeps the lease for its next lock");
}

static void print_queue(const struct seen *seen)
{
    uint32_t waiters = seen->data.info.shown.waiters;
    char party[SEEN_PARTY_ROOM], time[SAY_TIME_ROOM];

    printf("  waiting   %" PRIu32 "\n", waiters);
    for (int i = 0; i < seen->data.waiter_count; i++) {
        const struct dm_seen_waiter *waiter = &seen->waiters[i];

        printf("  %7d   %s, thread %" PRIu64 ", for %s\n", i + 1,
               seen_party(waiter->pid, waiter->host, waiter->program, party), waiter->thread,
               say_time(waiter->waited_ms, time));
    }
    if (waiters > (uint32_t)seen->data.waiter_count)
        printf("      ...   and %" PRIu32 " more\n", waiters - (uint32_t)seen->data.waiter_count);
}

static void print_health(const struct seen *seen)
{
    if (seen->data.info.shown.health == 1)
        puts("  health    a holder died: the next robust holder is told, and is to mend the data");
    else if (seen->data.info.shown.health == 2)
        puts("  health    not recoverable: destroy the mutex and set it up again");
}

static void print_conditions(const struct conditions *conditions)
{
    char name[SAY_NAME_ROOM];

    if (!conditions->are_known)
        puts("  conditions are not known: the user has no right to SCAN");
    for (int i = 0; i < conditions->count; i++)
        printf("  condition %s: %" PRIu32 " waiting\n", say_name(conditions->seen[i].name, name),
               conditions->seen[i].data.info.shown.waiters);
}

static void print(const struct seen *seen, const struct conditions *conditions)
{
    const struct dm_info *info = &seen->data.info;
    char name[SAY_NAME_ROOM], time[SAY_TIME_ROOM];

    printf("%s\n", say_name(seen->name, name));
    if (info->shown.locked)
        print_hold(seen);
    else
        puts("  free");
    if (info->shown.token)
        printf("  token     %" PRIu64 "\n", info->shown.token << DM_TOKEN_SHIFT);
    print_queue(seen);
    print_health(seen);
    print_conditions(conditions);
    if (!info->shown.locked && info->grace_ms > 0)
        printf("  grace     the server started lately, and grants nothing new for %s\n",
               say_time(info->grace_ms, time));
}

static void print_json(const struct seen *seen, const struct conditions *conditions)
{
    struct json json = json_begin(stdout);

    json_open(&json, NULL, '{');
    seen_json(&json, seen);
    if (conditions->are_known) {
        json_open(&json, "conditions", '[');
        for (int i = 0; i < conditions->count; i++) {
            json_open(&json, NULL, '{');
            seen_json(&json, &conditions->seen[i]);
            json_close(&json);
        }
        json_close(&json);
    } else {
        json_null(&json, "conditions");
    }
    json_close(&json);
    json_end(&json);
}

/* ---- the word ---------------------------------------------------------------------------- */

/* Data that are not the library's are a failure: to say "free" would be wrong. */
static int show(const char *name, bool is_json)
{
    char key[DM_MUTEX_KEY_ROOM];
    struct conditions conditions = { .mutex = key };
    struct seen seen = { 0 };

    snprintf(key, sizeof key, "n%s", name);
    if (dm_view_one(key, DM_SEEN_WAITERS, keep, &seen) != 0)
        return tool_failed(name);
    if (seen.fault) {
        seen_clear(&seen);
        return tool_foreign(name);
    }
    conditions.are_known = dm_view_all(key, 0, keep_condition, &conditions) == 0;
    if (is_json)
        print_json(&seen, &conditions);
    else
        print(&seen, &conditions);
    for (int i = 0; i < conditions.count; i++)
        seen_clear(&conditions.seen[i]);
    free(conditions.seen);
    seen_clear(&seen);
    return 0;
}

static int run(int argc, char **argv)
{
    bool is_json = false;
    int error = tool_only_name(argc, argv, &is_json);

    return error ? error : show(argv[optind], is_json);
}

const struct word word_show = {
    .name = "show",
    .arguments = "[--json] NAME",
    .purpose = "show the holder of a lock, and the waiters in order",
    .options = "",
    .run = run,
};
