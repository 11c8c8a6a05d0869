/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The requests that are no locks: the greeting, the lease of the notices that we write, and a look at the quota.
 *
 * Notices are values of keys, and nobody else would delete those of a process that has been killed: so they have a
 * lease of some minutes, which each process that writes any asks for when it writes the first.  Its number is ours, so
 * that swaps can name it before it is granted.  While the quota is used up etcd grants none: then they are written
 * without, and deleted later.
 */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/ident.h"
#include "stores/etcd/parts.h"

#define LEASE_S 600
#define LEASE_RENEW_NS (LEASE_S / 2 * DM_NS_PER_S)
#define LOOK_NS (600 * DM_NS_PER_S)
#define OLD_VERSIONS_MOST 1000000

/* ---- the connections ----------------------------------------------------------------------- */

const struct dm_url_host *dm_etcd_host(const struct dm_etcd *etcd)
{
    return &etcd->url->hosts[etcd->host];
}

struct dm_place_text dm_etcd_place(const struct dm_etcd *etcd)
{
    return dm_url_place(dm_etcd_host(etcd)->host, dm_etcd_host(etcd)->port);
}

void dm_etcd_doom(struct dm_etcd *etcd, bool is_final, const char *format, ...)
{
    va_list arguments;

    if (etcd->is_doomed)
        return;
    va_start(arguments, format);
    vsnprintf(etcd->doom, sizeof etcd->doom, format, arguments);
    va_end(arguments);
    dm_text_clean(etcd->doom);
    etcd->is_doomed = true;
    etcd->is_final = is_final;
}

/* ---- requests ------------------------------------------------------------------------------ */

static void post(struct dm_etcd *etcd, struct dm_http *http, const char *path, struct dm_bytes *body)
{
    if (!dm_http_ask(http, dm_etcd_place(etcd).text, path, etcd->token, body))
        dm_etcd_doom(etcd, false, "out of memory");
    dm_bytes_free(body);
}

void dm_etcd_request(struct dm_etcd *etcd, enum dm_etcd_request request, const char *path, struct dm_bytes *body)
{
    etcd->request = request;
    etcd->sent_ns = dm_clock_boot_ns();
    post(etcd, &etcd->commands, path, body);
}

static void add_text(struct dm_bytes *body, const char *text)
{
    dm_bytes_add(body, "\"", 1);
    for (; *text; text++) {
        if ((unsigned char)*text < ' ' || *text == '"' || *text == '\\')
            dm_bytes_print(body, "\\u%04x", (unsigned)*text);
        else
            dm_bytes_add(body, text, 1);
    }
    dm_bytes_add(body, "\"", 1);
}

void dm_etcd_log_in(struct dm_etcd *etcd)
{
    struct dm_bytes body = { 0 };

    etcd->token[0] = '\0';
    dm_bytes_print(&body, "{\"name\":");
    add_text(&body, etcd->url->user);
    dm_bytes_print(&body, ",\"password\":");
    add_text(&body, etcd->url->password ? etcd->url->password : "");
    dm_bytes_print(&body, "}");
    dm_etcd_request(etcd, DM_ETCD_LOGIN, "/v3/auth/authenticate", &body);
}

/* Reads the epoch as it was at a revision; 0: as it is. */
static void read_epoch(struct dm_etcd *etcd, enum dm_etcd_request request, int64_t revision)
{
    struct dm_bytes body = { 0 };

    dm_bytes_print(&body, "{\"key\":");
    dm_etcd_key(etcd, &body, "epoch", "");
    dm_bytes_print(&body, ",\"revision\":\"%" PRId64 "\"}", revision);
    dm_etcd_request(etcd, request, "/v3/kv/range", &body);
}

void dm_etcd_ask_for_epoch(struct dm_etcd *etcd)
{
    read_epoch(etcd, DM_ETCD_EPOCH, 0);
}

/* Puts a random epoch, if there is still none, or the present one. */
static void draw_epoch(struct dm_etcd *etcd, bool is_first)
{
    struct dm_bytes body = { 0 };
    char drawn[33];
    uint64_t words[2];

    dm_ident_random(words, 2);
    snprintf(drawn, sizeof drawn, "%016" PRIx64 "%016" PRIx64, words[0], words[1]);
    dm_bytes_print(&body, "{\"compare\":[{\"key\":");
    dm_etcd_key(etcd, &body, "epoch", "");
    if (is_first) {
        dm_bytes_print(&body, ",\"target\":\"VERSION\",\"result\":\"EQUAL\",\"version\":\"0\"");
    } else {
        dm_bytes_print(&body, ",\"target\":\"VALUE\",\"result\":\"EQUAL\",\"value\":\"");
        dm_bytes_add_base64(&body, etcd->epoch, strlen(etcd->epoch));
        dm_bytes_print(&body, "\"");
    }
    dm_bytes_print(&body, "}],\"success\":[{\"request_put\":{\"key\":");
    dm_etcd_key(etcd, &body, "epoch", "");
    dm_bytes_print(&body, ",\"value\":\"");
    dm_bytes_add_base64(&body, drawn, strlen(drawn));
    dm_bytes_print(&body, "\"}}]}");
    dm_etcd_request(etcd, is_first ? DM_ETCD_NEW_EPOCH : DM_ETCD_OTHER_EPOCH, "/v3/kv/txn", &body);
}

void dm_etcd_draw_lease(struct dm_etcd *etcd)
{
    uint64_t word;

    dm_ident_random(&word, 1);
    etcd->lease = (int64_t)(word >> 1) | 1;
}

void dm_etcd_ask_for_lease(struct dm_etcd *etcd)
{
    struct dm_bytes body = { 0 };

    if (etcd->is_leased)
        dm_etcd_draw_lease(etcd); /* what was written for the old one may still be sent: it lasts */
    dm_bytes_print(&body, "{\"TTL\":\"%d\",\"ID\":\"%" PRId64 "\"}", LEASE_S, etcd->lease);
    dm_etcd_request(etcd, DM_ETCD_LEASE, "/v3/lease/grant", &body);
}

void dm_etcd_ask_for_alarms(struct dm_etcd *etcd)
{
    struct dm_bytes body = { 0 };

    etcd->look_due_ns = dm_clock_boot_ns() + LOOK_NS;
    dm_bytes_print(&body, "{\"action\":\"GET\"}");
    dm_etcd_request(etcd, DM_ETCD_ALARMS, "/v3/maintenance/alarm", &body);
}

static void watch_inbox(struct dm_etcd *etcd)
{
    struct dm_bytes body = { 0 };

    dm_bytes_print(&body, "{\"create_request\":{\"key\":");
    dm_etcd_key(etcd, &body, "i/", etcd->inbox);
    dm_bytes_print(&body, "}}");
    post(etcd, &etcd->notices, "/v3/watch", &body);
}

void dm_etcd_begin_to_ask(struct dm_etcd *etcd)
{
    watch_inbox(etcd);
    dm_etcd_ask_for_epoch(etcd);
}

/* ---- answers ------------------------------------------------------------------------------- */

bool dm_etcd_is_older(struct dm_etcd *etcd, int64_t revision)
{
    if (revision >= etcd->revision)
        etcd->revision = revision;
    return revision < etcd->revision;
}

/* The login at the beginning, or one that replaces a token which is over. */
static void take_login(struct dm_etcd *etcd, struct dm_json answer)
{
    dm_json_text(dm_json_get(answer, "token"), etcd->token, sizeof etcd->token);
    if (strpbrk(etcd->token, "\r\n") || strlen(etcd->token) + 1 == sizeof etcd->token)
        dm_etcd_doom(etcd, true, "etcd gives a token that cannot be sent");
    else if (etcd->phase == DM_ETCD_GREETING)
        dm_etcd_begin_to_ask(etcd);
}

static void note_data(struct dm_etcd *etcd, struct dm_json answer)
{
    struct dm_json header = dm_json_get(answer, "header");
    char cluster[24], data[sizeof etcd->data];

    dm_json_text(dm_json_get(header, "cluster_id"), cluster, sizeof cluster);
    snprintf(data, sizeof data, "%s %s", etcd->epoch, cluster);
    if (strcmp(data, etcd->data) != 0) {
        snprintf(etcd->data, sizeof etcd->data, "%s", data);
        etcd->revision = 0;
    }
    if (dm_etcd_is_older(etcd, dm_json_int64(dm_json_get(header, "revision")))) {
        draw_epoch(etcd, false);
        return;
    }
    snprintf(etcd->identity, sizeof etcd->identity, "%s", data);
    etcd->is_known = true;
}

static void take_epoch(struct dm_etcd *etcd, struct dm_json answer)
{
    struct dm_json value = dm_json_get(dm_json_first(dm_json_get(answer, "kvs")), "value");
    size_t size = 0;
    const char *raw = dm_json_raw(value, &size);

    if (!raw) {
        draw_epoch(etcd, true);
        return;
    }
    memset(etcd->epoch, 0, sizeof etcd->epoch);
    if (dm_base64_decode(raw, size, etcd->epoch, sizeof etcd->epoch - 1) != sizeof etcd->epoch - 1 ||
        strspn(etcd->epoch, "0123456789abcdef") != sizeof etcd->epoch - 1)
        dm_etcd_doom(etcd, true, "the key %sepoch has been changed by hand: it must have 32 hexadecimal digits",
                     etcd->prefix);
    else
        note_data(etcd, answer);
}

/* Notices that have been read need not stay: all can go. */
static void tidy_up(struct dm_etcd *etcd)
{
    struct dm_bytes body = { 0 };

    dm_bytes_print(&body, "{");
    dm_etcd_range(etcd, &body, "i/");
    dm_bytes_print(&body, "}");
    dm_etcd_request(etcd, DM_ETCD_TIDY, "/v3/kv/deleterange", &body);
}

static void take_lease(struct dm_etcd *etcd)
{
    etcd->is_leased = true;
    etcd->lease_due_ns = dm_clock_boot_ns() + LEASE_RENEW_NS;
    if (etcd->is_untidy)
        tidy_up(etcd);
}

static void warn(struct dm_etcd *etcd, const char *sentence)
{
    char text[DM_REG_REASON_ROOM];

    snprintf(text, sizeof text, "etcd at %.100s %s", dm_etcd_place(etcd).text, sentence);
    etcd->client.on_warning(etcd->client.user, text);
}

/*
 * The alarm does not stop our swaps: etcd counts only those puts of a transaction that are not inside another one.  So
 * locks go on, and somebody must hear of it.
 */
void dm_etcd_note_full(struct dm_etcd *etcd, bool is_full)
{
    if (is_full && !etcd->is_full)
        warn(etcd, "has used up its quota: locks go on, and its data grow: compact and defragment it, then disarm its "
                   "alarm");
    etcd->is_full = is_full;
}

static void take_alarms(struct dm_etcd *etcd, struct dm_json answer)
{
    struct dm_json alarm = dm_json_first(dm_json_get(answer, "alarms"));
    bool is_full = false;
    char text[16];

    for (; alarm.at; alarm = dm_json_next(alarm)) {
        dm_json_text(dm_json_get(alarm, "alarm"), text, sizeof text);
        is_full |= strcmp(text, "NOSPACE") == 0;
    }
    dm_etcd_note_full(etcd, is_full);
    if (etcd->revision > OLD_VERSIONS_MOST && !etcd->is_history_told)
        read_epoch(etcd, DM_ETCD_HISTORY, etcd->revision - OLD_VERSIONS_MOST);
}

/* What was so long ago can still be read. */
static void take_history(struct dm_etcd *etcd)
{
    etcd->is_history_told = true;
    warn(etcd, "keeps more than a million old versions, until its quota is used up: start its members with "
               "--auto-compaction-retention");
}

void dm_etcd_take_answer(struct dm_etcd *etcd, enum dm_etcd_request request, struct dm_json answer)
{
    switch (request) {
    case DM_ETCD_LOGIN:
        take_login(etcd, answer);
        break;
    case DM_ETCD_EPOCH:
        take_epoch(etcd, answer);
        break;
    case DM_ETCD_NEW_EPOCH:
    case DM_ETCD_OTHER_EPOCH:
        dm_etcd_ask_for_epoch(etcd);
        break;
    case DM_ETCD_LEASE:
        take_lease(etcd);
        break;
    case DM_ETCD_ALARMS:
        take_alarms(etcd, answer);
        break;
    case DM_ETCD_HISTORY:
        take_history(etcd);
        break;
    case DM_ETCD_TIDY:
        etcd->is_untidy = false;
        break;
    case DM_ETCD_GROUP:
    case DM_ETCD_NONE:
        break;
    }
}
