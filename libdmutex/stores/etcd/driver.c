/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Two connections to one member of etcd, which begin and end together: one for commands, and one on which the watch of
 * our inbox goes on.  One request is under way at a time; what is asked meanwhile goes in the next one, in one
 * transaction.
 *
 * The identity of the data is a random epoch, kept in etcd, and the cluster's number.  A restored snapshot has both,
 * but older revisions: whoever has seen newer ones draws another epoch, which all others find at once.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/minmax.h"
#include "base/thread.h"
#include "stores/etcd/open.h"
#include "stores/etcd/parts.h"

#define LEASE_MIN_MS 1000
#define LOOK_FIRST_NS (30 * DM_NS_PER_S)                /* programs that run for a moment look at no alarms */
#define LEASE_AGAIN_NS (10 * DM_NS_PER_S)               /* after one that was not granted */
#define LOOK_TICK_NS (200 * DM_NS_PER_MS)               /* for a thread that connects, if its bell is lost */
#define TLS_STACK (DM_OPENSSL_STACK + (size_t)4 * 1024) /* and for our own functions on the way there */

enum { COMMANDS, NOTICES };

/* A watch that is refused has no code. */
#define DENIAL "permission denied"

/* Errors of one code are told apart by their texts. */
#define NO_SPACE "space exceeded"
#define NO_LOGIN "user name is empty"
#define OLD_RIGHTS "auth store is old" /* users or rights have been changed since the login */

#define WANTS_LOGIN "etcd wants a login: write user and password into the URL, or name a password_file"
#define QUOTA_IS_USED "its quota is used up: compact and defragment it, then disarm its alarm"

/* Codes of gRPC, which the gateway passes on. */
enum { INVALID = 3, NOT_FOUND = 5, DENIED = 7, EXHAUSTED = 8, NO_AUTH = 9, UNAUTHENTICATED = 16 };

/* ---- the end of the connections ------------------------------------------------------------ */

static void close_connections(struct dm_etcd *etcd)
{
    for (int i = 0; i < 2; i++) {
        if (etcd->dials[i])
            dm_dial_abandon(etcd->dials[i]);
        etcd->dials[i] = NULL;
    }
    dm_http_close(&etcd->commands);
    dm_http_close(&etcd->notices);
    etcd->open_count = 0;
    etcd->request = DM_ETCD_NONE;
    etcd->is_hearing = etcd->is_known = etcd->is_doomed = etcd->is_renewed = etcd->is_leased = false;
    etcd->lease_due_ns = 0;
    explicit_bzero(etcd->token, sizeof etcd->token);
}

static struct dm_etcd_item *take_waiting(struct dm_etcd *etcd)
{
    struct dm_etcd_item *item = etcd->waiting;

    if (item)
        etcd->waiting = item->next;
    if (!etcd->waiting)
        etcd->waiting_end = &etcd->waiting;
    return item;
}

/* What has been sent may be executed, or still will be. */
static void give_up_items(struct dm_etcd *etcd, const char *reason)
{
    struct dm_etcd_item *item;
    int count = etcd->group_count;

    etcd->group_count = 0;
    for (int i = 0; i < count; i++) {
        dm_etcd_item_fail(etcd, etcd->group[i], DM_REG_UNKNOWN, reason);
        dm_etcd_item_free(etcd->group[i]);
    }
    while ((item = take_waiting(etcd))) {
        dm_etcd_item_fail(etcd, item, DM_REG_UNKNOWN, reason);
        dm_etcd_item_free(item);
    }
}

static void break_off(struct dm_etcd *etcd)
{
    bool was_ready = etcd->phase == DM_ETCD_READY, is_final = etcd->is_final;
    char reason[DM_REG_REASON_ROOM];

    memcpy(reason, etcd->doom, sizeof reason);
    close_connections(etcd);
    etcd->phase = DM_ETCD_PAUSING;
    etcd->host = (etcd->host + 1) % etcd->url->host_count;
    dm_retry_note_failure(&etcd->retry, dm_clock_boot_ns());
    give_up_items(etcd, reason);
    if (was_ready)
        etcd->client.on_inbox(etcd->client.user, false);
    etcd->client.on_down(etcd->client.user, reason, is_final);
}

/* ---- groups -------------------------------------------------------------------------------- */

/* A value that is too large is refused here: etcd's own limit is an option of its administrator. */
static void refuse_large(struct dm_etcd *etcd)
{
    struct dm_etcd_item *item;

    while ((item = etcd->waiting) && item->is_large) {
        etcd->waiting = item->next;
        if (!etcd->waiting)
            etcd->waiting_end = &etcd->waiting;
        dm_etcd_item_fail(etcd, item, DM_REG_TOO_LARGE, NULL);
        dm_etcd_item_free(item);
    }
}

static void send_group(struct dm_etcd *etcd)
{
    struct dm_bytes body = { 0 };

    refuse_large(etcd);
    if (!etcd->waiting)
        return;
    dm_etcd_group_fill(etcd, &body);
    dm_etcd_request(etcd, DM_ETCD_GROUP, "/v3/kv/txn", &body);
}

/* ---- the greeting -------------------------------------------------------------------------- */

static void greet(struct dm_etcd *etcd)
{
    etcd->phase = DM_ETCD_GREETING;
    if (etcd->url->user)
        dm_etcd_log_in(etcd);
    else
        dm_etcd_begin_to_ask(etcd);
}

static void be_ready(struct dm_etcd *etcd)
{
    etcd->phase = DM_ETCD_READY;
    etcd->retry.ready_ns = dm_clock_boot_ns();
    etcd->look_due_ns = etcd->retry.ready_ns + LOOK_FIRST_NS;
    dm_etcd_draw_lease(etcd);
    etcd->client.on_ready(etcd->client.user, etcd->identity);
    etcd->client.on_inbox(etcd->client.user, true);
}

/* ---- answers ------------------------------------------------------------------------------- */

/* Nothing of it has been executed.  Alone: each for itself, because which one was refused is not said. */
static void send_group_again(struct dm_etcd *etcd, bool is_alone)
{
    for (int i = etcd->group_count - 1; i >= 0; i--) {
        etcd->group[i]->is_alone |= is_alone;
        if (!etcd->waiting)
            etcd->waiting_end = &etcd->group[i]->next;
        etcd->group[i]->next = etcd->waiting;
        etcd->waiting = etcd->group[i];
    }
    etcd->group_count = 0;
}

/* The group is over before the client is called, which may ask again. */
static int take_group(struct dm_etcd *etcd, struct dm_etcd_item *ret_items[DM_ETCD_GROUP_MOST])
{
    int count = etcd->group_count;

    memcpy(ret_items, etcd->group, sizeof etcd->group);
    etcd->group_count = 0;
    return count;
}

static void refuse_group(struct dm_etcd *etcd, enum dm_reg_outcome outcome, const char *reason)
{
    struct dm_etcd_item *items[DM_ETCD_GROUP_MOST];
    int count = take_group(etcd, items);

    for (int i = 0; i < count; i++) {
        dm_etcd_item_fail(etcd, items[i], outcome, reason);
        dm_etcd_item_free(items[i]);
    }
}

static void answer_group(struct dm_etcd *etcd, struct dm_json answer)
{
    struct dm_json response = dm_json_first(dm_json_get(answer, "responses"));
    struct dm_etcd_item *items[DM_ETCD_GROUP_MOST];
    int count;

    if (dm_etcd_is_older(etcd, dm_json_int64(dm_json_get(dm_json_get(answer, "header"), "revision")))) {
        dm_etcd_doom(etcd, false, "the data are older than they were: has a snapshot been restored?");
        return;
    }
    if (!dm_json_is_true(dm_json_get(answer, "succeeded"))) {
        dm_etcd_doom(etcd, false, "the data of the locks have been replaced");
        return;
    }
    etcd->is_renewed = false;
    count = take_group(etcd, items);
    for (int i = 0; i < count; i++) {
        if (response.at)
            dm_etcd_item_answer(etcd, items[i], response);
        else
            dm_etcd_item_fail(etcd, items[i], DM_REG_UNKNOWN, DM_ETCD_NOT_WHOLE);
        dm_etcd_item_free(items[i]);
        response = response.at ? dm_json_next(response) : response;
    }
}

/* Nothing of a group that is refused has been executed. */
static void take_group_error(struct dm_etcd *etcd, int64_t code, const char *text)
{
    char reason[DM_REG_REASON_ROOM];
    bool is_full = code == EXHAUSTED && strstr(text, NO_SPACE);

    if (code == INVALID && etcd->group_count > 1) {
        send_group_again(etcd, true);
    } else if (code == INVALID && strstr(text, "too large")) {
        refuse_group(etcd, DM_REG_TOO_LARGE, NULL);
    } else if (code == INVALID || code == DENIED || is_full) {
        snprintf(reason, sizeof reason, "etcd refuses to write%s: %.200s", is_full ? ", because " QUOTA_IS_USED : "",
                 text);
        refuse_group(etcd, DM_REG_REFUSED, reason);
    } else {
        dm_etcd_doom(etcd, false, "etcd says: %.200s", text);
    }
}

static void take_greeting_error(struct dm_etcd *etcd, int64_t code, const char *text)
{
    if (code == EXHAUSTED && strstr(text, NO_SPACE))
        dm_etcd_doom(etcd, true, "etcd cannot begin to keep locks: " QUOTA_IS_USED);
    else if (code == INVALID || code == DENIED || code == UNAUTHENTICATED)
        dm_etcd_doom(etcd, code != UNAUTHENTICATED, "etcd refuses the login or its rights: %.180s", text);
    else
        dm_etcd_doom(etcd, false, "etcd says: %.200s", text);
}

/* A token ends after some minutes, and when somebody changes users or rights. */
static bool may_renew_login(const struct dm_etcd *etcd, int64_t code, const char *text)
{
    return etcd->phase == DM_ETCD_READY && etcd->url->user && !etcd->is_renewed &&
           (code == UNAUTHENTICATED || strstr(text, OLD_RIGHTS));
}

static void renew_login(struct dm_etcd *etcd)
{
    send_group_again(etcd, false);
    etcd->is_renewed = true;
    dm_etcd_log_in(etcd);
}

static void go_without_lease(struct dm_etcd *etcd)
{
    etcd->is_leased = false;
    etcd->lease_due_ns = dm_clock_boot_ns() + LEASE_AGAIN_NS;
    dm_etcd_note_full(etcd, true);
}

static void take_error(struct dm_etcd *etcd, enum dm_etcd_request request, int status, struct dm_json answer)
{
    struct dm_json message = dm_json_get(answer, "message");
    int64_t code = dm_json_int64(dm_json_get(answer, "code"));
    char text[200];

    dm_json_text(message.at ? message : dm_json_get(answer, "error"), text, sizeof text);
    dm_text_clean(text);
    if (!answer.at || !text[0])
        dm_etcd_doom(etcd, status == 404, "what answers there is no etcd 3.4 or later with its JSON gateway (HTTP %d)",
                     status);
    else if (may_renew_login(etcd, code, text))
        renew_login(etcd);
    else if (strstr(text, NO_LOGIN))
        dm_etcd_doom(etcd, true, WANTS_LOGIN);
    else if (request == DM_ETCD_GROUP)
        take_group_error(etcd, code, text);
    else if (request == DM_ETCD_LOGIN && code == NO_AUTH)
        dm_etcd_begin_to_ask(etcd); /* there are no users: everybody may do everything */
    else if (request == DM_ETCD_LEASE && code == EXHAUSTED)
        go_without_lease(etcd);
    else if (request != DM_ETCD_ALARMS && request != DM_ETCD_HISTORY && request != DM_ETCD_TIDY)
        take_greeting_error(etcd, code, text);
}

static void take_commands(struct dm_etcd *etcd)
{
    struct dm_http *http = &etcd->commands;
    enum dm_etcd_request request = etcd->request;
    struct dm_json answer = { NULL };

    if (http->state != DM_HTTP_ANSWERED)
        return;
    http->state = DM_HTTP_IDLE;
    etcd->request = DM_ETCD_NONE;
    if (http->body.size)
        answer = dm_json_check(http->body.at);
    if (http->must_close)
        dm_etcd_doom(etcd, false, "it has closed the connection");
    if (http->status == 200 && answer.at && request == DM_ETCD_GROUP)
        answer_group(etcd, answer);
    else if (http->status == 200 && answer.at)
        dm_etcd_take_answer(etcd, request, answer);
    else
        take_error(etcd, request, http->status, answer);
}

/* ---- notices ------------------------------------------------------------------------------- */

/* Whoever may write there may write anything. */
static void take_texts(struct dm_etcd *etcd, struct dm_json value)
{
    size_t size = 0;
    const char *raw = dm_json_raw(value, &size);
    uint8_t *bytes = raw ? malloc(size + 1) : NULL, *at = bytes;
    long left = bytes ? dm_base64_decode(raw, size, bytes, size) : -1;

    while (left >= 2) {
        long length = at[0] << 8 | at[1];

        if (length > left - 2 || length > DM_REG_TELL_MAX)
            break;
        memcpy(etcd->told, at + 2, (size_t)length);
        etcd->client.on_tell(etcd->client.user, etcd->told, (size_t)length);
        at += length + 2;
        left -= length + 2;
    }
    free(bytes);
}

static void take_refused_watch(struct dm_etcd *etcd, const char *text)
{
    if (strstr(text, NO_LOGIN))
        dm_etcd_doom(etcd, true, WANTS_LOGIN);
    else if (strstr(text, DENIAL))
        dm_etcd_doom(etcd, true, "etcd refuses the login or its rights: %s", text);
    else
        dm_etcd_doom(etcd, false, "etcd has ended the watch of our notices%s%s", text[0] ? ": " : "", text);
}

static void take_line(struct dm_etcd *etcd, const char *line)
{
    struct dm_json answer = dm_json_check(line), result = dm_json_get(answer, "result");
    struct dm_json event = dm_json_first(dm_json_get(result, "events"));
    char text[160];

    if (!result.at || dm_json_is_true(dm_json_get(result, "canceled"))) {
        dm_json_text(result.at ? dm_json_get(result, "cancel_reason")
                               : dm_json_get(dm_json_get(answer, "error"), "message"),
                     text, sizeof text);
        take_refused_watch(etcd, text);
        return;
    }
    etcd->is_hearing |= dm_json_is_true(dm_json_get(result, "created"));
    for (; event.at; event = dm_json_next(event)) {
        if (!dm_json_get(event, "type").at && etcd->phase == DM_ETCD_READY)
            take_texts(etcd, dm_json_get(dm_json_get(event, "kv"), "value"));
    }
}

static void take_notices(struct dm_etcd *etcd)
{
    struct dm_http *http = &etcd->notices;
    size_t taken = 0;
    char *end;

    if (http->state == DM_HTTP_ANSWERED)
        dm_etcd_doom(etcd, false, "etcd has ended the watch of our notices (HTTP %d)", http->status);
    while (!etcd->is_doomed && taken < http->body.size &&
           (end = memchr(http->body.at + taken, '\n', http->body.size - taken))) {
        const char *line = http->body.at + taken;

        *end = '\0';
        taken = (size_t)(end - http->body.at) + 1;
        take_line(etcd, line);
    }
    if (taken)
        dm_bytes_take(&http->body, taken);
}

/* ---- the connections ----------------------------------------------------------------------- */

static struct dm_dial_options dial_options(const struct dm_etcd *etcd)
{
    const struct dm_url *url = etcd->url;

    return (struct dm_dial_options){
        .address = { .host = dm_etcd_host(etcd)->host, .port = dm_etcd_host(etcd)->port },
        .tls = { .is_on = url->has_tls,
                 .is_verified = url->is_verified,
                 .name = url->servername ? url->servername : dm_etcd_host(etcd)->host,
                 .cacert = url->cacert,
                 .cert = url->cert,
                 .key = url->key },
        .connect_timeout_ms = url->connect_timeout_ms,
        .user_timeout_ms = url->command_timeout_ms,
    };
}

static void begin_to_connect(struct dm_etcd *etcd)
{
    struct dm_dial_options options = dial_options(etcd);

    etcd->phase = DM_ETCD_CONNECTING;
    for (int i = 0; i < 2; i++) {
        etcd->dials[i] = dm_dial_begin(&options);
        if (!etcd->dials[i])
            dm_etcd_doom(etcd, false, "this process cannot start a thread or open a descriptor for a connection");
    }
}

static void begin_http(struct dm_etcd *etcd, int number, struct dm_stream stream)
{
    if (number == COMMANDS)
        dm_http_begin(&etcd->commands, stream, DM_ETCD_ANSWER_MOST);
    else
        dm_http_begin(&etcd->notices, stream, DM_ETCD_NOTICES_MOST);
}

static void take_dials(struct dm_etcd *etcd)
{
    char reason[DM_REASON_ROOM];

    for (int i = 0; i < 2; i++) {
        struct dm_stream stream;

        if (!etcd->dials[i] || !dm_dial_take(etcd->dials[i], &stream, reason))
            continue;
        etcd->dials[i] = NULL;
        if (stream.fd < 0)
            dm_etcd_doom(etcd, false, "%s", reason);
        else
            begin_http(etcd, i, stream);
        etcd->open_count++;
    }
    if (!etcd->is_doomed && etcd->open_count == 2)
        greet(etcd);
}

static bool has_tells(const struct dm_etcd *etcd)
{
    for (const struct dm_etcd_item *item = etcd->waiting; item; item = item->next) {
        if (item->tells.size)
            return true;
    }
    return false;
}

/* The next request, unless one is under way. */
static void send_next(struct dm_etcd *etcd)
{
    int64_t now_ns = dm_clock_boot_ns();

    if (etcd->is_doomed || etcd->request != DM_ETCD_NONE)
        return;
    if (now_ns >= etcd->lease_due_ns && has_tells(etcd))
        dm_etcd_ask_for_lease(etcd);
    else if (etcd->waiting)
        send_group(etcd);
    else if (now_ns >= etcd->look_due_ns)
        dm_etcd_ask_for_alarms(etcd);
}

static int64_t patience_ends_ns(const struct dm_etcd *etcd)
{
    if (etcd->phase == DM_ETCD_READY && etcd->request == DM_ETCD_NONE)
        return DM_NEVER;
    return etcd->sent_ns + etcd->url->command_timeout_ms * DM_NS_PER_MS;
}

static void use_connections(struct dm_etcd *etcd)
{
    char reason[DM_REASON_ROOM];

    if (!dm_stream_is_ours(&etcd->commands.stream) || !dm_stream_is_ours(&etcd->notices.stream)) {
        dm_etcd_doom(etcd, false, "the program has closed the connection to etcd");
        return;
    }
    if (!dm_http_turn(&etcd->commands, reason) || !dm_http_turn(&etcd->notices, reason))
        dm_etcd_doom(etcd, false, "%s", reason);
    take_notices(etcd);
    if (!etcd->is_doomed)
        take_commands(etcd);
    if (etcd->is_doomed)
        return;
    if (etcd->phase == DM_ETCD_GREETING && etcd->is_known && etcd->is_hearing)
        be_ready(etcd);
    if (etcd->phase == DM_ETCD_READY) {
        dm_retry_note_use(&etcd->retry, dm_clock_boot_ns());
        send_next(etcd);
    }
    if (dm_clock_boot_ns() >= patience_ends_ns(etcd))
        dm_etcd_doom(etcd, false, "etcd has not answered for %u ms", etcd->url->command_timeout_ms);
}

/* ---- the driver's operations --------------------------------------------------------------- */

static struct dm_etcd *etcd_of(struct dm_reg_driver *driver)
{
    return (struct dm_etcd *)(void *)driver;
}

static void want(struct dm_reg_driver *driver)
{
    struct dm_etcd *etcd = etcd_of(driver);

    if (etcd->phase == DM_ETCD_RESTING)
        etcd->phase = DM_ETCD_PAUSING;
}

static void turn(struct dm_reg_driver *driver)
{
    struct dm_etcd *etcd = etcd_of(driver);

    if (etcd->phase == DM_ETCD_PAUSING && dm_clock_boot_ns() >= etcd->retry.due_ns)
        begin_to_connect(etcd);
    if (etcd->phase == DM_ETCD_CONNECTING)
        take_dials(etcd);
    if (etcd->phase == DM_ETCD_GREETING || etcd->phase == DM_ETCD_READY)
        use_connections(etcd);
    if (etcd->is_doomed)
        break_off(etcd);
}

/* The streams mind the stack themselves, and would do nothing on a small one. */
static size_t stack(const struct dm_reg_driver *driver)
{
    return ((const struct dm_etcd *)(const void *)driver)->url->has_tls ? TLS_STACK : 0;
}

static void watch(struct dm_reg_driver *driver, struct dm_watch *watched)
{
    struct dm_etcd *etcd = etcd_of(driver);

    switch (etcd->phase) {
    case DM_ETCD_PAUSING:
        dm_watch_until(watched, etcd->retry.due_ns);
        break;
    case DM_ETCD_CONNECTING:
        for (int i = 0; i < 2; i++)
            dm_watch_poll(watched, etcd->dials[i] ? dm_dial_fd(etcd->dials[i]) : -1, POLLIN);
        dm_watch_until(watched, dm_clock_boot_ns() + LOOK_TICK_NS);
        break;
    case DM_ETCD_GREETING:
    case DM_ETCD_READY:
        dm_watch_poll(watched, etcd->commands.stream.fd, dm_http_events(&etcd->commands));
        dm_watch_poll(watched, etcd->notices.stream.fd, dm_http_events(&etcd->notices));
        dm_watch_until(watched, patience_ends_ns(etcd));
        if (etcd->phase == DM_ETCD_READY && etcd->request == DM_ETCD_NONE)
            dm_watch_until(watched, etcd->look_due_ns);
        if (etcd->waiting && etcd->request == DM_ETCD_NONE)
            dm_watch_until(watched, 0);
        if (dm_http_has_more(&etcd->commands) || dm_http_has_more(&etcd->notices))
            dm_watch_until(watched, 0);
        break;
    case DM_ETCD_RESTING:
    case DM_ETCD_ENDED:
        break;
    }
}

static bool load(struct dm_reg_driver *driver)
{
    return !etcd_of(driver)->url->has_tls || dm_tls_load_here();
}

/* Takes over new items; they go out with the next turn.  NULL: there was no memory for them. */
static bool enqueue(struct dm_etcd *etcd, struct dm_etcd_item *items)
{
    if (!items)
        return false;
    *etcd->waiting_end = items;
    while (*etcd->waiting_end)
        etcd->waiting_end = &(*etcd->waiting_end)->next;
    return true;
}

static bool is_open(const struct dm_etcd *etcd)
{
    return etcd->phase == DM_ETCD_READY && !etcd->is_doomed;
}

static bool read_items(struct dm_reg_driver *driver, uint64_t ticket, const struct dm_reg_item *items, int count)
{
    struct dm_etcd *etcd = etcd_of(driver);

    return is_open(etcd) && enqueue(etcd, dm_etcd_items_new(etcd, ticket, items, count, false));
}

static bool swap_items(struct dm_reg_driver *driver, uint64_t ticket, const struct dm_reg_item *items, int count)
{
    struct dm_etcd *etcd = etcd_of(driver);

    return is_open(etcd) && enqueue(etcd, dm_etcd_items_new(etcd, ticket, items, count, true));
}

static bool list_keys(struct dm_reg_driver *driver, uint64_t ticket, const char *prefix, const char *after, int most)
{
    struct dm_etcd *etcd = etcd_of(driver);

    return is_open(etcd) && enqueue(etcd, dm_etcd_list_new(etcd, ticket, prefix, after, most));
}

static bool listen_to(struct dm_reg_driver *driver, const char *inbox)
{
    struct dm_etcd *etcd = etcd_of(driver);

    snprintf(etcd->inbox, sizeof etcd->inbox, "%s", inbox);
    return true;
}

static void place(struct dm_reg_driver *driver, char *ret_text, size_t room)
{
    snprintf(ret_text, room, "etcd at %s", dm_etcd_place(etcd_of(driver)).text);
}

static void stop(struct dm_etcd *etcd, enum dm_etcd_phase phase)
{
    struct dm_etcd_item *item;

    if (etcd->phase == DM_ETCD_ENDED)
        return;
    close_connections(etcd);
    etcd->phase = phase;
    while (etcd->group_count)
        dm_etcd_item_free(etcd->group[--etcd->group_count]);
    while ((item = take_waiting(etcd)))
        dm_etcd_item_free(item);
}

static void rest(struct dm_reg_driver *driver)
{
    stop(etcd_of(driver), DM_ETCD_RESTING);
}

static void end(struct dm_reg_driver *driver)
{
    stop(etcd_of(driver), DM_ETCD_ENDED);
}

static void forget(struct dm_reg_driver *driver)
{
    struct dm_etcd *etcd = etcd_of(driver);

    for (int i = 0; i < 2; i++) {
        if (etcd->dials[i])
            dm_dial_forget(etcd->dials[i]);
        etcd->dials[i] = NULL;
    }
    dm_http_forget(&etcd->commands);
    dm_http_forget(&etcd->notices);
    etcd->phase = DM_ETCD_ENDED;
}

static void free_unused(struct dm_reg_driver *driver)
{
    free(etcd_of(driver)->prefix);
    free(driver);
}

static const struct dm_reg_driver_ops ops = {
    .want = want,
    .rest = rest,
    .read = read_items,
    .swap = swap_items,
    .list = list_keys,
    .listen = listen_to,
    .watch = watch,
    .turn = turn,
    .stack = stack,
    .load = load,
    .place = place,
    .end = end,
    .forget = forget,
    .free_unused = free_unused,
};

struct dm_reg_driver *dm_etcd_driver_open(const struct dm_url *url, const struct dm_reg_client *client,
                                          char ret_reason[DM_REASON_ROOM])
{
    struct dm_etcd *etcd = calloc(1, sizeof *etcd);

    ret_reason[0] = '\0';
    if (!etcd || asprintf(&etcd->prefix, "/%s/", url->prefix) < 0) {
        free(etcd);
        return NULL;
    }
    etcd->driver.ops = &ops;
    etcd->driver.can = (struct dm_reg_abilities){ .has_tells = true,
                                                  .has_doors = true,
                                                  .has_lists = true,
                                                  .value_max = DM_ETCD_VALUE_MAX,
                                                  .lease_ms_min = LEASE_MIN_MS };
    etcd->client = *client;
    etcd->url = url;
    etcd->waiting_end = &etcd->waiting;
    etcd->commands.stream = etcd->notices.stream = dm_stream_of(-1);
    return &etcd->driver;
}
