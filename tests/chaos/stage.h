/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The stage of a round: two servers, a master and a server that may follow the master; hosts, each with a separate
 * network, which leads to the master by one address; processes on the hosts; and the resource guarded by the mutexes.
 *
 * The network is a proxy for each host.  Every other host speaks TCP to the proxy, so that, where network
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
#define NETWORKS (5 * HOSTS) /* at most: to each server of a quorum */
#define PROCESSES 6
#define LEASE 500

struct stage;
struct fault;

/* What a stage with a store of another kind brings with it. */
struct venue {
    /* Writes the URL for the processes of a host. */
    void (*write_url)(const struct stage *stage, int host, char *ret_url, size_t size);
    /* Prints what the store has, after a waiter has waited forever. */
    void (*print)(struct stage *stage);
    void (*end)(struct stage *stage);
    const struct fault *faults; /* of its own */
    int fault_count;
};

/* A place for a process; a new process follows a killed process. */
struct place {
    pid_t pid; /* 0: no process */
    struct worker worker;
};

struct stage {
    struct server *servers[2];
    int master; /* index of the master */
    bool has_follower;
    bool has_aof;       /* the master writes an AOF */
    int names_of_files; /* counted up, so that a restarted server finds nothing */

    struct proxy *proxies[NETWORKS];
    int network_count;
    char link[64]; /* address of the last host in place of the proxy: a symbolic link to the master's socket; "" none */
    struct sentinels *group; /* in place of the servers and the proxies, or NULL; the master is an index of its data */
    struct cluster *cluster; /* likewise, or NULL; `master` means nothing */
    int parted_slot, parted_replica;
    int cut_host;              /* of a group's hosts (lib/hosts.h), cut off from the others; -1: none */
    struct masters *masters;   /* likewise, with networks, or NULL */
    const struct venue *venue; /* likewise, or NULL; its data: */
    struct databases *databases;
    char options[80];  /* of the URL of the group, the Cluster or the quorum */
    unsigned lease_ms; /* of all mutexes; 0: LEASE */
    bool has_grace;
    bool hands_on;   /* this round's processes hand mutexes on, and keep leases */
    bool has_device; /* a separate loopback device, to take down */

    struct place places[PROCESSES + 1]; /* the process in the last place closes the round */
    struct card *cards;                 /* shared */
    int *phase;                         /* shared */
    int born;                           /* processes in this round */
    struct history *history;
    struct resource resource;
    struct dice dice;
    uint64_t seed;

    long killed, restarts, promotions, moves;
};

/* Takes a separate network namespace, if allowed; not for a role, which has arguments.  Call first in main(). */
void stage_isolate(int argc);

void stage_begin(struct stage *stage, bool has_grace);
void stage_end(struct stage *stage);

/* A stage with a group of Sentinel (group.h); has_grace: as the options say, for the report. */
void stage_begin_group(struct stage *stage, bool has_grace, const char *options);

/* The same with a Cluster (slots.h), calm or fast (lib/clusters.h). */
void stage_begin_cluster(struct stage *stage, int timeout_ms, bool has_grace, const char *options);

/* The same with a quorum (masters.h) of `servers` servers. */
void stage_begin_quorum(struct stage *stage, int servers, bool has_grace, const char *options);

/* The same with another kind of store, which has begun in this folder. */
void stage_begin_venue(struct stage *stage, const char *folder);

/* Gives the last host a symbolic link as address, in place of the proxy. */
void stage_link(struct stage *stage);

/* Sets the seed of the next round. */
void stage_seed(struct stage *stage, uint64_t seed);

/* Sleeps for a time up to the given time; awaits no event. */
void stage_rest(struct stage *stage, unsigned most_ms);

/* The plain connection of the master; of a Cluster, of the node that has most mutexes; of a quorum, the first. */
struct side *stage_side(struct stage *stage);

void stage_start_process(struct stage *stage, int place);
void stage_start_closer(struct stage *stage, bool must_wake);

/* Sends SIGKILL, and writes the kill into the history. */
void stage_kill_process(struct stage *stage, int place);

/*
 * Send SIGSTOP to a process that holds a mutex at the moment, or, if no holder is found soon, to any process, and
 * return the place; send SIGSTOP to a place; send SIGCONT, which does nothing to a successor.
 */
int stage_stop_owner(struct stage *stage);
void stage_stop_process(struct stage *stage, int place);
void stage_cont_process(struct stage *stage, int place);

/* Sets the device up or down: down, the kernel loses each packet.  Does nothing without a separate namespace. */
void stage_set_device(struct stage *stage, bool is_up);

/* Write the master's data to a file; kill the master, which comes back with the data written last, or empty. */
enum remains { REMAINS_NOTHING, REMAINS_RDB, REMAINS_AOF };
void stage_write_remains(struct stage *stage, enum remains remains);
void stage_restart(struct stage *stage, enum remains remains);

/*
 * Let the other server follow the master until both have the same data; part the follower from the master;
 * kill the master, and put the other server in the master's place, with the data received so far.
 */
void stage_follow(struct stage *stage);
void stage_part(struct stage *stage);
void stage_promote(struct stage *stage);

/*
 * Let the follower, which has all data, and the master change places: new connections lead to the new master, and no
 * connection is closed.  By FAILOVER, which loses no write; or by REPLICAOF for each of both.
 */
void stage_fail_over(struct stage *stage);
void stage_switch(struct stage *stage);

#endif
