/* SPDX-License-Identifier: BSD-2-Clause */
/* The sentinels of a group: reachable, of one opinion, and enough for a failover. */
#include <stdlib.h>
#include <string.h>

#include "doctor.h"
#include "stores/redis/sentinel/council.h"
#include "tool.h"

#define SENTINELS_MOST 1000 /* a greater number is nonsense */

/* What the listed sentinels have said. */
struct assembly {
    struct dm_master masters[DM_URL_HOSTS_MOST];
    int votes[DM_URL_HOSTS_MOST];
    char tellers[DM_URL_HOSTS_MOST][300]; /* of each master, the last sentinel that has named it */
    int master_count;
    int heard;
    bool wants_login;                    /* one has refused the sentinels' login, or the lack of one */
    long long others[DM_URL_HOSTS_MOST]; /* so many each of them knows beside itself */
    long long down_after;                /* ms, as the last one says; 0: not known */
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

/* `address` answers the library's own question; `details` may tell another master during a failover. */
static void take(struct doctor *doctor, struct assembly *assembly, const char *name, const redisReply *address,
                 const redisReply *details)
{
    const struct dm_url *url = doctor->url;
    long long others = atoll(value_of(details, "num-other-sentinels"));

    if (address->type == REDIS_REPLY_NIL) {
        doctor_find(doctor, GRADE_FAIL, "sentinel", "%s knows no master named %s", name, url->master);
        doctor_advise(doctor, "correct the name in the URL, or give the sentinel the line: sentinel monitor %s ...",
                      url->master);
        return;
    }
    if (address->type != REDIS_REPLY_ARRAY || address->elements != 2 || !address->element[0]->str ||
        !address->element[1]->str) {
        doctor_find(doctor, GRADE_FAIL, "sentinel", "%s: %s", name,
                    address->str ? address->str : "no answer of a sentinel");
        doctor_advise(doctor, "the URL must list sentinels; their login is given by sentinel_user and "
                              "sentinel_password_file");
        return;
    }
    assembly->others[assembly->heard++] = others;
    assembly->down_after = atoll(value_of(details, "down-after-milliseconds"));
    count(assembly, name, address->element[0]->str, address->element[1]->str);
    doctor_find(doctor, GRADE_OK, "sentinel", "%s says %s, with %s replicas and %lld other sentinels", name,
                dm_url_place(address->element[0]->str, address->element[1]->str).text, value_of(details, "num-slaves"),
                others);
}

static void ask(struct doctor *doctor, struct assembly *assembly, const struct dm_url_host *host)
{
    struct dm_url *url = dm_url_of_sentinel(doctor->url, host->host, host->port);
    struct probe *probe = url ? probe_new(url) : NULL;
    const char *const address_words[] = { "SENTINEL", "get-master-addr-by-name", doctor->url->master, NULL };
    const char *const detail_words[] = { "SENTINEL", "master", doctor->url->master, NULL };
    char reason[DM_REASON_ROOM] = "out of memory", name[300];
    redisReply *address = NULL, *details = NULL;

    snprintf(name, sizeof name, "%s", dm_url_place(host->host, host->port).text);
    if (probe && probe_connect(probe, reason))
        address = probe_ask(probe, address_words, reason);
    if (address)
        details = probe_ask(probe, detail_words, reason);
    if (details) {
        take(doctor, assembly, name, address, details);
    } else if (probe && probe_obstacle(probe) == PROBE_LOGIN) {
        assembly->wants_login = true;
        doctor_find(doctor, GRADE_FAIL, "login", "%s", reason);
        doctor_advise(doctor, "give the sentinels' own login by sentinel_user and sentinel_password_file in the URL");
    } else {
        doctor_find(doctor, GRADE_WARN, "sentinel", "%s", reason);
        doctor_advise(doctor, "start the sentinel, or take it out of the URL");
    }
    dm_reply_free(address);
    dm_reply_free(details);
}

/*
 * A sentinel opens a lost connection again once a second, and a new master closes all connections: with less time,
 * the sentinels often promote another replica at once.
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

/* As the library counts: the number that a majority of the listed sentinels reach, or the listed ones. */
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

/* One of the sentinels that differ is named: there is one, as a rule. */
static void judge_difference(struct doctor *doctor, const struct assembly *assembly, int best)
{
    const char *group = doctor->url->master;
    int other = best == 0;

    doctor_find(doctor, GRADE_WARN, "sentinels", "they name %d masters; %s differs", assembly->master_count,
                assembly->tellers[other]);
    doctor_advise(
        doctor,
        "usual for seconds behind a failover; if it stays, compare config-epoch of SENTINEL MASTER %s: where it "
        "is the same, two failovers had one number: order another one, SENTINEL FAILOVER %s, at a sentinel of "
        "the majority; where not, mend or replace the sentinel that differs",
        group, group);
}

/* Whether the sentinels can agree, and on which master. */
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
        doctor_find(doctor, GRADE_FAIL, "sentinels", "%d of %d agree on a master, and %d must: no lock can be had",
                    assembly->votes[best], size, size / 2 + 1);
        doctor_advise(doctor, "start the missing sentinels; list all sentinels of the group in the URL, and no others");
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
