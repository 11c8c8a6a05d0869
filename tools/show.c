/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * dmutex show: the server's data about one name.  Of a mutex: the holder, or the last holder if it is free, the queue,
 * the health, and the conditions bound to the mutex.  Of a condition: the waiters.  A mutex and a condition may have
 * the same name.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <dmutex/dmutex.h>

#include "api/view.h"
#include "base/date.h"
#include "say.h"
#include "seen.h"
#include "tool.h"

/* The conditions of a mutex. */
struct conditions {
    const char *mutex; /* the key */
    struct seen *seen;
    int count;
    char reason[200]; /* why they are not known; "" */
};

/* Everything that the server has about one name. */
struct look {
    struct seen mutex, condition; /* condition: has waiters, if there is one of this name */
    bool has_condition;
    struct conditions conditions;
};

/* ---- asking ------------------------------------------------------------------------------ */

static void keep(void *user, const struct dm_seen *seen)
{
    *(struct seen *)user = seen_copy(seen);
}

/* SCAN may return a name twice. */
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

/* ---- texts ------------------------------------------------------------------------------- */

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

/* An end by the lease is one that the holder's process did not notice, or not in time. */
static const struct {
    const char *word, *sentence;
} ends[] = {
    [DM_END_UNLOCKED] = { "unlocked", "unlocked" },
    [DM_END_DIED] = { "died", "not released: the holder died, stopped or was cut off" },
    [DM_END_NOT_RECOVERABLE] = { "notrecoverable", "unlocked after a death without making the data consistent" },
    [DM_END_BROKEN] = { "broken", "broken by force" },
};

/* A time of the server's clock, in UTC. */
static const char *date(int64_t us, char ret_text[DM_DATE_ROOM])
{
    dm_date_write(&(struct timespec){ .tv_sec = us / 1000000, .tv_nsec = us % 1000000 * 1000 }, ret_text);
    return ret_text;
}

static void print_last(const struct dm_last *last)
{
    char party[SEEN_PARTY_ROOM], moment[DM_DATE_ROOM], held[SAY_TIME_ROOM], ago[SAY_TIME_ROOM];

    printf("  last      %s, thread %" PRIu64 "\n", seen_party(last->pid, last->host, last->program, party),
           last->thread);
    printf("  from      %s, for %s\n", date(last->from_us, moment), say_time(last->held_ms, held));
    printf("  to        %s, %s ago\n", date(last->from_us + last->held_ms * 1000, moment), say_time(last->ago_ms, ago));
    printf("  end       %s\n", ends[last->how].sentence);
}

static void print_queue(const struct seen *seen)
{
    uint32_t waiters = seen->data.info.shown.waiters;
    char party[SEEN_PARTY_ROOM], time[SAY_TIME_ROOM];

    for (int i = 0; i < seen->data.waiter_count; i++) {
        const struct dm_seen_waiter *waiter = &seen->waiters[i];

        printf("  %7d   %s, thread %" PRIu64 ", for %s", i + 1,
               seen_party(waiter->pid, waiter->host, waiter->program, party), waiter->thread,
               say_time(waiter->waited_ms, time));
        if (seen_is_silent(waiter))
            printf(", silent for %s: dead, stopped or cut off", say_time(waiter->silent_ms, time));
        puts("");
    }
    if (waiters > (uint32_t)seen->data.waiter_count)
        printf("      ...   and %" PRIu32 " more\n", waiters - (uint32_t)seen->data.waiter_count);
}

/* A break leaves the same mark as a death. */
static void print_health(const struct seen *seen)
{
    if (seen->data.info.shown.health == 1)
        puts("  health    not released: a holder died, or the lock was broken; the next robust holder learns of it");
    else if (seen->data.info.shown.health == 2)
        puts("  health    not recoverable: destroy the mutex and set it up again");
}

static void print_conditions(const struct conditions *conditions)
{
    char name[SAY_NAME_ROOM];

    if (conditions->reason[0])
        printf("  conditions are not known: %s\n", conditions->reason);
    for (int i = 0; i < conditions->count; i++)
        printf("  condition %s: %" PRIu32 " waiting\n", say_name(conditions->seen[i].name, name),
               conditions->seen[i].data.info.shown.waiters);
}

static void print_mutex(const struct seen *seen, const struct conditions *conditions)
{
    const struct dm_info *info = &seen->data.info;
    char time[SAY_TIME_ROOM];

    if (info->shown.locked)
        print_hold(seen);
    else
        puts("  free");
    if (seen->data.last.is_known && !info->shown.locked)
        print_last(&seen->data.last);
    if (info->shown.token)
        printf("  token     %" PRIu64 "\n", info->shown.token << DM_TOKEN_SHIFT);
    printf("  waiting   %" PRIu32 "\n", info->shown.waiters);
    print_queue(seen);
    print_health(seen);
    print_conditions(conditions);
    if (!info->shown.locked && info->grace_ms > 0)
        printf("  grace     the server has just started, and grants nothing new for %s\n",
               say_time(info->grace_ms, time));
}

static void print_condition(const struct seen *seen)
{
    char mutex[SAY_NAME_ROOM];

    printf("  condition%s%s, %" PRIu32 " waiting\n", *seen->mutex ? " of " : "",
           *seen->mutex ? say_name(seen->mutex + 1, mutex) : "", seen->data.info.shown.waiters);
    print_queue(seen);
}

/* True if the server knows nothing of the mutex, but of a condition with this name. */
static bool is_condition_alone(const struct look *look)
{
    const dmutex_info_t *shown = &look->mutex.data.info.shown;

    return look->has_condition && !shown->locked && !shown->token && !shown->waiters && !shown->health;
}

static void print(const struct look *look)
{
    char name[SAY_NAME_ROOM];

    printf("%s\n", say_name(look->mutex.name, name));
    if (!is_condition_alone(look))
        print_mutex(&look->mutex, &look->conditions);
    if (look->has_condition)
        print_condition(&look->condition);
}

/* Null if the mutex is held, or the server remembers no holder. */
static void write_last(struct json *json, const struct seen *seen)
{
    const struct dm_last *last = &seen->data.last;

    if (!last->is_known || seen->data.info.shown.locked) {
        json_null(json, "last_holder");
        return;
    }
    json_open(json, "last_holder", '{');
    json_text(json, "program", last->program);
    json_number(json, "pid", last->pid);
    json_text(json, "host", last->host);
    json_number(json, "thread", (int64_t)last->thread);
    json_moment(json, "since", last->from_us / 1000);
    json_moment(json, "until", last->from_us / 1000 + last->held_ms);
    json_number(json, "held_ms", last->held_ms);
    json_text(json, "end", ends[last->how].word);
    json_close(json);
}

static void write_mutex(struct json *json, const struct look *look)
{
    const struct conditions *conditions = &look->conditions;

    seen_json(json, &look->mutex);
    write_last(json, &look->mutex);
    if (!conditions->reason[0]) {
        json_open(json, "conditions", '[');
        for (int i = 0; i < conditions->count; i++) {
            json_open(json, NULL, '{');
            seen_json(json, &conditions->seen[i]);
            json_close(json);
        }
        json_close(json);
    } else {
        json_null(json, "conditions");
    }
    if (look->has_condition) {
        json_open(json, "condition", '{');
        seen_json(json, &look->condition);
        json_close(json);
    }
}

static void print_json(const struct look *look)
{
    struct json json = json_begin(stdout);

    json_open(&json, NULL, '{');
    if (is_condition_alone(look))
        seen_json(&json, &look->condition);
    else
        write_mutex(&json, look);
    json_close(&json);
    json_end(&json);
}

/* ---- the subcommand ---------------------------------------------------------------------- */

static void clear(struct look *look)
{
    for (int i = 0; i < look->conditions.count; i++)
        seen_clear(&look->conditions.seen[i]);
    free(look->conditions.seen);
    seen_clear(&look->condition);
    seen_clear(&look->mutex);
}

/* A quorum has no conditions, and refuses the question. */
static void look_for_condition(const char *name, struct look *look)
{
    char key[DM_MUTEX_KEY_ROOM];

    snprintf(key, sizeof key, "c%s", name);
    look->has_condition = dm_view_one(key, DM_SEEN_WAITERS, keep, &look->condition) == 0 && !look->condition.fault &&
                          look->condition.data.info.shown.waiters > 0;
}

/* Data that are not the library's are a failure: it would be wrong to say "free". */
static int show(const char *name, bool is_json)
{
    char key[DM_MUTEX_KEY_ROOM];
    struct look look = { .conditions.mutex = key };

    snprintf(key, sizeof key, "n%s", name);
    if (dm_view_one(key, DM_SEEN_WAITERS, keep, &look.mutex) != 0)
        return tool_failed(name);
    if (look.mutex.fault) {
        clear(&look);
        return tool_foreign(name);
    }
    look_for_condition(name, &look);
    if (dm_view_all(key, 0, keep_condition, &look.conditions) != 0)
        snprintf(look.conditions.reason, sizeof look.conditions.reason, "%s", dmutex_strerror_np());
    if (is_json)
        print_json(&look);
    else
        print(&look);
    clear(&look);
    return 0;
}

static int run(int argc, char **argv)
{
    bool is_json = false;
    int error = tool_only_name(argc, argv, &is_json);

    return error ? error : show(argv[optind], is_json);
}

const struct subcommand subcommand_show = {
    .name = "show",
    .arguments = "[--json] NAME",
    .purpose = "show who holds a lock, and who waits for it, in order",
    .options = "",
    .run = run,
};
