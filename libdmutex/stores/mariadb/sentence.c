/* SPDX-License-Identifier: BSD-2-Clause */
/* What went wrong, by the number of the error: the server's texts are in its language. */
#include <errmsg.h>
#include <mysqld_error.h>
#include <stdio.h>
#include <string.h>

#include "stores/mariadb/parts.h"

/* Errors that have no name in the header of every version. */
enum {
    NO_QUORUM = 1047,            /* "unknown command": a node of Galera that is not in the majority */
    ACCOUNT_LOCKED = 4151,       /* of MariaDB */
    ACCOUNT_LOCKED_MYSQL = 3118, /* of MySQL */
    TIMED_OUT_MYSQL = 3024,
    IDLE_MYSQL = 4031,
    FIRST_OF_CLIENT = 2000,
    LAST_OF_CLIENT = 2999,
    FIRST_OF_LIBMARIADB = 5000,
    LAST_OF_LIBMARIADB = 5999
};

static bool is_of_client(unsigned error)
{
    return (error >= FIRST_OF_CLIENT && error <= LAST_OF_CLIENT) ||
           (error >= FIRST_OF_LIBMARIADB && error <= LAST_OF_LIBMARIADB);
}

struct dm_place_text dm_maria_place(const struct dm_url *url, unsigned n)
{
    struct dm_place_text place;

    if (url->host_count) {
        const struct dm_url_host *host = &url->hosts[n % (unsigned)url->host_count];
        bool is_v6 = strchr(host->host, ':');

        snprintf(place.text, sizeof place.text, "%s%s%s:%s", is_v6 ? "[" : "", host->host, is_v6 ? "]" : "",
                 host->port);
    } else {
        snprintf(place.text, sizeof place.text, "%s", url->path);
    }
    return place;
}

/* ---- connections ------------------------------------------------------------------------- */

bool dm_maria_explain_connect(MYSQL *connection, const char *place, char ret_reason[DM_REG_REASON_ROOM],
                              bool *ret_is_crowded)
{
    unsigned error = connection ? mysql_errno(connection) : CR_OUT_OF_MEMORY;
    const char *advice = "";
    char text[DM_MARIA_MESSAGE_ROOM];
    bool is_final = false;

    snprintf(text, sizeof text, "%s", connection ? mysql_error(connection) : "out of memory");
    dm_text_clean(text);
    *ret_is_crowded =
        error == ER_CON_COUNT_ERROR || error == ER_TOO_MANY_USER_CONNECTIONS || error == ER_USER_LIMIT_REACHED;
    if (error == ER_ACCESS_DENIED_ERROR || error == ER_ACCESS_DENIED_NO_PASSWORD_ERROR || error == ACCOUNT_LOCKED ||
        error == ACCOUNT_LOCKED_MYSQL || error == ER_MUST_CHANGE_PASSWORD_LOGIN)
        is_final = true, advice = ": check user and password in the URL, or in the file of password_file";
    else if (error == ER_BAD_DB_ERROR)
        is_final = true, advice = ": name a database that exists in the URL, mariadb://HOST/DATABASE";
    else if (error == ER_DBACCESS_DENIED_ERROR)
        is_final = true, advice = ": grant the account what \"dmutex sql mariadb\" prints";
    else if (error == ER_HOST_NOT_PRIVILEGED)
        is_final = true, advice = ": CREATE USER for this host, or for '%'";
    else if (error == CR_AUTH_PLUGIN_CANNOT_LOAD || error == CR_AUTH_PLUGIN_ERR)
        advice = ": the account's way to log in is none that sends no password in clear text, or libmariadb lacks it";
    else if (*ret_is_crowded)
        advice = ": raise max_connections, or the account's limit; each process that locks needs one connection";
    if (error == 0)
        snprintf(ret_reason, DM_REG_REASON_ROOM, "no connection to MariaDB at %.140s in time", place);
    else
        snprintf(ret_reason, DM_REG_REASON_ROOM, "%s%s", text, advice);
    return is_final;
}

/* ---- statements -------------------------------------------------------------------------- */

enum dm_maria_failure dm_maria_judge(unsigned error)
{
    if (is_of_client(error))
        return DM_MARIA_LOST;
    switch (error) {
    case ER_SERVER_SHUTDOWN:
    case ER_NORMAL_SHUTDOWN:
    case ER_CONNECTION_KILLED:
    case ER_OPTION_PREVENTS_STATEMENT: /* read_only */
    case ER_READ_ONLY_MODE:
    case ER_CANT_EXECUTE_IN_READ_ONLY_TRANSACTION:
    case NO_QUORUM:
    case IDLE_MYSQL:
        return DM_MARIA_LOST;
    case ER_LOCK_WAIT_TIMEOUT:
    case ER_LOCK_DEADLOCK: /* also a conflict of two nodes of Galera, at the commit */
    case ER_CHECKREAD:
    case ER_QUERY_INTERRUPTED:
    case ER_STATEMENT_TIMEOUT:
    case TIMED_OUT_MYSQL:
    case ER_TABLE_DEF_CHANGED:
        return DM_MARIA_FAILED_NOW;
    case ER_NET_PACKET_TOO_LARGE:
    case ER_DATA_TOO_LONG:
    case ER_TOO_BIG_ROWSIZE:
        return DM_MARIA_FAILED_LARGE;
    case ER_NO_SUCH_TABLE:
    case ER_NO_SUCH_TABLE_IN_ENGINE:
    case ER_BAD_FIELD_ERROR:
    case ER_BAD_DB_ERROR:
    case ER_NO_DB_ERROR:
        return DM_MARIA_FAILED_TABLE;
    default:
        return DM_MARIA_FAILED;
    }
}

void dm_maria_explain(unsigned error, const char *message, char ret_reason[DM_REG_REASON_ROOM])
{
    if (error == ER_TABLEACCESS_DENIED_ERROR || error == ER_COLUMNACCESS_DENIED_ERROR ||
        error == ER_DBACCESS_DENIED_ERROR)
        snprintf(ret_reason, DM_REG_REASON_ROOM,
                 "%s: an admin must grant the account what \"dmutex sql mariadb\" prints", message);
    else if (error == ER_OPTION_PREVENTS_STATEMENT || error == ER_READ_ONLY_MODE ||
             error == ER_CANT_EXECUTE_IN_READ_ONLY_TRANSACTION)
        snprintf(
            ret_reason, DM_REG_REASON_ROOM,
            "this server is read-only, as a replica is, and locks must be written: name the primary, or all servers, "
            "mariadb://HOST1,HOST2/DATABASE (%.100s)",
            message);
    else if (error == NO_QUORUM)
        snprintf(ret_reason, DM_REG_REASON_ROOM, "this node of Galera is not in the majority of its cluster: %s",
                 message);
    else if (error == ER_RECORD_FILE_FULL || error == ER_DISK_FULL)
        snprintf(ret_reason, DM_REG_REASON_ROOM, "%s: the server's disk, or its tablespace, is full", message);
    else
        snprintf(ret_reason, DM_REG_REASON_ROOM, "MariaDB: %s, error %u", message, error);
}
