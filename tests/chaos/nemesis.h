/* SPDX-License-Identifier: BSD-2-Clause */
/* What befalls the processes, the networks and the servers, by chance from the stage's dice. */
#ifndef CHAOS_NEMESIS_H
#define CHAOS_NEMESIS_H

#include "stage.h"

/* Groups of faults, as bits. */
enum faults {
    FAULTS_OF_PROCESSES = 1,
    FAULTS_OF_NETWORKS = 2,
    FAULTS_OF_SERVER = 4,    /* it keeps its data */
    FAULTS_OF_RESTART = 8,   /* with all its data, or with none */
    FAULTS_OF_COPIES = 16,   /* with older data: writes are lost, and with them signals */
    FAULTS_OF_PROMOTION = 32, /* the same by a replica */
    FAULTS_OF_FAILOVER = 64,  /* a replica that has all takes the master's place, and connections stay */
    FAULTS_OF_SWITCH = 128    /* the same by hand: what is on its way to the replica is lost */
};

/* Where the server may not know of a signal, which nobody promises then. */
#define FAULTS_THAT_LOSE_SIGNALS (FAULTS_OF_COPIES | FAULTS_OF_PROMOTION | FAULTS_OF_SWITCH)

#define FAULT_KINDS 32

/* When a fault was there. */
struct strike {
    const char *name;
    int64_t began_ns, ended_ns;
};

#define STRIKES 256 /* that are remembered */

struct nemesis {
    struct stage *stage;
    unsigned allowed;  /* a set of enum faults */
    int host, stopped; /* what lasts has befallen these */
    long counts[FAULT_KINDS];
    struct strike strikes[STRIKES]; /* the last ones */
    unsigned strike_count;
};

/* One fault, and perhaps another while it lasts; all is well again when it returns. */
void nemesis_strike(struct nemesis *nemesis);

long nemesis_sum(const struct nemesis *nemesis);

/* Lines of a TAP comment: how often each; which there were about that time. */
void nemesis_print(const struct nemesis *nemesis);
void nemesis_print_strikes(const struct nemesis *nemesis, int64_t from_ns, int64_t until_ns,
                           int64_t zero_ns);

#endif
