/* SPDX-License-Identifier: BSD-2-Clause */
#include "masters.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* ---- servers, each with its own clock ---------------------------------------------------- */

#define SKEW_LIBRARY "tests/chaos/.libs/skew.so"
#define HOUR_S 3600

static void clock_path(const struct masters *masters, int i, char *ret_path, size_t size)
{
    snprintf(ret_path, size, "%s/clock%d", masters->folder, i);
}

static int64_t *make_clock(const struct masters *masters, int i)
{
    char path[64];
    void *memory;
    int fd;

    clock_path(masters, i, path, sizeof path);
    fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    assert_return_code(fd, errno);
    assert_return_code(ftruncate(fd, sizeof(int64_t)), errno);
    memory = mmap(NULL, sizeof(int64_t), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    assert_ptr_not_equal(memory, MAP_FAILED);
    close(fd);
    return memory;
}

/* Starts the server, or starts the server again. */
static void start(struct masters *masters, int i)
{
    char *library = realpath(SKEW_LIBRARY, NULL), path[64];

    assert_non_null(library);
    clock_path(masters, i, path, sizeof path);
    setenv("LD_PRELOAD", library, 1);
    setenv("DMUTEX_TEST_SKEW", path, 1);
    if (masters->servers[i])
        server_restart(masters->servers[i]);
    else
        masters->servers[i] = server_start_with(true, NULL);
    unsetenv("DMUTEX_TEST_SKEW");
    unsetenv("LD_PRELOAD");
    free(library);
}

static void open_networks(struct stage *stage)
{
    for (int i = 0; i < HOSTS * stage->masters->count; i++)
        stage->proxies[i] = proxy_start(stage->masters->servers[i % stage->masters->count]);
    stage->network_count = HOSTS * stage->masters->count;
}

void masters_begin(struct stage *stage, int count, const char *options)
{
    struct masters *masters = calloc(1, sizeof *masters);

    assert_non_null(masters);
    stage->masters = masters;
    masters->count = count;
    keeper_make_folder(masters->folder, sizeof masters->folder);
    for (int i = 0; i < count; i++) {
        masters->skew_s[i] = make_clock(masters, i);
        start(masters, i);
    }
    open_networks(stage);
    snprintf(stage->options, sizeof stage->options, "%s", options);
}

void masters_set_clocks_apart(struct stage *stage)
{
    struct masters *masters = stage->masters;

    for (int i = 0; i < masters->count; i++) {
        server_kill(masters->servers[i]);
        *masters->skew_s[i] = masters->usual_s[i] = (i - masters->count / 2) * HOUR_S;
        start(masters, i);
        server_reconnect(masters->servers[i]);
    }
}

void masters_end(struct stage *stage)
{
    struct masters *masters = stage->masters;

    for (int i = 0; i < stage->network_count; i++)
        proxy_end(stage->proxies[i]);
    for (int i = 0; i < masters->count; i++) {
        server_end(masters->servers[i]);
        munmap(masters->skew_s[i], sizeof *masters->skew_s[i]);
    }
    keeper_remove_folder(masters->folder);
    free(masters);
    stage->masters = NULL;
}

void masters_write_url(const struct stage *stage, int host, char *ret_url, size_t size)
{
    int count = stage->masters->count;
    size_t length = (size_t)snprintf(ret_url, size, "redis+quorum://");

    for (int i = 0; i < count; i++) {
        const char *url = proxy_tcp_url(stage->proxies[host * count + i]) + strlen("redis://");
        int place = (int)strcspn(url, "?");

        length += (size_t)snprintf(ret_url + length, size - length, "%s%.*s", i ? "," : "", place, url);
    }
    snprintf(ret_url + length, size - length, "%s", stage->options);
}

/* ---- the struck servers ------------------------------------------------------------------ */

typedef void blow_fn(struct stage *stage, int i);

static void strike(struct stage *stage, int servers, blow_fn *blow)
{
    int count = stage->masters->count, first = (int)dice_below(&stage->dice, (unsigned)count);

    for (int i = 0; i < servers; i++)
        blow(stage, (first + i) % count);
}

/* Strikes one server, or as many as the quorum can do without. */
static void strike_some(struct stage *stage, blow_fn *blow)
{
    unsigned most = (unsigned)stage->masters->count / 2;

    strike(stage, 1 + (int)dice_below(&stage->dice, most), blow);
}

static struct side *side_of(const struct stage *stage, int i)
{
    return stage->masters->servers[i]->side;
}

static void await_files(struct side *side)
{
    wait_until(side_info_says(side, "rdb_bgsave_in_progress:0"));
    wait_until(side_info_says(side, "aof_rewrite_in_progress:0"));
}

/* ---- servers that come back -------------------------------------------------------------- */

static void kill_with(struct stage *stage, int i, const char *appends)
{
    server_set_argument(stage->masters->servers[i], "--appendonly", appends);
    server_kill(stage->masters->servers[i]);
}

static void kill_empty(struct stage *stage, int i)
{
    struct server *server = stage->masters->servers[i];
    char name[32];

    snprintf(name, sizeof name, "%d.rdb", ++stage->masters->names_of_files);
    server_set_argument(server, "--dbfilename", name);
    snprintf(name, sizeof name, "aof%d", stage->masters->names_of_files);
    server_set_argument(server, "--appenddirname", name);
    kill_with(stage, i, "no");
}

static void write_aof(struct stage *stage, int i)
{
    side_text(side_of(stage, i), "CONFIG SET appendonly yes");
    await_files(side_of(stage, i));
}

static void kill_with_aof(struct stage *stage, int i)
{
    write_aof(stage, i);
    kill_with(stage, i, "yes");
}

static void kill_with_older(struct stage *stage, int i)
{
    side_text(side_of(stage, i), "CONFIG SET appendonly no");
    await_files(side_of(stage, i));
    side_text(side_of(stage, i), "BGSAVE");
    await_files(side_of(stage, i));
    stage_rest(stage, LEASE);
    kill_with(stage, i, "no");
}

void masters_kill_empty(struct stage *stage)
{
    strike_some(stage, kill_empty);
}

void masters_kill_with_aof(struct stage *stage)
{
    strike_some(stage, kill_with_aof);
}

void masters_kill_with_older(struct stage *stage)
{
    strike_some(stage, kill_with_older);
}

/* ---- servers that keep all data ---------------------------------------------------------- */

static void halt(struct stage *stage, int i)
{
    server_stop(stage->masters->servers[i]);
}

static void pause_clients(struct stage *stage, int i)
{
    side_text(side_of(stage, i), "CLIENT PAUSE %d WRITE", LEASE / 2);
}

static void fill(struct stage *stage, int i)
{
    side_text(side_of(stage, i), "CONFIG SET maxmemory 1");
}

/* A replica without a master keeps all data, and refuses writes. */
static void demote(struct stage *stage, int i)
{
    side_text(side_of(stage, i), "REPLICAOF 127.0.0.1 1");
}

static void kill_connections(struct stage *stage, int i)
{
    side_text(side_of(stage, i), "CLIENT KILL TYPE normal SKIPME yes");
    side_text(side_of(stage, i), "CLIENT KILL TYPE pubsub SKIPME yes");
}

static void forget_scripts(struct stage *stage, int i)
{
    side_text(side_of(stage, i), "SCRIPT FLUSH");
}

void masters_stop(struct stage *stage)
{
    strike_some(stage, halt);
}

void masters_pause(struct stage *stage)
{
    strike_some(stage, pause_clients);
}

void masters_fill(struct stage *stage)
{
    strike_some(stage, fill);
}

void masters_demote(struct stage *stage)
{
    strike_some(stage, demote);
}

void masters_kill_connections(struct stage *stage)
{
    strike(stage, stage->masters->count, kill_connections);
}

void masters_forget_scripts(struct stage *stage)
{
    strike(stage, stage->masters->count, forget_scripts);
}

/* ---- clocks, and servers that lose data while they run ------------------------------------ */

static void step_on(struct stage *stage, int i)
{
    *stage->masters->skew_s[i] = HOUR_S;
}

static void restart_with_wrong_clock(struct stage *stage, int i)
{
    kill_empty(stage, i);
    *stage->masters->skew_s[i] = dice_below(&stage->dice, 2) ? HOUR_S : -HOUR_S;
    start(stage->masters, i);
}

static void flush(struct stage *stage, int i)
{
    side_text(side_of(stage, i), "FLUSHALL");
}

void masters_restart_with_wrong_clock(struct stage *stage)
{
    strike_some(stage, restart_with_wrong_clock);
}

void masters_step_on(struct stage *stage)
{
    strike_some(stage, step_on);
}

void masters_flush(struct stage *stage)
{
    strike_some(stage, flush);
}

/* ------------------------------------------------------------------------------------------- */

/* A clock is set right while the server is down. */
static void heal(struct stage *stage, int i)
{
    struct server *server = stage->masters->servers[i];
    int64_t usual_s = stage->masters->usual_s[i];

    if (*stage->masters->skew_s[i] != usual_s)
        kill_empty(stage, i);
    *stage->masters->skew_s[i] = usual_s;
    if (!server->pid)
        start(stage->masters, i);
    server_cont(server);
    server_reconnect(server);
    side_text(server->side, "CLIENT UNPAUSE");
    side_text(server->side, "CONFIG SET maxmemory 0");
    side_text(server->side, "REPLICAOF NO ONE");
}

void masters_heal(struct stage *stage)
{
    for (int i = 0; i < stage->masters->count; i++)
        heal(stage, i);
}

void masters_restart_all(struct stage *stage)
{
    strike(stage, stage->masters->count, kill_empty);
    masters_heal(stage);
}
