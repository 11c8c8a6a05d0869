/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The PostgreSQL driver: registers in a table of a database, through libpq.
 *
 * Everything that calls libpq is in the module store-postgres.so, which the library loads for the first URL of
 * PostgreSQL.  The module exports one function, of the type below.
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

/* Where an installed module is. */
extern const char dm_postgres_folder[];

/* The module's function. */
#define DM_POSTGRES_OPEN "dm_postgres_open"
dm_reg_open_fn dm_postgres_open;

#endif
