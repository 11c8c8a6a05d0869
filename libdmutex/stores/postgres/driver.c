/* SPDX-License-Identifier: BSD-2-Clause */
/* The state of the connection, and the driver's operations. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/ident.h"
#include "base/minmax.h"
#include "base/thread.h"
#include "config.h"
#include "stores/postgres/parts.h"

#define LEASE_MIN_MS 500
#define TLS_TICK_NS (20 * DM_NS_PER_MS)   /* OpenSSL may have read an answer to its end, which poll() does not see */
#define LOOK_TICK_NS (200 * DM_NS_PER_MS) /* for a thread that connects, if its bell is lost */

/* A server that is full is asked less often than one that is gone: each try costs it a process. */
#define CROWDED_MIN_MS 500
#define CROWDED_MAX_MS 4000

/* The first look for old snapshots, and how often then. */
#define SNAPSHOTS_FIRST_NS (30 * DM_NS_PER_S)
#define SNAPSHOTS_NS (600 * DM_NS_PER_S)

/* ---- the end of a connection ------------------------------------------------------------- */

/* False: PQfinish() would close a number that may be the program's now. libpq has closed a broken socket by itself. */
static bool may_finish(const struct dm_postgres *postgres)
{
    return PQsocket(postgres->connection) < 0 || dm_pg_has_socket(postgres);
}

/* Without an answer to anything. */
static void close_connection(struct dm_postgres *postgres)
{
    if (postgres->connect)
        dm_pg_connect_abandon(postgres->connect);
    if (postgres->connection && may_finish(postgres))
        PQfinish(postgres->connection);
    postgres->connect = NULL;
    postgres->connection = NULL;
    postgres->must_flush = postgres->has_group = postgres->is_prepared = false;
    dm_pg_lose_reservation(postgres);
}

static void give_up_all(struct dm_postgres *postgres, struct dm_pg_items *items, const char *reason)
{
    struct dm_pg_item *item;

    while ((item = dm_pg_items_take(items))) {
        dm_pg_give_up(postgres, item, reason);
        dm_pg_item_free(item);
    }
}

/* Items that wait have not been sent, but nobody needs to know that. */
static void give_up_requests(struct dm_postgres *postgres, const char *reason)
{
    struct dm_pg_exchange *exchange;
    struct dm_pg_items waiting = postgres->waiting, due = postgres->due;

    postgres->waiting = postgres->due = (struct dm_pg_items){ 0 };
    while ((exchange = postgres->first)) {
        postgres->first = exchange->next;
        for (int i = 0; i < exchange->count && exchange->owns_items; i++) {
            if (exchange->items[i])
                dm_pg_give_up(postgres, exchange->items[i], reason);
        }
        dm_pg_exchange_free(exchange);
    }
    postgres->last = NULL;
    give_up_all(postgres, &waiting, reason);
    give_up_all(postgres, &due, reason);
}

/* Each failure in a row doubles the pause; half of it is by chance. */
static void plan_crowded(struct dm_postgres *postgres, int64_t now_ns)
{
    int64_t limit_ms = dm_min64(CROWDED_MIN_MS << dm_min64(postgres->crowded, 4), CROWDED_MAX_MS);
    uint64_t random;

    dm_ident_random(&random, 1);
    postgres->crowded++;
    postgres->not_before_ns = now_ns + limit_ms * DM_NS_PER_MS / 2 * (1000 + (int64_t)(random % 1000)) / 1000;
}

static void break_off(struct dm_postgres *postgres, const char *reason, bool is_final, bool is_crowded)
{
    bool had_inbox = postgres->phase == DM_PG_READY && postgres->inbox[0];
    int64_t now_ns = dm_clock_boot_ns();

    close_connection(postgres);
    postgres->phase = DM_PG_PAUSING;
    postgres->is_doomed = false;
    postgres->tries++;
    dm_retry_note_failure(&postgres->retry, now_ns);
    if (is_crowded)
        plan_crowded(postgres, now_ns);
    give_up_requests(postgres, reason);
    if (had_inbox)
        postgres->client.on_inbox(postgres->client.user, false);
    postgres->client.on_down(postgres->client.user, reason, is_final);
}

/* ---- the way to a connection ------------------------------------------------------------- */

static void be_quiet(void *user, const PGresult *notice)
{
    (void)user;
    (void)notice;
}

static void begin_to_connect(struct dm_postgres *postgres)
{
    postgres->connect = dm_pg_connect_begin(&postgres->settings, postgres->tries);
    if (postgres->connect)
        postgres->phase = DM_PG_CONNECTING;
    else
        break_off(postgres, "this process cannot start a thread or open a descriptor for a connection", false, false);
}

/* The flags of an earlier connection are forgotten. */
static void begin_to_greet(struct dm_postgres *postgres)
{
    PGconn *connection = postgres->connection;

    postgres->phase = DM_PG_GREETING;
    postgres->is_greeted = postgres->has_made = postgres->is_warned = postgres->may_forget = false;
    postgres->group_number = 0;
    postgres->crowded = 0;
    postgres->not_before_ns = 0;
    postgres->socket = dm_fileid_of(PQsocket(connection));
    postgres->owned_ns = 0;
    PQsetErrorVerbosity(connection, PQERRORS_DEFAULT);
    PQsetNoticeReceiver(connection, be_quiet, NULL);
    if (PQsetnonblocking(connection, 1) != 0 || !PQenterPipelineMode(connection))
        dm_pg_doom(postgres, false, "libpq cannot work without blocking");
    else
        dm_pg_greet(postgres);
}

static void take_connection(struct dm_postgres *postgres)
{
    char reason[DM_REG_REASON_ROOM];
    PGconn *connection;
    bool is_final, is_crowded;

    if (!dm_pg_connect_take(postgres->connect, &connection))
        return;
    postgres->connect = NULL;
    if (connection && PQstatus(connection) == CONNECTION_OK) {
        postgres->connection = connection;
        begin_to_greet(postgres);
        return;
    }
    is_final = dm_pg_explain_connect(connection, postgres->settings.place, reason, &is_crowded);
    PQfinish(connection);
    break_off(postgres, reason, is_final, is_crowded);
}

static void be_ready(struct dm_postgres *postgres)
{
    const struct dm_reg_client *client = &postgres->client;

    postgres->phase = DM_PG_READY;
    postgres->retry.ready_ns = postgres->looked_ns = dm_clock_boot_ns();
    postgres->has_looked = false;
    dm_pg_prepare(postgres);
    client->on_ready(client->user, postgres->identity);
    if (postgres->inbox[0])
        client->on_inbox(client->user, true);
}

/* ---- an open connection ------------------------------------------------------------------ */

static int hex_value(char digit)
{
    return digit >= '0' && digit <= '9' ? digit - '0' : digit >= 'a' && digit <= 'f' ? digit - 'a' + 10 : -1;
}

/* Any role may notify any channel, with any text. */
static void take_notice(struct dm_postgres *postgres, const PGnotify *notice)
{
    size_t length = strlen(notice->extra) / 2;

    if (strcmp(notice->relname, postgres->channel) != 0 || length > sizeof postgres->told)
        return;
    for (size_t i = 0; i < length; i++) {
        int high = hex_value(notice->extra[2 * i]), low = hex_value(notice->extra[2 * i + 1]);

        if (high < 0 || low < 0)
            return;
        postgres->told[i] = (uint8_t)(high << 4 | low);
    }
    postgres->client.on_tell(postgres->client.user, postgres->told, length);
}

static void take_notices(struct dm_postgres *postgres)
{
    PGnotify *notice;

    while (postgres->connection && (notice = PQnotifies(postgres->connection))) {
        if (postgres->phase == DM_PG_READY)
            take_notice(postgres, notice);
        PQfreemem(notice);
    }
}

/* When the oldest statement should have been answered. */
static int64_t patience_ends_ns(const struct dm_postgres *postgres)
{
    return postgres->first ? postgres->first->sent_ns + postgres->settings.command_timeout_ms * DM_NS_PER_MS : DM_NEVER;
}

static int64_t snapshots_due_ns(const struct dm_postgres *postgres)
{
    return postgres->looked_ns + (postgres->has_looked ? SNAPSHOTS_NS : SNAPSHOTS_FIRST_NS);
}

static void use_connection(struct dm_postgres *postgres)
{
    int64_t now_ns = dm_clock_boot_ns();

    if (!dm_pg_check_socket(postgres))
        return;
    dm_pg_receive(postgres);
    take_notices(postgres);
    if (postgres->is_greeted && postgres->phase == DM_PG_GREETING && !postgres->is_doomed)
        be_ready(postgres);
    if (postgres->is_doomed || !postgres->connection)
        return;
    dm_pg_answer_due(postgres);
    dm_pg_send_swaps(postgres);
    if (postgres->phase == DM_PG_READY) {
        dm_retry_note_use(&postgres->retry, now_ns);
        if (now_ns >= snapshots_due_ns(postgres)) {
            postgres->has_looked = true;
            dm_pg_look_for_snapshots(postgres);
        }
    }
    if (!postgres->is_doomed && postgres->must_flush)
        dm_pg_flush(postgres);
    if (now_ns >= patience_ends_ns(postgres))
        dm_pg_doom(postgres, false, "PostgreSQL has not answered for %u ms", postgres->settings.command_timeout_ms);
}

static void turn(struct dm_reg_driver *driver)
{
    struct dm_postgres *postgres = (struct dm_postgres *)driver;
    char reason[DM_REG_REASON_ROOM];

    if (postgres->phase == DM_PG_PAUSING &&
        dm_clock_boot_ns() >= dm_max64(postgres->retry.due_ns, postgres->not_before_ns))
        begin_to_connect(postgres);
    if (postgres->phase == DM_PG_CONNECTING)
        take_connection(postgres);
    if (postgres->phase == DM_PG_GREETING || postgres->phase == DM_PG_READY)
        use_connection(postgres);
    if (postgres->is_doomed && postgres->connection) {
        memcpy(reason, postgres->doom, sizeof reason);
        break_off(postgres, reason, postgres->is_final, false);
    }
}

/* A connection that is still being made may turn out to have TLS, and the turn that finds it ready sends at once. */
static size_t stack(const struct dm_reg_driver *driver)
{
    const struct dm_postgres *postgres = (const struct dm_postgres *)driver;

    return postgres->connection && !PQsslInUse(postgres->connection) ? 0 : DM_OPENSSL_STACK;
}

static void watch(struct dm_reg_driver *driver, struct dm_watch *watched)
{
    struct dm_postgres *postgres = (struct dm_postgres *)driver;

    switch (postgres->phase) {
    case DM_PG_PAUSING:
        dm_watch_until(watched, dm_max64(postgres->retry.due_ns, postgres->not_before_ns));
        break;
    case DM_PG_CONNECTING:
        dm_watch_poll(watched, dm_pg_connect_fd(postgres->connect), POLLIN);
        dm_watch_until(watched, dm_clock_boot_ns() + LOOK_TICK_NS);
        break;
    case DM_PG_GREETING:
    case DM_PG_READY:
        dm_watch_poll(watched, PQsocket(postgres->connection), POLLIN | (postgres->must_flush ? POLLOUT : 0));
        dm_watch_until(watched, patience_ends_ns(postgres));
        if (postgres->first && PQsslInUse(postgres->connection))
            dm_watch_until(watched, dm_clock_boot_ns() + TLS_TICK_NS);
        if (postgres->phase == DM_PG_READY) {
            dm_watch_until(watched, snapshots_due_ns(postgres));
            dm_watch_until(watched, dm_pg_swaps_due_ns(postgres));
        }
        if (postgres->is_doomed || postgres->due.first)
            dm_watch_until(watched, dm_clock_boot_ns());
        break;
    case DM_PG_RESTING:
    case DM_PG_ENDED:
        break;
    }
}

/* ---- the other operations ---------------------------------------------------------------- */

static void want(struct dm_reg_driver *driver)
{
    struct dm_postgres *postgres = (struct dm_postgres *)driver;

    if (postgres->phase == DM_PG_RESTING)
        postgres->phase = DM_PG_PAUSING;
}

static void stop(struct dm_postgres *postgres, enum dm_pg_phase phase)
{
    struct dm_pg_exchange *exchange;
    struct dm_pg_item *item;

    if (postgres->phase == DM_PG_ENDED)
        return;
    close_connection(postgres);
    postgres->phase = phase;
    postgres->is_doomed = false;
    while ((exchange = postgres->first)) {
        postgres->first = exchange->next;
        dm_pg_exchange_free(exchange);
    }
    postgres->last = NULL;
    while ((item = dm_pg_items_take(&postgres->waiting)) || (item = dm_pg_items_take(&postgres->due)))
        dm_pg_item_free(item);
}

static void rest(struct dm_reg_driver *driver)
{
    stop((struct dm_postgres *)driver, DM_PG_RESTING);
}

static void end(struct dm_reg_driver *driver)
{
    stop((struct dm_postgres *)driver, DM_PG_ENDED);
}

static bool listen_to(struct dm_reg_driver *driver, const char *inbox)
{
    struct dm_postgres *postgres = (struct dm_postgres *)driver;

    snprintf(postgres->inbox, sizeof postgres->inbox, "%s", inbox);
    dm_pg_channel(inbox, postgres->channel);
    return true;
}

static void place(struct dm_reg_driver *driver, char *ret_text, size_t room)
{
    snprintf(ret_text, room, "%s", ((struct dm_postgres *)driver)->settings.place);
}

/* PQfinish() would end the parent's session. */
static void forget(struct dm_reg_driver *driver)
{
    struct dm_postgres *postgres = (struct dm_postgres *)driver;

    if (postgres->connect)
        dm_pg_connect_forget(postgres->connect);
    if (postgres->connection && dm_pg_has_socket(postgres))
        close(PQsocket(postgres->connection));
    postgres->connect = NULL;
    postgres->connection = NULL;
    postgres->phase = DM_PG_ENDED;
}

static void free_unused(struct dm_reg_driver *driver)
{
    struct dm_postgres *postgres = (struct dm_postgres *)driver;

    dm_pg_settings_free(&postgres->settings);
    dm_pg_statements_free(postgres->statements);
    free(postgres);
}

/* The module is here, and libpq. */
static bool load(struct dm_reg_driver *driver)
{
    (void)driver;
    return true;
}

static const struct dm_reg_driver_ops ops = {
    .want = want,
    .rest = rest,
    .read = dm_pg_read,
    .swap = dm_pg_swap,
    .list = dm_pg_list,
    .listen = listen_to,
    .watch = watch,
    .turn = turn,
    .let_go = dm_pg_let_go,
    .stack = stack,
    .load = load,
    .place = place,
    .end = end,
    .forget = forget,
    .free_unused = free_unused,
};

__attribute__((visibility("default"))) struct dm_reg_driver *dm_postgres_open(const char *version,
                                                                              const struct dm_reg_place *reg_place,
                                                                              const struct dm_reg_client *client,
                                                                              char ret_reason[DM_REASON_ROOM])
{
    struct dm_postgres *postgres;

    if (strcmp(version, PACKAGE_VERSION) != 0) {
        snprintf(ret_reason, DM_REASON_ROOM,
                 "the driver for PostgreSQL is of version %s, and this program runs with libdmutex %.20s: start the "
                 "program again",
                 PACKAGE_VERSION, version);
        return NULL;
    }
    ret_reason[0] = '\0';
    postgres = calloc(1, sizeof *postgres);
    if (!postgres || !dm_pg_settings_read(&postgres->settings, reg_place, ret_reason)) {
        free(postgres);
        return NULL;
    }
    postgres->driver.ops = &ops;
    postgres->driver.can = (struct dm_reg_abilities){ .has_tells = true,
                                                      .has_ages = true,
                                                      .has_lists = true,
                                                      .value_max = DM_PG_VALUE_MAX,
                                                      .lease_ms_min = LEASE_MIN_MS };
    postgres->client = *client;
    if (dm_pg_statements_make(postgres->statements, postgres->settings.schema))
        return &postgres->driver;
    free_unused(&postgres->driver);
    return NULL;
}
