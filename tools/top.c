/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * dmutex top: the busiest locks, again each second on a terminal, once elsewhere.
 *
 * A look is a list of all names.  Grants are counted by tokens: a name whose token has changed since the last look was
 * granted at least once.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "chain.h"
#include "deadlock.h"
#include "gather.h"
#include "json.h"
#include "say.h"
#include "tool.h"

#define DEADLOCKS_SHOWN 8
#define WAITS_SHOWN 8
#define NAME_COLUMNS 28
#define HOLDER_COLUMNS 36

/* The rows, the busiest first, and sums. */
struct ranking {
    const struct seen **rows;
    size_t count;
    unsigned held, waiting;
};

static int64_t longest_wait_ms(const struct seen *seen)
{
    return seen->data.waiter_count ? seen->waiters[0].waited_ms : 0;
}

/* More waiters first, then the longer hold. */
static int compare(const void *one, const void *other)
{
    const struct dm_info *a = &(*(const struct seen *const *)one)->data.info;
    const struct dm_info *b = &(*(const struct seen *const *)other)->data.info;

    if (a->shown.waiters != b->shown.waiters)
        return a->shown.waiters < b->shown.waiters ? 1 : -1;
    return (a->held_ms < b->held_ms) - (a->held_ms > b->held_ms);
}

static bool rank(const struct gathered *gathered, struct ranking *ret_ranking)
{
    struct ranking ranking = { .rows = calloc(gathered->count + 1, sizeof *ranking.rows) };

    if (!ranking.rows)
        return false;
    for (size_t i = 0; i < gathered->count; i++) {
        const struct seen *seen = &gathered->seen[i];

        if (seen->fault || (!seen->data.info.shown.locked && !seen->data.info.shown.waiters))
            continue;
        ranking.rows[ranking.count++] = seen;
        ranking.held += seen->data.info.shown.locked != 0;
        ranking.waiting += seen->data.info.shown.waiters;
    }
    qsort(ranking.rows, ranking.count, sizeof *ranking.rows, compare);
    *ret_ranking = ranking;
    return true;
}

/* Names whose token has changed; both lists are sorted by name. */
static unsigned count_grants(const struct gathered *before, const struct gathered *now)
{
    unsigned count = 0;
    size_t old = 0;

    for (size_t i = 0; i < now->count; i++) {
        const struct seen *seen = &now->seen[i];

        while (old < before->count && strcmp(before->seen[old].name, seen->name) < 0)
            old++;
        if (!seen_is_condition(seen) && !(old < before->count && strcmp(before->seen[old].key, seen->key) == 0 &&
                                          before->seen[old].data.info.shown.token == seen->data.info.shown.token))
            count++;
    }
    return count;
}

/* ---- words ------------------------------------------------------------------------------- */

static void print_row(const struct seen *seen, const char *end)
{
    char name[SAY_NAME_ROOM], holder[SEEN_PARTY_ROOM] = "", held[SAY_TIME_ROOM] = "", waited[SAY_TIME_ROOM] = "";

    if (seen->data.info.shown.locked) {
        seen_holder(seen, holder);
        say_time(seen->data.info.held_ms, held);
    } else {
        snprintf(holder, sizeof holder, seen_is_condition(seen) ? "(condition)" : "(free)");
    }
    if (seen->data.waiter_count)
        say_time(longest_wait_ms(seen), waited);
    say_cell(say_name(seen->name, name), NAME_COLUMNS, 60);
    say_cell(holder, HOLDER_COLUMNS, 80);
    printf("%12s  %7" PRIu32 "  %12s%s\n", held, seen->data.info.shown.waiters, waited, end);
}

static void print_deadlock(const struct deadlock *deadlock, const char *end)
{
    char name[SAY_NAME_ROOM], next[SAY_NAME_ROOM], holder[SEEN_PARTY_ROOM];

    for (int i = 0; i < deadlock->count; i++)
        printf("%s%s has %s and waits for %s%s\n",
               i ? "          " : "deadlock: ", seen_holder(deadlock->names[i], holder),
               say_name(deadlock->names[i]->name, name),
               say_name(deadlock->names[(i + 1) % deadlock->count]->name, next), end);
}

static const char *describe_holder(const struct seen *seen, char ret_text[SEEN_PARTY_ROOM])
{
    if (!seen->data.info.shown.locked)
        snprintf(ret_text, SEEN_PARTY_ROOM, "free");
    else
        snprintf(ret_text + strlen(seen_holder(seen, ret_text)), 40, ", thread %" PRIu64, seen->data.info.shown.thread);
    return ret_text;
}

/* One line for each name. */
static void print_chain(const struct chain *chain, const char *end)
{
    const struct dm_seen_waiter *waiter = chain->waiter;
    char party[SEEN_PARTY_ROOM], name[SAY_NAME_ROOM], time[SAY_TIME_ROOM];

    printf("%s, thread %" PRIu64 ", waits for %s for", seen_party(waiter->pid, waiter->host, waiter->program, party),
           waiter->thread, say_time(waiter->waited_ms, time));
    for (int i = 0; i < chain->count; i++) {
        const char *word = chain->names[i]->data.info.shown.locked ? "held by " : "";

        printf("%s %s: %s%s%s%s\n", i ? "    which waits for" : "", say_name(chain->names[i]->name, name), word,
               describe_holder(chain->names[i], party),
               chain->is_circle && i == chain->count - 1 ? ", in a deadlock" : "", end);
    }
}

/* How many chains fit into so many lines. */
static int count_fitting(const struct chain *chains, int count, size_t lines, size_t *ret_lines)
{
    int fitting = 0;

    *ret_lines = 0;
    while (fitting < count && *ret_lines + (size_t)chains[fitting].count <= lines)
        *ret_lines += (size_t)chains[fitting++].count;
    return fitting;
}

/*
 * most: lines for names and waits, of which the waits get half at most.  end: stands behind each line, and clears the
 * rest of the line on a screen.
 */
static void print(const struct gathered *gathered, const struct ranking *ranking, size_t most, const char *rate,
                  const char *end)
{
    struct deadlock deadlocks[DEADLOCKS_SHOWN];
    struct chain chains[WAITS_SHOWN];
    int count = deadlock_find(gathered, deadlocks, DEADLOCKS_SHOWN);
    size_t lines;
    int waits = count_fitting(chains, chain_find(gathered, chains, WAITS_SHOWN), most / 2, &lines);

    printf("%u held, %u waiting%s%s\n", ranking->held, ranking->waiting, rate, end);
    for (int i = 0; i < count; i++)
        print_deadlock(&deadlocks[i], end);
    say_cell("NAME", NAME_COLUMNS, NAME_COLUMNS);
    say_cell("HELD BY", HOLDER_COLUMNS, HOLDER_COLUMNS);
    printf("%12s  %7s  %12s%s\n", "FOR", "WAITING", "LONGEST", end);
    for (size_t i = 0; i < ranking->count && i < most - lines; i++)
        print_row(ranking->rows[i], end);
    if (waits)
        printf("THE LONGEST WAITS%s\n", end);
    for (int i = 0; i < waits; i++)
        print_chain(&chains[i], end);
}

static void write_waits(struct json *json, const struct gathered *gathered)
{
    struct chain chains[WAITS_SHOWN];
    int count = chain_find(gathered, chains, WAITS_SHOWN);

    json_open(json, "waits", '[');
    for (int i = 0; i < count; i++) {
        json_open(json, NULL, '{');
        seen_json_waiter(json, chains[i].waiter);
        json_open(json, "chain", '[');
        for (int j = 0; j < chains[i].count; j++) {
            json_open(json, NULL, '{');
            json_name(json, chains[i].names[j]->name);
            seen_json_holder(json, chains[i].names[j]);
            json_close(json);
        }
        json_close(json);
        json_bool(json, "deadlock", chains[i].is_circle);
        json_close(json);
    }
    json_close(json);
}

static void print_json(const struct gathered *gathered, const struct ranking *ranking)
{
    struct deadlock deadlocks[DEADLOCKS_SHOWN];
    int count = deadlock_find(gathered, deadlocks, DEADLOCKS_SHOWN);
    struct json json = json_begin(stdout);

    json_open(&json, NULL, '{');
    json_number(&json, "held", ranking->held);
    json_number(&json, "waiting", ranking->waiting);
    json_open(&json, "locks", '[');
    for (size_t i = 0; i < ranking->count; i++) {
        json_open(&json, NULL, '{');
        seen_json(&json, ranking->rows[i]);
        json_close(&json);
    }
    json_close(&json);
    json_open(&json, "deadlocks", '[');
    for (int i = 0; i < count; i++) {
        json_open(&json, NULL, '[');
        for (int j = 0; j < deadlocks[i].count; j++)
            json_text(&json, NULL, deadlocks[i].names[j]->name);
        json_close(&json);
    }
    json_close(&json);
    write_waits(&json, gathered);
    json_close(&json);
    json_end(&json);
}

/* ---- looks ------------------------------------------------------------------------------- */

static int look_once(bool is_json)
{
    struct gathered gathered = { .waiters = DM_SEEN_WAITERS };
    struct ranking ranking;

    if (gather(&gathered) != 0)
        return tool_failed_list();
    if (!rank(&gathered, &ranking))
        return tool_failed(NULL);
    if (is_json)
        print_json(&gathered, &ranking);
    else
        print(&gathered, &ranking, SIZE_MAX, "", "");
    free(ranking.rows);
    gather_clear(&gathered);
    return 0;
}

static size_t screen_rows(void)
{
    struct winsize size;

    return ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_row > 8 ? size.ws_row - 5u : 20;
}

/*
 * Draws over the last look.  Long lines are cut: wrapping is switched off and on again within one write, so that a
 * signal may end this at any moment.
 */
static void draw(const struct gathered *before, const struct gathered *now, double seconds)
{
    struct ranking ranking;
    char rate[60] = "";

    if (!rank(now, &ranking))
        return;
    if (before->seen)
        snprintf(rate, sizeof rate, ", at least %.1f grants a second", count_grants(before, now) / seconds);
    fputs("\033[?7l\033[H", stdout);
    print(now, &ranking, screen_rows(), rate, "\033[K");
    fputs("\033[J\033[?7h", stdout);
    fflush(stdout);
    free(ranking.rows);
}

/* Until a signal, or a failure. */
static int look_again_and_again(double pause_s)
{
    static char screen[1 << 16];
    struct gathered before = { 0 }, now;
    int64_t looked_ns = 0, now_ns;

    setvbuf(stdout, screen, _IOFBF, sizeof screen);
    for (;;) {
        struct timespec pause = { (time_t)pause_s, (long)((pause_s - (double)(time_t)pause_s) * 1e9) };

        now = (struct gathered){ .has_idle = true, .waiters = DM_SEEN_WAITERS };
        if (gather(&now) != 0)
            return tool_failed_list();
        now_ns = dm_clock_boot_ns();
        draw(&before, &now, (double)(now_ns - looked_ns) / DM_NS_PER_S);
        gather_clear(&before);
        before = now;
        looked_ns = now_ns;
        nanosleep(&pause, NULL);
    }
}

static int run(int argc, char **argv)
{
    static const struct option options[] = {
        { "delay", required_argument, NULL, 'd' },
        { "once", no_argument, NULL, '1' },
        { "json", no_argument, NULL, 'j' },
        { NULL, 0, NULL, 0 },
    };
    bool is_json = false, is_once = false;
    double pause_s = 1;
    int option, error;

    while ((option = tool_option(argc, argv, "+d:1", options)) != -1) {
        if (option == '?')
            return TOOL_USAGE;
        is_json |= option == 'j';
        is_once |= option == '1';
        if (option == 'd' && (!tool_read_seconds(optarg, &pause_s) || pause_s < 0.1))
            return tool_misused(argv, "-d %s: not a number of seconds from 0.1 on", optarg);
    }
    if (argv[optind])
        return tool_misused(argv, "there is no argument");
    error = tool_configure();
    if (error)
        return error;
    return is_json || is_once || !say_is_screen(stdout) ? look_once(is_json) : look_again_and_again(pause_s);
}

const struct word word_top = {
    .name = "top",
    .arguments = "[-d SECONDS] [-1] [--json]",
    .purpose = "show the busiest locks, deadlocks and the longest waits, again each second",
    .options = "  -d, --delay SECONDS   the pause between two looks, 0.1 at least\n"
               "  -1, --once            look once, as where standard output is no terminal\n"
               "\n"
               "The server's user needs the right +scan.\n",
    .run = run,
};
