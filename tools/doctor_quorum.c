/* SPDX-License-Identifier: BSD-2-Clause */
/* The servers of a quorum, each like a single server; after the first, only the differences are reported. */
#include <stdlib.h>
#include <string.h>

#include "doctor.h"
#include "tool.h"

struct voter {
    char name[DM_PLACE_ROOM];
    char run[DOCTOR_VALUE_ROOM]; /* the server's run id; "": not known */
    bool is_usable;
};

struct quorum {
    struct dm_url *list; /* the configured URL */
    struct voter voters[DM_URL_HOSTS_MOST];
    struct facts all;
    int status;           /* why the last unusable server cannot be used */
    int first, first_end; /* the findings of the first server that answered; -1: none has */
};

static int majority(const struct quorum *quorum)
{
    return quorum->list->host_count / 2 + 1;
}

static int count_usable(const struct quorum *quorum)
{
    int count = 0;

    for (int i = 0; i < quorum->list->host_count; i++)
        count += quorum->voters[i].is_usable;
    return count;
}

/* ---- each server ------------------------------------------------------------------------- */

static void note_run(struct doctor *doctor, struct voter *voter)
{
    redisReply *reply = doctor_ask(doctor, (const char *const[]){ "INFO", "server", NULL });

    if (reply && reply->type == REDIS_REPLY_STRING)
        doctor_info_value(reply->str, "run_id", voter->run);
    dm_reply_free(reply);
}

/* Two addresses of one server would give it two votes: its loss would be the loss of both. */
static void look_for_itself(struct doctor *doctor, struct quorum *quorum, int index)
{
    struct voter *voter = &quorum->voters[index];

    for (int i = 0; i < index; i++) {
        if (!*voter->run || strcmp(quorum->voters[i].run, voter->run) != 0)
            continue;
        voter->is_usable = false;
        doctor_find(doctor, GRADE_FAIL, "server", "is the same server as %s: the two fail together",
                    quorum->voters[i].name);
        doctor_advise(doctor, "name each server once, and run the servers on machines of their own");
        return;
    }
}

static bool has_fault(const struct doctor *doctor, int begin)
{
    for (int i = begin; i < doctor->count; i++) {
        if (doctor->findings[i].grade == GRADE_FAIL)
            return true;
    }
    return false;
}

/* The first server that answers is reported in full. */
static void examine_voter(struct doctor *doctor, struct quorum *quorum, int index)
{
    struct voter *voter = &quorum->voters[index];
    int begin = doctor->count;

    doctor->facts = (struct facts){ UNKNOWN };
    doctor_find(doctor, GRADE_OK, "server", "answers%s", doctor->url->has_tls ? ", by TLS" : "");
    note_run(doctor, voter);
    doctor_examine(doctor);
    voter->is_usable = !has_fault(doctor, begin);
    look_for_itself(doctor, quorum, index);
    if (quorum->first < 0) {
        quorum->first = begin + 1;
        quorum->first_end = doctor->count;
        quorum->all = doctor->facts;
    } else {
        doctor_leave_out_repetitions(doctor, quorum->first, quorum->first_end, begin + 1);
        doctor_join_facts(&quorum->all, &doctor->facts);
    }
}

static void look_at_voter(struct doctor *doctor, struct quorum *quorum, int index)
{
    const struct dm_url_host *host = &quorum->list->hosts[index];
    struct dm_url *url = dm_url_of_server(quorum->list, host->host, host->port);
    struct voter *voter = &quorum->voters[index];
    char reason[DM_REASON_ROOM] = "out of memory";

    snprintf(voter->name, sizeof voter->name, "%s", dm_url_place(host->host, host->port).text);
    if (!url || !doctor_connect(doctor, url, reason)) {
        quorum->status = doctor_tell_unusable(doctor, GRADE_WARN, "server", reason,
                                              "start the server: until then fewer others may fail");
        return;
    }
    doctor->server = voter->name;
    examine_voter(doctor, quorum, index);
    doctor->server = "";
}

/* ---- all servers ------------------------------------------------------------------------- */

static void look_at_majority(struct doctor *doctor, const struct quorum *quorum)
{
    int usable = count_usable(quorum), needed = majority(quorum);

    doctor_find(doctor,
                usable < needed    ? GRADE_FAIL
                : usable == needed ? GRADE_WARN
                                   : GRADE_OK,
                "quorum", "%d of %d servers can be used, and a lock needs %d", usable, quorum->list->host_count,
                needed);
    if (usable < needed)
        doctor_advise(doctor, "no lock can be acquired: start or repair the servers above");
    else if (usable == needed)
        doctor_advise(doctor, "locks go on until one more server fails: start or repair the servers above");
}

int doctor_examine_quorum(struct doctor *doctor)
{
    struct quorum *quorum = calloc(1, sizeof *quorum);
    int status;

    if (!quorum)
        return TOOL_UNREACHABLE;
    *quorum = (struct quorum){ .list = doctor->url, .first = -1 };
    for (int i = 0; i < quorum->list->host_count; i++)
        look_at_voter(doctor, quorum, i);
    look_at_majority(doctor, quorum);
    if (count_usable(quorum) < majority(quorum))
        quorum->all.is_master = UNKNOWN;
    status = quorum->first < 0 ? quorum->status : 0;
    doctor->facts = quorum->all;
    doctor->url = quorum->list;
    doctor_look_at_tls(doctor);
    free(quorum);
    return status;
}
