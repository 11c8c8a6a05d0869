/* SPDX-License-Identifier: BSD-2-Clause */
/* Faults of the processes, the networks and the servers, chosen by the stage's dice. */
#ifndef CHAOS_NEMESIS_H
#define CHAOS_NEMESIS_H

#include "stage.h"

struct nemesis;

/* Groups of faults, as bits. */
enum faults {
    FAULTS_OF_PROCESSES = 1,
    FAULTS_OF_NETWORKS = 2,
    FAULTS_OF_SERVER = 4,        /* the server keeps all data */
    FAULTS_OF_RESTART = 8,       /* with all data, or with none */
    FAULTS_OF_COPIES = 16,       /* with older data: writes are lost, also signals */
    FAULTS_OF_PROMOTION = 32,    /* the same by a replica */
    FAULTS_OF_FAILOVER = 64,     /* a replica with all data takes the master's place, and connections stay */
    FAULTS_OF_SWITCH = 128,      /* the same by hand: writes on the way to the replica are lost */
    FAULTS_OF_GROUP = 256,       /* sentinels make another server the master: for a stage with a group */
    FAULTS_OF_SLOTS = 512,       /* slots move, with all data: for a stage with a Cluster */
    FAULTS_OF_SHARDS = 1024,     /* replicas take masters' places: likewise */
    FAULTS_OF_FORCE = 2048,      /* likewise, by replicas that lack writes */
    FAULTS_OF_LOST_KEYS = 4096,  /* a move loses keys, which no promise covers: likewise */
    FAULTS_OF_MASTERS = 8192,    /* servers end, stop or refuse, and keep all data: for a stage with a quorum */
    FAULTS_OF_RETURNS = 16384,   /* servers come back with less data, or are flushed, and have a grace: likewise */
    FAULTS_OF_CLOCKS = 32768,    /* the same with a wrong clock: likewise */
    FAULTS_OF_STEPS = 65536,     /* clocks are set forward, which no promise covers: likewise */
    FAULTS_OF_HOSTS = 131072,    /* a host is cut off: for a stage with a group on hosts */
    FAULTS_OF_DATABASE = 262144, /* the server ends, stops or refuses, and keeps all data: for a stage with databases */
    FAULTS_OF_WAITED = 524288,   /* a standby for which commits have waited is promoted: likewise */
    FAULTS_OF_UNWAITED = 1048576,  /* one that lacks writes: likewise */
    FAULTS_OF_RETURN = 2097152,    /* the same, and the old primary comes back: likewise */
    FAULTS_OF_BACKUP = 4194304,    /* a backup is restored, with a new epoch: likewise */
    FAULTS_OF_BAD_BACKUP = 8388608 /* the same without, which no promise covers: likewise */
};

/* Faults that lose no data of a server. */
#define FAULTS_THAT_KEEP_ALL                                                                             \
    (FAULTS_OF_PROCESSES | FAULTS_OF_NETWORKS | FAULTS_OF_SERVER | FAULTS_OF_SLOTS | FAULTS_OF_MASTERS | \
     FAULTS_OF_DATABASE | FAULTS_OF_WAITED)

/* Faults by which the server may lose a signal; no promise covers the signal then. */
#define FAULTS_THAT_LOSE_SIGNALS                                                                      \
    (FAULTS_OF_COPIES | FAULTS_OF_PROMOTION | FAULTS_OF_SWITCH | FAULTS_OF_GROUP | FAULTS_OF_SHARDS | \
     FAULTS_OF_FORCE | FAULTS_OF_HOSTS | FAULTS_OF_UNWAITED | FAULTS_OF_RETURN | FAULTS_OF_BACKUP |   \
     FAULTS_OF_BAD_BACKUP)

/*
 * A kind of fault, with functions to begin and to end it, or with two functions of a store.  The second is NULL if the
 * fault ends by itself.
 */
struct fault {
    const char *name;
    enum faults group;
    int weight;
    void (*begin)(struct nemesis *);
    void (*end)(struct nemesis *);
    int lasts_ms; /* at most */
    void (*strike)(struct stage *);
    void (*heal)(struct stage *);
};

#define FAULT_KINDS 80

/* A fault's begin and end. */
struct strike {
    const char *name;
    int64_t began_ns, ended_ns;
};

#define STRIKES 256 /* remembered */

struct nemesis {
    struct stage *stage;
    unsigned allowed;     /* a set of enum faults */
    int network, stopped; /* network and process of the faults that last */
    long counts[FAULT_KINDS];
    struct strike strikes[STRIKES]; /* the latest */
    unsigned strike_count;
};

/* Makes a fault, and perhaps a second one at the same time; both have ended when this returns. */
void nemesis_strike(struct nemesis *nemesis);

long nemesis_sum(const struct nemesis *nemesis);

/* Print lines of a TAP comment: the count of each kind of fault; the faults between two moments. */
void nemesis_print(const struct nemesis *nemesis);
void nemesis_print_strikes(const struct nemesis *nemesis, int64_t from_ns, int64_t until_ns, int64_t zero_ns);

/*
 * For faults that replace a server: stop a holder before, and wake it afterwards, so soon that its hold may still be
 * certain. Other processes come to the new server first.
 */
void nemesis_stop_owner(struct nemesis *nemesis);
void nemesis_wake_owner(struct nemesis *nemesis);

#endif
