/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * dmutex top: the busiest locks; on a terminal every second, elsewhere once.
 *
 * A snapshot is a list of all names.  Grants are counted by tokens: if a name's token has changed since the last
 * snapshot, the name was granted at least once.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "chain.h"
#include "deadlock.h"
#include "gather.h"
#include "json.h"
#include "say.h"
#include "screen.h"
#include "tool.h"

#define DEADLOCKS_SHOWN 8
#define WAITS_SHOWN 8
#define WAIT_COLUMNS 120 /* narrower screens use two lines for a wait */

/* The rows, the busiest first, and their sums. */
struct ranking {
    const struct seen **rows;
    size_t count;
    unsigned held, waiting, silent;
};

/* Silent waiters may be dead; the server passes over them. */
static unsigned count_waiting(const struct seen *seen)
{
    return seen->data.info.shown.waiters - seen_count_silent(seen);
}

static int64_t longest_wait_ms(const struct seen *seen)
{
    for (int i = 0; i < seen->data.waiter_count; i++)
        if (!seen_is_silent(&seen->waiters[i]))
            return seen->waiters[i].waited_ms;
    return 0;
}

/* More waiters come first, then the longer hold. */
static int compare(const void *one, const void *other)
{
    const struct seen *a = *(const struct seen *const *)one, *b = *(const struct seen *const *)other;
    unsigned a_waiting = count_waiting(a), b_waiting = count_waiting(b);
    int64_t a_ms = a->data.info.held_ms, b_ms = b->data.info.held_ms;

    if (a_waiting != b_waiting)
        return a_waiting < b_waiting ? 1 : -1;
    return (a_ms < b_ms) - (a_ms > b_ms);
}

static bool rank(const struct gathered *gathered, struct ranking *ret_ranking)
{
    struct ranking ranking = { .rows = calloc(gathered->count + 1, sizeof *ranking.rows) };

    if (!ranking.rows)
        return false;
    for (size_t i = 0; i < gathered->count; i++) {
        const struct seen *seen = &gathered->seen[i];

        if (seen->fault)
            continue;
        ranking.silent += seen_count_silent(seen);
        if (!seen->data.info.shown.locked && count_waiting(seen) == 0)
            continue;
        ranking.rows[ranking.count++] = seen;
        ranking.held += seen->data.info.shown.locked != 0;
        ranking.waiting += count_waiting(seen);
    }
    qsort(ranking.rows, ranking.count, sizeof *ranking.rows, compare);
    *ret_ranking = ranking;
    return true;
}

/* Counts names whose token has changed; both lists are sorted by name. */
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

/* ---- texts ------------------------------------------------------------------------------- */

/* How the output is laid out. */
struct page {
    int columns;     /* of the screen; 0: as wide as the text */
    size_t lines;    /* that fit on the screen, without the two headings */
    const char *end; /* ends each line: clears its rest on the screen */
    int name_least, name_most, holder_least, holder_most;
};

static const char *describe_row(const struct seen *seen, char ret_text[SEEN_PARTY_ROOM])
{
    if (seen->data.info.shown.locked)
        seen_holder(seen, ret_text);
    else
        snprintf(ret_text, SEEN_PARTY_ROOM, seen_is_condition(seen) ? "(condition)" : "(free)");
    return ret_text;
}

/*
 * The numbers and their gaps take 28 columns, and are never cut.  The last column stays empty, because clearing the
 * rest of a full line would erase its last letter.  The name gets what the holders leave, but at least two fifths of
 * the rest.
 */
static void lay_out(struct page *page, const struct ranking *ranking)
{
    int room = page->columns > 60 ? page->columns - 29 : 31, names = 4, holders = 7;
    char text[SAY_NAME_ROOM];

    if (!page->columns) {
        page->name_least = 28, page->name_most = 60;
        page->holder_least = 36, page->holder_most = 80;
        return;
    }
    for (size_t i = 0; i < ranking->count && i < page->lines; i++) {
        int width = say_width(say_name(ranking->rows[i]->name, text));

        names = width > names ? width : names;
        width = say_width(describe_row(ranking->rows[i], text));
        holders = width > holders ? width : holders;
    }
    page->name_most = room - holders > room * 2 / 5 ? room - holders : room * 2 / 5;
    page->name_most = names < page->name_most ? names : page->name_most;
    page->name_least = page->name_most;
    page->holder_least = page->holder_most = room - page->name_most;
}

static void print_heading(const struct page *page)
{
    say_cell("NAME", page->name_least, page->name_most);
    say_cell("HELD BY", page->holder_least, page->holder_most);
    printf("%*s  %7s  %*s%s\n", page->columns ? 6 : 12, "FOR", "WAITING", page->columns ? 7 : 12, "LONGEST", page->end);
}

static void print_row(const struct page *page, const struct seen *seen)
{
    char name[SAY_NAME_ROOM], holder[SEEN_PARTY_ROOM], held[SAY_TIME_ROOM] = "", waited[SAY_TIME_ROOM] = "";
    const char *(*say_length)(int64_t, char *) = page->columns ? say_short_time : say_time;

    if (seen->data.info.shown.locked)
        say_length(seen->data.info.held_ms, held);
    if (count_waiting(seen) && seen->data.waiter_count)
        say_length(longest_wait_ms(seen), waited);
    say_cell(say_name(seen->name, name), page->name_least, page->name_most);
    say_cell(describe_row(seen, holder), page->holder_least, page->holder_most);
    printf("%*s  %7u  %*s%s\n", page->columns ? 6 : 12, held, count_waiting(seen), page->columns ? 7 : 12, waited,
           page->end);
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

static bool is_narrow(const struct page *page)
{
    return page->columns && page->columns < WAIT_COLUMNS;
}

/* One or two lines for each name. */
static void print_chain(const struct page *page, const struct chain *chain)
{
    const struct dm_seen_waiter *waiter = chain->waiter;
    char party[SEEN_PARTY_ROOM], name[SAY_NAME_ROOM], time[SAY_TIME_ROOM];

    printf("%s, thread %" PRIu64 ", waits for %s for", seen_party(waiter->pid, waiter->host, waiter->program, party),
           waiter->thread, say_time(waiter->waited_ms, time));
    for (int i = 0; i < chain->count; i++) {
        const char *word = chain->names[i]->data.info.shown.locked ? "held by " : "";

        printf("%s %s:", i ? "    which waits for" : "", say_name(chain->names[i]->name, name));
        if (is_narrow(page))
            printf("%s\n   ", page->end);
        printf(" %s%s%s%s\n", word, describe_holder(chain->names[i], party),
               chain->is_circle && i == chain->count - 1 ? ", in a deadlock" : "", page->end);
    }
}

/* How many circles fit into half of the remaining lines, from which they are taken. */
static int count_fitting_deadlocks(struct page *page, const struct deadlock *deadlocks, int count)
{
    size_t most = page->lines / 2, used = 0;
    int fitting = 0;

    while (fitting < count && used + (size_t)deadlocks[fitting].count <= most)
        used += (size_t)deadlocks[fitting++].count;
    page->lines -= used;
    return fitting;
}

/* The same for chains, which have a heading. */
static int count_fitting_chains(struct page *page, const struct chain *chains, int count)
{
    size_t most = page->lines / 2, used = 1, each = is_narrow(page) ? 2 : 1;
    int fitting = 0;

    while (fitting < count && used + each * (size_t)chains[fitting].count <= most)
        used += each * (size_t)chains[fitting++].count;
    page->lines -= fitting ? used : 0;
    return fitting;
}

static void print(const struct gathered *gathered, const struct ranking *ranking, const char *rate, struct page page)
{
    struct deadlock deadlocks[DEADLOCKS_SHOWN];
    struct chain chains[WAITS_SHOWN];
    int circles = count_fitting_deadlocks(&page, deadlocks, deadlock_find(gathered, deadlocks, DEADLOCKS_SHOWN));
    int waits = count_fitting_chains(&page, chains, chain_find(gathered, chains, WAITS_SHOWN));

    lay_out(&page, ranking);
    printf("%u held, %u waiting", ranking->held, ranking->waiting);
    if (ranking->silent)
        printf(", %u silent", ranking->silent);
    printf("%s%s\n", rate, page.end);
    for (int i = 0; i < circles; i++)
        print_deadlock(&deadlocks[i], page.end);
    print_heading(&page);
    for (size_t i = 0; i < ranking->count && i < page.lines; i++)
        print_row(&page, ranking->rows[i]);
    if (waits)
        printf("THE LONGEST WAITS%s\n", page.end);
    for (int i = 0; i < waits; i++)
        print_chain(&page, &chains[i]);
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
    json_number(&json, "silent", ranking->silent);
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

/* ---- snapshots --------------------------------------------------------------------------- */

/* For printing once, to a terminal or elsewhere: no limit of lines. */
static struct page whole_page(void)
{
    return (struct page){ .columns = say_is_screen(stdout) ? screen_columns() : 0, .lines = SIZE_MAX, .end = "" };
}

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
        print(&gathered, &ranking, "", whole_page());
    free(ranking.rows);
    gather_clear(&gathered);
    return 0;
}

/* Leaves room for the two headings, and for the cursor below the last line. */
static struct page page_of_screen(void)
{
    int rows = screen_rows();

    return (struct page){ .columns = screen_columns(), .lines = rows > 6 ? (size_t)rows - 3 : 3, .end = "\033[K" };
}

/* Draws over the previous page. */
static void draw(const struct gathered *now, const char *rate)
{
    struct ranking ranking;

    if (!rank(now, &ranking))
        return;
    screen_draw();
    print(now, &ranking, rate, page_of_screen());
    screen_drawn();
    free(ranking.rows);
}

/* Waits until the next snapshot is due, redrawing the last one when needed.  False if the user quits. */
static bool await_next(const struct gathered *now, const char *rate, double pause_s)
{
    int64_t next_ns = dm_clock_boot_ns() + (int64_t)(pause_s * DM_NS_PER_S), left_ns;

    while ((left_ns = next_ns - dm_clock_boot_ns()) > 0) {
        char key = '\0';

        switch (screen_await((double)left_ns / DM_NS_PER_S, &key)) {
        case SCREEN_TIME:
            break;
        case SCREEN_RESIZE:
            draw(now, rate);
            break;
        case SCREEN_KEY:
            if (key == 'q' || key == 'Q')
                return false;
            if (key == ' ')
                return true;
        }
    }
    return true;
}

/* Until a key or a signal, or a failure. */
static int look_again_and_again(double pause_s)
{
    static char screen[1 << 16];
    struct gathered before = { 0 }, now;
    int64_t looked_ns = 0, now_ns;
    char rate[60] = "";
    bool goes_on;

    setvbuf(stdout, screen, _IOFBF, sizeof screen);
    screen_begin();
    do {
        now = (struct gathered){ .has_idle = true, .waiters = DM_SEEN_WAITERS };
        if (gather(&now) != 0) {
            screen_end();
            return tool_failed_list();
        }
        now_ns = dm_clock_boot_ns();
        if (before.seen)
            snprintf(rate, sizeof rate, ", at least %.1f grants a second",
                     count_grants(&before, &now) / ((double)(now_ns - looked_ns) / DM_NS_PER_S));
        draw(&now, rate);
        gather_clear(&before);
        before = now;
        looked_ns = now_ns;
        goes_on = await_next(&now, rate, pause_s);
    } while (goes_on);
    screen_end();
    gather_clear(&before);
    return 0;
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
            return tool_misused(argv, "-d %s: not a number of seconds, 0.1 or more", optarg);
    }
    if (argv[optind])
        return tool_misused(argv, "it takes no argument");
    error = tool_configure();
    if (error)
        return error;
    return is_json || is_once || !say_is_screen(stdout) ? look_once(is_json) : look_again_and_again(pause_s);
}

const struct subcommand subcommand_top = {
    .name = "top",
    .arguments = "[-d SECONDS] [-1] [--json]",
    .purpose = "show the busiest locks, deadlocks and the longest waits, updated every second",
    .options = "  -d, --delay SECONDS   the time between two updates, at least 0.1\n"
               "  -1, --once            print once and exit; the default if standard output is not a terminal\n"
               "\n"
               "On a terminal, q quits and the space bar updates at once.\n"
               "The user on the server needs the right +scan.\n",
    .run = run,
};
