/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The PostgreSQL driver: registers in a table of a database, through libpq.
 *
 * Everything that calls libpq is in the module store-postgres.so, which the library loads for the first URL of
 * PostgreSQL.  The module exports two functions, of the types below.
 */
#ifndef DM_POSTGRES_OPEN_H
#define DM_POSTGRES_OPEN_H

#include "base/text.h"
#include "registers/driver.h"

/* What config/url.c has read.  The texts are needed only during the call. */
struct dm_reg_place {
    const char *url;    /* for the client library, without our options; may have a password */
    const char *prefix; /* of letters, digits, '.', '_' and '-'; the schema of the tables */
    unsigned connect_timeout_ms;
    unsigned command_timeout_ms;
};

/*
 * A driver that is not connected yet; `client` is copied.  NULL with the reason: a URL that libpq does not take; or
 * with "" without memory.  `version` is that of the caller's package: another one is refused.
 */
typedef struct dm_reg_driver *dm_reg_open_fn(const char *version, const struct dm_reg_place *place,
                                             const struct dm_reg_client *client, char ret_reason[DM_REASON_ROOM]);

/* ---- what dmutex doctor asks ------------------------------------------------------------- */

enum { DM_PG_OK, DM_PG_WARNS, DM_PG_FAILS };

/* Takes the findings; `advice` is "" if there is nothing to do. */
struct dm_pg_report {
    void *user;
    void (*find)(void *user, int grade, const char *check, const char *text, const char *advice);
};

struct dm_pg_facts {
    bool is_usable;      /* locks can be kept there */
    bool survives_crash; /* a swap that is done is on the disk */
};

enum dm_pg_end { DM_PG_EXAMINED, DM_PG_NO_LOGIN, DM_PG_UNREACHABLE };

/* Connects and looks, and makes nothing there; blocks.  The findings say what is wrong, also if it cannot connect. */
typedef enum dm_pg_end dm_pg_examine_fn(const char *version, const struct dm_reg_place *place,
                                        const struct dm_pg_report *report, struct dm_pg_facts *ret_facts);

/* ---- the module -------------------------------------------------------------------------- */

/* Where an installed module is. */
extern const char dm_postgres_folder[];

/* The module's functions. */
#define DM_POSTGRES_OPEN "dm_postgres_open"
dm_reg_open_fn dm_postgres_open;
#define DM_POSTGRES_EXAMINE "dm_postgres_examine"
dm_pg_examine_fn dm_postgres_examine;

/* The module's dm_postgres_examine(); loads the module.  NULL with the reason.  Needs 64 KiB of stack; no lock held. */
dm_pg_examine_fn *dm_postgres_examiner(char ret_reason[DM_REASON_ROOM]);

#endif
