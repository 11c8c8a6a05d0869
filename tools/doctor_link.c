/* SPDX-License-Identifier: BSD-2-Clause */
/* Trials: rights, clock and round trip, messages, the grace. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/attrs.h"
#include "base/clock.h"
#include "base/ident.h"
#include "core/hold.h"
#include "doctor.h"
#include "rights.h"

/* ---- rights ------------------------------------------------------------------------------ */

/* The missing rights of one kind, as "+hget, +hset". */
static int join(const struct rights_missing *missing, bool is_for_ops, char *ret_text, size_t room)
{
    size_t used = 0;
    int count = 0;

    ret_text[0] = '\0';
    for (int i = 0; i < missing->count; i++) {
        if (missing->rights[i]->is_for_ops != is_for_ops || used + 20 > room)
            continue;
        used += (size_t)snprintf(ret_text + used, room - used, "%s%s", count ? ", " : "", missing->rights[i]->rule);
        count++;
    }
    return count;
}

/* Only servers that grant rights by database have this: Valkey 9.1 and later. */
void doctor_tell_missing_database(struct doctor *doctor)
{
    doctor->facts.lacks_rights = true;
    doctor_find(doctor, GRADE_FAIL, "rights", "the user may not use database %u", doctor->url->db);
    doctor_advise(doctor, "ACL SETUSER USER db=%u, then ACL SAVE; or name one of the user's databases in the URL",
                  doctor->url->db);
}

static void tell_missing(struct doctor *doctor, const struct rights_missing *missing)
{
    const char *prefix = doctor->url->prefix;
    char text[500], channels[100];

    rights_channels(prefix, *doctor->tag, channels, sizeof channels);
    if (join(missing, false, text, sizeof text)) {
        doctor->facts.lacks_rights = true;
        doctor_find(doctor, GRADE_FAIL, "rights", "the user lacks %s", text);
        doctor_advise(doctor, DOCTOR_ACL);
    }
    if (missing->misses_keys) {
        doctor->facts.lacks_rights = true;
        doctor_find(doctor, GRADE_FAIL, "rights", "the user lacks ~%s:*, the keys of the prefix", prefix);
        doctor_advise(doctor, DOCTOR_ACL);
    }
    if (missing->misses_channels) {
        doctor->facts.lacks_rights = true;
        doctor_find(doctor, GRADE_FAIL, "rights", "the user lacks &%s, the channels of the prefix", channels);
        doctor_advise(doctor, DOCTOR_ACL);
    }
    if (missing->misses_database)
        doctor_tell_missing_database(doctor);
    if (*missing->refusal) {
        doctor->facts.lacks_rights = true;
        doctor_find(doctor, GRADE_FAIL, "rights", "the server refuses the user: %s", missing->refusal);
        doctor_advise(doctor, "look at the user's rights: ACL GETUSER");
    }
}

static bool has_failed(const struct doctor *doctor)
{
    for (int i = 0; i < doctor->count; i++) {
        const struct finding *finding = &doctor->findings[i];

        if (finding->grade == GRADE_FAIL && strcmp(finding->server, doctor->server) == 0)
            return true;
    }
    return false;
}

/* The usual reasons have been found before: a replica, no memory, a full disk. */
static void tell_refused_write(struct doctor *doctor, const char *error)
{
    if (has_failed(doctor))
        return;
    doctor_find(doctor, GRADE_FAIL, "writes", "the server refuses to write, so no lock can be acquired: %s", error);
    doctor_advise(doctor, "remove the reason: with min-replicas-to-write, for example, the server needs so many "
                          "replicas");
}

/* Programs need no right of the second kind; if a person lacks one, that is no fault of the server. */
void doctor_try_rights(struct doctor *doctor)
{
    struct rights_missing missing;
    char text[500];

    rights_try(doctor->probe, doctor->url, doctor->tag, &missing);
    tell_missing(doctor, &missing);
    if (*missing.reason) {
        doctor_find(doctor, GRADE_FAIL, "rights", "not all rights could be tried: %s", missing.reason);
        return;
    }
    if (*missing.write)
        tell_refused_write(doctor, missing.write);
    if (!doctor->facts.lacks_rights)
        doctor_find(doctor, GRADE_OK, "rights", "all that locks need");
    if (join(&missing, true, text, sizeof text))
        doctor_find(doctor, GRADE_OK, "rights", "for looking at locks the user lacks %s; dmutex acl --ops", text);
}

/* ---- clock and round trip ---------------------------------------------------------------- */

#define TRIES 21

static int64_t real_us(void)
{
    struct timespec now;

    clock_gettime(CLOCK_REALTIME, &now);
    return (int64_t)now.tv_sec * 1000000 + now.tv_nsec / 1000;
}

/* Reads the server's clock, and ours before and after.  False without an answer. */
static bool ask_time(struct doctor *doctor, int64_t *ret_trip_us, int64_t *ret_ahead_us)
{
    int64_t began_ns = dm_clock_boot_ns(), before_us = real_us(), server_us, trip_us;
    redisReply *reply = doctor_ask(doctor, (const char *const[]){ "TIME", NULL });
    bool is_time = reply && reply->type == REDIS_REPLY_ARRAY && reply->elements == 2 &&
                   reply->element[0]->type == REDIS_REPLY_STRING && reply->element[1]->type == REDIS_REPLY_STRING;

    trip_us = (dm_clock_boot_ns() - began_ns) / 1000;
    if (is_time) {
        server_us = atoll(reply->element[0]->str) * 1000000 + atoll(reply->element[1]->str);
        *ret_trip_us = trip_us;
        *ret_ahead_us = server_us - before_us - trip_us / 2;
    }
    if (reply)
        dm_reply_free(reply);
    return is_time;
}

static int compare(const void *one, const void *other)
{
    int64_t a = *(const int64_t *)one, b = *(const int64_t *)other;

    return (a > b) - (a < b);
}

static void tell_clock(struct doctor *doctor, int64_t ahead_us)
{
    double seconds = (double)ahead_us / 1e6;

    if (real_us() + ahead_us < DM_TOKEN_EPOCH_US) {
        doctor_find(doctor, GRADE_FAIL, "clock", "the server's clock is before 2020: tokens cannot come from it");
        doctor_advise(doctor, "set the server's clock");
    } else if (seconds > 60 || seconds < -60) {
        doctor_find(doctor, GRADE_WARN, "clock", "the server's clock is %.0f s %s ours",
                    seconds < 0 ? -seconds : seconds, seconds < 0 ? "behind" : "ahead of");
        doctor_advise(doctor, "set both clocks: locks need no equal clocks, but when the server's is set while locks "
                              "are held, leases end early or late");
    } else {
        doctor_find(doctor, GRADE_OK, "clock", "the server's clock is %.3f s %s ours", seconds < 0 ? -seconds : seconds,
                    seconds < 0 ? "behind" : "ahead of");
    }
}

/* Takes the median, because a single trip may have met a busy moment. */
void doctor_try_times(struct doctor *doctor)
{
    int64_t trips_us[TRIES], ahead_us = 0, best_us = INT64_MAX;
    int count = 0;

    for (int i = 0; i < TRIES; i++) {
        int64_t ahead;

        if (!ask_time(doctor, &trips_us[count], &ahead))
            break;
        if (trips_us[count] < best_us) {
            best_us = trips_us[count];
            ahead_us = ahead;
        }
        count++;
    }
    if (count == 0) {
        doctor_find(doctor, GRADE_WARN, "clock", "clock and round trip are not known: TIME is not permitted");
        return;
    }
    tell_clock(doctor, ahead_us);
    qsort(trips_us, (size_t)count, sizeof *trips_us, compare);
    doctor_find(doctor, trips_us[count / 2] > 100000 ? GRADE_WARN : GRADE_OK, "round trip", "%.3f ms (best %.3f ms)",
                (double)trips_us[count / 2] / 1000, (double)trips_us[0] / 1000);
    if (trips_us[count / 2] > 100000)
        doctor_advise(doctor, "each lock and unlock takes that long: move the server closer");
}

/* ---- messages ---------------------------------------------------------------------------- */

/* How many receive a message on the channel; -1: not permitted, or no answer. */
static int64_t publish(struct doctor *doctor, const char *channel)
{
    const char *command = *doctor->tag ? "SPUBLISH" : "PUBLISH";
    redisReply *reply = doctor_ask(doctor, (const char *const[]){ command, channel, "are you there?", NULL });
    int64_t receivers = reply && reply->type == REDIS_REPLY_INTEGER ? reply->integer : -1;

    if (reply)
        dm_reply_free(reply);
    return receivers;
}

static void look_for_patterns(struct doctor *doctor)
{
    redisReply *reply = doctor_ask(doctor, (const char *const[]){ "PUBSUB", "NUMPAT", NULL });

    if (!reply || reply->type != REDIS_REPLY_INTEGER) {
        doctor_find(doctor, GRADE_OK, "patterns",
                    "whether others subscribe channels by a pattern is not known (needs +pubsub|numpat)");
    } else if (reply->integer > 0) {
        doctor_find(doctor, GRADE_WARN, "patterns", "%lld subscriptions by a pattern may hear all messages",
                    reply->integer);
        doctor_advise(doctor, "such a user who may also publish can forge grants: see SECURITY.md, and ACL LIST");
    } else {
        doctor_find(doctor, GRADE_OK, "patterns", "nobody subscribes to channels by a pattern");
    }
    if (reply)
        dm_reply_free(reply);
}

static void tell_refused_subscription(struct doctor *doctor, const struct probe *inbox, const char *reason)
{
    enum refused refused = inbox ? rights_refused(probe_refusal(inbox)) : REFUSED_NOTHING;
    const char *command = *doctor->tag ? "+ssubscribe" : "+subscribe";
    char channels[100];

    if (refused != REFUSED_COMMAND && refused != REFUSED_CHANNEL) {
        doctor_find(doctor, GRADE_FAIL, "messages", "the inbox cannot be subscribed: %s", reason);
        return;
    }
    rights_channels(doctor->url->prefix, *doctor->tag, channels, sizeof channels);
    doctor->facts.lacks_rights = true;
    doctor_find(doctor, GRADE_FAIL, "rights", "the user lacks %s%s%s", refused == REFUSED_CHANNEL ? "&" : command,
                refused == REFUSED_CHANNEL ? channels : "",
                refused == REFUSED_CHANNEL ? ", the channels of the prefix" : "");
    doctor_advise(doctor, DOCTOR_ACL);
}

/* Begins a name of a key or a channel: the URL's prefix and, in a Cluster, a tag of the server. */
static void begin_name(const struct doctor *doctor, char *ret_name, size_t room)
{
    if (*doctor->tag)
        snprintf(ret_name, room, "%.64s:{%s}", doctor->url->prefix, doctor->tag);
    else
        snprintf(ret_name, room, "%.64s", doctor->url->prefix);
}

/* In a Cluster, patterns are not tried: they do not match the channels of slots. */
void doctor_try_messages(struct doctor *doctor)
{
    char reason[DM_REASON_ROOM] = "", beginning[80], channel[160];
    struct probe *inbox;
    uint64_t number;
    int64_t receivers;

    dm_ident_random(&number, 1);
    begin_name(doctor, beginning, sizeof beginning);
    snprintf(channel, sizeof channel, "%s:inbox:doctor-%016" PRIx64, beginning, number);
    inbox = probe_new_inbox(doctor->url, *doctor->tag ? "SSUBSCRIBE" : "SUBSCRIBE", channel);
    if (!inbox || !probe_connect(inbox, reason)) {
        tell_refused_subscription(doctor, inbox, reason);
        return;
    }
    receivers = publish(doctor, channel);
    if (receivers >= 0 && probe_hears(inbox)) {
        doctor_find(doctor, GRADE_OK, "messages", "a message to a subscribed channel arrives");
    } else if (receivers >= 0) {
        doctor_find(doctor, GRADE_FAIL, "messages", "a message to a subscribed channel does not arrive");
        doctor_advise(doctor, "look for a proxy between this host and the server, or for another server behind the "
                              "same address");
    }
    if (!*doctor->tag)
        look_for_patterns(doctor);
}

/* ---- the grace --------------------------------------------------------------------------- */

/* Since when the server has existed, as clients have recorded it (lua/born.lua); 0: no record. */
static int64_t ask_birth(struct doctor *doctor, bool *ret_is_known)
{
    char beginning[80], key[100];
    redisReply *reply;
    int64_t since_us = 0;

    begin_name(doctor, beginning, sizeof beginning);
    snprintf(key, sizeof key, "%s:server", beginning);
    reply = doctor_ask(doctor, (const char *const[]){ "HGET", key, "since", NULL });
    *ret_is_known = reply && (reply->type == REDIS_REPLY_STRING || reply->type == REDIS_REPLY_NIL);
    if (reply && reply->type == REDIS_REPLY_STRING)
        since_us = atoll(reply->str);
    if (reply)
        dm_reply_free(reply);
    return since_us;
}

/* A server that has replaced another grants nothing for the time of the option switch and then one lease. */
static void tell_grace(struct doctor *doctor, int64_t since_us, int64_t now_us)
{
    int64_t past_us = now_us - since_us - doctor->url->switch_ms * INT64_C(1000);
    int64_t left_us = DM_LEASE_DEFAULT_MS * INT64_C(1000) - past_us;

    if (since_us == 0)
        doctor_find(doctor, GRADE_OK, "grace",
                    "no program has used this server yet: the first notes since when it runs");
    else if (left_us > 0)
        doctor_find(doctor, GRADE_WARN, "grace",
                    "the server has just started: a lease of 10 s is granted in %.1f s, when earlier holders are back",
                    (double)left_us / 1e6);
    else
        doctor_find(doctor, GRADE_OK, "grace", "over for leases up to %.0f s", (double)past_us / 1e6);
}

void doctor_look_at_grace(struct doctor *doctor)
{
    int64_t since_us, trip_us, ahead_us;
    bool is_known;

    since_us = ask_birth(doctor, &is_known);
    doctor->facts.knows_birth = is_known ? YES : NO;
    if (!doctor->url->has_grace) {
        doctor_find(doctor, doctor->url->kind == DM_URL_LOCAL ? GRADE_OK : GRADE_WARN, "grace",
                    "grace is off: a server that has lost its data grants locks that are held");
        if (doctor->url->kind != DM_URL_LOCAL)
            doctor_advise(doctor, "leave grace=off out of the URL, except in tests");
    } else if (!is_known || !ask_time(doctor, &trip_us, &ahead_us)) {
        doctor_find(doctor, GRADE_WARN, "grace", "since when the server is there is not known");
    } else {
        tell_grace(doctor, since_us, real_us() + ahead_us);
    }
}
