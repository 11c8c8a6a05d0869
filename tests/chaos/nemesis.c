/* SPDX-License-Identifier: BSD-2-Clause */
#include "nemesis.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

#include "group.h"
#include "masters.h"
#include "slots.h"

static unsigned below(struct nemesis *nemesis, unsigned limit)
{
    return dice_below(&nemesis->stage->dice, limit);
}

/* Sleeps for the random length of a fault; the sleep awaits no event. */
static void rest(int ms)
{
    nanosleep(&(struct timespec){ .tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000 }, NULL);
}

/* ---- processes --------------------------------------------------------------------------- */

static void replace(struct nemesis *nemesis, int place)
{
    stage_kill_process(nemesis->stage, place);
    stage_start_process(nemesis->stage, place);
}

static void kill_owner(struct nemesis *nemesis)
{
    replace(nemesis, stage_stop_owner(nemesis->stage));
}

static void kill_any(struct nemesis *nemesis)
{
    replace(nemesis, (int)below(nemesis, PROCESSES));
}

void nemesis_stop_owner(struct nemesis *nemesis)
{
    nemesis->stopped = stage_stop_owner(nemesis->stage);
}

static void stop_any(struct nemesis *nemesis)
{
    nemesis->stopped = (int)below(nemesis, PROCESSES);
    stage_stop_process(nemesis->stage, nemesis->stopped);
}

/* Continues the stopped process, or the process's successor, which is not stopped. */
static void cont_process(struct nemesis *nemesis)
{
    stage_cont_process(nemesis->stage, nemesis->stopped);
}

/* ---- networks ---------------------------------------------------------------------------- */

static struct proxy *some_network(struct nemesis *nemesis)
{
    nemesis->network = (int)below(nemesis, (unsigned)nemesis->stage->network_count);
    return nemesis->stage->proxies[nemesis->network];
}

static enum proxy_way some_ways(struct nemesis *nemesis)
{
    return (enum proxy_way)(1 + below(nemesis, 3));
}

static enum proxy_side some_side(struct nemesis *nemesis)
{
    return (enum proxy_side)(1 + below(nemesis, 3));
}

static void mend_network(struct nemesis *nemesis)
{
    struct proxy *proxy = nemesis->stage->proxies[nemesis->network];

    proxy_delay(proxy, PROXY_BOTH_WAYS, 0);
    proxy_trickle(proxy, PROXY_BOTH_WAYS, 0);
    proxy_pass(proxy);
}

static void cut(struct nemesis *nemesis)
{
    proxy_cut(some_network(nemesis));
}

static void cut_within(struct nemesis *nemesis)
{
    proxy_cut_after(some_network(nemesis), (enum proxy_way)(1 + below(nemesis, 2)), below(nemesis, 3000));
}

static void black_hole(struct nemesis *nemesis)
{
    struct proxy *proxy = some_network(nemesis);
    enum proxy_way ways = some_ways(nemesis);

    proxy_hold(proxy, ways, some_side(nemesis));
}

static void delay(struct nemesis *nemesis)
{
    struct proxy *proxy = some_network(nemesis);
    enum proxy_way ways = some_ways(nemesis);

    proxy_delay(proxy, ways, 1 + (int)below(nemesis, LEASE / 4));
}

static void trickle(struct nemesis *nemesis)
{
    struct proxy *proxy = some_network(nemesis);
    enum proxy_way ways = some_ways(nemesis);

    proxy_trickle(proxy, ways, 1 + (int)below(nemesis, 20));
}

static void refuse(struct nemesis *nemesis)
{
    struct proxy *proxy = some_network(nemesis);

    proxy_refuse(proxy);
    proxy_cut(proxy);
}

/* Loses a command or a reply, and with the bytes the connection: no network lets later bytes through. */
static void swallow(struct nemesis *nemesis)
{
    static const enum proxy_fault faults[] = { PROXY_SWALLOW_AND_CUT, PROXY_CUT_MID_REPLY, PROXY_CUT_COMMAND,
                                               PROXY_CUT_MID_COMMAND };
    struct proxy *proxy = some_network(nemesis);
    enum proxy_fault fault = faults[below(nemesis, 4)];

    proxy_break(proxy, fault, PROXY_COMMANDS, "", 1 + (int)below(nemesis, 3));
}

static void swallow_messages(struct nemesis *nemesis)
{
    proxy_break(some_network(nemesis), PROXY_SWALLOW_REPLY, PROXY_INBOX, "", 1 + (int)below(nemesis, 20));
}

static void take_device_down(struct nemesis *nemesis)
{
    if (!nemesis->stage->has_device)
        proxy_hold(some_network(nemesis), PROXY_BOTH_WAYS, PROXY_ALL);
    stage_set_device(nemesis->stage, false);
}

static void put_device_up(struct nemesis *nemesis)
{
    if (!nemesis->stage->has_device)
        mend_network(nemesis);
    stage_set_device(nemesis->stage, true);
}

/* Loses packets in bursts. */
static void lose_packets(struct nemesis *nemesis)
{
    for (int i = 0; i < 10; i++) {
        stage_set_device(nemesis->stage, false);
        rest((int)below(nemesis, 10));
        stage_set_device(nemesis->stage, true);
        rest((int)below(nemesis, 30));
    }
}

/* ---- the server -------------------------------------------------------------------------- */

static struct side *side(struct nemesis *nemesis)
{
    return stage_side(nemesis->stage);
}

static struct server *server(struct nemesis *nemesis)
{
    return nemesis->stage->servers[nemesis->stage->master];
}

static void stop_server(struct nemesis *nemesis)
{
    server_stop(server(nemesis));
}

static void cont_server(struct nemesis *nemesis)
{
    server_cont(server(nemesis));
}

static void kill_connections(struct nemesis *nemesis)
{
    side_text(side(nemesis), "CLIENT KILL TYPE normal SKIPME yes");
}

static void kill_inboxes(struct nemesis *nemesis)
{
    side_text(side(nemesis), "CLIENT KILL TYPE pubsub SKIPME yes");
}

static void pause_clients(struct nemesis *nemesis)
{
    side_text(side(nemesis), "CLIENT PAUSE %d %s", 20 + (int)below(nemesis, LEASE),
              below(nemesis, 2) ? "ALL" : "WRITE");
}

static void unpause_clients(struct nemesis *nemesis)
{
    side_text(side(nemesis), "CLIENT UNPAUSE");
}

static void flush_scripts(struct nemesis *nemesis)
{
    side_text(side(nemesis), "SCRIPT FLUSH");
}

static void fill_memory(struct nemesis *nemesis)
{
    side_text(side(nemesis), "CONFIG SET maxmemory 1");
}

static void free_memory(struct nemesis *nemesis)
{
    side_text(side(nemesis), "CONFIG SET maxmemory 0");
}

/* Makes the server a replica without a master: the server keeps all data, and refuses writes. */
static void make_readonly(struct nemesis *nemesis)
{
    side_text(side(nemesis), "REPLICAOF 127.0.0.1 1");
}

static void make_writable(struct nemesis *nemesis)
{
    side_text(side(nemesis), "REPLICAOF NO ONE");
}

/* Sends garbage to an inbox, more than the server's output buffer for the inbox holds. */
static void flood_inbox(struct nemesis *nemesis)
{
    static char garbage[200000];
    char channels[4096], *line, *rest = channels;
    int which;

    memset(garbage, 'x', sizeof garbage);
    side_text(side(nemesis), "CONFIG SET client-output-buffer-limit %s", "pubsub 64kb 0 0");
    snprintf(channels, sizeof channels, "%s", side_text(side(nemesis), "PUBSUB CHANNELS"));
    which = (int)below(nemesis, PROCESSES);
    while ((line = strsep(&rest, "\n")) && which > 0)
        which--;
    if (line)
        side_text(side(nemesis), "PUBLISH %s %b", line, garbage, sizeof garbage);
    side_text(side(nemesis), "CONFIG SET client-output-buffer-limit %s", "pubsub 32mb 8mb 60");
}

static void sleep_server(struct nemesis *nemesis)
{
    side_text(side(nemesis), "DEBUG SLEEP 0.%d", 1 + (int)below(nemesis, 6));
}

/* ---- servers that come back -------------------------------------------------------------- */

void nemesis_wake_owner(struct nemesis *nemesis)
{
    rest((int)below(nemesis, LEASE / 2));
    cont_process(nemesis);
}

static void restart(struct nemesis *nemesis, enum remains remains)
{
    bool has_sleeper = below(nemesis, 2);

    stage_write_remains(nemesis->stage, remains);
    rest(remains == REMAINS_NOTHING ? 0 : (int)below(nemesis, LEASE));
    if (has_sleeper)
        nemesis_stop_owner(nemesis);
    stage_restart(nemesis->stage, remains);
    if (has_sleeper)
        nemesis_wake_owner(nemesis);
}

static void restart_empty(struct nemesis *nemesis)
{
    restart(nemesis, REMAINS_NOTHING);
}

static void restart_from_aof(struct nemesis *nemesis)
{
    restart(nemesis, REMAINS_AOF);
}

static void restart_from_rdb(struct nemesis *nemesis)
{
    restart(nemesis, REMAINS_RDB);
}

/* Promotes a follower that lacks the writes made between the parting and the promotion. */
static void promote(struct nemesis *nemesis)
{
    stage_follow(nemesis->stage);
    rest((int)below(nemesis, LEASE));
    stage_part(nemesis->stage);
    rest((int)below(nemesis, LEASE));
    nemesis_stop_owner(nemesis);
    stage_promote(nemesis->stage);
    nemesis_wake_owner(nemesis);
}

/* ---- servers that change places, and no connection ends ---------------------------------- */

/* Changes the servers' places once, or there and back again before all processes have noticed. */
static void change_places(struct nemesis *nemesis, void (*change)(struct stage *))
{
    bool has_sleeper = below(nemesis, 3) == 0;

    if (!nemesis->stage->has_follower)
        stage_follow(nemesis->stage);
    if (has_sleeper)
        nemesis_stop_owner(nemesis);
    change(nemesis->stage);
    if (below(nemesis, 2)) {
        rest((int)below(nemesis, 2 * LEASE));
        change(nemesis->stage);
    }
    if (has_sleeper)
        nemesis_wake_owner(nemesis);
}

static void fail_over(struct nemesis *nemesis)
{
    change_places(nemesis, stage_fail_over);
}

static void switch_by_hand(struct nemesis *nemesis)
{
    change_places(nemesis, stage_switch);
}

/* The holder wakes so soon that the hold may still be certain, as in promote(). */
static void force_over(struct nemesis *nemesis)
{
    slots_part(nemesis->stage);
    rest((int)below(nemesis, LEASE));
    nemesis_stop_owner(nemesis);
    slots_force_over(nemesis->stage);
    nemesis_wake_owner(nemesis);
    slots_heal(nemesis->stage);
}

static void restart_masters(struct nemesis *nemesis)
{
    nemesis_stop_owner(nemesis);
    masters_restart_all(nemesis->stage);
    nemesis_wake_owner(nemesis);
}

/* ---- choice of faults -------------------------------------------------------------------- */

#define LONG (2 * LEASE)

static const struct fault faults[] = {
    { "SIGKILL of an owner", FAULTS_OF_PROCESSES, 10, kill_owner, NULL, 0, NULL, NULL },
    { "SIGKILL of any process", FAULTS_OF_PROCESSES, 3, kill_any, NULL, 0, NULL, NULL },
    { "SIGSTOP of an owner", FAULTS_OF_PROCESSES, 6, nemesis_stop_owner, cont_process, LONG, NULL, NULL },
    { "SIGSTOP of any process", FAULTS_OF_PROCESSES, 2, stop_any, cont_process, LONG, NULL, NULL },
    { "connections cut", FAULTS_OF_NETWORKS, 2, cut, NULL, 0, NULL, NULL },
    { "cut after n bytes", FAULTS_OF_NETWORKS, 4, cut_within, mend_network, 200, NULL, NULL },
    { "black hole", FAULTS_OF_NETWORKS, 5, black_hole, mend_network, LONG, NULL, NULL },
    { "delay", FAULTS_OF_NETWORKS, 3, delay, mend_network, LONG, NULL, NULL },
    { "trickle", FAULTS_OF_NETWORKS, 2, trickle, mend_network, LEASE, NULL, NULL },
    { "connections refused", FAULTS_OF_NETWORKS, 2, refuse, mend_network, LEASE, NULL, NULL },
    { "commands or replies lost", FAULTS_OF_NETWORKS, 6, swallow, mend_network, 100, NULL, NULL },
    { "messages lost", FAULTS_OF_NETWORKS, 3, swallow_messages, mend_network, LEASE, NULL, NULL },
    { "partition", FAULTS_OF_NETWORKS, 4, take_device_down, put_device_up, LONG, NULL, NULL },
    { "packets lost", FAULTS_OF_NETWORKS, 2, lose_packets, NULL, 0, NULL, NULL },
    { "SIGSTOP of the server", FAULTS_OF_SERVER, 3, stop_server, cont_server, LEASE, NULL, NULL },
    { "CLIENT KILL", FAULTS_OF_SERVER, 2, kill_connections, NULL, 0, NULL, NULL },
    { "CLIENT KILL of inboxes", FAULTS_OF_SERVER, 2, kill_inboxes, NULL, 0, NULL, NULL },
    { "CLIENT PAUSE", FAULTS_OF_SERVER, 2, pause_clients, unpause_clients, LEASE, NULL, NULL },
    { "SCRIPT FLUSH", FAULTS_OF_SERVER, 3, flush_scripts, NULL, 0, NULL, NULL },
    { "maxmemory", FAULTS_OF_SERVER, 3, fill_memory, free_memory, LEASE, NULL, NULL },
    { "READONLY", FAULTS_OF_SERVER, 3, make_readonly, make_writable, LEASE, NULL, NULL },
    { "output buffer limit", FAULTS_OF_SERVER, 3, flood_inbox, NULL, 0, NULL, NULL },
    { "DEBUG SLEEP", FAULTS_OF_SERVER, 1, sleep_server, NULL, 0, NULL, NULL },
    { "restart, empty", FAULTS_OF_RESTART, 6, restart_empty, NULL, 0, NULL, NULL },
    { "restart, AOF", FAULTS_OF_RESTART, 4, restart_from_aof, NULL, 0, NULL, NULL },
    { "restart, older RDB", FAULTS_OF_COPIES, 6, restart_from_rdb, NULL, 0, NULL, NULL },
    { "promotion, replica behind", FAULTS_OF_PROMOTION, 6, promote, NULL, 0, NULL, NULL },
    { "FAILOVER", FAULTS_OF_FAILOVER, 6, fail_over, NULL, 0, NULL, NULL },
    { "REPLICAOF by hand", FAULTS_OF_SWITCH, 6, switch_by_hand, NULL, 0, NULL, NULL },
    { "SIGKILL of the master", FAULTS_OF_GROUP, 6, NULL, NULL, LEASE, group_kill_master, group_heal },
    { "SIGSTOP of the master", FAULTS_OF_GROUP, 6, NULL, NULL, LEASE, group_stop_master, group_heal },
    { "DEBUG SLEEP of the master", FAULTS_OF_GROUP, 3, NULL, NULL, LEASE, group_sleep_master, group_heal },
    { "SENTINEL FAILOVER", FAULTS_OF_GROUP, 6, NULL, NULL, LEASE, group_fail_over, group_heal },
    { "SENTINEL FAILOVER, twice", FAULTS_OF_GROUP, 3, NULL, NULL, LEASE, group_fail_over_twice, group_heal },
    { "a sentinel is restarted", FAULTS_OF_GROUP, 4, NULL, NULL, LEASE, group_restart_sentinel, group_heal },
    { "replicas stopped before", FAULTS_OF_GROUP, 4, NULL, NULL, LEASE, group_kill_master_of_stopped, group_heal },
    { "the master's host is cut off", FAULTS_OF_HOSTS, 6, NULL, NULL, LEASE, group_part_master, group_heal },
    { "two sentinels are cut off", FAULTS_OF_HOSTS, 3, NULL, NULL, LEASE, group_part_sentinels, group_heal },
    { "a slot moves", FAULTS_OF_SLOTS, 6, NULL, NULL, 0, slots_move, NULL },
    { "a slot moves there and back", FAULTS_OF_SLOTS, 4, NULL, NULL, 0, slots_move_there_and_back, NULL },
    { "two slots move", FAULTS_OF_SLOTS, 3, NULL, NULL, 0, slots_move_both, NULL },
    { "a slot moves slowly", FAULTS_OF_SLOTS, 2, NULL, NULL, 0, slots_move_slowly, NULL },
    { "a move is given up", FAULTS_OF_SLOTS, 2, NULL, NULL, 0, slots_begin_and_give_up, NULL },
    { "a node stops in a move", FAULTS_OF_SLOTS, 2, NULL, NULL, 0, slots_move_through_stop, NULL },
    { "SIGKILL of a shard's master", FAULTS_OF_SHARDS, 6, NULL, NULL, LEASE, slots_kill_master, slots_heal },
    { "SIGSTOP of a shard's master", FAULTS_OF_SHARDS, 6, NULL, NULL, LEASE, slots_stop_master, slots_heal },
    { "CLUSTER FAILOVER", FAULTS_OF_SHARDS, 6, NULL, NULL, LEASE, slots_fail_over, slots_heal },
    { "CLUSTER FAILOVER, twice", FAULTS_OF_SHARDS, 3, NULL, NULL, LEASE, slots_fail_over_twice, slots_heal },
    { "FORCE, replica behind", FAULTS_OF_FORCE, 6, force_over, NULL, 0, NULL, NULL },
    { "a move loses keys", FAULTS_OF_LOST_KEYS, 1, NULL, NULL, 0, slots_lose_keys, NULL },
    { "servers killed, empty", FAULTS_OF_RETURNS, 6, NULL, NULL, LEASE, masters_kill_empty, masters_heal },
    { "servers killed, AOF", FAULTS_OF_MASTERS, 3, NULL, NULL, LEASE, masters_kill_with_aof, masters_heal },
    { "servers killed, older RDB", FAULTS_OF_RETURNS, 5, NULL, NULL, LEASE, masters_kill_with_older, masters_heal },
    { "all servers restarted, empty", FAULTS_OF_RETURNS, 5, restart_masters, NULL, 0, NULL, NULL },
    { "SIGSTOP of servers", FAULTS_OF_MASTERS, 5, NULL, NULL, LONG, masters_stop, masters_heal },
    { "CLIENT PAUSE of servers", FAULTS_OF_MASTERS, 3, NULL, NULL, LEASE, masters_pause, masters_heal },
    { "maxmemory of servers", FAULTS_OF_MASTERS, 3, NULL, NULL, LEASE, masters_fill, masters_heal },
    { "READONLY servers", FAULTS_OF_MASTERS, 3, NULL, NULL, LEASE, masters_demote, masters_heal },
    { "CLIENT KILL at all servers", FAULTS_OF_MASTERS, 3, NULL, NULL, 0, masters_kill_connections, NULL },
    { "SCRIPT FLUSH at all servers", FAULTS_OF_MASTERS, 3, NULL, NULL, 0, masters_forget_scripts, NULL },
    { "servers restarted an hour off", FAULTS_OF_CLOCKS, 4, NULL, NULL, LONG, masters_restart_with_wrong_clock,
      masters_heal },
    { "FLUSHALL of servers", FAULTS_OF_RETURNS, 5, NULL, NULL, LEASE, masters_flush, masters_heal },
    { "an hour's step of servers", FAULTS_OF_STEPS, 5, NULL, NULL, LEASE, masters_step_on, masters_heal },
};

#define KINDS ((int)(sizeof faults / sizeof faults[0]))
_Static_assert(sizeof faults / sizeof faults[0] <= FAULT_KINDS, "no room to count them");

/* All kinds: those of the stage's own come last. */
static int kind_count(const struct nemesis *nemesis)
{
    const struct venue *venue = nemesis->stage ? nemesis->stage->venue : NULL;

    return KINDS + (venue ? venue->fault_count : 0);
}

static const struct fault *kind(const struct nemesis *nemesis, int number)
{
    return number < KINDS ? &faults[number] : &nemesis->stage->venue->faults[number - KINDS];
}

/* Chooses a kind of fault of the given groups. */
static int some_kind(struct nemesis *nemesis, unsigned groups)
{
    unsigned sum = 0, luck;
    int number = -1;

    for (int i = 0; i < kind_count(nemesis); i++)
        sum += kind(nemesis, i)->group & groups ? (unsigned)kind(nemesis, i)->weight : 0;
    for (luck = below(nemesis, sum) + 1; luck > 0;) {
        unsigned weight = kind(nemesis, ++number)->group & groups ? (unsigned)kind(nemesis, number)->weight : 0;

        luck -= luck < weight ? luck : weight;
    }
    return number;
}

static struct strike *begin(struct nemesis *nemesis, int number)
{
    const struct fault *fault = kind(nemesis, number);
    struct strike *strike = &nemesis->strikes[nemesis->strike_count++ % STRIKES];

    *strike = (struct strike){ .name = fault->name, .began_ns = history_now_ns() };
    nemesis->counts[number]++;
    if (fault->begin)
        fault->begin(nemesis);
    else
        fault->strike(nemesis->stage);
    return strike;
}

static void end(struct nemesis *nemesis, int number, struct strike *strike)
{
    const struct fault *fault = kind(nemesis, number);

    if (fault->lasts_ms)
        rest((int)below(nemesis, (unsigned)fault->lasts_ms));
    if (fault->end)
        fault->end(nemesis);
    if (fault->heal)
        fault->heal(nemesis->stage);
    strike->ended_ns = history_now_ns();
}

/*
 * Returns the groups allowed for a second fault during `fault`: not the same group, because the end of a fault ends
 * other faults of the group; and no fault of a server, because a stopped server answers no command of the test.
 */
static unsigned others(const struct nemesis *nemesis, const struct fault *fault)
{
    return nemesis->allowed & (FAULTS_OF_PROCESSES | FAULTS_OF_NETWORKS) & ~(unsigned)fault->group;
}

void nemesis_strike(struct nemesis *nemesis)
{
    int fault = some_kind(nemesis, nemesis->allowed);
    unsigned also = others(nemesis, kind(nemesis, fault));
    struct strike *strike = begin(nemesis, fault);

    if (also && below(nemesis, 2)) {
        int other = some_kind(nemesis, also);

        rest((int)below(nemesis, LEASE / 4));
        end(nemesis, other, begin(nemesis, other));
    }
    end(nemesis, fault, strike);
    rest((int)below(nemesis, LEASE / 4));
}

long nemesis_sum(const struct nemesis *nemesis)
{
    long sum = 0;

    for (int i = 0; i < kind_count(nemesis); i++)
        sum += nemesis->counts[i];
    return sum;
}

void nemesis_print(const struct nemesis *nemesis)
{
    for (int i = 0; i < kind_count(nemesis); i++) {
        if (nemesis->counts[i])
            print_message("#   %6ld %s\n", nemesis->counts[i], kind(nemesis, i)->name);
    }
}

void nemesis_print_strikes(const struct nemesis *nemesis, int64_t from_ns, int64_t until_ns, int64_t zero_ns)
{
    for (int i = 0; i < STRIKES; i++) {
        const struct strike *strike = &nemesis->strikes[i];

        if (strike->name && strike->began_ns <= until_ns && strike->ended_ns >= from_ns)
            print_message("#   %9.3f .. %9.3f ms: %s\n", (double)(strike->began_ns - zero_ns) / 1e6,
                          (double)(strike->ended_ns - zero_ns) / 1e6, strike->name);
    }
}
