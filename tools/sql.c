/* SPDX-License-Identifier: BSD-2-Clause */
/* dmutex sql: prints the statements with which an admin prepares a database for locks. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "config/url.h"
#include "say.h"
#include "stores/postgres/schema.h"
#include "tool.h"

#define PREFIX_MAX 63 /* bytes of a name of PostgreSQL */

/* False for a name that PostgreSQL would cut. */
static bool is_prefix(const char *text)
{
    size_t length = strlen(text);

    return length && length <= PREFIX_MAX &&
           strspn(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-") == length;
}

/* A name as SQL has it, in new memory; NULL: no memory, or a name that cannot be one. */
static char *quote(const char *name)
{
    char *quoted = *name && strlen(name) <= PREFIX_MAX ? malloc(2 * strlen(name) + 3) : NULL, *to = quoted;

    if (!quoted)
        return NULL;
    *to++ = '"';
    for (; *name; name++) {
        if (*name == '"')
            *to++ = '"';
        *to++ = *name;
    }
    strcpy(to, "\"");
    return quoted;
}

static void print_all(const char *const *forms, int count, const char *prefix, const char *role)
{
    for (int i = 0; i < count; i++) {
        char *statement = dm_pg_fill(forms[i], prefix, role);

        if (statement)
            printf("%s;\n", statement);
        free(statement);
    }
}

static int print(const char *prefix, const char *role, bool is_restored)
{
    char *quoted = quote(role);

    if (!quoted)
        return TOOL_USAGE;
    puts("BEGIN;");
    if (is_restored) {
        print_all(dm_pg_restore_forms, DM_PG_RESTORE_COUNT, prefix, quoted);
    } else {
        print_all(dm_pg_make_forms, DM_PG_MAKE_COUNT, prefix, quoted);
        print_all(dm_pg_grant_forms, DM_PG_GRANT_COUNT, prefix, quoted);
    }
    puts("COMMIT;");
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
    if (!argv[optind] || strcmp(argv[optind], "postgresql") != 0)
        return tool_misused(argv, "say for which kind of database: postgresql");
    if (argc - optind > 2)
        return tool_misused(argv, "give at most one role");
    if (!is_prefix(prefix))
        return tool_misused(argv, "a prefix has 1 to %d letters, digits, \".\", \"_\" and \"-\"", PREFIX_MAX);
    role = argv[optind + 1] ? argv[optind + 1] : "app";
    if (!*role || strlen(role) > PREFIX_MAX)
        return tool_misused(argv, "a role has 1 to %d bytes", PREFIX_MAX);
    return print(prefix, role, is_restored);
}

const struct subcommand subcommand_sql = {
    .name = "sql",
    .arguments = "[--prefix PREFIX] [--restored] postgresql [ROLE]",
    .purpose = "print the statements that prepare a database for locks",
    .options = "      --prefix PREFIX   the schema of the tables, as dmutex.prefix in the URL (default: dmutex)\n"
               "      --restored        the statements for after a backup was restored, before locks are used\n"
               "\n"
               "The tables are made if they are missing, and the role gets the least rights:\n"
               "dmutex sql postgresql app | psql DATABASE\n",
    .run = run,
};
