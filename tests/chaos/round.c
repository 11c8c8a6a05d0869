/* SPDX-License-Identifier: BSD-2-Clause */
#include "round.h"

#include "group.h"
#include "masters.h"

#include <dirent.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

/* ---- the end of a round ------------------------------------------------------------------ */

/* The progress of a round: calls begin. */
struct watch {
    uint32_t calls;
    int64_t since_ms;
};

static bool is_still(struct watch *watch, const struct stage *stage)
{
    uint32_t calls = __atomic_load_n(&stage->history->op_count, __ATOMIC_ACQUIRE);
    int64_t now_ms = wait_now_ms();

    if (calls != watch->calls || !watch->since_ms)
        *watch = (struct watch){ calls, now_ms };
    return now_ms > watch->since_ms + STILL_LEASES * LEASE;
}

static bool is_done(const struct stage *stage, int place)
{
    return __atomic_load_n(&stage->cards[place].is_done, __ATOMIC_ACQUIRE);
}

static bool are_all_done(const struct stage *stage)
{
    for (int i = 0; i <= PROCESSES; i++) {
        if (!is_done(stage, i))
            return false;
    }
    return true;
}

/* Waits until all processes are done.  False if a process sleeps forever. */
static bool await_all(const struct stage *stage)
{
    struct watch watch = { .since_ms = 0 };

    while (!are_all_done(stage)) {
        if (is_still(&watch, stage))
            return false;
        wait_nap();
    }
    return true;
}

/* Two links, with a bell each: a sentinel that was away at first is learned from the others, and then known twice. */
#define OF_A_SENTINEL 4

/* Two links to each node that had the slot of a group. */
#define OF_A_NODE 4

/* The same number for a server of a quorum: the closer waits nowhere. */
#define OF_A_MASTER OF_A_NODE

/* How many more descriptors a process may have than the closer, which knows fewer servers. */
static int more_servers(const struct stage *stage)
{
    return (stage->group ? SENTINELS * OF_A_SENTINEL : 0) + (stage->cluster ? CLUSTER_NODES * OF_A_NODE : 0) +
           (stage->masters ? stage->masters->count * OF_A_MASTER : 0);
}

static bool is_as_calm(const struct stage *stage, int place)
{
    const struct card *card = &stage->cards[place], *calm = &stage->cards[PROCESSES];
    int most = calm->descriptors + more_servers(stage);

    return __atomic_load_n(&card->threads, __ATOMIC_ACQUIRE) <= calm->threads &&
           __atomic_load_n(&card->descriptors, __ATOMIC_ACQUIRE) <= most;
}

/* Checks that each process comes down to the closer's threads and descriptors; the closer ran in calm only. */
static void check_remains(const struct stage *stage)
{
    for (int i = 0; i < PROCESSES; i++)
        wait_until(is_as_calm(stage, i));
}

static void reap_all(struct stage *stage)
{
    __atomic_store_n(stage->phase, PHASE_GONE, __ATOMIC_RELEASE);
    for (int i = 0; i <= PROCESSES; i++) {
        assert_int_equal(keeper_reap(stage->places[i].pid), 0);
        stage->places[i].pid = 0;
    }
}

static void kill_all(struct stage *stage)
{
    for (int i = 0; i <= PROCESSES; i++) {
        kill(stage->places[i].pid, SIGKILL);
        keeper_reap(stage->places[i].pid);
        stage->places[i].pid = 0;
    }
}

static void print_findings(const struct stage *stage, const struct nemesis *nemesis, const struct verdict *verdict)
{
    const int64_t around_ns = (int64_t)LEASE * 1000000 / 50;

    for (int i = 0; i < FINDINGS; i++) {
        if (verdict->found[i])
            print_message("# %ld times %s, first: %s\n", verdict->found[i], finding_names[i], verdict->first[i]);
    }
    if (stage->history->surprise[0])
        print_message("# the library said of one: %s\n", stage->history->surprise);
    nemesis_print_strikes(nemesis, verdict->at_ns - 100 * around_ns, verdict->at_ns + 50 * around_ns,
                          verdict->at_ns - around_ns);
    history_print(stage->history, verdict->name, verdict->at_ns - around_ns, verdict->at_ns + around_ns);
}

/* By printf(): print_message() cuts texts, and the queue of a waiter that never came in must be seen whole. */
static void print_keys_of(struct side *side)
{
    static const char *const script = "local key = redis.call('KEYS', 'dmutex:*')[tonumber(ARGV[1])] "
                                      "if not key then return false end "
                                      "local kind = redis.call('TYPE', key).ok "
                                      "local content = kind == 'hash' and redis.call('HGETALL', key) or "
                                      "                redis.call('ZRANGE', key, 0, -1, 'WITHSCORES') "
                                      "return key .. ' ' .. redis.call('PTTL', key) .. ' ms: ' .. "
                                      "       table.concat(content, ', ')";
    const char *line;

    printf("# the server, time %s:\n", side_text(side, "EVAL %s 0", "return table.concat(redis.call('TIME'), '.')"));
    for (int i = 1; (line = side_text(side, "EVAL %s 0 %d", script, i)) != NULL; i++)
        printf("# %s\n", line);
}

/* Prints all keys of mutexes on the server, or on all nodes, after a waiter has waited forever. */
static void print_keys(struct stage *stage)
{
    for (int i = 0; stage->masters && i < stage->masters->count; i++)
        print_keys_of(stage->masters->servers[i]->side);
    if (stage->venue)
        stage->venue->print(stage);
    else if (!stage->cluster && !stage->masters)
        print_keys_of(stage_side(stage));
    for (int i = 0; stage->cluster && i < stage->cluster->count; i++)
        print_keys_of(stage->cluster->nodes[i]->side);
    if (stage->group)
        sentinels_show(stage->group);
}

static void print_thread(int place, pid_t pid, const char *thread)
{
    char path[64], line[128] = "";
    FILE *file;

    snprintf(path, sizeof path, "/proc/%d/task/%.20s/syscall", pid, thread);
    file = fopen(path, "re");
    if (file && fgets(line, sizeof line, file))
        printf("# process %d, thread %s: system call %.*s\n", place, thread, (int)strcspn(line, " \n"), line);
    if (file)
        fclose(file);
}

/*
 * Prints where each thread sleeps, after a waiter has waited forever: a waiter that reads is in ppoll, others in futex.
 */
static void print_threads(const struct stage *stage)
{
    for (int i = 0; i <= PROCESSES; i++) {
        char path[32];
        DIR *threads;
        struct dirent *entry;

        snprintf(path, sizeof path, "/proc/%d/task", stage->places[i].pid);
        threads = opendir(path);
        while (threads && (entry = readdir(threads)))
            if (entry->d_name[0] != '.')
                print_thread(i, stage->places[i].pid, entry->d_name);
        if (threads)
            closedir(threads);
    }
}

/* Judges a round, and prints the findings once, with the round's seed. */
static void judge(struct stage *stage, struct tally *tally)
{
    struct verdict verdict = { .holds = 0 };

    memcpy(verdict.highest, tally->verdict.highest, sizeof verdict.highest);
    check_history(stage->history, &verdict);
    if (verdict_sum(&verdict)) {
        print_message("# round %ld, seed %llu%s:\n", tally->rounds, (unsigned long long)stage->seed,
                      stage->hands_on ? ", with kept leases" : "");
        print_findings(stage, &tally->nemesis, &verdict);
    }
    verdict_add(&tally->verdict, &verdict);
}

static void count_resource(const struct stage *stage, struct tally *tally)
{
    for (int i = 0; i < NAMES; i++) {
        const struct guarded *guarded = &stage->resource.guarded[i];

        tally->made += guarded->made;
        tally->taken += guarded->taken;
        tally->refused += guarded->refused;
        tally->overlaps += guarded->overlaps;
    }
}

/* ---- a round ----------------------------------------------------------------------------- */

static void begin(struct stage *stage, bool may_forget)
{
    history_clear(stage->history);
    stage->history->may_forget = may_forget;
    stage->history->may_be_untold = stage->masters != NULL;
    resource_clear(&stage->resource);
    stage->born = 0;
    *stage->phase = PHASE_FLOW;
    for (int i = 0; i < PROCESSES; i++)
        stage_start_process(stage, i);
}

/* True if the history has room for the rest of the round. */
static bool has_room(const struct stage *stage)
{
    return history_size(stage->history) < HISTORY_OPS * 3 / 4 && stage->history->track_count < HISTORY_TRACKS * 3 / 4;
}

static void rage(struct stage *stage, struct tally *tally, int faults, int calls)
{
    long before = nemesis_sum(&tally->nemesis);

    tally->nemesis.stage = stage;
    while (has_room(stage) &&
           (nemesis_sum(&tally->nemesis) < before + faults || history_size(stage->history) < (size_t)calls))
        nemesis_strike(&tally->nemesis);
}

void round_run(struct stage *stage, struct tally *tally, bool hands_on, unsigned allowed, int faults, int calls)
{
    bool must_wake = allowed & FAULTS_THAT_LOSE_SIGNALS;

    tally->nemesis.allowed = allowed;
    tally->handed += hands_on;
    stage->hands_on = hands_on;
    begin(stage, allowed & ~(unsigned)FAULTS_THAT_KEEP_ALL);
    rage(stage, tally, faults, calls);
    __atomic_store_n(stage->phase, PHASE_DRAIN, __ATOMIC_RELEASE);
    stage_start_closer(stage, must_wake);
    if (stage->group)
        group_await_master(stage); /* nobody can lock before */
    if (await_all(stage)) {
        check_remains(stage);
        reap_all(stage);
        tally->alone += !must_wake;
    } else {
        tally->stuck++;
        print_keys(stage);
        print_threads(stage);
    }
    judge(stage, tally);
    if (stage->places[0].pid)
        kill_all(stage);
    count_resource(stage, tally);
    tally->rounds++;
}

void round_check_handed(const struct tally *tally)
{
    if (tally->handed)
        assert_true(tally->verdict.local_holds > 0);
    else
        assert_int_equal(tally->verdict.local_holds, 0);
}

/* ---- all rounds -------------------------------------------------------------------------- */

void tally_print(const struct tally *tally, const struct stage *stage)
{
    const struct verdict *verdict = &tally->verdict;

    print_message("# rounds %ld, of these %ld with kept leases, %ld drained by themselves, %ld stuck; promotions %ld, "
                  "restarts %ld, moves %ld\n",
                  tally->rounds, tally->handed, tally->alone, tally->stuck, stage->promotions, stage->restarts,
                  stage->moves);
    print_message("# operations %ld, holds %ld, certain %ld, without the server %ld, waits %ld, things made %lld, "
                  "taken %lld\n",
                  verdict->operations, verdict->holds, verdict->certain_holds, verdict->local_holds, verdict->waits,
                  (long long)tally->made, (long long)tally->taken);
    print_message("# killed processes %ld, killed owners %ld, EOWNERDEAD %ld, holds lost %ld, given up %ld\n",
                  stage->killed, verdict->dead_owners, verdict->reported_deaths, verdict->losses, verdict->given_up);
    print_message("# resource: entered beside another %lld, stale tokens refused %lld\n", (long long)tally->overlaps,
                  (long long)tally->refused);
    print_message("# double holders %s %ld, lost wake-ups %ld, token regressions %ld, "
                  "other findings %ld\n",
                  stage->has_grace ? "within the promises" : "without grace", verdict->found[FOUND_OVERLAP],
                  verdict->found[FOUND_UNFINISHED], verdict->found[FOUND_TOKEN],
                  verdict_sum(verdict) - verdict->found[FOUND_OVERLAP] - verdict->found[FOUND_UNFINISHED] -
                      verdict->found[FOUND_TOKEN]);
    print_message("# faults %ld:\n", nemesis_sum(&tally->nemesis));
    nemesis_print(&tally->nemesis);
}

/* True if the list of connections has only one line, for the test's own connection. */
static bool is_alone(struct side *side)
{
    const char *list = side_text(side, "CLIENT LIST TYPE normal");

    return strchr(list, '\n') == strrchr(list, '\n');
}

/*
 * Locks the mutex once, and returns true if the queue is empty.  A waiter that died in the queue with a signal stays
 * there for long, unless a thread locks the mutex.
 */
static bool is_swept(dmutex_t *mutex, enum name name, struct side *side)
{
    int result = dmutex_lock(mutex);

    if (result == EOWNERDEAD)
        result = dmutex_consistent(mutex);
    assert_result(result, 0);
    assert_result(dmutex_unlock(mutex), 0);
    return waiters_at(side, mutex_kinds[name].name) == 0;
}

static void sweep(struct side *side)
{
    for (int i = 0; i < NAMES; i++) {
        dmutex_t mutex;

        make_robust(&mutex, mutex_kinds[i].name, LEASE);
        wait_until(is_swept(&mutex, (enum name)i, side));
        assert_result(dmutex_destroy(&mutex), 0);
    }
}

void round_check_end(struct stage *stage)
{
    struct side *side = stage_side(stage);

    wait_until(side_count_channels(side) == 0);
    wait_until(is_alone(side));
    setenv("DMUTEX_URL", stage->servers[stage->master]->url, 1);
    sweep(side);
    check_keys(side);
}
