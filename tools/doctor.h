/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * dmutex doctor: findings, in the order in which they were made.
 *
 *   doctor.c             the subcommand: the order of the checks, and the output
 *   doctor_sentinels.c   the sentinels of a group
 *   doctor_cluster.c     the nodes of a Cluster
 *   doctor_quorum.c      the servers of a quorum
 *   doctor_postgres.c    a database of PostgreSQL
 *   doctor_etcd.c        the members of etcd
 *   doctor_memcached.c   a server of memcached
 *   doctor_mariadb.c     a database of MariaDB
 *   doctor_zookeeper.c   the servers of ZooKeeper
 *   doctor_server.c      answers of INFO and CONFIG GET
 *   doctor_link.c        trials: rights, times, messages
 */
#ifndef DM_TOOLS_DOCTOR_H
#define DM_TOOLS_DOCTOR_H

#include <stdbool.h>
#include <stdint.h>

#include "probe.h"
#include "stores/redis/wire/slots.h"

enum grade { GRADE_OK, GRADE_WARN, GRADE_FAIL };

/* A fact that the server may refuse to reveal. */
enum answer { UNKNOWN, NO, YES };

struct finding {
    enum grade grade;
    char check[16];             /* one word for what was checked */
    char server[DM_PLACE_ROOM]; /* in a Cluster or a quorum: the server that was checked; else "" */
    char text[640];             /* the fact; cleaned */
    char advice[400];           /* the remedy, or "" */
};

#define FINDINGS_MOST 1024

/* What the promises depend on: of one server, of all masters of a Cluster, or of all servers of a quorum. */
struct facts {
    enum answer is_master, keeps_locks, survives_power; /* keeps_locks: evicts nothing */
    enum answer knows_birth;                            /* how long the server has existed: grace */
    bool lacks_rights;
};

struct doctor {
    enum dm_url_kind kind; /* of the configured URL */
    struct finding findings[FINDINGS_MOST];
    int count;
    struct finding *last; /* the one that doctor_find() added last */
    struct facts facts;

    /* The server under examination. */
    struct dm_url *url;
    struct probe *probe;
    const char *server;         /* in a Cluster or a quorum: its address, for the findings; else "" */
    char tag[DM_SLOT_TAG_ROOM]; /* in a Cluster: a tag of the first slot that the server serves; else "" */
};

/* Adds a finding, unless it is there already; doctor_advise() then adds the advice. */
void doctor_find(struct doctor *doctor, enum grade grade, const char *check, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

/* Adds advice to the last finding. */
void doctor_advise(struct doctor *doctor, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Sends a command, NULL at its end.  Returns the reply, or NULL if there is none or it is an error. */
redisReply *doctor_ask(struct doctor *doctor, const char *const *words);

/* Connects to the server that is to be examined.  False with the reason. */
bool doctor_connect(struct doctor *doctor, struct dm_url *url, char ret_reason[DM_REASON_ROOM]);

/* The advice for a missing right. */
#define DOCTOR_ACL "ACL SETUSER with the line that dmutex acl prints, then ACL SAVE or CONFIG REWRITE"

/* Reports that the user may not use the database of the URL. */
void doctor_tell_missing_database(struct doctor *doctor);

/* Reports why doctor_connect() failed, and what to do.  Returns the exit status. */
int doctor_tell_unusable(struct doctor *doctor, enum grade grade, const char *check, const char *reason,
                         const char *advice);

/* Warns if the server's certificate is not checked. */
void doctor_look_at_tls(struct doctor *doctor);

/* All checks of the connected server. */
void doctor_examine(struct doctor *doctor);

/* Leaves in `facts` what holds for both servers. */
void doctor_join_facts(struct facts *facts, const struct facts *others);

/*
 * For a group of Sentinel, called first: the rest is about its master.  Returns 0, or the exit status if the sentinels
 * name no master.
 */
int doctor_look_at_sentinels(struct doctor *doctor);

/*
 * For a Cluster: checks its nodes, then each master.  Returns 0, or the exit status if the masters cannot be checked.
 */
int doctor_examine_cluster(struct doctor *doctor);

/* For a quorum: checks its servers, and whether they are enough.  Returns as the one above. */
int doctor_examine_quorum(struct doctor *doctor);

/* For a database of PostgreSQL.  Returns 0, or the exit status if it cannot be reached. */
int doctor_examine_postgres(struct doctor *doctor);

/* For the members of etcd.  Returns as the one above. */
int doctor_examine_etcd(struct doctor *doctor);

/* For a server of memcached.  Returns as the one above. */
int doctor_examine_memcached(struct doctor *doctor);

/* For a database of MariaDB.  Returns as the one above. */
int doctor_examine_mariadb(struct doctor *doctor);

/* For the servers of ZooKeeper.  Returns as the one above. */
int doctor_examine_zookeeper(struct doctor *doctor);

/*
 * Of the findings from `begin` on, leaves only those that say more than first..first_end, the findings of another
 * server.
 */
void doctor_leave_out_repetitions(struct doctor *doctor, int first, int first_end, int begin);

/* Copies the value of a line "key:value" of INFO.  False if there is none. */
#define DOCTOR_VALUE_ROOM 80
bool doctor_info_value(const char *info, const char *key, char ret_value[DOCTOR_VALUE_ROOM]);

/* The value of a setting of the server; "" if the user may not read it. */
void doctor_ask_config(struct doctor *doctor, const char *setting, char ret_value[DOCTOR_VALUE_ROOM]);

/* Checks the answers of INFO.  False if the library cannot use this server. */
bool doctor_look_at_server(struct doctor *doctor);
void doctor_try_rights(struct doctor *doctor);
void doctor_try_times(struct doctor *doctor);
void doctor_try_messages(struct doctor *doctor);
void doctor_look_at_grace(struct doctor *doctor);

#endif
