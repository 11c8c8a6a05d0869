/* SPDX-License-Identifier: BSD-2-Clause */
#include "crowd.h"

#include <dmutex/dmutex.h>
#include <limits.h>
#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/resource.h>

#include "asked.h"
#include "report.h"
#include "server.h"

enum stage { GATHER, RUN, END };
enum { SAMPLES_MAX = 1 << 17, CROWDS_MAX = 1 + LIMITS_MAX, ROUNDS_MAX = 100 };

/* What one thread owns, in cache lines of its own. */
struct seat {
    atomic_long acquisitions, handoffs;
    long sleeps; /* of the whole process, in the seat of its first thread */
    double longest_wait;
    char padding[96];
};

struct board {
    atomic_int stage;
    atomic_int ready;
    struct seat seats[CROWD_MAX];
    /* Guarded by the lock under test. */
    int last; /* the seat of the last holder */
    double left;
    int sample_count;
    double samples[SAMPLES_MAX];
};

/* The orders for a process of the crowd, and for each of its threads. */
struct part {
    const struct bench_scene *scene;
    const struct crowd *crowd;
    struct board *board;
    int number; /* of the seat */
    dmutex_t *mutex;
    const struct bare *bare; /* NULL: the library's */
    void *bare_lock;
};

/* ---- one thread ------------------------------------------------------------------ */

static void lock(struct part *part)
{
    if (part->bare)
        part->bare->lock(part->bare_lock);
    else
        bench_must(dmutex_lock(part->mutex));
}

static void unlock(struct part *part)
{
    if (part->bare)
        part->bare->unlock(part->bare_lock);
    else
        bench_must(dmutex_unlock(part->mutex));
}

static void note_handoff(struct part *part, struct board *board)
{
    if (part->crowd->is_timed && board->stage == RUN && board->sample_count < SAMPLES_MAX)
        board->samples[board->sample_count++] = bench_now() - board->left;
    board->last = part->number;
    board->seats[part->number].handoffs++;
}

static double longest(double a, double b)
{
    return a > b ? a : b;
}

static void note_wait(struct part *part, double waited)
{
    struct seat *seat = &part->board->seats[part->number];

    if (part->board->stage == RUN)
        seat->longest_wait = longest(seat->longest_wait, waited);
}

static void hold_once(struct part *part)
{
    struct board *board = part->board;
    double before = part->crowd->is_timed ? bench_now() : 0;

    lock(part);
    if (part->crowd->is_timed)
        note_wait(part, bench_now() - before);
    if (board->last != part->number)
        note_handoff(part, board);
    if (part->crowd->is_timed)
        board->left = bench_now();
    unlock(part);
}

static void open_bare_lock(struct part *part)
{
    const struct bench_server *server = part->scene->server;

    if (part->crowd->lock == BARE_NONE)
        return;
    part->bare = &server->store->bare[part->crowd->lock];
    part->bare_lock = part->bare->open(server, part->bare->name, part->number, NULL);
}

static void *take_part(void *user)
{
    struct part *part = user;
    struct board *board = part->board;

    open_bare_lock(part);
    hold_once(part); /* all is connected and loaded */
    board->ready++;
    while (board->stage == GATHER)
        bench_pause(0.001);
    while (board->stage == RUN) {
        hold_once(part);
        board->seats[part->number].acquisitions++;
    }
    if (part->crowd->lock == BARE_ASKED)
        asked_leave(part->bare_lock);
    return NULL;
}

/* ---- one process ----------------------------------------------------------------- */

static long sleeps_so_far(void)
{
    struct rusage usage;

    getrusage(RUSAGE_SELF, &usage);
    return usage.ru_nvcsw;
}

static void make_mutex(dmutex_t *mutex, const struct crowd *crowd)
{
    dmutexattr_t attr;

    bench_must(dmutexattr_init(&attr));
    bench_must(dmutexattr_setfairness_np(&attr, crowd->fairness));
    bench_must(dmutexattr_setlinger_np(&attr, crowd->linger_ms));
    bench_must(dmutex_init_np(mutex, "bench/crowd", &attr));
}

/* Runs in the new process. */
static void join_in(void *user)
{
    static struct part parts[CROWD_MAX];
    static dmutex_t mutex;
    struct part *first = user;
    pthread_t threads[CROWD_MAX];
    long before;

    make_mutex(&mutex, first->crowd);
    for (int i = 0; i < first->crowd->threads; i++) {
        parts[i] = *first;
        parts[i].number += i;
        parts[i].mutex = &mutex;
        if (pthread_create(&threads[i], NULL, take_part, &parts[i]) != 0)
            bench_die("no thread");
    }
    while (first->board->stage == GATHER)
        bench_pause(0.001);
    before = sleeps_so_far();
    for (int i = 0; i < first->crowd->threads; i++)
        pthread_join(threads[i], NULL);
    first->board->seats[first->number].sleeps = sleeps_so_far() - before;
}

/* ---- all processes --------------------------------------------------------------- */

struct sums {
    long acquisitions, handoffs;
};

static struct sums sums_of_all(struct board *board, int size)
{
    struct sums sums = { 0, 0 };

    for (int i = 0; i < size; i++) {
        sums.acquisitions += board->seats[i].acquisitions;
        sums.handoffs += board->seats[i].handoffs;
    }
    return sums;
}

/* Watches the running processes. Reads the server's counters and, at the same time, those of the clients. */
static void watch(const struct part *part, double seconds, struct crowd_figures *figures)
{
    const struct bench_server *server = part->scene->server;
    int size = part->crowd->processes * part->crowd->threads;
    struct bench_counts counts_before, counts;
    struct sums before, after;
    double start, acquired;

    bench_pause(seconds / 4);
    server->store->count(server, &counts_before);
    before = sums_of_all(part->board, size);
    start = bench_now();
    bench_pause(seconds);
    after = sums_of_all(part->board, size);
    seconds = bench_now() - start;
    server->store->count(server, &counts);
    acquired = (double)(after.acquisitions - before.acquisitions);
    figures->of[CROWD_PER_SECOND] = acquired / seconds;
    figures->of[CROWD_HANDOFFS] = (double)(after.handoffs - before.handoffs) / seconds;
    figures->of[CROWD_COMMANDS] = (counts.commands - counts_before.commands) / acquired;
    figures->of[CROWD_SERVER_US] = (counts.server_us - counts_before.server_us) / acquired;
    figures->of[CROWD_MESSAGES] = (counts.messages - counts_before.messages) / acquired;
}

/* Acquisitions of the luckiest group of `group` neighbours over those of the unluckiest. */
static double spread(const struct board *board, int size, int group)
{
    long least = LONG_MAX, most = 0;

    for (int first = 0; first < size; first += group) {
        long own = 0;

        for (int i = first; i < first + group; i++)
            own += board->seats[i].acquisitions;
        least = own < least ? own : least;
        most = own > most ? own : most;
    }
    return (double)most / (double)(least ? least : 1);
}

/* Adds up after the processes have ended. */
static void add_up(struct board *board, const struct crowd *crowd, struct crowd_figures *figures)
{
    int size = crowd->processes * crowd->threads, count = board->sample_count;
    double *samples = board->samples, longest_wait = 0;
    long sleeps = 0;

    for (int i = 0; i < size; i++) {
        sleeps += board->seats[i].sleeps;
        longest_wait = longest(longest_wait, board->seats[i].longest_wait);
    }
    figures->of[CROWD_SLEEPS] = (double)sleeps / (double)sums_of_all(board, size).acquisitions;
    figures->of[CROWD_SPREAD] = spread(board, size, 1);
    figures->of[CROWD_SHARES] = spread(board, size, crowd->threads);
    figures->of[CROWD_WAIT_MS] = longest_wait * 1e3;
    figures->of[CROWD_P50_US] = bench_quantile(samples, count, 0.5) * 1e6;
    figures->of[CROWD_P99_US] = bench_quantile(samples, count, 0.99) * 1e6;
    figures->of[CROWD_MAX_US] = bench_quantile(samples, count, 1) * 1e6;
}

static double rows_so_far(const struct bench_server *server)
{
    return server->store->rows_written ? server->store->rows_written(server) : NAN;
}

struct crowd_figures crowd_run(const struct bench_scene *scene, const struct crowd *crowd)
{
    struct board *board = bench_share(sizeof *board);
    struct part part = { .scene = scene, .crowd = crowd, .board = board };
    struct crowd_figures figures = { { 0 } };
    pid_t pids[CROWD_MAX];
    int size = crowd->processes * crowd->threads;
    double rows = rows_so_far(scene->server);

    if (crowd->lock == BARE_ASKED)
        asked_clear(scene->server);
    for (int i = 0; i < crowd->processes; i++) {
        part.number = i * crowd->threads;
        pids[i] = bench_begin(scene, join_in, &part);
    }
    while (board->ready < size)
        bench_pause(0.001);
    board->stage = RUN;
    watch(&part, scene->seconds, &figures);
    board->stage = END;
    for (int i = 0; i < crowd->processes; i++)
        bench_await(pids[i]);
    add_up(board, crowd, &figures);
    /* Each thread has had the lock once before all began. */
    figures.of[CROWD_ROWS] =
        (rows_so_far(scene->server) - rows) / (double)(sums_of_all(board, size).acquisitions + size);
    munmap(board, sizeof *board);
    return figures;
}

void crowd_compare(const struct bench_scene *scene, const struct crowd *crowds, int count,
                   struct crowd_figures *ret_medians)
{
    static struct crowd_figures figures[CROWDS_MAX][ROUNDS_MAX];
    int rounds = scene->rounds < ROUNDS_MAX ? scene->rounds : ROUNDS_MAX;
    double values[ROUNDS_MAX];

    for (int round = 0; round < rounds; round++) {
        for (int i = 0; i < count; i++)
            figures[i][round] = crowd_run(scene, &crowds[i]);
    }
    for (int i = 0; i < count; i++) {
        for (int which = 0; which < CROWD_FIGURES; which++) {
            for (int round = 0; round < rounds; round++)
                values[round] = figures[i][round].of[which];
            ret_medians[i].of[which] = bench_median(values, rounds);
        }
    }
}

void crowd_report(const struct crowd *crowds, int count, const struct crowd_figures *medians, enum crowd_figure which,
                  const char *when, int size, const char *budget)
{
    static const struct {
        const char *name, *unit;
    } names[CROWD_FIGURES] = {
        { "acquisitions", "/s" },
        { "handoffs", "/s" },
        { "commands", "" },
        { "rows written", "" },
        { "messages", "" },
        { "sleeps", "" },
        { "server", "us" },
        { "luckiest / unluckiest", "" },
        { "shares of processes", "" },
        { "handoff p50", "us" },
        { "handoff p99", "us" },
        { "longest handoff", "us" },
        { "longest wait", "ms" },
    };
    struct figure figure = {
        when, names[which].name, names[which].unit, size, medians[0].of[which], { { 0 } }, budget
    };

    if (isnan(figure.value))
        return;
    for (int i = 1; i < count && i <= LIMITS_MAX; i++) {
        figure.limits[i - 1].name = crowds[i].name;
        figure.limits[i - 1].value = medians[i].of[which];
    }
    report(&figure);
}
