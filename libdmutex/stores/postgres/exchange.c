/* SPDX-License-Identifier: BSD-2-Clause */
/* Statements that go out, and their results, in libpq's pipeline mode. */
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "stores/postgres/parts.h"

struct dm_pg_exchange *dm_pg_exchange_new(void (*finish)(struct dm_postgres *, struct dm_pg_exchange *))
{
    struct dm_pg_exchange *exchange = calloc(1, sizeof *exchange);

    if (exchange)
        exchange->finish = finish;
    return exchange;
}

void dm_pg_exchange_free(struct dm_pg_exchange *exchange)
{
    for (int i = 0; i < exchange->got; i++)
        PQclear(exchange->results[i]);
    PQclear(exchange->error);
    for (int i = 0; i < exchange->count && exchange->owns_items; i++) {
        if (exchange->items[i])
            dm_pg_item_free(exchange->items[i]);
    }
    free(exchange);
}

/* ---- out --------------------------------------------------------------------------------- */

bool dm_pg_send(struct dm_postgres *postgres, struct dm_pg_exchange *exchange, struct dm_pg_item *item,
                const struct dm_pg_statement *statement, const struct dm_pg_param *params)
{
    const char *values[DM_PG_PARAMS];
    int sizes[DM_PG_PARAMS], formats[DM_PG_PARAMS], is_sent;

    for (int i = 0; i < statement->count; i++) {
        values[i] = params[i].value;
        sizes[i] = params[i].size;
        formats[i] = 1;
    }
    exchange->items[exchange->count++] = item;
    if (statement->name && postgres->is_prepared)
        is_sent =
            PQsendQueryPrepared(postgres->connection, statement->name, statement->count, values, sizes, formats, 1);
    else
        is_sent = PQsendQueryParams(postgres->connection, statement->text, statement->count, statement->types, values,
                                    sizes, formats, 1);
    if (!is_sent)
        dm_pg_doom(postgres, false, "cannot send to PostgreSQL");
    return is_sent;
}

static void finish_prepare(struct dm_postgres *postgres, struct dm_pg_exchange *exchange)
{
    postgres->is_prepared = !exchange->error;
}

void dm_pg_prepare(struct dm_postgres *postgres)
{
    struct dm_pg_exchange *exchange = dm_pg_exchange_new(finish_prepare);

    if (!exchange)
        return;
    for (int i = 0; i < DM_PG_STATEMENTS; i++) {
        const struct dm_pg_statement *statement = &postgres->statements[i];

        if (!statement->name)
            continue;
        exchange->items[exchange->count++] = NULL;
        if (!PQsendPrepare(postgres->connection, statement->name, statement->text, statement->count, statement->types))
            dm_pg_doom(postgres, false, "cannot send to PostgreSQL");
    }
    dm_pg_sync(postgres, exchange);
}

void dm_pg_sync(struct dm_postgres *postgres, struct dm_pg_exchange *exchange)
{
    exchange->sent_ns = dm_clock_boot_ns();
    if (postgres->last)
        postgres->last->next = exchange;
    else
        postgres->first = exchange;
    postgres->last = exchange;
    if (PQpipelineSync(postgres->connection))
        dm_pg_flush(postgres);
    else
        dm_pg_doom(postgres, false, "cannot send to PostgreSQL");
}

void dm_pg_flush(struct dm_postgres *postgres)
{
    int left = PQflush(postgres->connection);

    postgres->must_flush = left > 0;
    if (left < 0)
        dm_pg_doom(postgres, false, "cannot send to PostgreSQL");
}

/* ---- in ---------------------------------------------------------------------------------- */

/*
 * After an error, the server skips the statements up to the Sync, and libpq has a result "aborted" for each.  An error
 * of the commit itself comes as one result more, which belongs to no statement.
 */
static void take_result(struct dm_pg_exchange *exchange, PGresult *result)
{
    ExecStatusType status = PQresultStatus(result);

    if (status == PGRES_FATAL_ERROR && !exchange->error) {
        exchange->error = result;
        exchange->error_at = exchange->got;
        result = NULL;
    }
    if (exchange->got < exchange->count)
        exchange->results[exchange->got++] = result;
    else
        PQclear(result);
}

static void finish_first(struct dm_postgres *postgres)
{
    struct dm_pg_exchange *exchange = postgres->first;

    postgres->first = exchange->next;
    if (!postgres->first)
        postgres->last = NULL;
    exchange->finish(postgres, exchange);
    for (int i = 0; i < exchange->count && exchange->owns_items && postgres->is_doomed; i++) {
        if (exchange->items[i])
            dm_pg_give_up(postgres, exchange->items[i], postgres->doom);
    }
    dm_pg_exchange_free(exchange);
}

/* The results of a lost connection: what the server said last, and libpq's own. */
static void note_loss(struct dm_postgres *postgres, const PGresult *result)
{
    char reason[DM_REG_REASON_ROOM];

    dm_pg_explain(result, postgres->settings.schema, reason);
    dm_pg_doom(postgres, false, "%s", reason);
}

/* Results of one statement end with a NULL, which says nothing here.  The client may end the connection meanwhile. */
static void take_results(struct dm_postgres *postgres)
{
    PGresult *result;
    int nothing = 0;

    while (postgres->first && !postgres->is_doomed && !PQisBusy(postgres->connection) && nothing < 2) {
        result = PQgetResult(postgres->connection);
        nothing = result ? 0 : nothing + 1;
        if (!result)
            continue;
        if (PQresultStatus(result) == PGRES_PIPELINE_SYNC) {
            PQclear(result);
            finish_first(postgres);
        } else if (PQresultStatus(result) == PGRES_FATAL_ERROR && dm_pg_judge(result) == DM_PG_LOST) {
            note_loss(postgres, result);
            PQclear(result);
        } else {
            take_result(postgres->first, result);
        }
    }
}

void dm_pg_receive(struct dm_postgres *postgres)
{
    bool is_open = PQconsumeInput(postgres->connection);

    take_results(postgres);
    if (!postgres->connection)
        return;
    if (!is_open || PQstatus(postgres->connection) == CONNECTION_BAD)
        dm_pg_doom(postgres, false, "PostgreSQL has closed the connection");
}
