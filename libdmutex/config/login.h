/* SPDX-License-Identifier: BSD-2-Clause */
/* User and password for a server.  They may come from files, which are read again for each connection. */
#ifndef DM_CONFIG_LOGIN_H
#define DM_CONFIG_LOGIN_H

#include <stdbool.h>

#include "base/text.h"

struct dm_login {
    char *user;     /* or NULL */
    char *password; /* or NULL */
};

/* Wipes and frees a text that may be secret.  NULL is allowed. */
void dm_login_wipe(char *text);
void dm_login_clear(struct dm_login *login);

/*
 * Reads the first line of a file, without the line end, into new memory.  Refuses an empty line, and a line of 510
 * bytes or more.  Returns NULL with the reason, which quotes nothing of the path or the line.  Blocks as long as a read
 * of the file does.
 */
char *dm_login_read_line(const char *path, char ret_reason[DM_REASON_ROOM]);

/*
 * Reads the files that are named, and copies a text that has no file.  Returns false with the reason, which may name a
 * path; *ret_login is untouched then.
 */
bool dm_login_read(const struct dm_login *texts, const char *user_file, const char *password_file,
                   struct dm_login *ret_login, char ret_reason[DM_REASON_ROOM]);

#endif
