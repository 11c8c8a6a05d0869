/* SPDX-License-Identifier: BSD-2-Clause */
/* dmutex acl: the line for the server that makes a user with the least rights. */
#include <stdio.h>
#include <string.h>

#include "json.h"
#include "rights.h"
#include "tool.h"

/* The prefix and the database of the configured server, if one is configured. */
static void print_line(const struct dm_url *url, const char *user, bool has_ops)
{
    const char *prefix = url ? url->prefix : "dmutex";

    printf("ACL SETUSER %s on >PASSWORD resetkeys ~%s:* resetchannels &%s:inbox:* -@all", user, prefix, prefix);
    for (size_t i = 0; i < right_count; i++)
        if (has_ops || !rights[i].is_for_ops)
            printf(" %s", rights[i].rule);
    puts(url && url->db ? " +select" : "");
}

static void print_json(const struct dm_url *url, const char *user, bool has_ops)
{
    struct json json = json_begin(stdout);
    char pattern[100];

    json_open(&json, NULL, '{');
    json_text(&json, "user", user);
    snprintf(pattern, sizeof pattern, "%.60s:*", url ? url->prefix : "dmutex");
    json_text(&json, "keys", pattern);
    snprintf(pattern, sizeof pattern, "%.60s:inbox:*", url ? url->prefix : "dmutex");
    json_text(&json, "channels", pattern);
    json_open(&json, "rights", '[');
    for (size_t i = 0; i < right_count; i++)
        if (has_ops || !rights[i].is_for_ops)
            json_text(&json, NULL, rights[i].rule);
    if (url && url->db)
        json_text(&json, NULL, "+select");
    json_close(&json);
    json_close(&json);
    json_end(&json);
}

static int run(int argc, char **argv)
{
    static const struct option options[] = {
        { "ops", no_argument, NULL, 'o' },
        { "json", no_argument, NULL, 'j' },
        { NULL, 0, NULL, 0 },
    };
    bool has_ops = false, is_json = false;
    struct dm_url *url = NULL;
    const char *user;
    int option;

    while ((option = tool_option(argc, argv, "+", options)) != -1) {
        if (option == '?')
            return TOOL_USAGE;
        has_ops |= option == 'o';
        is_json |= option == 'j';
    }
    if (argc - optind > 1)
        return tool_misused(argv, "one user at most");
    user = argv[optind] ? argv[optind] : "app";
    if (!*user || strpbrk(user, " \t\r\n\"'\\"))
        return tool_misused(argv, "no name of a user: \"%s\"", user);
    if (tool_has_url() && tool_find_url(&url) != 0)
        return TOOL_CONFIG;
    if (is_json)
        print_json(url, user, has_ops);
    else
        print_line(url, user, has_ops);
    dm_url_free(url);
    return 0;
}

const struct word word_acl = {
    .name = "acl",
    .arguments = "[--ops] [--json] [USER]",
    .purpose = "print the server's command that makes a user with the least rights",
    .options = "      --ops     with the rights of a person who looks at locks: list, and all checks of doctor\n"
               "\n"
               "Prefix and database are those of the configured server.\n",
    .run = run,
};
