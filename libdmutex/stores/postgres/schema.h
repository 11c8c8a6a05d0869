/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The tables, as the driver makes them and `dmutex sql postgresql` prints them.  No libpq here.
 *
 * A row is small and is updated all the time.  With half of each page free, an update stays in its page and changes no
 * index, and the next update of the page removes the old version without a vacuum.  That works only for values in the
 * row itself, so values of up to a page stay there, uncompressed.
 */
#ifndef DM_POSTGRES_SCHEMA_H
#define DM_POSTGRES_SCHEMA_H

/* In each statement, @ stands for the schema, and # for a role; both are written as they come. */
enum { DM_PG_MAKE_COUNT = 5, DM_PG_GRANT_COUNT = 3, DM_PG_RESTORE_COUNT = 2 };

extern const char *const dm_pg_make_forms[DM_PG_MAKE_COUNT];   /* in one transaction, in this order */
extern const char *const dm_pg_grant_forms[DM_PG_GRANT_COUNT]; /* for each role that locks */
/* After a backup was restored, in one transaction.  The lock waits for swaps that have seen the old epoch. */
extern const char *const dm_pg_restore_forms[DM_PG_RESTORE_COUNT];

/* Fills in the schema, quoted, and the role, which is not.  New memory, or NULL. */
char *dm_pg_fill(const char *form, const char *schema, const char *role);

#endif
