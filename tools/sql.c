/* SPDX-License-Identifier: BSD-2-Clause */
/* dmutex sql: prints the statements with which an admin prepares a database for locks. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "config/url.h"
#include "say.h"
#include "stores/mariadb/schema.h"
#include "stores/postgres/schema.h"
#include "tool.h"

#define ROLE_MAX 63 /* bytes of a name of PostgreSQL */

/* What is printed for one kind of database. */
struct database {
    const char *name;
    size_t prefix_max;
    const char *const *make, *const *grant, *const *restore;
    int make_count, grant_count, restore_count;
    const char *begin, *commit; /* lines around them, or "" */
    char *(*fill)(const char *form, const char *prefix, const char *role);
    char *(*quote)(const char *name); /* in new memory, or NULL */
};

static bool is_prefix(const char *text, size_t most)
{
    size_t length = strlen(text);

    return length && length <= most &&
           strspn(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-") == length;
}

/* Appends a text between marks, which are doubled inside it. */
static char *append_quoted(char *to, const char *text, size_t length, char mark)
{
    *to++ = mark;
    for (size_t i = 0; i < length; i++) {
        if (text[i] == mark)
            *to++ = mark;
        *to++ = text[i];
    }
    *to++ = mark;
    *to = '\0';
    return to;
}

static char *quote_role(const char *name)
{
    char *quoted = malloc(2 * strlen(name) + 3);

    if (quoted)
        append_quoted(quoted, name, strlen(name), '"');
    return quoted;
}

/* An account is USER or USER@HOST; without a host it is for all. */
static char *quote_account(const char *name)
{
    const char *at = strrchr(name, '@');
    char *quoted = malloc(2 * strlen(name) + 9), *to = quoted;

    if (!quoted)
        return NULL;
    to = append_quoted(to, name, at ? (size_t)(at - name) : strlen(name), '`');
    *to++ = '@';
    append_quoted(to, at ? at + 1 : "%", at ? strlen(at + 1) : 1, '`');
    return quoted;
}

static const struct database databases[] = {
    { .name = "postgresql",
      .prefix_max = 63, /* of a schema's name, which PostgreSQL would cut */
      .make = dm_pg_make_forms,
      .make_count = DM_PG_MAKE_COUNT,
      .grant = dm_pg_grant_forms,
      .grant_count = DM_PG_GRANT_COUNT,
      .restore = dm_pg_restore_forms,
      .restore_count = DM_PG_RESTORE_COUNT,
      .begin = "BEGIN;\n",
      .commit = "COMMIT;\n",
      .fill = dm_pg_fill,
      .quote = quote_role },
    { .name = "mariadb",
      .prefix_max = DM_MARIA_PREFIX_MAX,
      .make = dm_maria_make_forms,
      .make_count = DM_MARIA_MAKE_COUNT,
      .grant = dm_maria_grant_forms,
      .grant_count = DM_MARIA_GRANT_COUNT,
      .restore = dm_maria_restore_forms,
      .restore_count = DM_MARIA_RESTORE_COUNT,
      .begin = "",
      .commit = "",
      .fill = dm_maria_fill,
      .quote = quote_account },
};

/* NULL: it is none of ours. */
static const struct database *find_database(const char *name)
{
    for (size_t i = 0; name && i < sizeof databases / sizeof databases[0]; i++) {
        if (strcmp(databases[i].name, name) == 0)
            return &databases[i];
    }
    return NULL;
}

static void print_all(const struct database *database, const char *const *forms, int count, const char *prefix,
                      const char *role)
{
    for (int i = 0; i < count; i++) {
        char *statement = database->fill(forms[i], prefix, role);

        if (statement)
            printf("%s;\n", statement);
        free(statement);
    }
}

static int print(const struct database *database, const char *prefix, const char *role, bool is_restored)
{
    char *quoted = database->quote(role);

    if (!quoted)
        return TOOL_USAGE;
    fputs(database->begin, stdout);
    if (is_restored) {
        print_all(database, database->restore, database->restore_count, prefix, quoted);
    } else {
        print_all(database, database->make, database->make_count, prefix, quoted);
        print_all(database, database->grant, database->grant_count, prefix, quoted);
    }
    fputs(database->commit, stdout);
    free(quoted);
    return 0;
}

static int run(int argc, char **argv)
{
    static const struct option options[] = {
        { "prefix", required_argument, NULL, 'p' },
        { "restored", no_argument, NULL, 'r' },
        { NULL, 0, NULL, 0 },
    };
    const struct database *database;
    const char *prefix = "dmutex", *role;
    bool is_restored = false;
    int option;

    while ((option = tool_option(argc, argv, "+", options)) != -1) {
        if (option == '?')
            return TOOL_USAGE;
        if (option == 'p')
            prefix = optarg;
        is_restored |= option == 'r';
    }
    database = find_database(argv[optind]);
    if (!database)
        return tool_misused(argv, "say for which kind of database: postgresql or mariadb");
    if (argc - optind > 2)
        return tool_misused(argv, "give at most one role");
    if (!is_prefix(prefix, database->prefix_max))
        return tool_misused(argv, "a prefix has 1 to %zu letters, digits, \".\", \"_\" and \"-\"",
                            database->prefix_max);
    role = argv[optind + 1] ? argv[optind + 1] : "app";
    if (!*role || strlen(role) > ROLE_MAX)
        return tool_misused(argv, "a role has 1 to %d bytes", ROLE_MAX);
    return print(database, prefix, role, is_restored);
}

const struct subcommand subcommand_sql = {
    .name = "sql",
    .arguments = "[--prefix PREFIX] [--restored] postgresql|mariadb [ROLE]",
    .purpose = "print the statements that prepare a database for locks",
    .options = "      --prefix PREFIX   the schema of the tables, as dmutex.prefix in the URL (default: dmutex);\n"
               "                        of MariaDB the beginning of their names, as prefix in the URL\n"
               "      --restored        the statements for after a backup was restored, before locks are used\n"
               "\n"
               "The tables are made if they are missing, and the role gets the least rights:\n"
               "dmutex sql postgresql app | psql DATABASE\n"
               "dmutex sql mariadb app@localhost | mariadb DATABASE\n",
    .run = run,
};
