/* SPDX-License-Identifier: BSD-2-Clause */
/* dmutex list: the names that the server knows, in a table. */
#include <fnmatch.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <dmutex/dmutex.h>

#include "api/view.h"
#include "say.h"
#include "seen.h"
#include "tool.h"

struct list {
    const char *pattern; /* NULL: all names */
    bool has_idle;       /* free names without waiters, too */
    struct seen *seen;
    size_t count, room;
};

/* A name that somebody may want to know of: held, waited for, or with a fault. */
static bool is_busy(const struct seen *seen)
{
    const dmutex_info_t *shown = &seen->data.info.shown;

    return shown->locked || shown->waiters || shown->health || seen->fault;
}

static bool is_wanted(const struct list *list, const struct seen *seen)
{
    return (list->has_idle || is_busy(seen)) && (!list->pattern || fnmatch(list->pattern, seen->name, 0) == 0);
}

/* Doubles the room, because a server may have a million names. */
static bool has_room(struct list *list)
{
    size_t room = list->room ? 2 * list->room : 64;
    struct seen *more;

    if (list->count < list->room)
        return true;
    more = reallocarray(list->seen, room, sizeof *more);
    if (!more)
        return false;
    list->seen = more;
    list->room = room;
    return true;
}

static void keep(void *user, const struct dm_seen *data)
{
    struct list *list = user;
    struct seen seen = seen_copy(data);

    if (is_wanted(list, &seen) && has_room(list))
        list->seen[list->count++] = seen;
    else
        seen_clear(&seen);
}

/* By name, and a mutex before a condition of the same name. */
static int compare(const void *one, const void *other)
{
    const struct seen *a = one, *b = other;
    int order = strcmp(a->name, b->name);

    return order ? order : seen_is_condition(a) - seen_is_condition(b);
}

/* SCAN may tell a name twice: the second stands behind the first now. */
static void sort(struct list *list)
{
    size_t kept = 0;

    if (list->count)
        qsort(list->seen, list->count, sizeof *list->seen, compare);
    for (size_t i = 0; i < list->count; i++) {
        if (kept && strcmp(list->seen[kept - 1].key, list->seen[i].key) == 0)
            seen_clear(&list->seen[i]);
        else
            list->seen[kept++] = list->seen[i];
    }
    list->count = kept;
}

/* ---- the table --------------------------------------------------------------------------- */

/* Characters, not bytes: for columns. */
static int width(const char *text)
{
    int count = 0;

    for (; *text; text++)
        count += ((unsigned char)*text & 0xC0) != 0x80;
    return count;
}

static void print_cell(const char *text, int columns)
{
    printf("%s%*s", text, columns > width(text) ? columns - width(text) : 0, "");
}

static void describe(const struct seen *seen, char ret_text[SEEN_PARTY_ROOM])
{
    if (seen->fault)
        snprintf(ret_text, SEEN_PARTY_ROOM, "?");
    else if (seen_is_condition(seen))
        snprintf(ret_text, SEEN_PARTY_ROOM, "(condition)");
    else if (seen->data.info.shown.locked)
        seen_holder(seen, ret_text);
    else if (seen->data.info.shown.health)
        snprintf(ret_text, SEEN_PARTY_ROOM, "(free, %s)", seen_health(seen));
    else
        snprintf(ret_text, SEEN_PARTY_ROOM, "(free)");
}

static void print_row(const struct seen *seen, int name_columns, int holder_columns)
{
    char name[SAY_NAME_ROOM], holder[SEEN_PARTY_ROOM], time[SAY_TIME_ROOM] = "";

    describe(seen, holder);
    if (seen->data.info.shown.locked)
        say_time(seen->data.info.held_ms, time);
    print_cell(say_name(seen->name, name), name_columns + 2);
    print_cell(holder, holder_columns + 2);
    printf("%12s  %7" PRIu32 "\n", time, seen->data.info.shown.waiters);
}

static void print(const struct list *list)
{
    int names = width("NAME"), holders = width("HELD BY");
    char text[SAY_NAME_ROOM];

    for (size_t i = 0; i < list->count; i++) {
        int columns = width(say_name(list->seen[i].name, text));

        names = columns > names ? columns : names;
        describe(&list->seen[i], text);
        columns = width(text);
        holders = columns > holders ? columns : holders;
    }
    print_cell("NAME", names + 2);
    print_cell("HELD BY", holders + 2);
    printf("%12s  %7s\n", "FOR", "WAITING");
    for (size_t i = 0; i < list->count; i++)
        print_row(&list->seen[i], names, holders);
}

static void print_json(const struct list *list)
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

/* ---- the word ---------------------------------------------------------------------------- */

static int print_all(struct list *list, bool is_json)
{
    if (dm_view_all(NULL, keep, list) != 0) {
        tool_failed(NULL);
        if (strstr(dmutex_strerror_np(), "scan"))
            say("a list needs the right +scan: see dmutex acl --ops");
        return TOOL_UNREACHABLE;
    }
    sort(list);
    if (is_json)
        print_json(list);
    else
        print(list);
    for (size_t i = 0; i < list->count; i++)
        seen_clear(&list->seen[i]);
    free(list->seen);
    return 0;
}

static int run(int argc, char **argv)
{
    static const struct option options[] = {
        { "all", no_argument, NULL, 'a' },
        { "json", no_argument, NULL, 'j' },
        { NULL, 0, NULL, 0 },
    };
    struct list list = { 0 };
    bool is_json = false;
    int option, error;

    while ((option = tool_option(argc, argv, "+a", options)) != -1) {
        if (option == '?')
            return TOOL_USAGE;
        list.has_idle |= option == 'a';
        is_json |= option == 'j';
    }
    if (argc - optind > 1)
        return tool_misused(argv, "one pattern at most");
    list.pattern = argv[optind];
    error = tool_configure();
    return error ? error : print_all(&list, is_json);
}

const struct word word_list = {
    .name = "list",
    .arguments = "[-a] [--json] [PATTERN]",
    .purpose = "list the locks that are held or waited for",
    .options = "  -a, --all     free locks, too, as far as the server remembers them\n"
               "\n"
               "The pattern is a shell's: 'billing/*'.  The server's user needs the right +scan.\n",
    .run = run,
};
