/* SPDX-License-Identifier: BSD-2-Clause */
/* The state of the connection, and the driver's operations. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/ident.h"
#include "base/minmax.h"
#include "base/thread.h"
#include "config.h"
#include "stores/mariadb/parts.h"

#define LEASE_MIN_MS 500
#define LOOK_TICK_NS (200 * DM_NS_PER_MS) /* for a thread that connects, if its bell is lost */
#define TLS_TICK_NS (20 * DM_NS_PER_MS)   /* OpenSSL may have read an answer to its end, which poll() does not see */

/* A server that is full is asked less often than one that is gone: each try costs it a thread. */
#define CROWDED_MIN_MS 500
#define CROWDED_MAX_MS 4000

/* ---- the end of a connection ------------------------------------------------------------- */

struct dm_place_text dm_maria_here(const struct dm_maria *maria)
{
    return dm_maria_place(maria->url, maria->tries);
}

/*
 * Without an answer to anything.  libmariadb says goodbye to the server, for which it would wait if nobody reads: not
 * while the server owes an answer.  A descriptor that is the program's now is not closed.
 */
static void close_connection(struct dm_maria *maria)
{
    bool is_ours = maria->connection && (mysql_get_socket(maria->connection) < 0 || dm_maria_has_socket(maria));

    if (maria->connect)
        dm_maria_connect_abandon(maria->connect);
    if (is_ours && maria->exchange && mysql_get_socket(maria->connection) >= 0)
        shutdown(mysql_get_socket(maria->connection), SHUT_RDWR);
    if (is_ours)
        dm_maria_close(maria->connection);
    maria->connect = NULL;
    maria->connection = NULL;
    dm_maria_lose_reservation(maria);
}

static void give_up_all(struct dm_maria *maria, struct dm_maria_items items, const char *reason)
{
    struct dm_maria_item *item;

    while ((item = dm_maria_items_take(&items))) {
        if (reason)
            dm_maria_fail(maria, item, DM_REG_UNKNOWN, reason);
        dm_maria_item_free(item);
    }
}

/* Without a reason, nobody is told.  Items that wait have not been sent, but nobody needs to know that. */
static void give_up(struct dm_maria *maria, const char *reason)
{
    struct dm_maria_exchange *exchange = dm_maria_break_exchange(maria);
    struct dm_maria_items waiting = maria->waiting, due = maria->due;

    maria->waiting = maria->due = (struct dm_maria_items){ 0 };
    for (int i = 0; exchange && i < exchange->count; i++) {
        if (exchange->items[i] && reason)
            dm_maria_fail(maria, exchange->items[i], DM_REG_UNKNOWN, reason);
    }
    if (exchange)
        dm_maria_exchange_free(exchange);
    give_up_all(maria, waiting, reason);
    give_up_all(maria, due, reason);
}

/* Each failure in a row doubles the pause; half of it is by chance. */
static void plan_crowded(struct dm_maria *maria, int64_t now_ns)
{
    int64_t limit_ms = dm_min64(CROWDED_MIN_MS << dm_min64(maria->crowded, 4), CROWDED_MAX_MS);
    uint64_t random;

    dm_ident_random(&random, 1);
    maria->crowded++;
    maria->not_before_ns = now_ns + limit_ms * DM_NS_PER_MS / 2 * (1000 + (int64_t)(random % 1000)) / 1000;
}

static void break_off(struct dm_maria *maria, const char *reason, bool is_final, bool is_crowded)
{
    int64_t now_ns = dm_clock_boot_ns();

    close_connection(maria);
    maria->phase = DM_MARIA_PAUSING;
    maria->is_doomed = false;
    maria->tries++;
    dm_retry_note_failure(&maria->retry, now_ns);
    if (is_crowded)
        plan_crowded(maria, now_ns);
    give_up(maria, reason);
    maria->client.on_down(maria->client.user, reason, is_final);
}

/* ---- the way to a connection ------------------------------------------------------------- */

static void begin_to_connect(struct dm_maria *maria)
{
    maria->connect = dm_maria_connect_begin(maria->url, maria->tries);
    if (maria->connect)
        maria->phase = DM_MARIA_CONNECTING;
    else
        break_off(maria, "this process cannot start a thread or open a descriptor for a connection", false, false);
}

/* The flags of an earlier connection are forgotten. */
static void begin_to_greet(struct dm_maria *maria)
{
    maria->phase = DM_MARIA_GREETING;
    maria->is_greeted = maria->has_made = maria->is_warned = maria->may_forget = maria->is_galera = false;
    maria->crowded = 0;
    maria->not_before_ns = 0;
    maria->socket = dm_fileid_of(mysql_get_socket(maria->connection));
    maria->owned_ns = 0;
    dm_maria_greet(maria);
}

static void take_connection(struct dm_maria *maria)
{
    char reason[DM_REG_REASON_ROOM];
    MYSQL *connection;
    bool is_open, is_final, is_crowded;

    if (!dm_maria_connect_take(maria->connect, &connection, &is_open))
        return;
    maria->connect = NULL;
    if (is_open) {
        maria->connection = connection;
        begin_to_greet(maria);
        return;
    }
    is_final = dm_maria_explain_connect(connection, dm_maria_here(maria).text, reason, &is_crowded);
    if (connection)
        dm_maria_close(connection);
    break_off(maria, reason, is_final, is_crowded);
}

static void be_ready(struct dm_maria *maria)
{
    maria->phase = DM_MARIA_READY;
    maria->retry.ready_ns = dm_clock_boot_ns();
    maria->client.on_ready(maria->client.user, maria->identity);
}

/* ---- an open connection ------------------------------------------------------------------ */

/* When the exchange under way should have been answered. */
static int64_t patience_ends_ns(const struct dm_maria *maria)
{
    return maria->exchange ? maria->sent_ns + maria->url->command_timeout_ms * DM_NS_PER_MS : DM_NEVER;
}

/* A server sends nothing that was not asked for, but why it ends the connection. */
static void look_at_silence(struct dm_maria *maria)
{
    char byte;
    ssize_t got = recv(mysql_get_socket(maria->connection), &byte, 1, MSG_PEEK | MSG_DONTWAIT);

    if (got >= 0 || (errno != EAGAIN && errno != EINTR))
        dm_maria_doom(maria, false, "MariaDB has closed the connection");
}

static void use_connection(struct dm_maria *maria)
{
    int64_t now_ns = dm_clock_boot_ns();

    if (!dm_maria_check_socket(maria))
        return;
    if (!maria->exchange)
        look_at_silence(maria);
    dm_maria_go_on(maria);
    if (maria->is_greeted && maria->phase == DM_MARIA_GREETING && !maria->is_doomed)
        be_ready(maria);
    if (maria->is_doomed || !maria->connection)
        return;
    dm_maria_answer_due(maria);
    dm_maria_send_next(maria);
    if (maria->phase == DM_MARIA_READY)
        dm_retry_note_use(&maria->retry, now_ns);
    if (now_ns >= patience_ends_ns(maria))
        dm_maria_doom(maria, false, "MariaDB has not answered for %u ms", maria->url->command_timeout_ms);
}

static void turn(struct dm_reg_driver *driver)
{
    struct dm_maria *maria = (struct dm_maria *)driver;
    char reason[DM_REG_REASON_ROOM];

    if (maria->phase == DM_MARIA_PAUSING && dm_clock_boot_ns() >= dm_max64(maria->retry.due_ns, maria->not_before_ns))
        begin_to_connect(maria);
    if (maria->phase == DM_MARIA_CONNECTING)
        take_connection(maria);
    if (maria->phase == DM_MARIA_GREETING || maria->phase == DM_MARIA_READY)
        use_connection(maria);
    if (maria->is_doomed && maria->connection) {
        memcpy(reason, maria->doom, sizeof reason);
        break_off(maria, reason, maria->is_final, false);
    }
}

/* libmariadb works on a stack of its own, but for the end of a connection with TLS, which any turn may find. */
static size_t stack(const struct dm_reg_driver *driver)
{
    return ((const struct dm_maria *)driver)->url->has_tls ? DM_OPENSSL_STACK : 0;
}

static void watch(struct dm_reg_driver *driver, struct dm_watch *watched)
{
    struct dm_maria *maria = (struct dm_maria *)driver;

    switch (maria->phase) {
    case DM_MARIA_PAUSING:
        dm_watch_until(watched, dm_max64(maria->retry.due_ns, maria->not_before_ns));
        break;
    case DM_MARIA_CONNECTING:
        dm_watch_poll(watched, dm_maria_connect_fd(maria->connect), POLLIN);
        dm_watch_until(watched, dm_clock_boot_ns() + LOOK_TICK_NS);
        break;
    case DM_MARIA_GREETING:
    case DM_MARIA_READY:
        dm_watch_poll(watched, mysql_get_socket(maria->connection),
                      maria->exchange ? dm_maria_events(maria->waits) : POLLIN);
        dm_watch_until(watched, patience_ends_ns(maria));
        if (maria->exchange && maria->url->has_tls)
            dm_watch_until(watched, dm_clock_boot_ns() + TLS_TICK_NS);
        if (maria->is_doomed || maria->due.first || (maria->exchange && !maria->waits) ||
            (!maria->exchange && maria->waiting.first && !maria->is_reserved))
            dm_watch_until(watched, dm_clock_boot_ns());
        break;
    case DM_MARIA_RESTING:
    case DM_MARIA_ENDED:
        break;
    }
}

/* ---- the other operations ---------------------------------------------------------------- */

static void want(struct dm_reg_driver *driver)
{
    struct dm_maria *maria = (struct dm_maria *)driver;

    if (maria->phase == DM_MARIA_RESTING)
        maria->phase = DM_MARIA_PAUSING;
}

static void stop(struct dm_maria *maria, enum dm_maria_phase phase)
{
    if (maria->phase == DM_MARIA_ENDED)
        return;
    close_connection(maria);
    maria->phase = phase;
    maria->is_doomed = false;
    give_up(maria, NULL);
}

static void rest(struct dm_reg_driver *driver)
{
    stop((struct dm_maria *)driver, DM_MARIA_RESTING);
}

static void end(struct dm_reg_driver *driver)
{
    stop((struct dm_maria *)driver, DM_MARIA_ENDED);
}

/* There are no notices. */
static bool listen_to(struct dm_reg_driver *driver, const char *inbox)
{
    (void)driver;
    (void)inbox;
    return true;
}

static void place(struct dm_reg_driver *driver, char *ret_text, size_t room)
{
    const struct dm_maria *maria = (struct dm_maria *)driver;

    snprintf(ret_text, room, "MariaDB at %s/%s", dm_maria_here(maria).text, maria->url->database);
}

/* mysql_close() would end the parent's session. */
static void forget(struct dm_reg_driver *driver)
{
    struct dm_maria *maria = (struct dm_maria *)driver;

    if (maria->connect)
        dm_maria_connect_forget(maria->connect);
    if (maria->connection && dm_maria_has_socket(maria))
        close(mysql_get_socket(maria->connection));
    maria->connect = NULL;
    maria->connection = NULL;
    maria->phase = DM_MARIA_ENDED;
}

static void free_unused(struct dm_reg_driver *driver)
{
    free(driver);
}

/* The module is here, and libmariadb. */
static bool load(struct dm_reg_driver *driver)
{
    (void)driver;
    return true;
}

static const struct dm_reg_driver_ops ops = {
    .want = want,
    .rest = rest,
    .read = dm_maria_read,
    .swap = dm_maria_swap,
    .list = dm_maria_list,
    .listen = listen_to,
    .watch = watch,
    .turn = turn,
    .let_go = dm_maria_let_go,
    .stack = stack,
    .load = load,
    .place = place,
    .end = end,
    .forget = forget,
    .free_unused = free_unused,
};

__attribute__((visibility("default"))) struct dm_reg_driver *dm_mariadb_open(const char *version,
                                                                             const struct dm_url *url,
                                                                             const struct dm_reg_client *client,
                                                                             char ret_reason[DM_REASON_ROOM])
{
    struct dm_maria *maria;

    if (strcmp(version, PACKAGE_VERSION) != 0) {
        snprintf(ret_reason, DM_REASON_ROOM,
                 "the driver for MariaDB is of version %s, and this program runs with libdmutex %.20s: start the "
                 "program again",
                 PACKAGE_VERSION, version);
        return NULL;
    }
    ret_reason[0] = '\0';
    maria = calloc(1, sizeof *maria);
    if (!maria)
        return NULL;
    maria->driver.ops = &ops;
    maria->driver.can = (struct dm_reg_abilities){
        .has_ages = true, .has_lists = true, .value_max = DM_MARIA_VALUE_MAX, .lease_ms_min = LEASE_MIN_MS
    };
    maria->client = *client;
    maria->url = url;
    return &maria->driver;
}
