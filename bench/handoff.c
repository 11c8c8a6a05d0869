/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Processes that all want one name, against a bare lock that grants in the release (grant.h).
 *
 * Each process locks and unlocks in a loop, holding the name for nothing: so the name goes from hand to hand all the
 * time, and the figure is the handoff alone - release script, message, waking the waiter, the waiter's unlock - and
 * does not depend on the number of waiters.
 */
#include <stdio.h>

#include "bench.h"
#include "crowd.h"

#define ROUNDS 5
#define SECONDS 0.25

enum { PER_SECOND, SCRIPTS, MESSAGES, SLEEPS, SERVER_US, SPREAD, FIGURES };

/* The results of the rounds, for each figure. */
struct rounds {
    double of[FIGURES][ROUNDS];
};

static void keep(struct rounds *rounds, int round, const struct crowd_figures *figures)
{
    rounds->of[PER_SECOND][round] = figures->per_second;
    rounds->of[SCRIPTS][round] = figures->scripts;
    rounds->of[MESSAGES][round] = figures->messages;
    rounds->of[SLEEPS][round] = figures->sleeps;
    rounds->of[SERVER_US][round] = figures->server_us;
    rounds->of[SPREAD][round] = figures->spread;
}

static void run_both(const struct bench_server *server, int core, int size, int rounds, double ret_library[FIGURES],
                     double ret_bare[FIGURES])
{
    struct crowd library = { CROWD_LIBRARY, size, core }, bare = { CROWD_BARE, size, core };
    struct rounds of_library, of_bare;

    for (int round = 0; round < rounds; round++) {
        struct crowd_figures figures = crowd_run(server, &bare, SECONDS);

        keep(&of_bare, round, &figures);
        figures = crowd_run(server, &library, SECONDS);
        keep(&of_library, round, &figures);
    }
    for (int i = 0; i < FIGURES; i++) {
        ret_library[i] = bench_median(of_library.of[i], rounds);
        ret_bare[i] = bench_median(of_bare.of[i], rounds);
    }
}

static void two(const struct bench_server *server, int core)
{
    double library[FIGURES], bare[FIGURES];

    run_both(server, core, 2, ROUNDS, library, bare);
    printf("  2 processes  %6.1f us a handoff   bare %6.1f us   ratio %.2f (<= 1.40)\n", 1e6 / library[PER_SECOND],
           1e6 / bare[PER_SECOND], bare[PER_SECOND] / library[PER_SECOND]);
}

static void many(const struct bench_server *server, int core)
{
    static const int sizes[] = { 2, 8, 32, 100, CROWD_MAX };
    double library[FIGURES], bare[FIGURES], at_two = 0;

    printf("  processes  acq./s   of 2's   bare/s  ratio   scripts  messages  sleeps (bare)   server us (bare)"
           "   luckiest/unluckiest\n");
    for (size_t i = 0; i < BENCH_COUNT(sizes); i++) {
        run_both(server, core, sizes[i], ROUNDS - 2, library, bare);
        if (i == 0)
            at_two = library[PER_SECOND];
        printf("  %9d  %6.0f    %5.2f   %6.0f   %4.2f     %5.2f     %5.2f   %5.2f %5.2f     %6.1f %6.1f   %10.2f\n",
               sizes[i], library[PER_SECOND], library[PER_SECOND] / at_two, bare[PER_SECOND],
               bare[PER_SECOND] / library[PER_SECOND], library[SCRIPTS], library[MESSAGES], library[SLEEPS],
               bare[SLEEPS], library[SERVER_US], bare[SERVER_US], library[SPREAD]);
    }
}

int main(void)
{
    struct bench_server server = bench_server_start();

    printf("one name from process to process; critical section: nothing\n"
           "budget: <= 1.40 of the bare lock; flat from 2 to 128; per acquisition <= 2.2 scripts called (and the"
           " polls), 1 message\n");
    for (const struct bench_place *place = bench_places(); place->name; place++) {
        bench_pin(server.pid, place->server_core);
        printf("%s\n", place->name);
        two(&server, place->client_core);
        many(&server, place->client_core);
    }
    bench_server_stop(&server);
    return 0;
}
