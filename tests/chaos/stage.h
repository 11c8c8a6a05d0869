/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Where it all happens: two servers, of which one is the master and the other may follow it; hosts,
 * each with a network of its own that leads to the master by one address; processes on these hosts;
 * and the resource that the mutexes guard.
 *
 * The network is a proxy for each host.  Every other host speaks TCP to it, so that, where network
 * namespaces are allowed, the kernel itself loses all packets while the loopback device is down.
 */
#ifndef CHAOS_STAGE_H
#define CHAOS_STAGE_H

#include "../lib/testlib.h"
#include "dice.h"
#include "history.h"
#include "resource.h"
#include "worker.h"

#define HOSTS 4
#define PROCESSES 6
#define LEASE 500

/* A place for a process; who is killed is followed by another. */
struct place {
    pid_t pid; /* 0: nobody */
    struct worker worker;
};

struct stage {
    struct server *servers[2];
    int master; /* which of them */
    bool has_follower;
    bool has_aof;       /* the master writes one */
    int names_of_files; /* counted up, so that a server finds nothing */

    struct proxy *proxies[HOSTS];
    char link[64]; /* of the last host in place of its proxy: a symbolic link to the master's socket; "" none */
    bool has_grace;
    bool has_device; /* that can be taken down */

    struct place places[PROCESSES + 1]; /* the last one closes the round */
    struct card *cards;                 /* shared */
    int *phase;                         /* shared */
    int born;                           /* processes in this round */
    struct history *history;
    struct resource resource;
    struct dice dice;
    uint64_t seed;

    long killed, restarts, promotions;
};

/* First in main(), but for roles: a network namespace of its own, if that is allowed. */
void stage_isolate(int argc);

void stage_begin(struct stage *stage, bool has_grace);
void stage_end(struct stage *stage);

/* The last host has no proxy, but an address that is a symbolic link. */
void stage_link(struct stage *stage);

/* The seed of what follows. */
void stage_seed(struct stage *stage, uint64_t seed);

struct side *stage_side(const struct stage *stage);

void stage_start_process(struct stage *stage, int place);
void stage_start_closer(struct stage *stage, bool must_wake);

/* SIGKILL, written into the history. */
void stage_kill_process(struct stage *stage, int place);

/*
 * SIGSTOP of one that holds a mutex just then, or where none is found soon, of any; SIGCONT, which
 * does nothing to a successor.
 */
int stage_stop_owner(struct stage *stage);
void stage_stop_process(struct stage *stage, int place);
void stage_cont_process(struct stage *stage, int place);

/* Down, the kernel loses each packet.  Without a namespace nothing happens. */
void stage_set_device(struct stage *stage, bool is_up);

/* The master is killed and comes back with what it wrote last, or with nothing. */
enum remains { REMAINS_NOTHING, REMAINS_RDB, REMAINS_AOF };
void stage_write_remains(struct stage *stage, enum remains remains);
void stage_restart(struct stage *stage, enum remains remains);

/*
 * The other server follows the master, and has all its data; does not hear of it any more; takes
 * its place, with the data of then.
 */
void stage_follow(struct stage *stage);
void stage_part(struct stage *stage);
void stage_promote(struct stage *stage);

/*
 * The follower, which has all data, and its master change places; new connections are led there, and none is closed.  By
 * FAILOVER, which loses no write; or by REPLICAOF for each of both.
 */
void stage_fail_over(struct stage *stage);
void stage_switch(struct stage *stage);

#endif
