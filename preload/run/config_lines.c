/* SPDX-License-Identifier: BSD-2-Clause */
#include "config_lines.h"

#include <string.h>

#include "refuse.h"

GHashTable *config_lines_new(void)
{
    return g_hash_table_new_full(g_str_hash, g_str_equal, g_free, g_free);
}

/* For all files: a section that occurs twice would be merged, and the last key would win. */
static bool note_section(GHashTable *sections, const char *section, const char *place, GError **error)
{
    const char *before = g_hash_table_lookup(sections, section);

    if (before)
        return refuse(error, REFUSE_CONFIG, "%s: %s is in %s already: make one of the two", place, section, before);
    g_hash_table_insert(sections, g_strdup(section), g_strdup(place));
    return true;
}

/* Within a section. The message mentions the semicolon, because Match= takes several values on one line. */
static bool note_key(GHashTable *keys, const char *key, const char *section, const char *place, GError **error)
{
    const char *before = g_hash_table_lookup(keys, key);

    if (before)
        return refuse(error, REFUSE_CONFIG,
                      "%s: %s %s is in %s already: make one line of both, its values separated by ;", place, section,
                      key, before);
    g_hash_table_insert(keys, g_strdup(key), g_strdup(place));
    return true;
}

/* `[lock a]` of a line `[lock a] `. A malformed line is left to GKeyFile, which refuses it with its own message. */
static char *section_of(const char *line)
{
    const char *end = strchr(line, ']');

    return end ? g_strndup(line, (gsize)(end - line) + 1) : g_strdup(line);
}

static char *key_of(const char *line)
{
    return g_strchomp(g_strndup(line, strcspn(line, "=")));
}

/* Runs before GKeyFile reads the same text, and only refuses repetitions; GKeyFile reports all other faults. */
bool config_lines_check(GHashTable *sections, const char *path, const char *text, GError **error)
{
    g_auto(GStrv) lines = g_strsplit(text, "\n", -1);
    g_autoptr(GHashTable) keys = config_lines_new();
    g_autofree char *section = g_strdup("");

    for (int i = 0; lines[i]; i++) {
        const char *line = g_strstrip(lines[i]);
        g_autofree char *place = g_strdup_printf("%s:%d", path, i + 1);
        g_autofree char *key = NULL;

        if (!*line || *line == '#')
            continue;
        if (*line == '[') {
            g_free(section);
            section = section_of(line);
            g_hash_table_remove_all(keys);
            if (!note_section(sections, section, place, error))
                return false;
            continue;
        }
        key = key_of(line);
        if (!note_key(keys, key, section, place, error))
            return false;
    }
    return true;
}
