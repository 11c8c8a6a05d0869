/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The driver of registers on MariaDB and MySQL: a table of a database, through libmariadb.
 *
 * Everything that calls libmariadb is in the module store-mariadb.so, which the library loads for the first URL of
 * MariaDB.  The module exports two functions, of the types below.
 */
#ifndef DM_MARIADB_OPEN_H
#define DM_MARIADB_OPEN_H

#include "config/url.h"
#include "registers/driver.h"

/*
 * A driver that is not connected yet.  `url` stays the caller's, and must live as long as the driver; `client` is
 * copied.  NULL with the reason, which is "" without memory.  `version` is that of the caller's package: another one is
 * refused.
 */
typedef struct dm_reg_driver *dm_maria_open_fn(const char *version, const struct dm_url *url,
                                               const struct dm_reg_client *client, char ret_reason[DM_REASON_ROOM]);

/* ---- what dmutex doctor asks ------------------------------------------------------------- */

enum { DM_MARIA_OK, DM_MARIA_WARNS, DM_MARIA_FAILS };

/* Takes the findings; `advice` is "" if there is nothing to do. */
struct dm_maria_report {
    void *user;
    void (*find)(void *user, int grade, const char *check, const char *text, const char *advice);
};

struct dm_maria_facts {
    bool is_usable;      /* locks can be kept there */
    bool survives_crash; /* a swap that is done is on the disk */
};

enum dm_maria_end { DM_MARIA_EXAMINED, DM_MARIA_NO_LOGIN, DM_MARIA_UNREACHABLE };

/* Connects and looks, and makes nothing there; blocks.  The findings say what is wrong, also if it cannot connect. */
typedef enum dm_maria_end dm_maria_examine_fn(const char *version, const struct dm_url *url,
                                              const struct dm_maria_report *report, struct dm_maria_facts *ret_facts);

/* ---- the module -------------------------------------------------------------------------- */

/* Where an installed module is. */
extern const char dm_mariadb_folder[];

/* The module's functions. */
#define DM_MARIADB_OPEN "dm_mariadb_open"
dm_maria_open_fn dm_mariadb_open;
#define DM_MARIADB_EXAMINE "dm_mariadb_examine"
dm_maria_examine_fn dm_mariadb_examine;

/* The module's dm_mariadb_examine(); loads the module.  NULL with the reason.  Needs 64 KiB of stack; no lock held. */
dm_maria_examine_fn *dm_mariadb_examiner(char ret_reason[DM_REASON_ROOM]);

#endif
