/* SPDX-License-Identifier: BSD-2-Clause */
#include "stage.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../lib/hosts.h"
#include "group.h"
#include "masters.h"
#include "slots.h"

#define LOOKS 60 /* for an owner, some ms in all */

/* ---- the network ------------------------------------------------------------------------- */

static bool is_isolated;

void stage_isolate(int argc)
{
    if (argc == 1)
        is_isolated = hosts_isolate();
}

void stage_set_device(struct stage *stage, bool is_up)
{
    if (stage->has_device)
        assert_true(hosts_set_loopback(is_up));
}

static void open_networks(struct stage *stage)
{
    for (int i = 0; i < HOSTS; i++)
        stage->proxies[i] = proxy_start(stage->servers[0]);
    stage->network_count = HOSTS;
}

static void lead_to_master(struct stage *stage)
{
    for (int i = 0; i < HOSTS; i++)
        proxy_lead_to(stage->proxies[i], stage->servers[stage->master]);
}

static struct server *master_of(const struct stage *stage)
{
    return stage->servers[stage->master];
}

static struct server *other_of(const struct stage *stage)
{
    return stage->servers[1 - stage->master];
}

/* Replaces the link in one step: the address exists at every moment. */
static void lead_link_to_master(struct stage *stage)
{
    char next[72];

    if (!stage->link[0])
        return;
    snprintf(next, sizeof next, "%s.next", stage->link);
    assert_return_code(symlink(master_of(stage)->path, next), errno);
    assert_return_code(rename(next, stage->link), errno);
}

static void lead_new_to_master(struct stage *stage)
{
    for (int i = 0; i < HOSTS; i++)
        proxy_lead_new_to(stage->proxies[i], master_of(stage));
    lead_link_to_master(stage);
}

void stage_link(struct stage *stage)
{
    snprintf(stage->link, sizeof stage->link, "%s/link", stage->servers[0]->folder);
    lead_link_to_master(stage);
}

/* Writes the host's address, without the options of tests. */
static void write_url(const struct stage *stage, int host, char *ret_url, size_t size)
{
    const char *url;
    char link[80];

    if (stage->group) {
        snprintf(ret_url, size, "%s", sentinels_url(stage->group, stage->options));
        return;
    }
    if (stage->cluster) {
        snprintf(ret_url, size, "%s", cluster_url(stage->cluster, stage->options));
        return;
    }
    if (stage->masters) {
        masters_write_url(stage, host, ret_url, size);
        return;
    }
    if (stage->venue) {
        stage->venue->write_url(stage, host, ret_url, size);
        return;
    }
    url = host % 2 ? proxy_tcp_url(stage->proxies[host]) : proxy_url(stage->proxies[host]);
    snprintf(link, sizeof link, "unix://%s", stage->link);
    if (stage->link[0] && host == HOSTS - 1)
        url = link;
    snprintf(ret_url, size, "%.*s%s", (int)strcspn(url, "?"), url, stage->has_grace ? "" : "?grace=off");
}

/* ---- the servers ------------------------------------------------------------------------- */

static struct server *start_server(void)
{
    return server_start_with(true, "--repl-diskless-sync-delay", "0", "--repl-timeout", "5", NULL);
}

struct side *stage_side(struct stage *stage)
{
    if (stage->group)
        return group_side(stage);
    if (stage->cluster)
        return slots_side(stage);
    if (stage->masters)
        return stage->masters->servers[0]->side;
    return master_of(stage)->side;
}

/* Gives the server new file names: after a restart the server does not find the files written before. */
static void rename_files(struct stage *stage, struct server *server)
{
    char name[32];

    snprintf(name, sizeof name, "%d.rdb", ++stage->names_of_files);
    server_set_argument(server, "--dbfilename", name);
    snprintf(name, sizeof name, "aof%d", stage->names_of_files);
    server_set_argument(server, "--appenddirname", name);
}

void stage_write_remains(struct stage *stage, enum remains remains)
{
    struct side *side = stage_side(stage);

    wait_until(side_info_says(side, "rdb_bgsave_in_progress:0"));
    wait_until(side_info_says(side, "aof_rewrite_in_progress:0"));
    if (remains == REMAINS_RDB)
        side_text(side, "BGSAVE");
    if (remains == REMAINS_AOF && !stage->has_aof) {
        side_text(side, "CONFIG SET appendonly yes");
        stage->has_aof = true;
    }
    wait_until(side_info_says(side, "rdb_bgsave_in_progress:0"));
    wait_until(side_info_says(side, "aof_rewrite_in_progress:0"));
}

void stage_restart(struct stage *stage, enum remains remains)
{
    struct server *master = master_of(stage);

    server_kill(master);
    if (remains == REMAINS_NOTHING)
        rename_files(stage, master);
    stage->has_aof = remains == REMAINS_AOF;
    server_set_argument(master, "--appendonly", stage->has_aof ? "yes" : "no");
    server_restart(master);
    stage->restarts++;
}

void stage_follow(struct stage *stage)
{
    struct side *side = other_of(stage)->side;

    side_text(side, "REPLICAOF 127.0.0.1 %d", master_of(stage)->port);
    wait_until(side_info_says(side, "master_link_status:up"));
    stage->has_follower = true;
}

void stage_part(struct stage *stage)
{
    side_text(other_of(stage)->side, "REPLICAOF NO ONE");
}

/* Makes the other server the master; the old master restarts empty, as a new machine, and may follow later. */
void stage_promote(struct stage *stage)
{
    struct server *old = master_of(stage);

    server_kill(old);
    side_text(other_of(stage)->side, "REPLICAOF NO ONE");
    stage->master = 1 - stage->master;
    lead_to_master(stage);
    rename_files(stage, old);
    server_set_argument(old, "--appendonly", "no");
    server_restart(old);
    stage->has_aof = stage->has_follower = false;
    stage->promotions++;
}

/* Makes the follower the stage's master, leads new connections there, and waits until the old master follows. */
static void have_changed(struct stage *stage)
{
    stage->master = 1 - stage->master;
    lead_new_to_master(stage);
    wait_until(side_info_says(other_of(stage)->side, "master_link_status:up"));
    stage->promotions++;
}

void stage_fail_over(struct stage *stage)
{
    side_text(master_of(stage)->side, "FAILOVER");
    wait_until(side_info_says(master_of(stage)->side, "role:slave"));
    wait_until(side_info_says(other_of(stage)->side, "role:master"));
    have_changed(stage);
}

/* Switches the old master first, because there must be no two masters at any moment. */
void stage_switch(struct stage *stage)
{
    side_text(master_of(stage)->side, "REPLICAOF 127.0.0.1 %d", other_of(stage)->port);
    side_text(other_of(stage)->side, "REPLICAOF NO ONE");
    have_changed(stage);
}

/* ---- processes --------------------------------------------------------------------------- */

static const struct clocks some_clocks[] = {
    { .rate = 1 },
    { .rate = 1, .wall_ahead_s = 1200 },
    { .rate = 0.92, .wall_ahead_s = -1200 },
    { .rate = 1.08 },
};

static void prepare(struct stage *stage, int place)
{
    struct worker *worker = &stage->places[place].worker;
    int host = place % HOSTS;

    *worker = (struct worker){ .history = stage->history,
                               .resource = &stage->resource,
                               .phase = stage->phase,
                               .card = &stage->cards[place],
                               .clocks = some_clocks[host],
                               .lease_ms = stage->lease_ms ? stage->lease_ms : LEASE,
                               .seed = stage->seed,
                               .hands_on = stage->hands_on,
                               .locks_only = stage->masters != NULL,
                               .process = ++stage->born };
    write_url(stage, host, worker->url, sizeof worker->url);
    snprintf(worker->host, sizeof worker->host, "host%d", host);
    memset(worker->card, 0, sizeof *worker->card);
}

void stage_start_process(struct stage *stage, int place)
{
    prepare(stage, place);
    hosts_enter(place % HOSTS_ALL);
    stage->places[place].pid = keeper_fork();
    if (stage->places[place].pid == 0)
        worker_run(&stage->places[place].worker);
    hosts_enter(0);
}

void stage_start_closer(struct stage *stage, bool must_wake)
{
    prepare(stage, PROCESSES);
    stage->places[PROCESSES].pid = keeper_fork();
    if (stage->places[PROCESSES].pid == 0)
        worker_close(&stage->places[PROCESSES].worker, must_wake);
}

void stage_kill_process(struct stage *stage, int place)
{
    int process = stage->places[place].worker.process;
    int64_t now_ns;

    kill(stage->places[place].pid, SIGKILL);
    keeper_reap(stage->places[place].pid);
    now_ns = history_now_ns();
    stage->places[place].pid = 0;
    for (unsigned i = 0; i < stage->history->track_count; i++) {
        if (stage->history->tracks[i].process == process)
            stage->history->tracks[i].killed_ns = now_ns;
    }
    stage->killed++;
}

void stage_stop_process(struct stage *stage, int place)
{
    pid_t pid = stage->places[place].pid;

    kill(pid, SIGSTOP);
    assert_int_equal(waitpid(pid, NULL, WUNTRACED), pid);
}

void stage_cont_process(struct stage *stage, int place)
{
    kill(stage->places[place].pid, SIGCONT);
}

static bool is_owner(const struct stage *stage, int place)
{
    for (int i = 0; i < WORKER_THREADS; i++) {
        if (__atomic_load_n(&stage->cards[place].holding[i], __ATOMIC_ACQUIRE) > 0)
            return true;
    }
    return false;
}

/* Looks again after SIGSTOP, because holds are short: only a stopped process is sure to own still. */
int stage_stop_owner(struct stage *stage)
{
    int place = (int)dice_below(&stage->dice, PROCESSES);

    for (int i = 0; i < LOOKS; i++) {
        if (is_owner(stage, place)) {
            stage_stop_process(stage, place);
            if (is_owner(stage, place))
                return place;
            stage_cont_process(stage, place);
        }
        place = (place + 1) % PROCESSES;
        wait_nap();
    }
    stage_stop_process(stage, place);
    return place;
}

/* ---- the whole stage --------------------------------------------------------------------- */

static void *share(size_t size)
{
    void *memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

    assert_ptr_not_equal(memory, MAP_FAILED);
    return memory;
}

static void begin_all(struct stage *stage, const char *folder)
{
    stage->history = history_make();
    stage->cards = share((PROCESSES + 1) * sizeof *stage->cards);
    stage->phase = share(sizeof *stage->phase);
    resource_start(&stage->resource, folder);
}

void stage_begin(struct stage *stage, bool has_grace)
{
    *stage = (struct stage){ .has_grace = has_grace, .has_device = is_isolated };
    stage->servers[0] = start_server();
    stage->servers[1] = start_server();
    open_networks(stage);
    begin_all(stage, stage->servers[0]->folder);
}

void stage_begin_group(struct stage *stage, bool has_grace, const char *options)
{
    *stage = (struct stage){ .has_grace = has_grace, .cut_host = -1 };
    group_begin(stage, options);
    begin_all(stage, stage->group->data[0]->folder);
}

void stage_begin_cluster(struct stage *stage, int timeout_ms, bool has_grace, const char *options)
{
    *stage = (struct stage){ .has_grace = has_grace };
    slots_begin(stage, timeout_ms, options);
    begin_all(stage, stage->cluster->nodes[0]->folder);
}

void stage_begin_quorum(struct stage *stage, int servers, bool has_grace, const char *options)
{
    *stage = (struct stage){ .has_grace = has_grace, .has_device = is_isolated };
    masters_begin(stage, servers, options);
    begin_all(stage, stage->masters->folder);
}

void stage_begin_venue(struct stage *stage, const char *folder)
{
    stage->has_device = is_isolated;
    begin_all(stage, folder);
}

static void end_servers(struct stage *stage)
{
    for (int i = 0; i < HOSTS; i++)
        proxy_end(stage->proxies[i]);
    server_end(stage->servers[0]);
    server_end(stage->servers[1]);
}

void stage_rest(struct stage *stage, unsigned most_ms)
{
    long ms = dice_below(&stage->dice, most_ms + 1);

    nanosleep(&(struct timespec){ .tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000 }, NULL);
}

void stage_seed(struct stage *stage, uint64_t seed)
{
    stage->seed = seed;
    stage->dice = dice_make(seed, ~0u);
}

void stage_end(struct stage *stage)
{
    for (int i = 0; i <= PROCESSES; i++) {
        if (stage->places[i].pid)
            stage_kill_process(stage, i);
    }
    /* Before the networks: the resource's process was forked with the networks' descriptors. */
    resource_end(&stage->resource);
    if (stage->group)
        group_end(stage);
    else if (stage->cluster)
        slots_end(stage);
    else if (stage->masters)
        masters_end(stage);
    else if (stage->venue)
        stage->venue->end(stage);
    else
        end_servers(stage);
    history_free(stage->history);
    munmap(stage->cards, (PROCESSES + 1) * sizeof *stage->cards);
    munmap(stage->phase, sizeof *stage->phase);
}
