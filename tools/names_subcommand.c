/* SPDX-License-Identifier: BSD-2-Clause */
/* dmutex names; see names.c. */
#include <stdio.h>

#include "names.h"
#include "tool.h"

static int look(char **argv, bool is_diff, struct json *json)
{
    if (is_diff)
        return names_diff(argv[0], argv[optind], argv[optind + 1], json);
    return names_print(argv[0], argv + optind, json);
}

static int look_in_json(char **argv, bool is_diff)
{
    struct json json = json_begin(stdout);
    int result;

    json_open(&json, NULL, '[');
    result = look(argv, is_diff, &json);
    json_close(&json);
    json_end(&json);
    return result;
}

static int run(int argc, char **argv)
{
    static const struct option options[] = {
        { "diff", no_argument, NULL, 'd' },
        { "json", no_argument, NULL, 'j' },
        { NULL, 0, NULL, 0 },
    };
    bool is_json = false, is_diff = false;
    int option, result;

    while ((option = tool_option(argc, argv, "+", options)) != -1) {
        if (option == '?')
            return TOOL_USAGE;
        is_json |= option == 'j';
        is_diff |= option == 'd';
    }
    if (is_diff && argc - optind != 2)
        return tool_misused(argv, "--diff takes two files: the old build and the new one");
    if (!argv[optind])
        return tool_misused(argv, "give one or more files");
    result = is_json ? look_in_json(argv, is_diff) : look(argv, is_diff, NULL);
    return result == NAMES_TROUBLE ? TOOL_NO_INPUT : result ? TOOL_NO : 0;
}

const struct subcommand subcommand_names = {
    .name = "names",
    .arguments = "[--json] [--diff] FILE...",
    .purpose = "list the names of the static initialisers in a program, library or object file",
    .options =
        "      --diff    compare the automatic names of two builds, OLD and NEW: if a name belongs to another object\n"
        "                in the new build, the two builds must not run on one server\n"
        "\n"
        "Exit status: 1 if a name cannot be used or belongs to another object; 66 if a file cannot be read.\n",
    .run = run,
};
