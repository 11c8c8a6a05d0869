/* SPDX-License-Identifier: BSD-2-Clause */
#include "stores/mariadb/schema.h"

#include <stdlib.h>
#include <string.h>

/*
 * Names are bytes: a text column would take names of different case for one.  The table `start` is in memory, so it is
 * empty whenever the server has started.
 */
const char *const dm_maria_make_forms[DM_MARIA_MAKE_COUNT] = {
    "CREATE TABLE IF NOT EXISTS `@_registers` (\n"
    "    name VARBINARY(250) NOT NULL PRIMARY KEY,\n"
    "    version VARBINARY(24) NOT NULL,\n"
    "    value MEDIUMBLOB NOT NULL,\n"
    "    written BIGINT NOT NULL,\n"
    "    server INT UNSIGNED NOT NULL\n"
    ") ENGINE=InnoDB",
    "CREATE TABLE IF NOT EXISTS `@_epoch` (\n"
    "    single TINYINT NOT NULL PRIMARY KEY,\n"
    "    id BINARY(16) NOT NULL\n"
    ") ENGINE=InnoDB",
    "CREATE TABLE IF NOT EXISTS `@_start` (\n"
    "    single TINYINT NOT NULL PRIMARY KEY,\n"
    "    id BINARY(16) NOT NULL\n"
    ") ENGINE=MEMORY",
    "INSERT INTO `@_epoch` VALUES (1, UNHEX(REPLACE(UUID(), '-', ''))) ON DUPLICATE KEY UPDATE single = 1",
};

const char *const dm_maria_grant_forms[DM_MARIA_GRANT_COUNT] = {
    "GRANT SELECT, INSERT, UPDATE, DELETE ON `@_registers` TO #",
    "GRANT SELECT ON `@_epoch` TO #",
    "GRANT SELECT, INSERT ON `@_start` TO #",
};

const char *const dm_maria_restore_forms[DM_MARIA_RESTORE_COUNT] = {
    "LOCK TABLES `@_registers` WRITE, `@_epoch` WRITE",
    "UPDATE `@_epoch` SET id = UNHEX(REPLACE(UUID(), '-', ''))",
    "UNLOCK TABLES",
};

char *dm_maria_fill(const char *form, const char *prefix, const char *account)
{
    size_t longest = strlen(prefix) > strlen(account) ? strlen(prefix) : strlen(account), marks = 0;
    char *text, *to;

    for (const char *at = form; *at; at++)
        marks += *at == '@' || *at == '#';
    text = to = malloc(strlen(form) + marks * longest + 1);
    for (; text && *form; form++) {
        if (*form == '@')
            to = stpcpy(to, prefix);
        else if (*form == '#')
            to = stpcpy(to, account);
        else
            *to++ = *form;
    }
    if (text)
        *to = '\0';
    return text;
}
