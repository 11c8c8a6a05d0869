/* SPDX-License-Identifier: BSD-2-Clause */
#include "stores/postgres/schema.h"

#include <stdlib.h>
#include <string.h>

const char *const dm_pg_make_forms[DM_PG_MAKE_COUNT] = {
    "CREATE SCHEMA IF NOT EXISTS @",
    "CREATE TABLE IF NOT EXISTS @.registers (\n"
    "    name bytea PRIMARY KEY,\n"
    "    version bytea NOT NULL,\n"
    "    value bytea NOT NULL,\n"
    "    written timestamptz NOT NULL,\n"
    "    timeline integer NOT NULL\n"
    ") WITH (fillfactor = 50, toast_tuple_target = 8160)",
    "ALTER TABLE @.registers ALTER COLUMN value SET STORAGE EXTERNAL",
    "CREATE TABLE IF NOT EXISTS @.epoch (\n"
    "    single boolean PRIMARY KEY DEFAULT true CHECK (single),\n"
    "    id uuid NOT NULL DEFAULT gen_random_uuid(),\n"
    "    drawn timestamptz NOT NULL DEFAULT clock_timestamp()\n"
    ")",
    "INSERT INTO @.epoch DEFAULT VALUES ON CONFLICT DO NOTHING",
};

const char *const dm_pg_grant_forms[DM_PG_GRANT_COUNT] = {
    "GRANT USAGE ON SCHEMA @ TO #",
    "GRANT SELECT, INSERT, UPDATE, DELETE ON @.registers TO #",
    "GRANT SELECT ON @.epoch TO #",
};

const char *const dm_pg_restore_forms[DM_PG_RESTORE_COUNT] = {
    "LOCK TABLE @.registers IN EXCLUSIVE MODE",
    "UPDATE @.epoch SET id = gen_random_uuid(), drawn = clock_timestamp()",
};

char *dm_pg_fill(const char *form, const char *schema, const char *role)
{
    size_t longest = strlen(schema) > strlen(role) ? strlen(schema) : strlen(role), marks = 0;
    char *text, *to;

    for (const char *at = form; *at; at++)
        marks += *at == '@' || *at == '#';
    text = to = malloc(strlen(form) + marks * (longest + 2) + 1);
    for (; text && *form; form++) {
        if (*form == '@') {
            *to++ = '"';
            to = stpcpy(to, schema);
            *to++ = '"';
        } else if (*form == '#') {
            to = stpcpy(to, role);
        } else {
            *to++ = *form;
        }
    }
    if (text)
        *to = '\0';
    return text;
}
