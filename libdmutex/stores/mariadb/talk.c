/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Statements that go out, and their results.  libmariadb works on a stack of its own, and comes back when it would have
 * to wait; it asks the socket again when it is continued too early, so a turn may always try.
 */
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/shield.h"
#include "stores/mariadb/parts.h"

struct dm_maria_exchange *dm_maria_exchange_new(void (*finish)(struct dm_maria *, struct dm_maria_exchange *))
{
    struct dm_maria_exchange *exchange = calloc(1, sizeof *exchange);

    if (exchange)
        exchange->finish = finish;
    return exchange;
}

void dm_maria_exchange_free(struct dm_maria_exchange *exchange)
{
    for (int i = 0; i < exchange->got; i++)
        mysql_free_result(exchange->results[i]);
    for (int i = 0; i < exchange->count; i++) {
        if (exchange->items[i])
            dm_maria_item_free(exchange->items[i]);
    }
    dm_bytes_free(&exchange->text);
    free(exchange);
}

struct dm_maria_exchange *dm_maria_break_exchange(struct dm_maria *maria)
{
    struct dm_maria_exchange *exchange = maria->exchange;

    maria->exchange = NULL;
    maria->waits = 0;
    maria->step = DM_MARIA_ASKING;
    return exchange;
}

MYSQL_ROW dm_maria_row(MYSQL_RES *result, unsigned columns)
{
    return result && mysql_num_fields(result) >= columns ? mysql_fetch_row(result) : NULL;
}

const char *dm_maria_field(MYSQL_ROW row, int column)
{
    return row[column] ? row[column] : "";
}

/* ---- the end ----------------------------------------------------------------------------- */

static void finish(struct dm_maria *maria)
{
    struct dm_maria_exchange *exchange = dm_maria_break_exchange(maria);
    char reason[DM_REG_REASON_ROOM];

    if (dm_maria_judge(exchange->error) == DM_MARIA_LOST && exchange->error) {
        dm_maria_explain(exchange->error, exchange->message, reason);
        dm_maria_doom(maria, false, "%s", reason);
    }
    maria->is_finishing = true;
    if (!maria->is_doomed)
        exchange->finish(maria, exchange);
    maria->is_finishing = false;
    for (int i = 0; i < exchange->count && maria->is_doomed; i++) {
        if (exchange->items[i])
            dm_maria_fail(maria, exchange->items[i], DM_REG_UNKNOWN, maria->doom);
    }
    dm_maria_exchange_free(exchange);
}

static void fail(struct dm_maria *maria)
{
    struct dm_maria_exchange *exchange = maria->exchange;

    exchange->error = mysql_errno(maria->connection);
    if (!exchange->error)
        exchange->error = 2000; /* of libmariadb, and not known */
    strncpy(exchange->message, maria->left ? mysql_error(maria->connection) : "this is an answer without end",
            sizeof exchange->message - 1);
    dm_text_clean(exchange->message);
    finish(maria);
}

/* ---- the steps --------------------------------------------------------------------------- */

/* True if the step has ended; else it waits.  With TLS, OpenSSL writes without MSG_NOSIGNAL. */
static bool ask(struct dm_maria *maria, int *ret_error)
{
    const struct dm_bytes *text = &maria->exchange->text;
    struct dm_shield shield;

    if (maria->url->has_tls)
        dm_shield_raise(&shield);
    maria->waits = maria->waits ? mysql_real_query_cont(ret_error, maria->connection, maria->waits)
                                : mysql_real_query_start(ret_error, maria->connection, text->at, text->size);
    if (maria->url->has_tls)
        dm_shield_lower(&shield);
    return maria->waits == 0;
}

static bool turn_to_next(struct dm_maria *maria, int *ret_error)
{
    maria->waits = maria->waits ? mysql_next_result_cont(ret_error, maria->connection, maria->waits)
                                : mysql_next_result_start(ret_error, maria->connection);
    return maria->waits == 0;
}

static bool store(struct dm_maria *maria, MYSQL_RES **ret_result)
{
    maria->waits = maria->waits ? mysql_store_result_cont(ret_result, maria->connection, maria->waits)
                                : mysql_store_result_start(ret_result, maria->connection);
    return maria->waits == 0;
}

/* The result of a statement.  False if the exchange is over.  A connection that has broken has no columns, either. */
static bool take_result(struct dm_maria *maria, MYSQL_RES *result)
{
    struct dm_maria_exchange *exchange = maria->exchange;

    bool is_missing = !result && (mysql_field_count(maria->connection) || mysql_errno(maria->connection));

    if (is_missing || exchange->got == DM_MARIA_STATEMENTS) {
        mysql_free_result(result);
        fail(maria);
        return false;
    }
    exchange->changed[exchange->got] = mysql_affected_rows(maria->connection);
    exchange->results[exchange->got++] = result;
    if (mysql_more_results(maria->connection))
        return true;
    finish(maria);
    return false;
}

static void take_steps(struct dm_maria *maria)
{
    struct dm_maria_exchange *exchange = maria->exchange;
    MYSQL_RES *result = NULL;
    int error = 0;

    maria->waits &= ~MYSQL_WAIT_TIMEOUT;
    while (exchange && maria->exchange == exchange) {
        switch (maria->step) {
        case DM_MARIA_ASKING:
            if (!ask(maria, &error))
                return;
            break;
        case DM_MARIA_TURNING:
            if (!turn_to_next(maria, &error))
                return;
            break;
        case DM_MARIA_STORING:
            if (!store(maria, &result) || !take_result(maria, result))
                return;
            maria->step = DM_MARIA_TURNING;
            continue;
        case DM_MARIA_FAILING:
            error = 1;
            break;
        }
        maria->step = DM_MARIA_STORING;
        if (error)
            fail(maria);
    }
}

void dm_maria_go_on(struct dm_maria *maria)
{
    dm_maria_limit(maria->connection, &maria->left);
    take_steps(maria);
    dm_maria_limit(NULL, NULL);
}

/* The client is called only from inside a turn, so nothing is finished here. */
void dm_maria_send(struct dm_maria *maria, struct dm_maria_exchange *exchange)
{
    int error = 0;

    maria->exchange = exchange;
    maria->step = DM_MARIA_ASKING;
    maria->waits = 0;
    maria->sent_ns = dm_clock_boot_ns();
    maria->left = DM_MARIA_LEFT;
    dm_maria_limit(maria->connection, &maria->left);
    if (exchange->text.is_short)
        dm_maria_doom(maria, false, "out of memory");
    else if (ask(maria, &error))
        maria->step = error ? DM_MARIA_FAILING : DM_MARIA_STORING;
    dm_maria_limit(NULL, NULL);
}
