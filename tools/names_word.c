/* SPDX-License-Identifier: BSD-2-Clause */
/* dmutex names: see names.c. */
#include <stdio.h>

#include "names.h"
#include "tool.h"

static int print_json(char **argv)
{
    struct json json = json_begin(stdout);
    int result;

    json_open(&json, NULL, '[');
    result = names_print(argv[0], argv + optind, &json);
    json_close(&json);
    json_end(&json);
    return result;
}

static int run(int argc, char **argv)
{
    static const struct option options[] = { { "json", no_argument, NULL, 'j' }, { NULL, 0, NULL, 0 } };
    bool is_json = false;
    int option, result;

    while ((option = tool_option(argc, argv, "+", options)) != -1) {
        if (option == '?')
            return TOOL_USAGE;
        is_json = true;
    }
    if (!argv[optind])
        return tool_misused(argv, "which files?");
    result = is_json ? print_json(argv) : names_print(argv[0], argv + optind, NULL);
    return result == NAMES_TROUBLE ? TOOL_NO_INPUT : result ? TOOL_NO : 0;
}

const struct word word_names = {
    .name = "names",
    .arguments = "[--json] FILE...",
    .purpose = "list the names that a program, library or object file gives by static initialisers",
    .options = "Exit status: 1 if a name cannot be used, 66 if a file cannot be read.\n",
    .run = run,
};
