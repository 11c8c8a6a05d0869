/* SPDX-License-Identifier: BSD-2-Clause */
/* The tables, as the driver makes them and `dmutex sql mariadb` prints them.  No libmariadb here. */
#ifndef DM_MARIADB_SCHEMA_H
#define DM_MARIADB_SCHEMA_H

/* The most bytes of a prefix: a table's name has 64 characters at most. */
#define DM_MARIA_PREFIX_MAX 54

/* In each statement, @ stands for the prefix, and # for an account; both are written as they come. */
enum { DM_MARIA_MAKE_COUNT = 4, DM_MARIA_GRANT_COUNT = 3, DM_MARIA_RESTORE_COUNT = 3 };

extern const char *const dm_maria_make_forms[DM_MARIA_MAKE_COUNT];   /* in this order; each commits by itself */
extern const char *const dm_maria_grant_forms[DM_MARIA_GRANT_COUNT]; /* for each account that locks */
/* After a backup was restored.  The lock waits for swaps that have seen the old epoch. */
extern const char *const dm_maria_restore_forms[DM_MARIA_RESTORE_COUNT];

/* Fills in prefix and account.  New memory, or NULL. */
char *dm_maria_fill(const char *form, const char *prefix, const char *account);

#endif
