/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The nodes of a Cluster.  First the nodes of the URL: reachable, working, and with the same slot map.  Then each
 * master of the map, like a single server; after the first, only the differences are reported.
 */
#include <stdlib.h>
#include <string.h>

#include "core/hold.h"
#include "doctor.h"
#include "rights.h"
#include "tool.h"

#define MASTERS_MOST 200 /* the index of a master, plus 1, fits into a byte */

struct master {
    char host[256], port[8];
    char name[DM_PLACE_ROOM];
    unsigned first, slots; /* in the chosen map; 0 slots: only another map names it */
};

/* One node's map: for each slot, the index of its master plus 1; 0: no master. */
struct map {
    bool is_there;
    unsigned char owners[DM_SLOTS];
};

struct survey {
    struct dm_url *list; /* the configured URL */
    struct master masters[MASTERS_MOST];
    int master_count;
    struct map maps[DM_URL_HOSTS_MOST]; /* of the nodes in the URL */
    struct map *reading;                /* the one that take_range() fills */
    int status;                         /* why the last unusable node cannot be used */
    bool lacks_rights;
    long long timeout_ms; /* the longest cluster-node-timeout of all nodes; 0: not known */
};

/* ---- the nodes of the URL ---------------------------------------------------------------- */

/* The index of the master at an address, plus 1; 0: too many masters. */
static unsigned char number_of(struct survey *survey, const char *host, const char *port)
{
    struct master *master;
    int i = 0;

    while (i < survey->master_count &&
           (strcmp(survey->masters[i].host, host) != 0 || strcmp(survey->masters[i].port, port) != 0))
        i++;
    if (i == MASTERS_MOST)
        return 0;
    if (i == survey->master_count) {
        master = &survey->masters[survey->master_count++];
        snprintf(master->host, sizeof master->host, "%s", host);
        snprintf(master->port, sizeof master->port, "%s", port);
        snprintf(master->name, sizeof master->name, "%s", dm_url_place(host, port).text);
    }
    return (unsigned char)(i + 1);
}

/* dm_slots_fn */
static void take_range(void *user, unsigned first, unsigned last, const char *host, const char *port)
{
    struct survey *survey = user;
    unsigned char number = number_of(survey, host, port);

    memset(survey->reading->owners + first, number, last - first + 1);
}

static void tell_refusal(struct doctor *doctor, struct survey *survey, const char *error)
{
    if (rights_refused(error) != REFUSED_NOTHING) {
        survey->status = TOOL_DENIED;
        survey->lacks_rights = true;
        doctor_find(doctor, GRADE_FAIL, "rights", "the user lacks +cluster|slots");
        doctor_advise(doctor, DOCTOR_ACL ", at each node");
    } else if (strstr(error, "cluster support disabled")) {
        survey->status = TOOL_UNREACHABLE;
        doctor_find(doctor, GRADE_FAIL, "node", "the server is not a node of a Cluster");
        doctor_advise(doctor, "write redis:// instead of redis+cluster://, or correct the list in the URL");
    } else {
        survey->status = TOOL_UNREACHABLE;
        doctor_find(doctor, GRADE_FAIL, "node", "the server does not list the slots of a Cluster: %s", error);
        doctor_advise(doctor, "the URL must list nodes of a Cluster");
    }
}

static bool read_map(struct doctor *doctor, struct survey *survey, struct map *map, const char *host)
{
    static const char *const words[] = { "CLUSTER", "SLOTS", NULL };
    char reason[DM_REASON_ROOM] = "out of memory";
    redisReply *reply = probe_ask(doctor->probe, words, reason);

    survey->reading = map;
    map->is_there = reply && dm_slots_read(reply, host, take_range, survey);
    if (!map->is_there)
        tell_refusal(doctor, survey,
                     !reply                             ? reason
                     : reply->type == REDIS_REPLY_ERROR ? reply->str
                                                        : "the answer to CLUSTER SLOTS has an unknown shape");
    dm_reply_free(reply);
    return map->is_there;
}

static void look_at_state(struct doctor *doctor)
{
    redisReply *reply = doctor_ask(doctor, (const char *const[]){ "CLUSTER", "INFO", NULL });
    const char *info = reply && reply->type == REDIS_REPLY_STRING ? reply->str : "";
    char state[DOCTOR_VALUE_ROOM], known[DOCTOR_VALUE_ROOM];

    if (!doctor_info_value(info, "cluster_state", state) || !doctor_info_value(info, "cluster_known_nodes", known)) {
        doctor_find(doctor, GRADE_OK, "node", "answers; its cluster_state is not known (needs +cluster|info)");
    } else if (strcmp(state, "ok") == 0) {
        doctor_find(doctor, GRADE_OK, "node", "cluster_state is ok, %s nodes are known", known);
    } else {
        doctor_find(doctor, GRADE_FAIL, "node", "cluster_state is %s: this node grants no lock", state);
        doctor_advise(doctor, "look at CLUSTER NODES there: a node stops if it cannot reach most of the masters, and, "
                              "with cluster-require-full-coverage yes, if a slot has no master");
    }
    dm_reply_free(reply);
}

static void look_at_timeout(struct doctor *doctor, struct survey *survey)
{
    char value[DOCTOR_VALUE_ROOM];

    doctor_ask_config(doctor, "cluster-node-timeout", value);
    if (atoll(value) > survey->timeout_ms)
        survey->timeout_ms = atoll(value);
}

static void look_at_node(struct doctor *doctor, struct survey *survey, int index)
{
    const struct dm_url_host *host = &survey->list->hosts[index];
    struct dm_url *url = dm_url_of_server(survey->list, host->host, host->port);
    char reason[DM_REASON_ROOM] = "out of memory", name[DM_PLACE_ROOM];

    if (!url || !doctor_connect(doctor, url, reason)) {
        survey->status =
            doctor_tell_unusable(doctor, GRADE_WARN, "node", reason, "start the node, or take it out of the URL");
        return;
    }
    snprintf(name, sizeof name, "%s", dm_url_place(host->host, host->port).text);
    doctor->server = name;
    if (read_map(doctor, survey, &survey->maps[index], host->host)) {
        look_at_state(doctor);
        look_at_timeout(doctor, survey);
    }
    doctor->server = "";
}

/* ---- the map ----------------------------------------------------------------------------- */

static unsigned count_differences(const struct map *map, const struct map *other)
{
    unsigned count = 0;

    for (unsigned slot = 0; slot < DM_SLOTS; slot++)
        count += map->owners[slot] != other->owners[slot];
    return count;
}

static int count_votes(const struct survey *survey, const struct map *map)
{
    int votes = 0;

    for (int i = 0; i < survey->list->host_count; i++)
        votes += survey->maps[i].is_there && count_differences(&survey->maps[i], map) == 0;
    return votes;
}

/* The map that most nodes have; NULL: none has one. */
static const struct map *choose_map(const struct survey *survey)
{
    const struct map *best = NULL;

    for (int i = 0; i < survey->list->host_count; i++) {
        const struct map *map = &survey->maps[i];

        if (map->is_there && (!best || count_votes(survey, map) > count_votes(survey, best)))
            best = map;
    }
    return best;
}

static void compare_maps(struct doctor *doctor, const struct survey *survey, const struct map *map)
{
    for (int i = 0; i < survey->list->host_count; i++) {
        unsigned count = survey->maps[i].is_there ? count_differences(&survey->maps[i], map) : 0;

        if (count == 0)
            continue;
        doctor_find(doctor, GRADE_WARN, "map", "%s names another master for %u slots, or none",
                    dm_url_place(survey->list->hosts[i].host, survey->list->hosts[i].port).text, count);
        doctor_advise(doctor, "ask again when all slots have moved; then look at CLUSTER NODES there: the node may be "
                              "cut off, or of another Cluster");
    }
}

/* Gives each master its slots.  Returns the number of slots without a master. */
static unsigned share_slots(struct survey *survey, const struct map *map, unsigned *ret_first_hole)
{
    unsigned holes = 0;

    for (unsigned slot = DM_SLOTS; slot-- > 0;) {
        if (map->owners[slot]) {
            survey->masters[map->owners[slot] - 1].first = slot;
            survey->masters[map->owners[slot] - 1].slots++;
        } else {
            *ret_first_hole = slot;
            holes++;
        }
    }
    return holes;
}

static int count_masters(const struct survey *survey)
{
    int count = 0;

    for (int i = 0; i < survey->master_count; i++)
        count += survey->masters[i].slots > 0;
    return count;
}

static void look_at_slots(struct doctor *doctor, struct survey *survey, const struct map *map)
{
    unsigned first_hole = 0, holes = share_slots(survey, map, &first_hole);
    int masters = count_masters(survey);

    if (holes) {
        doctor_find(doctor, GRADE_FAIL, "slots",
                    "%u of %d have no master, the first is %u: names in these slots cannot be locked", holes, DM_SLOTS,
                    first_hole);
        doctor_advise(doctor, "redis-cli --cluster fix, or CLUSTER ADDSLOTSRANGE at a master");
    } else {
        doctor_find(doctor, GRADE_OK, "slots", "all %d have a master", DM_SLOTS);
    }
    doctor_find(doctor, masters < 3 ? GRADE_WARN : GRADE_OK, "masters", "%d", masters);
    if (masters < 3)
        doctor_advise(doctor, "run three masters or more: with fewer, no replica can be elected when one is down");
}

/* ---- the masters ------------------------------------------------------------------------- */

/* True if the master could be examined. */
static bool examine_master(struct doctor *doctor, struct survey *survey, const struct master *master)
{
    struct dm_url *url = dm_url_of_server(survey->list, master->host, master->port);
    char reason[DM_REASON_ROOM] = "out of memory";

    doctor->facts = (struct facts){ UNKNOWN };
    if (!url || !doctor_connect(doctor, url, reason)) {
        survey->status =
            doctor_tell_unusable(doctor, GRADE_FAIL, "server", reason,
                                 "start the node; if it is up, make the address that the nodes tell reachable from "
                                 "here: cluster-announce-ip");
        return false;
    }
    doctor->server = master->name;
    dm_slot_tag(master->first, doctor->tag);
    doctor_find(doctor, GRADE_OK, "server", "answers%s, and serves %u slots", url->has_tls ? ", by TLS" : "",
                master->slots);
    doctor_examine(doctor);
    look_at_timeout(doctor, survey);
    doctor->server = "";
    return true;
}

static int examine_masters(struct doctor *doctor, struct survey *survey)
{
    struct facts all = { count_masters(survey) ? YES : NO, YES, YES, YES, survey->lacks_rights };
    int first = -1, first_end = 0;

    for (int i = 0; i < survey->master_count; i++) {
        int begin = doctor->count;

        if (survey->masters[i].slots == 0)
            continue;
        if (examine_master(doctor, survey, &survey->masters[i])) {
            if (first < 0) {
                first = begin + 1; /* the line about the slots is printed for each master */
                first_end = doctor->count;
                doctor_look_at_tls(doctor);
            } else {
                doctor_leave_out_repetitions(doctor, first, first_end, begin + 1);
            }
        }
        doctor_join_facts(&all, &doctor->facts);
    }
    doctor->facts = all;
    return first < 0 ? survey->status : 0;
}

/* ---- failover ---------------------------------------------------------------------------- */

/* While a master is missing, nobody can renew the leases of the names there. */
static void look_at_failover(struct doctor *doctor, const struct survey *survey)
{
    if (survey->timeout_ms == 0) {
        doctor_find(doctor, GRADE_OK, "failover", "cluster-node-timeout is not known (needs +config|get)");
    } else if (survey->timeout_ms >= DM_LEASE_DEFAULT_MS) {
        doctor_find(doctor, GRADE_WARN, "failover",
                    "cluster-node-timeout is %lld ms, longer than the default lease of %d ms: when a master is down "
                    "all holds of its names are lost",
                    survey->timeout_ms, DM_LEASE_DEFAULT_MS);
        doctor_advise(doctor, "set cluster-node-timeout to 1000 to 3000 ms at all nodes, or take longer leases");
    } else {
        doctor_find(doctor, GRADE_OK, "failover",
                    "a master that is silent for %lld ms is replaced; new locks of its slots then wait for a lease "
                    "and %u ms more",
                    survey->timeout_ms, survey->list->switch_ms);
    }
}

int doctor_examine_cluster(struct doctor *doctor)
{
    struct survey *survey = calloc(1, sizeof *survey);
    const struct map *map;
    int status;

    if (!survey)
        return TOOL_UNREACHABLE;
    survey->list = doctor->url;
    for (int i = 0; i < survey->list->host_count; i++)
        look_at_node(doctor, survey, i);
    map = choose_map(survey);
    status = survey->status;
    if (map) {
        compare_maps(doctor, survey, map);
        look_at_slots(doctor, survey, map);
        status = examine_masters(doctor, survey);
        look_at_failover(doctor, survey);
    }
    doctor->url = survey->list;
    free(survey);
    return status;
}
