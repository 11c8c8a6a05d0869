/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Makers and takers of tickets in several processes, which are killed at random, between unasked signals and waits that
 * time out: no ticket is lost, and no wake-up.
 *
 * A maker waits while the table is full, a taker while the table is empty, both without a timeout. A walker waits for a
 * moment, and passes on a wakeup; a walker without a wakeup has eaten no signal. An owner that is killed leaves the
 * numbers half changed; the next owner counts again. So the table is filled and emptied on and on without help; when
 * makers stop the table becomes empty, and when takers do, full. One lost wake-up stops all.
 *
 * DM_SEED repeats a run as far as the threads do; DMUTEX_TEST_WAITS says how many waits are enough.
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "../lib/testlib.h"

#define PROCESSES 4
#define PLAYERS 5 /* threads of each: a maker, two takers, two walkers */
#define TABLE 1   /* tickets on the table at most: each signal counts */
#define LEASE 2000
#define A_WHILE 20 /* tickets taken, until something else is done */

enum phase {
    FLOW,  /* all play */
    DRAIN, /* nothing is made */
    FILL,  /* nothing is taken */
    OVER   /* all go home */
};

/* In memory that all share. */
static struct game {
    /* Guarded by the mutex, and changed a step at a time, so that an owner may die between two steps. */
    int64_t made, taken, tickets;
    int inside; /* the owner's process; 0: nobody */

    /* Counted up by anybody. */
    int64_t waits; /* without a timeout: stands still when all sleep */
    int64_t walks, timeouts, deaths, overlaps;
    int phase;
    int wrong; /* an unexpected result, and of which call */
    const char *wrong_call;
} * game;

static dmutex_t mutex;
static dcond_t filled = DCOND_INITIALIZER("storm/filled");
static dcond_t emptied = DCOND_INITIALIZER("storm/emptied");

#define get(place) __atomic_load_n(&(place), __ATOMIC_ACQUIRE)
#define set(place, value) __atomic_store_n(&(place), value, __ATOMIC_RELEASE)
#define count(place) __atomic_add_fetch(&(place), 1, __ATOMIC_ACQ_REL)

/* ---- chance ------------------------------------------------------------------------------ */

/* One for each thread. */
struct dice {
    uint64_t word; /* not 0 */
};

static struct dice dice_of(uint64_t seed, unsigned who)
{
    return (struct dice){ (seed ^ (who + 1) * UINT64_C(0x9e3779b97f4a7c15)) | 1 };
}

static unsigned below(struct dice *dice, unsigned limit)
{
    dice->word ^= dice->word << 13;
    dice->word ^= dice->word >> 7;
    dice->word ^= dice->word << 17;
    return (unsigned)((dice->word >> 16) % limit);
}

/* ---- owning ------------------------------------------------------------------------------ */

static void note_wrong(int result, const char *call)
{
    set(game->wrong_call, call);
    set(game->wrong, result);
}

static void enter(void)
{
    if (game->inside)
        count(game->overlaps);
    game->inside = (int)getpid();
}

static void leave(void)
{
    game->inside = 0;
}

/* An owner died, perhaps between two steps, perhaps before a signal that the owner owed. */
static int mend(void)
{
    int result = dmutex_consistent(&mutex);

    count(game->deaths);
    game->inside = 0;
    set(game->tickets, game->made - game->taken);
    if (!result)
        result = dcond_broadcast(&filled);
    return result ? result : dcond_broadcast(&emptied);
}

/* Checks the result of a call that should own the mutex: true if all is well. */
static bool owns(int result, const char *call)
{
    if (result == EOWNERDEAD)
        result = mend();
    if (result)
        note_wrong(result, call);
    else
        enter();
    return !result;
}

static bool begin(void)
{
    return owns(dmutex_lock(&mutex), "lock");
}

static bool end(void)
{
    int result;

    leave();
    result = dmutex_unlock(&mutex);
    if (result)
        note_wrong(result, "unlock");
    return !result;
}

static bool await(dcond_t *cond)
{
    int result;

    leave();
    result = dcond_wait(cond, &mutex);
    count(game->waits);
    return owns(result, "wait");
}

static bool tell(dcond_t *cond, bool all)
{
    int result = all ? dcond_broadcast(cond) : dcond_signal(cond);

    if (result)
        note_wrong(result, "signal");
    return !result;
}

/* ---- players ----------------------------------------------------------------------------- */

/* Each returns owning the mutex when the game is over, or not owning the mutex on an error. */

/*
 * Usually the caller waits again at once, because a thread that came by the lock could do the work of the thread that
 * should be woken.
 */
static bool take_breath(struct dice *dice)
{
    return below(dice, 16) != 0 || (end() && begin());
}

static bool may_make(void)
{
    int phase = get(game->phase);

    return game->tickets < TABLE && (phase == FLOW || phase == FILL);
}

static void make(struct dice *dice)
{
    while (get(game->phase) != OVER) {
        if (!may_make()) {
            if (!await(&emptied))
                return;
            continue;
        }
        set(game->tickets, game->tickets + 1);
        set(game->made, game->made + 1);
        if (!tell(&filled, below(dice, 16) == 0) || !take_breath(dice))
            return;
    }
    end();
}

static bool may_take(void)
{
    int phase = get(game->phase);

    return game->tickets > 0 && (phase == FLOW || phase == DRAIN);
}

static void take(struct dice *dice)
{
    while (get(game->phase) != OVER) {
        if (!may_take()) {
            if (!await(&filled))
                return;
            continue;
        }
        set(game->tickets, game->tickets - 1);
        set(game->taken, game->taken + 1);
        if (!tell(&emptied, below(dice, 16) == 0) || !take_breath(dice))
            return;
    }
    end();
}

static bool walk_once(struct dice *dice)
{
    dcond_t *cond = below(dice, 2) ? &filled : &emptied;
    struct timespec soon = wait_time_in_ms(CLOCK_REALTIME, below(dice, 10));
    int result;

    leave();
    result = dcond_timedwait(cond, &mutex, &soon);
    count(game->walks);
    if (result == ETIMEDOUT) {
        count(game->timeouts);
        return owns(0, "timedwait");
    }
    return owns(result, "timedwait") && tell(cond, false);
}

static void walk(struct dice *dice)
{
    while (get(game->phase) != OVER) {
        if (!walk_once(dice) || !end() || !begin())
            return;
    }
    end();
}

static void (*const roles[PLAYERS])(struct dice *) = { make, take, take, walk, walk };

struct player {
    void (*role)(struct dice *);
    struct dice dice;
};

static void *play(void *user)
{
    struct player *player = user;

    if (begin())
        player->role(&player->dice);
    return NULL;
}

static void play_in_process(uint64_t seed, unsigned process)
{
    struct player players[PLAYERS];
    pthread_t threads[PLAYERS];

    for (unsigned i = 0; i < PLAYERS; i++) {
        players[i] = (struct player){ roles[i], dice_of(seed, process * PLAYERS + i) };
        if (pthread_create(&threads[i], NULL, play, &players[i]))
            _exit(2);
    }
    for (unsigned i = 0; i < PLAYERS; i++)
        pthread_join(threads[i], NULL);
    _exit(0);
}

/* ---- the storm --------------------------------------------------------------------------- */

static struct storm {
    uint64_t seed;
    struct dice dice;
    pid_t pids[PROCESSES];
    unsigned born; /* processes so far */
    long waits, kills;
    long killed;
} storm;

static void start_process(int i)
{
    unsigned number = storm.born++;

    storm.pids[i] = keeper_fork();
    if (storm.pids[i] == 0)
        play_in_process(storm.seed, number);
}

/* The number of the killed process, which must be restarted. */
static int kill_one(void)
{
    int i = (int)below(&storm.dice, PROCESSES);

    kill(storm.pids[i], SIGKILL);
    keeper_reap(storm.pids[i]);
    storm.killed++;
    return i;
}

static void lock(void)
{
    int result = dmutex_lock(&mutex);

    if (result == EOWNERDEAD)
        result = mend();
    assert_result(result, 0);
    enter();
}

static void unlock(void)
{
    leave();
    assert_result(dmutex_unlock(&mutex), 0);
}

static void check_game(void)
{
    if (get(game->wrong))
        fail_msg("%s: %s", get(game->wrong_call), result_name(get(game->wrong)));
    assert_int_equal(get(game->overlaps), 0);
}

static bool has_moved_on(int64_t moves)
{
    check_game();
    return get(game->made) + get(game->taken) > moves;
}

/*
 * A move of the game in which the receiver of the signal may be killed before it owns the mutex. The signal must reach
 * another one: no process is started in the meantime, because a new one would find the changed table without the
 * signal.
 */
static void move_and_kill(void)
{
    int64_t moves;
    bool is_full;
    int killed;

    lock();
    is_full = game->tickets == TABLE;
    set(game->tickets, game->tickets + (is_full ? -1 : 1));
    if (is_full)
        set(game->taken, game->taken + 1);
    else
        set(game->made, game->made + 1);
    moves = game->made + game->taken;
    assert_result(dcond_signal(is_full ? &emptied : &filled), 0);
    killed = kill_one();
    unlock();
    wait_until(has_moved_on(moves));
    start_process(killed);
}

static bool is_enough(void)
{
    check_game();
    return get(game->waits) >= storm.waits;
}

/* Kills are spread over the whole run. */
static bool is_kill_due(void)
{
    return storm.killed < storm.kills && get(game->waits) >= storm.waits * (2 * storm.killed + 1) / (2 * storm.kills);
}

static void kill_somehow(void)
{
    if (storm.killed % 2)
        move_and_kill();
    else
        start_process(kill_one());
}

/* A signal that nobody asked for, from time to time. */
static void disturb(void)
{
    static dcond_t *const conds[] = { &filled, &emptied };
    dcond_t *cond = conds[below(&storm.dice, 2)];

    if (below(&storm.dice, 8) == 0)
        assert_result(below(&storm.dice, 4) ? dcond_signal(cond) : dcond_broadcast(cond), 0);
}

/* Fails when no ticket has been taken for long: everybody sleeps. */
static void check_progress(void)
{
    static int64_t taken, since_ms;

    if (get(game->taken) != taken || !since_ms) {
        taken = get(game->taken);
        since_ms = wait_now_ms();
    } else if (wait_now_ms() > since_ms + WAIT_LIMIT_MS) {
        fail_msg("nobody wakes any more");
    }
}

/*
 * Either unasked signals, which may also wake a sleeper in place of another signal, or deaths: then nothing but the
 * sleeper's own signal wakes a sleeper.
 */
static void rage(bool with_deaths)
{
    int64_t until = get(game->taken) + A_WHILE;

    while (get(game->taken) < until) {
        check_game();
        if (!with_deaths)
            disturb();
        else if (is_kill_due())
            kill_somehow();
        check_progress();
        wait_nap();
    }
}

static void change_phase(int phase)
{
    lock();
    set(game->phase, phase);
    assert_result(dcond_broadcast(&filled), 0);
    assert_result(dcond_broadcast(&emptied), 0);
    unlock();
}

/* No process is disturbed or killed now, so the rest must come without help. */
static void calm(int phase, int64_t tickets)
{
    set(game->phase, phase);
    wait_until((check_game(), get(game->tickets)) == tickets);
}

static void tell_game(const char *when)
{
    print_message("# %s: DM_SEED=%llu waits %lld, timed %lld, timed out %lld, killed %ld, dead "
                  "owners %lld, made %lld, "
                  "taken %lld, on the table %lld\n",
                  when, (unsigned long long)storm.seed, (long long)get(game->waits), (long long)get(game->walks),
                  (long long)get(game->timeouts), storm.killed, (long long)get(game->deaths),
                  (long long)get(game->made), (long long)get(game->taken), (long long)get(game->tickets));
}

static int begin_test(void **state)
{
    (void)state;
    game = mmap(NULL, sizeof *game, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    assert_ptr_not_equal(game, MAP_FAILED);
    make_robust(&mutex, "storm/m", (unsigned)late_stretched_ms(LEASE));
    storm.seed = (uint64_t)count_from("DM_SEED", (long)time(NULL), (long)time(NULL));
    storm.dice = dice_of(storm.seed, ~0u);
    storm.waits = count_from("DMUTEX_TEST_WAITS", 3000, 1000000);
    storm.kills = count_from("DMUTEX_TEST_KILLS", 8, 300);
    tell_game("begin");
    for (int i = 0; i < PROCESSES; i++)
        start_process(i);
    return 0;
}

static int end_test(void **state)
{
    (void)state;
    tell_game("end");
    for (int i = 0; i < PROCESSES; i++) {
        if (storm.pids[i] > 0) {
            kill(storm.pids[i], SIGKILL);
            keeper_reap(storm.pids[i]);
        }
    }
    munmap(game, sizeof *game);
    return 0;
}

/* A waiter that died in the queue with a signal stays there for long, unless another process comes by. */
static bool is_queue_swept(void)
{
    assert_result(dmutex_lock(&mutex), 0);
    assert_result(dmutex_unlock(&mutex), 0);
    return waiters_at(the_server->side, "storm/m") == 0;
}

/* POSIX scenarios 30 and 37. */
static void test_no_wake_up_is_lost_when_processes_die_and_waits_time_out(void **state)
{
    (void)state;
    while (!is_enough()) {
        rage(false);
        rage(true);
        calm(DRAIN, 0);
        change_phase(FILL);
        calm(FILL, TABLE);
        change_phase(FLOW);
    }
    while (is_kill_due())
        kill_somehow();
    calm(DRAIN, 0);
    change_phase(OVER);
    for (int i = 0; i < PROCESSES; i++) {
        assert_int_equal(keeper_reap(storm.pids[i]), 0);
        storm.pids[i] = 0;
    }
    check_game();
    assert_int_equal(game->made, game->taken);
    assert_int_equal(game->tickets, 0);
    assert_int_equal(storm.killed, storm.kills);
    wait_until(is_queue_swept());
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_no_wake_up_is_lost_when_processes_die_and_waits_time_out, begin_test,
                                        end_test),
        cmocka_unit_test(test_nothing_is_left),
    };

    test_begin(argc, argv);
    return cmocka_run_group_tests(tests, test_group_setup, test_group_teardown);
}
