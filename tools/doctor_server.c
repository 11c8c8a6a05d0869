/* SPDX-License-Identifier: BSD-2-Clause */
/* Checks the answers of INFO and CONFIG GET. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "doctor.h"
#include "rights.h"

#define VALUE_ROOM DOCTOR_VALUE_ROOM

bool doctor_info_value(const char *info, const char *key, char ret_value[VALUE_ROOM])
{
    size_t length = strlen(key);
    const char *at = info;

    ret_value[0] = '\0';
    while (at && !(strncmp(at, key, length) == 0 && at[length] == ':')) {
        at = strchr(at, '\n');
        at = at ? at + 1 : NULL;
    }
    if (!at)
        return false;
    at += length + 1;
    snprintf(ret_value, VALUE_ROOM, "%.*s", (int)strcspn(at, "\r\n"), at);
    return true;
}

static bool is_value(const char *info, const char *key, const char *wanted)
{
    char value[VALUE_ROOM];

    return doctor_info_value(info, key, value) && strcmp(value, wanted) == 0;
}

static double number_of(const char *info, const char *key)
{
    char value[VALUE_ROOM];

    return doctor_info_value(info, key, value) ? strtod(value, NULL) : 0;
}

/* False if the server is too old. */
static bool look_at_version(struct doctor *doctor, const char *info)
{
    char version[VALUE_ROOM], own[VALUE_ROOM];

    if (!doctor_info_value(info, "redis_version", version)) {
        doctor_find(doctor, GRADE_WARN, "version", "the server does not tell its version");
        return true;
    }
    if (atoi(version) < 7) {
        doctor_find(doctor, GRADE_FAIL, "version", "Redis %s is too old: no lock can be acquired", version);
        doctor_advise(doctor, "install Redis 7.0 or later, or Valkey");
        return false;
    }
    if (doctor_info_value(info, "valkey_version", own))
        doctor_find(doctor, GRADE_OK, "version", "Valkey %s", own);
    else
        doctor_find(doctor, GRADE_OK, "version", "Redis %s", version);
    return true;
}

static void look_at_role(struct doctor *doctor, const char *info)
{
    char role[VALUE_ROOM] = "", master[VALUE_ROOM] = "";

    doctor_info_value(info, "role", role);
    doctor_info_value(info, "master_host", master);
    doctor->facts.is_master = strcmp(role, "master") == 0 ? YES : NO;
    if (is_value(info, "cluster_enabled", "1") && doctor->kind != DM_URL_CLUSTER) {
        doctor->facts.is_master = NO;
        doctor_find(doctor, GRADE_FAIL, "role", "the server is a node of a Cluster");
        doctor_advise(doctor, "write redis+cluster:// instead of redis://, or use a server with cluster-enabled no");
    } else if (doctor->facts.is_master == NO) {
        doctor_find(doctor, GRADE_FAIL, "role", "the server is a replica of %s", *master ? master : "another server");
        doctor_advise(doctor, doctor->kind == DM_URL_SENTINEL
                                  ? "wait for half a minute: the sentinels promote a replica then"
                                  : "name the master, or an address that always leads to the master");
    } else {
        doctor_find(doctor, GRADE_OK, "role", "master");
    }
}

/* Sentinels record in the server's file which master it replicates (finding 130). */
static void look_at_file(struct doctor *doctor, const char *info)
{
    char path[VALUE_ROOM];

    if (doctor->kind != DM_URL_SENTINEL || !doctor_info_value(info, "config_file", path))
        return;
    if (*path) {
        doctor_find(doctor, GRADE_OK, "file", "the sentinels note roles in the server's configuration file");
    } else {
        doctor_find(doctor, GRADE_WARN, "file", "the server has no configuration file, where sentinels note its role");
        doctor_advise(doctor, "start all servers of the group with a file that they may write: a server that starts "
                              "again without one has its first role");
    }
}

/* Above maxmemory the server refuses every command that may need memory.  Buffers for replicas do not count. */
static void look_at_use_of_memory(struct doctor *doctor, const char *info)
{
    double most = number_of(info, "maxmemory");
    double used = number_of(info, "used_memory") - number_of(info, "mem_not_counted_for_evict");

    if (most <= 0 || used <= 0.9 * most) {
        doctor_find(doctor, GRADE_OK, "memory", "maxmemory-policy is noeviction");
        return;
    }
    if (used > most)
        doctor_find(doctor, GRADE_FAIL, "memory", "%.0f %% of maxmemory are used: no lock can be acquired",
                    100 * used / most);
    else
        doctor_find(doctor, GRADE_WARN, "memory",
                    "%.0f %% of maxmemory are used; beyond 100 %% no lock can be acquired", 100 * used / most);
    doctor_advise(doctor, "raise maxmemory, or find out what fills the server");
}

static void look_at_memory(struct doctor *doctor, const char *info)
{
    char policy[VALUE_ROOM] = "";

    doctor_info_value(info, "maxmemory_policy", policy);
    doctor->facts.keeps_locks = strcmp(policy, "noeviction") == 0 ? YES : NO;
    if (doctor->facts.keeps_locks == NO) {
        doctor_find(doctor, doctor->url->may_evict ? GRADE_WARN : GRADE_FAIL, "memory",
                    "maxmemory-policy is %s: the server may throw locks away", policy);
        doctor_advise(doctor, "set maxmemory-policy noeviction");
    } else {
        look_at_use_of_memory(doctor, info);
    }
}

void doctor_ask_config(struct doctor *doctor, const char *setting, char ret_value[VALUE_ROOM])
{
    redisReply *reply = doctor_ask(doctor, (const char *const[]){ "CONFIG", "GET", setting, NULL });

    ret_value[0] = '\0';
    if (!reply)
        return;
    if (reply->type == REDIS_REPLY_ARRAY && reply->elements == 2 && reply->element[1]->type == REDIS_REPLY_STRING)
        snprintf(ret_value, VALUE_ROOM, "%s", reply->element[1]->str);
    dm_reply_free(reply);
}

static void look_at_appending(struct doctor *doctor)
{
    char fsync[VALUE_ROOM];

    doctor_ask_config(doctor, "appendfsync", fsync); /* always, everysec or no */
    doctor->facts.survives_power = !*fsync ? UNKNOWN : strcmp(fsync, "always") == 0 ? YES : NO;
    if (!*fsync)
        doctor_find(doctor, GRADE_OK, "persistence", "appendonly is yes; appendfsync is not known (needs +config|get)");
    else
        doctor_find(doctor, GRADE_OK, "persistence", "appendonly is yes, appendfsync is %s", fsync);
}

static void look_at_persistence(struct doctor *doctor, const char *info)
{
    doctor->facts.survives_power = NO;
    if (is_value(info, "aof_last_write_status", "err") || is_value(info, "rdb_last_bgsave_status", "err")) {
        doctor_find(doctor, GRADE_FAIL, "persistence", "the server could not write its data to disk the last time");
        doctor_advise(doctor, "make room on the server's disk: the server may refuse all writes until then");
    } else if (is_value(info, "loading", "1")) {
        doctor_find(doctor, GRADE_WARN, "persistence", "the server is loading its data, and answers later");
    } else if (is_value(info, "aof_enabled", "1")) {
        look_at_appending(doctor);
    } else {
        doctor_find(doctor, GRADE_OK, "persistence",
                    "appendonly is no: after a restart live holders come back, and deaths before it are forgotten");
    }
}

/*
 * In a Cluster the other shards hide that a master is down, except for the names in its slots.  In a quorum the other
 * servers take over.
 */
static void look_at_replicas(struct doctor *doctor, const char *info)
{
    int replicas = (int)number_of(info, "connected_slaves");
    bool has_shards = doctor->kind == DM_URL_CLUSTER;

    if (doctor->facts.is_master != YES || doctor->kind == DM_URL_QUORUM)
        return;
    if ((unsigned)replicas < doctor->url->wait) {
        doctor_find(doctor, GRADE_FAIL, "replicas", "%d, and the URL has wait=%u: no lock can be acquired", replicas,
                    doctor->url->wait);
        doctor_advise(doctor, "start the replicas that are down, or lower wait");
    } else if (replicas) {
        doctor_find(doctor, GRADE_OK, "replicas", "%d", replicas);
    } else {
        doctor_find(doctor, has_shards ? GRADE_WARN : GRADE_OK, "replicas",
                    "0: while this server is down no lock%s can be acquired", has_shards ? " of its slots" : "");
        if (has_shards)
            doctor_advise(doctor, "give the master a replica: CLUSTER REPLICATE, at another node");
    }
}

/* A proxy knows PING and the data commands, and closes the connection at any other. */
static void tell_proxy(struct doctor *doctor, const char *reason)
{
    doctor_find(doctor, GRADE_FAIL, "server", "answers PING, but not INFO: %s", reason);
    doctor_advise(doctor, "a proxy (twemproxy, for example) cannot replace the server: it knows neither INFO nor "
                          "ROLE, and no messages; name the server itself");
}

static void tell_refused_info(struct doctor *doctor, const char *error)
{
    if (rights_refused(error) == REFUSED_NOTHING) {
        doctor_find(doctor, GRADE_WARN, "server", "INFO is refused, so version, role, eviction are not known: %s",
                    error);
        doctor_advise(doctor, "name the server itself, if this is a proxy; its own log may tell more");
        return;
    }
    doctor_find(doctor, GRADE_WARN, "server", "INFO is not permitted: version, role, eviction are not known");
    doctor_advise(doctor, "give the user +info");
}

static bool tell_no_info(struct doctor *doctor)
{
    doctor_find(doctor, GRADE_FAIL, "server", "answers INFO with no text: is this a Redis server?");
    doctor_advise(doctor, "correct the address");
    return false;
}

static bool look_at_info(struct doctor *doctor, const char *info)
{
    if (!look_at_version(doctor, info))
        return false;
    look_at_role(doctor, info);
    look_at_file(doctor, info);
    look_at_memory(doctor, info);
    look_at_persistence(doctor, info);
    look_at_replicas(doctor, info);
    return true;
}

/* Without section arguments, because servers before 7.0 take one at most. */
bool doctor_look_at_server(struct doctor *doctor)
{
    char reason[DM_REASON_ROOM];
    redisReply *reply = probe_ask(doctor->probe, (const char *const[]){ "INFO", NULL }, reason);
    bool is_usable = reply != NULL;

    if (!reply)
        tell_proxy(doctor, reason);
    else if (reply->type == REDIS_REPLY_STRING)
        is_usable = look_at_info(doctor, reply->str);
    else if (reply->type == REDIS_REPLY_ERROR)
        tell_refused_info(doctor, reply->str);
    else
        is_usable = tell_no_info(doctor);
    dm_reply_free(reply);
    return is_usable;
}
