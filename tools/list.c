/* SPDX-License-Identifier: BSD-2-Clause */
/* dmutex list: the names that the server knows, in a table. */
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "gather.h"
#include "say.h"
#include "tool.h"

/* ---- the table --------------------------------------------------------------------------- */

/* What the last holder of a free mutex has left. */
static const char *words_of_health(const struct seen *seen)
{
    switch (seen->data.info.shown.health) {
    case 0:
        return "";
    case 1:
        return ", not released";
    default:
        return ", not recoverable";
    }
}

static void describe(const struct seen *seen, char ret_text[SEEN_PARTY_ROOM])
{
    if (seen->fault)
        snprintf(ret_text, SEEN_PARTY_ROOM, "?");
    else if (seen_is_condition(seen))
        snprintf(ret_text, SEEN_PARTY_ROOM, "(condition)");
    else if (seen->data.info.shown.locked)
        seen_holder(seen, ret_text);
    else
        snprintf(ret_text, SEEN_PARTY_ROOM, "(free%s)", words_of_health(seen));
}

static void print_row(const struct seen *seen, int name_columns, int holder_columns)
{
    char name[SAY_NAME_ROOM], holder[SEEN_PARTY_ROOM], time[SAY_TIME_ROOM] = "";

    describe(seen, holder);
    if (seen->data.info.shown.locked)
        say_time(seen->data.info.held_ms, time);
    say_cell(say_name(seen->name, name), name_columns, INT_MAX);
    say_cell(holder, holder_columns, INT_MAX);
    printf("%12s  %7" PRIu32 "\n", time, seen->data.info.shown.waiters);
}

static void print(const struct gathered *list)
{
    int names = say_width("NAME"), holders = say_width("HELD BY");
    char text[SAY_NAME_ROOM];

    for (size_t i = 0; i < list->count; i++) {
        int columns = say_width(say_name(list->seen[i].name, text));

        names = columns > names ? columns : names;
        describe(&list->seen[i], text);
        columns = say_width(text);
        holders = columns > holders ? columns : holders;
    }
    say_cell("NAME", names, INT_MAX);
    say_cell("HELD BY", holders, INT_MAX);
    printf("%12s  %7s\n", "FOR", "WAITING");
    for (size_t i = 0; i < list->count; i++)
        print_row(&list->seen[i], names, holders);
}

static void print_json(const struct gathered *list)
{
    struct json json = json_begin(stdout);

    json_open(&json, NULL, '[');
    for (size_t i = 0; i < list->count; i++) {
        json_open(&json, NULL, '{');
        seen_json(&json, &list->seen[i]);
        json_close(&json);
    }
    json_close(&json);
    json_end(&json);
}

/* ---- the subcommand ---------------------------------------------------------------------- */

static int print_all(struct gathered *list, bool is_json)
{
    if (gather(list) != 0)
        return tool_failed_list();
    if (is_json)
        print_json(list);
    else
        print(list);
    gather_clear(list);
    return 0;
}

static int run(int argc, char **argv)
{
    static const struct option options[] = {
        { "all", no_argument, NULL, 'a' },
        { "json", no_argument, NULL, 'j' },
        { NULL, 0, NULL, 0 },
    };
    struct gathered list = { 0 };
    bool is_json = false;
    int option, error;

    while ((option = tool_option(argc, argv, "+a", options)) != -1) {
        if (option == '?')
            return TOOL_USAGE;
        list.has_idle |= option == 'a';
        is_json |= option == 'j';
    }
    if (argc - optind > 1)
        return tool_misused(argv, "give at most one pattern");
    list.pattern = argv[optind];
    error = tool_configure();
    return error ? error : print_all(&list, is_json);
}

const struct subcommand subcommand_list = {
    .name = "list",
    .arguments = "[-a] [--json] [PATTERN]",
    .purpose = "list the locks that are held or waited for",
    .options = "  -a, --all     include free locks that the server remembers\n"
               "\n"
               "PATTERN is a shell pattern, as in 'billing/*'.  The user on the server needs the right +scan.\n",
    .run = run,
};
