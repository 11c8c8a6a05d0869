/* SPDX-License-Identifier: BSD-2-Clause */
/* The sentinels of a group: whether they can be reached, agree, and are enough for a failover. */
#include <stdlib.h>
#include <string.h>

#include "doctor.h"
#include "stores/redis/sentinel/council.h"
#include "tool.h"

#define SENTINELS_MOST 1000 /* more is an error */

/* What the listed sentinels have said. */
struct assembly {
    struct dm_master masters[DM_URL_HOSTS_MOST];
    int votes[DM_URL_HOSTS_MOST];
    char tellers[DM_URL_HOSTS_MOST][300]; /* for each master, the last sentinel that named it */
    int master_count;
    int heard;
    bool wants_login;                    /* one has refused the login, or a command without login, or lacks a right */
    long long others[DM_URL_HOSTS_MOST]; /* how many other sentinels each of them knows */
    char ids[DM_URL_HOSTS_MOST][DM_SENTINEL_ID];
    char places[DM_URL_HOSTS_MOST][300]; /* where the sentinel with that id is listed */
    long long down_after;                /* ms, as the last sentinel says; 0: not known */
};

static const char *value_of(const redisReply *pairs, const char *key)
{
    for (size_t i = 0; pairs->type == REDIS_REPLY_ARRAY && i + 1 < pairs->elements; i += 2) {
        if (pairs->element[i]->str && strcmp(pairs->element[i]->str, key) == 0 && pairs->element[i + 1]->str)
            return pairs->element[i + 1]->str;
    }
    return "";
}

static void count(struct assembly *assembly, const char *teller, const char *host, const char *port)
{
    int i = 0;

    while (i < assembly->master_count &&
           (strcmp(assembly->masters[i].host, host) != 0 || strcmp(assembly->masters[i].port, port) != 0))
        i++;
    if (i == assembly->master_count) {
        assembly->master_count++;
        snprintf(assembly->masters[i].host, sizeof assembly->masters[i].host, "%s", host);
        snprintf(assembly->masters[i].port, sizeof assembly->masters[i].port, "%s", port);
    }
    assembly->votes[i]++;
    snprintf(assembly->tellers[i], sizeof assembly->tellers[i], "%s", teller);
}

/* A sentinel's answers to the library's questions.  The last one is NULL unless all were answered. */
struct testimony {
    redisReply *id, *address, *details, *others;
    bool may_hear; /* may subscribe to failovers */
};

/* True if the sentinel or its rights must be corrected before its vote counts. */
static bool is_unfit(struct doctor *doctor, const char *name, const redisReply *address)
{
    const char *group = doctor->url->master;

    if (address->type == REDIS_REPLY_ARRAY && address->elements == 2 && address->element[0]->str &&
        address->element[1]->str)
        return false;
    if (address->type == REDIS_REPLY_NIL) {
        doctor_find(doctor, GRADE_FAIL, "sentinel", "%s knows no master named %s", name, group);
        doctor_advise(doctor, "correct the name in the URL, or give the sentinel the line: sentinel monitor %s ...",
                      group);
    } else {
        doctor_find(doctor, GRADE_FAIL, "sentinel", "%s: %s", name,
                    address->str ? address->str : "no answer of a sentinel");
        doctor_advise(doctor, "the URL must list sentinels; their login is given by sentinel_user and "
                              "sentinel_password_file");
    }
    return true;
}

static bool is_refused(const redisReply *reply)
{
    return reply->type == REDIS_REPLY_ERROR && strncmp(reply->str, "NOPERM", 6) == 0;
}

/* False if the library cannot ask this sentinel.  Without the other rights it only learns of a failover later. */
static bool judge_rights(struct doctor *doctor, struct assembly *assembly, const char *name,
                         const struct testimony *said)
{
    bool is_deaf = is_refused(said->id) || is_refused(said->address);

    if (!is_deaf && !is_refused(said->details) && !is_refused(said->others) && said->may_hear)
        return true;
    doctor_find(doctor, is_deaf ? GRADE_FAIL : GRADE_WARN, "rights", "%s: the sentinels' user lacks%s%s%s%s%s", name,
                is_refused(said->id) ? " +sentinel|myid" : "",
                is_refused(said->address) ? " +sentinel|get-master-addr-by-name" : "",
                is_refused(said->details) ? " +sentinel|master" : "",
                is_refused(said->others) ? " +sentinel|sentinels" : "",
                said->may_hear ? "" : " +subscribe &+switch-master");
    doctor_advise(doctor, "dmutex acl prints the rules of the sentinels' user");
    assembly->wants_login |= is_deaf;
    return !is_deaf;
}

/* The library counts a sentinel once, even if it is listed more than once. */
static bool is_known(struct doctor *doctor, struct assembly *assembly, const char *name, const redisReply *id)
{
    int at = 0;

    while (at < assembly->heard && strcmp(assembly->ids[at], id->str ? id->str : "") != 0)
        at++;
    if (at == assembly->heard) {
        snprintf(assembly->ids[at], sizeof assembly->ids[at], "%s", id->str ? id->str : "");
        snprintf(assembly->places[at], sizeof assembly->places[at], "%s", name);
        return false;
    }
    doctor_find(doctor, GRADE_WARN, "sentinel", "%s is the sentinel %s, and has one vote", name, assembly->places[at]);
    doctor_advise(doctor, "list each sentinel once, and all of the group");
    return true;
}

/* `address` answers the library's own question; during a failover `details` may name another master. */
static void take(struct doctor *doctor, struct assembly *assembly, const char *name, const struct testimony *said)
{
    const redisReply *address = said->address, *details = said->details;
    long long others = atoll(value_of(details, "num-other-sentinels"));
    const char *replicas = value_of(details, "num-slaves"), *host, *port;

    if (!judge_rights(doctor, assembly, name, said) || is_unfit(doctor, name, address) ||
        is_known(doctor, assembly, name, said->id))
        return;
    host = address->element[0]->str;
    port = address->element[1]->str;
    assembly->others[assembly->heard++] = others;
    assembly->down_after = atoll(value_of(details, "down-after-milliseconds"));
    count(assembly, name, host, port);
    if (*replicas)
        doctor_find(doctor, GRADE_OK, "sentinel", "%s says %s, with %s replicas and %lld other sentinels", name,
                    dm_url_place(host, port).text, replicas, others);
    else
        doctor_find(doctor, GRADE_OK, "sentinel", "%s says %s", name, dm_url_place(host, port).text);
}

static redisReply *ask_group(struct probe *probe, const char *word, const char *group, char *ret_reason)
{
    return probe_ask(probe, (const char *const[]){ "SENTINEL", word, group, NULL }, ret_reason);
}

/* False with the reason if the sentinel has not answered everything. */
static bool hear(struct dm_url *url, struct probe *probe, const char *group, struct testimony *ret_said,
                 char *ret_reason)
{
    struct probe *inbox;

    ret_said->id = ask_group(probe, "MYID", NULL, ret_reason);
    if (ret_said->id)
        ret_said->address = ask_group(probe, "get-master-addr-by-name", group, ret_reason);
    if (ret_said->address)
        ret_said->details = ask_group(probe, "master", group, ret_reason);
    if (ret_said->details)
        ret_said->others = ask_group(probe, "sentinels", group, ret_reason);
    inbox = ret_said->others ? probe_new_inbox(url, "SUBSCRIBE", "+switch-master") : NULL;
    ret_said->may_hear = inbox && (probe_connect(inbox, ret_reason) || probe_obstacle(inbox) != PROBE_CHANNEL);
    return ret_said->others;
}

/* A reason about TLS or a certificate, or that the sentinel cannot be used, shows that it is running. */
static void advise_about(struct doctor *doctor, const char *reason)
{
    bool is_there = strstr(reason, "TLS") || strstr(reason, "certificate") || strstr(reason, "cannot be used");

    if (strstr(reason, "cannot be looked up"))
        doctor_advise(doctor, "correct the sentinel's host in the URL, or fix the name servers of this host");
    else if (is_there)
        doctor_advise(doctor, "correct what this line reports: the TLS options apply to sentinels and servers alike");
    else
        doctor_advise(doctor, "start the sentinel, or take it out of the URL");
}

static void ask(struct doctor *doctor, struct assembly *assembly, const struct dm_url_host *host)
{
    struct dm_url *url = dm_url_of_sentinel(doctor->url, host->host, host->port);
    struct probe *probe = url ? probe_new(url) : NULL;
    char reason[DM_REASON_ROOM] = "out of memory", name[300];
    struct testimony said = { 0 };

    snprintf(name, sizeof name, "%s", dm_url_place(host->host, host->port).text);
    if (probe && probe_connect(probe, reason) && hear(url, probe, doctor->url->master, &said, reason)) {
        take(doctor, assembly, name, &said);
    } else if (probe && probe_obstacle(probe) == PROBE_LOGIN) {
        assembly->wants_login = true;
        doctor_find(doctor, GRADE_FAIL, "login", "%s", reason);
        doctor_advise(doctor,
                      url->password
                          ? "correct sentinel_user and sentinel_password_file in the URL, or leave both out where "
                            "the sentinels have no password"
                          : "give the sentinels' own login by sentinel_user and sentinel_password_file in the "
                            "URL");
    } else {
        doctor_find(doctor, GRADE_WARN, "sentinel", "%s", reason);
        advise_about(doctor, reason);
    }
    dm_reply_free(said.id);
    dm_reply_free(said.address);
    dm_reply_free(said.details);
    dm_reply_free(said.others);
}

/*
 * A sentinel reconnects once a second, and a new master closes all connections.  With less time than this, the
 * sentinels often promote another replica at once.
 */
#define DOWN_AFTER_LEAST_MS 2000

static void judge_down_after(struct doctor *doctor, long long ms)
{
    doctor_find(doctor, ms < DOWN_AFTER_LEAST_MS ? GRADE_WARN : GRADE_OK, "failover",
                "a master that is silent for %lld ms is replaced; new locks then wait for a lease and %u ms more", ms,
                doctor->url->switch_ms);
    if (ms < DOWN_AFTER_LEAST_MS)
        doctor_advise(doctor,
                      "set down-after-milliseconds to %d or more: with less, sentinels often replace a new master, too",
                      DOWN_AFTER_LEAST_MS);
}

/* Counts as the library does: the group size that a majority of the listed sentinels knows of, or the number listed. */
static int size_of(const struct assembly *assembly, int listed)
{
    int size = listed;

    for (int i = 0; i < assembly->heard; i++) {
        int reached = 0;

        for (int by = 0; by < assembly->heard; by++)
            reached += assembly->others[by] >= assembly->others[i];
        if (reached > listed / 2 && assembly->others[i] < SENTINELS_MOST && assembly->others[i] + 1 > size)
            size = (int)assembly->others[i] + 1;
    }
    return size;
}

/* Names one of the sentinels that disagree; usually there is only one. */
static void judge_difference(struct doctor *doctor, const struct assembly *assembly, int best)
{
    const char *group = doctor->url->master;
    int other = best == 0;

    if (assembly->master_count > 2) {
        doctor_find(doctor, GRADE_WARN, "sentinels", "they name %d masters", assembly->master_count);
        doctor_advise(doctor, "where these are names of one server, set resolve-hostnames and announce-hostnames alike "
                              "on all sentinels");
        return;
    }
    doctor_find(doctor, GRADE_WARN, "sentinels", "they name %d masters; %s differs", assembly->master_count,
                assembly->tellers[other]);
    doctor_advise(
        doctor,
        "usual for some seconds after a failover; if it stays, compare config-epoch of SENTINEL MASTER %s: where it "
        "is the same, two failovers had one number: order another one, SENTINEL FAILOVER %s, at a sentinel of "
        "the majority; where not, repair or replace the sentinel that differs",
        group, group);
}

/* Judges whether the sentinels can agree, and on which master. */
static const struct dm_master *judge(struct doctor *doctor, const struct assembly *assembly)
{
    int size = size_of(assembly, doctor->url->host_count);
    int best = 0;

    for (int i = 1; i < assembly->master_count; i++) {
        if (assembly->votes[i] > assembly->votes[best])
            best = i;
    }
    if (assembly->master_count > 1)
        judge_difference(doctor, assembly, best);
    if (assembly->votes[best] <= size / 2) {
        doctor_find(doctor, GRADE_FAIL, "sentinels", "%d of %d agree on a master, and %d must: no lock can be acquired",
                    assembly->votes[best], size, size / 2 + 1);
        doctor_advise(doctor, assembly->heard > size / 2
                                  ? "repair the sentinels, until a majority names one master"
                                  : "start or repair the missing sentinels; list all sentinels of "
                                    "the group in the URL, and no others");
        return NULL;
    }
    doctor_find(doctor, size < 3 ? GRADE_WARN : GRADE_OK, "sentinels", "%d of %d agree on the master",
                assembly->votes[best], size);
    if (size < 3)
        doctor_advise(doctor, "run three sentinels or more: with fewer, the loss of one ends all failovers");
    if (assembly->down_after)
        judge_down_after(doctor, assembly->down_after);
    return &assembly->masters[best];
}

int doctor_look_at_sentinels(struct doctor *doctor)
{
    struct assembly assembly = { .heard = 0 };
    const struct dm_master *master;
    struct dm_url *url;

    for (int i = 0; i < doctor->url->host_count; i++)
        ask(doctor, &assembly, &doctor->url->hosts[i]);
    master = judge(doctor, &assembly);
    url = master ? dm_url_of_server(doctor->url, master->host, master->port) : NULL;
    if (!url)
        return assembly.wants_login ? TOOL_DENIED : TOOL_UNREACHABLE;
    dm_url_free(doctor->url);
    doctor->url = url;
    return 0;
}
