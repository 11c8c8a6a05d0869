/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Tokens rise with each hold of a name, by any thread: threads of one process hand the mutex on, find a kept lease, are
 * fair, try, lock deeply, or go alone because their mutex object has another lease.  Each holder compares its token
 * with that of the previous hold, in memory shared by all processes, and leaves the newer token there.
 * DMUTEX_TEST_HOLDS sets the least number of holds, and DMUTEX_TEST_GRANTS the least number of grants by the server.
 */
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "../lib/testlib.h"

#define NAME "mixed/holds"
#define PROCESSES 4
#define LINGER 1000  /* ms; of every other process */
#define USES 32      /* of a thread, then a pause, so that tries find a free mutex */
#define PAUSE 200000 /* ns */

/* Kinds of threads; each process has one thread of each kind. */
enum role { USUAL, TRIES, DEEP, APART, ROLES };
static const char *const role_names[ROLES] = { "usual", "by trylock", "three levels deep",
                                               "fair, or of another lease" };

/* Shared by all processes.  The mutex guards the first two members. */
static struct page {
    uint64_t last;         /* the token of the newest hold */
    uint64_t inside;       /* the token of the holder, 0 none */
    int64_t holds, grants; /* all; holds for which the server was asked */
    int64_t enough_holds, enough_grants;
    int64_t by_role[ROLES], by_process[PROCESSES], busy;
    int64_t lower, overlaps; /* tokens that did not rise; holders at the same time as another */
    int wrong;               /* an unexpected result, of the call below */
    const char *wrong_call;
} * page;

#define get(place) __atomic_load_n(&(place), __ATOMIC_ACQUIRE)
#define set(place, value) __atomic_store_n(&(place), value, __ATOMIC_RELEASE)
#define count(place) __atomic_add_fetch(&(place), 1, __ATOMIC_ACQ_REL)

/* A thread, with its own mutex object. */
struct player {
    pthread_t thread;
    enum role role;
    int process;
    unsigned uses;
    dmutex_t mutex;
};

/* ---- a hold ------------------------------------------------------------------------------ */

static bool is_right(int result, const char *call)
{
    if (result) {
        set(page->wrong_call, call);
        set(page->wrong, result);
    }
    return !result;
}

/* Compares and leaves the token, as the holder. */
static void note_hold(const struct player *player, uint64_t token)
{
    if (get(page->inside))
        count(page->overlaps);
    set(page->inside, token);
    if (token <= get(page->last))
        count(page->lower);
    set(page->last, token);
    if (token % 4096 == 0)
        count(page->grants);
    count(page->by_role[player->role]);
    count(page->by_process[player->process]);
    count(page->holds);
    set(page->inside, 0);
}

static bool read_token(struct player *player, uint64_t *ret_token)
{
    return is_right(dmutex_token_np(&player->mutex, ret_token), "token");
}

/* Goes one level deeper: the hold is the same. */
static bool deepen(struct player *player, uint64_t token)
{
    uint64_t deeper = 0;

    if (!is_right(dmutex_lock(&player->mutex), "lock again") || !read_token(player, &deeper))
        return false;
    if (deeper != token)
        count(page->lower);
    return true;
}

/* The thread holds, and leaves. */
static bool use(struct player *player)
{
    int levels = player->role == DEEP ? 3 : 1;
    uint64_t token = 0;

    if (!read_token(player, &token))
        return false;
    for (int i = 1; i < levels; i++) {
        if (!deepen(player, token))
            return false;
    }
    note_hold(player, token);
    for (int i = 0; i < levels; i++) {
        if (!is_right(dmutex_unlock(&player->mutex), "unlock"))
            return false;
    }
    return true;
}

/* True while the thread should continue. */
static bool play_once(struct player *player)
{
    int result = player->role == TRIES ? dmutex_trylock(&player->mutex) : dmutex_lock(&player->mutex);

    if (result == EBUSY && player->role == TRIES) {
        count(page->busy);
        sched_yield();
        return true;
    }
    return is_right(result, player->role == TRIES ? "trylock" : "lock") && use(player);
}

static bool is_over(void)
{
    return get(page->wrong) || (get(page->holds) >= page->enough_holds && get(page->grants) >= page->enough_grants);
}

static void *play(void *user)
{
    static const struct timespec pause = { .tv_nsec = PAUSE };
    struct player *player = user;

    while (!is_over() && play_once(player)) {
        if (++player->uses % USES == 0)
            nanosleep(&pause, NULL);
    }
    return NULL;
}

/* ---- processes --------------------------------------------------------------------------- */

/*
 * Two processes keep leases; two have a fair thread, one of these together with kept leases; the other two an unequal
 * one.
 */
static void make_object(struct player *player)
{
    static const struct kind usual = { PTHREAD_MUTEX_NORMAL, PTHREAD_MUTEX_STALLED, "" },
                             deep = { PTHREAD_MUTEX_RECURSIVE, PTHREAD_MUTEX_STALLED, "" };
    const struct kind *kind = player->role == DEEP ? &deep : &usual;
    unsigned linger_ms = player->process % 2 ? 0 : LINGER;

    if (player->role == APART && player->process < 2)
        make_mutex(&player->mutex, NAME, kind, 0);
    else
        make_handed(&player->mutex, NAME, kind, player->role == APART ? 20000 : 0, linger_ms);
}

/* Destroys the objects before the end, which gives a kept lease back. */
static void play_in_process(int process)
{
    static struct player players[ROLES];

    for (int i = 0; i < ROLES; i++) {
        players[i].role = (enum role)i;
        players[i].process = process;
        make_object(&players[i]);
    }
    for (int i = 0; i < ROLES; i++) {
        if (pthread_create(&players[i].thread, NULL, play, &players[i]))
            _exit(2);
    }
    for (int i = 0; i < ROLES; i++)
        pthread_join(players[i].thread, NULL);
    for (int i = 0; i < ROLES; i++)
        is_right(dmutex_destroy(&players[i].mutex), "destroy");
    _exit(0);
}

static void tell_page(int64_t ms)
{
    print_message("# %lld holds in %lld ms, of these %lld granted by the server; tries in vain %lld\n",
                  (long long)get(page->holds), (long long)ms, (long long)get(page->grants), (long long)get(page->busy));
    for (int i = 0; i < ROLES; i++)
        print_message("#   %lld %s\n", (long long)get(page->by_role[i]), role_names[i]);
}

static void check_page(void)
{
    if (get(page->wrong))
        fail_msg("%s: %s", page->wrong_call, result_name(page->wrong));
    assert_int_equal(page->lower, 0);
    assert_int_equal(page->overlaps, 0);
    for (int i = 0; i < ROLES; i++)
        assert_true(page->by_role[i] > 0);
    for (int i = 0; i < PROCESSES; i++)
        assert_true(page->by_process[i] > 0);
    assert_true(page->holds >= page->enough_holds && page->grants >= page->enough_grants);
    assert_true(page->grants < page->holds);
}

/* Fails when no thread has held for long. */
static void await_holds(void)
{
    int64_t before = -1, since_ms = 0;

    while (!is_over()) {
        if (get(page->holds) != before) {
            before = get(page->holds);
            since_ms = wait_now_ms();
        }
        if (wait_now_ms() > since_ms + WAIT_LIMIT_MS)
            fail_msg("nobody holds any more, after %lld holds", (long long)before);
        wait_nap();
    }
}

static void test_tokens_rise_with_each_hold_when_processes_hand_on_keep_and_queue(void **state)
{
    int64_t began_ms = wait_now_ms();
    pid_t pids[PROCESSES];

    (void)state;
    page = mmap(NULL, sizeof *page, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    assert_ptr_not_equal(page, MAP_FAILED);
    page->enough_holds = count_from("DMUTEX_TEST_HOLDS", 50000, 1000000);
    page->enough_grants = count_from("DMUTEX_TEST_GRANTS", 2000, 20000);
    for (int i = 0; i < PROCESSES; i++) {
        pids[i] = keeper_fork();
        if (pids[i] == 0)
            play_in_process(i);
    }
    await_holds();
    for (int i = 0; i < PROCESSES; i++)
        assert_int_equal(keeper_reap(pids[i]), 0);
    tell_page(wait_now_ms() - began_ms);
    check_page();
    munmap(page, sizeof *page);
}

static int begin_group(void **state)
{
    (void)state;
    the_server = server_start();
    setenv("DMUTEX_URL", the_server->url, 1);
    return 0;
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_tokens_rise_with_each_hold_when_processes_hand_on_keep_and_queue),
    };

    test_begin(argc, argv);
    return cmocka_run_group_tests(tests, begin_group, test_group_teardown);
}
