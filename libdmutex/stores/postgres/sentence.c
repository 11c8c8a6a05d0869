/* SPDX-License-Identifier: BSD-2-Clause */
/* What went wrong, by the SQLSTATE of the server: its texts are in the server's language. */
#include <stdio.h>
#include <string.h>

#include "stores/postgres/parts.h"

#define TOLD_MAX 200 /* bytes of the server's or libpq's text */

static bool is(const char *state, const char *states)
{
    return state[0] && strstr(states, state) != NULL;
}

/* ---- connections ------------------------------------------------------------------------- */

/*
 * The last SQLSTATE in a text such as "FATAL:  53300: sorry, too many clients already": libpq tells it in no other way.
 * "" if the server has not said anything.
 */
static void find_state(const char *text, char ret_state[DM_PG_STATE_ROOM])
{
    ret_state[0] = '\0';
    for (const char *at = text; (at = strstr(at, ":  ")); at += 3) {
        if (strspn(at + 3, "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ") == 5 && at[8] == ':')
            snprintf(ret_state, DM_PG_STATE_ROOM, "%.5s", at + 3);
    }
}

/*
 * One line of the text: the last one, because of several hosts the last one counts. Lines with the file and line of the
 * server's source, and those that continue a line after a tab, such as "Is the server running …", are left out.
 */
static void take_line(const char *text, char line[TOLD_MAX + 1])
{
    const char *begin = text, *next;
    size_t length;

    for (const char *at = text; *at; at = next) {
        next = at + strcspn(at, "\n");
        next += *next == '\n';
        if (*at != '\t' && strncmp(at, "LOCATION", 8) != 0)
            begin = at;
    }
    length = strcspn(begin, "\n");
    snprintf(line, TOLD_MAX + 1, "%.*s", length < TOLD_MAX ? (int)length : TOLD_MAX, begin);
    dm_text_clean(line);
}

/*
 * What the server has said, without what comes before it, such as "connection to … failed: FATAL:  28P01: ".
 */
static const char *words_of(const char *line, const char *state)
{
    const char *words = strstr(line, state);

    return words && state[0] ? words + strlen(state) + strlen(": ") : line;
}

bool dm_pg_explain_connect(const PGconn *connection, const char *place, char ret_reason[DM_REG_REASON_ROOM],
                           bool *ret_is_crowded)
{
    const char *text = connection ? PQerrorMessage(connection) : "out of memory", *advice = "";
    char state[DM_PG_STATE_ROOM], line[TOLD_MAX + 1];
    bool is_final = true;

    find_state(text, state);
    take_line(text, line);
    *ret_is_crowded = is(state, "53300");
    if (is(state, "28P01 28000") || (connection && PQconnectionNeedsPassword(connection)))
        advice = ": check user and password in the URL, or in the file of PGPASSFILE (~/.pgpass)";
    else if (is(state, "3D000"))
        advice = ": name the database in the URL, postgresql://HOST/DATABASE";
    else if (is(state, "42501"))
        advice = ": GRANT CONNECT ON DATABASE … TO the role";
    else
        is_final = false;
    if (*ret_is_crowded)
        advice = ": raise max_connections, or the role's or database's CONNECTION LIMIT; each process that locks needs "
                 "one connection";
    if (connection && PQstatus(connection) != CONNECTION_BAD)
        snprintf(ret_reason, DM_REG_REASON_ROOM, "no connection to %.140s in time", place);
    else
        snprintf(ret_reason, DM_REG_REASON_ROOM, "%s%s", words_of(line, state), advice);
    return is_final;
}

/* ---- statements -------------------------------------------------------------------------- */

static const char *state_of(const PGresult *result)
{
    const char *state = result ? PQresultErrorField(result, PG_DIAG_SQLSTATE) : NULL;

    return state ? state : "";
}

/*
 * 25P02, 40001, 40P01, 55P03, 57014: an earlier statement of the transaction has failed, a transaction in the way, a
 * deadlock, a lock that took too long, a statement that an admin or a timeout has cancelled.  57014 cannot be a
 * cancelled wait for a synchronous standby: that is a warning, and the transaction has committed.
 */
enum dm_pg_failure dm_pg_judge(const PGresult *result)
{
    const char *state = state_of(result);

    if (!state[0] || strncmp(state, "08", 2) == 0 || is(state, "57P01 57P02 57P03 57P05 25006 25P03"))
        return DM_PG_LOST;
    if (is(state, "25P02 40001 40P01 55P03 57014"))
        return DM_PG_FAILED_NOW;
    if (is(state, "54000"))
        return DM_PG_FAILED_LARGE;
    if (is(state, "3F000 42P01 42P10 42703 42804 42883 55000 42846"))
        return DM_PG_FAILED_TABLE;
    return DM_PG_FAILED;
}

void dm_pg_explain(const PGresult *result, const char *schema, char ret_reason[DM_REG_REASON_ROOM])
{
    const char *state = state_of(result), *message = PQresultErrorField(result, PG_DIAG_MESSAGE_PRIMARY);
    char text[TOLD_MAX + 1];

    take_line(message ? message : PQresultErrorMessage(result), text);
    if (is(state, "42501"))
        snprintf(
            ret_reason, DM_REG_REASON_ROOM,
            "%s: an admin must grant what \"dmutex sql postgresql\" prints for the schema \"%s\", without row security",
            text, schema);
    else if (is(state, "25006"))
        snprintf(ret_reason, DM_REG_REASON_ROOM, "%s: the server or the role is read-only, and locks must be written",
                 text);
    else if (is(state, "53100"))
        snprintf(ret_reason, DM_REG_REASON_ROOM, "%s: the server's disk is full", text);
    else
        snprintf(ret_reason, DM_REG_REASON_ROOM, "PostgreSQL: %s%s%s", text, state[0] ? ", SQLSTATE " : "", state);
}
