/* SPDX-License-Identifier: BSD-2-Clause */
/* User and password for a server, perhaps from files, which are read again for each connection. */
#ifndef DM_CONFIG_LOGIN_H
#define DM_CONFIG_LOGIN_H

#include <stdbool.h>

#include "base/text.h"

struct dm_login {
    char *user;     /* or NULL */
    char *password; /* or NULL */
};

/* Frees a text that may be a secret, wiped before malloc gets the memory back.  NULL is allowed. */
void dm_login_wipe(char *text);
void dm_login_clear(struct dm_login *login);

/*
 * Reads the first line of a file, without the line end, into new memory.  NULL with the reason, which has no part of
 * the path or the line, for an empty line or a line of 510 bytes or more.  Blocks as a read of the file.
 */
char *dm_login_read_line(const char *path, char ret_reason[DM_REASON_ROOM]);

/*
 * Reads the files that are named; a text without a file is copied.  False with the reason, which may name a path, and
 * *ret_login untouched.
 */
bool dm_login_read(const struct dm_login *texts, const char *user_file, const char *password_file,
                   struct dm_login *ret_login, char ret_reason[DM_REASON_ROOM]);

#endif
