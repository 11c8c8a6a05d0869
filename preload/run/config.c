/* SPDX-License-Identifier: BSD-2-Clause */
#include "config.h"

#include <string.h>

#include "config_files.h"
#include "config_lines.h"
#include "refuse.h"
#include "wording.h"

#define LOCK "lock " /* begins the section of a mutex */

/* The settings of a mutex, with their names here and in DMUTEX_RULES. */
static const struct setting {
    const char *key, *word, *form;
} settings[] = {
    { "Lease", "lease", "a time from 100 ms to 1 hour: 10s, 500ms, 2min, or bare milliseconds" },
    { "Linger", "linger", "a time up to 1 hour: 10s, 500ms, 2min, or bare milliseconds" },
    { "Robust", "robust", "yes or no" },
    { "OnDown", "ondown", "block, fail or local" },
    { "OnLost", "onlost", "log, kill, or signal:TERM (or INT, HUP, USR1, USR2, ABRT, STOP)" },
    { "Program", "program", "the name of a program, or its absolute path" },
    { "Required", "required", "yes, no or auto" },
    { "SharedState", "sharedstate", "yes or no" },
    { "Shared", "shared", "exclusive or refuse" },
};

/*
 * The settings of a section, each as ` word=value`; NULL: none. The texts belong to the plan. So copying the defaults
 * is a plain copy, and a lock's own settings replace the copied ones.
 */
struct values {
    const char *words[G_N_ELEMENTS(settings)];
};

/* The state while reading. */
struct reader {
    struct plan *plan;
    const char *path;
    GKeyFile *file;
    struct values *defaults; /* of all files */
};

static bool complain(const struct reader *reader, const char *section, const char *key, const char *sentence,
                     GError **error)
{
    return refuse(error, REFUSE_CONFIG, "%s: [%s]%s%s: %s", reader->path, section, key ? " " : "", key ? key : "",
                  sentence);
}

/* The key's values, possibly an empty list; NULL, refused, for an escape that GKeyFile does not know. */
static char **values_of(const struct reader *reader, const char *section, const char *key, GError **error)
{
    g_autoptr(GError) reason = NULL;
    char **values = g_key_file_get_string_list(reader->file, section, key, NULL, &reason);

    if (!values && g_error_matches(reason, G_KEY_FILE_ERROR, G_KEY_FILE_ERROR_KEY_NOT_FOUND))
        return g_new0(char *, 1);
    if (!values)
        complain(reader, section, key, reason->message, error);
    for (char **value = values; value && *value; value++)
        g_strstrip(*value);
    return values;
}

/* The same for a key with one value. */
static char *value_of(const struct reader *reader, const char *section, const char *key, GError **error)
{
    g_autoptr(GError) reason = NULL;
    char *value = g_key_file_get_string(reader->file, section, key, &reason);

    if (!value)
        complain(reader, section, key, reason->message, error);
    return value ? g_strstrip(value) : NULL;
}

/* ---- settings ---------------------------------------------------------------------------- */

/*
 * ` word=value`, or NULL if the parser of rules refuses it. Tries the module's own parser, so that the two can never
 * differ on what a value may be.
 */
static char *words_of(const struct setting *setting, const char *value)
{
    g_autoptr(GString) words = g_string_new(NULL);
    g_autofree char *trial = NULL;
    char reason[RULES_REASON_ROOM];
    struct rule rule;

    g_string_append_printf(words, " %s=", setting->word);
    wording_escape(words, value);
    trial = g_strconcat("flock:/f => n", words->str, NULL);
    return rules_parse(trial, &rule, reason) == 1 ? g_strdup(words->str) : NULL;
}

static bool read_setting(const struct reader *reader, const char *section, const struct setting *setting,
                         struct values *values, GError **error)
{
    g_autofree char *value = value_of(reader, section, setting->key, error);
    g_autofree char *words = value ? words_of(setting, value) : NULL;
    g_autofree char *sentence = NULL;

    if (!value)
        return false;
    sentence = g_strdup_printf("\"%s\" is not %s", value, setting->form);
    if (!words)
        return complain(reader, section, setting->key, sentence, error);
    values->words[setting - settings] = plan_keep(reader->plan, words);
    return true;
}

static const struct setting *setting_by_key(const char *key)
{
    for (size_t i = 0; i < G_N_ELEMENTS(settings); i++)
        if (strcmp(settings[i].key, key) == 0)
            return &settings[i];
    return NULL;
}

/* The key that the user may have meant; NULL if none is similar. */
static const char *meant(const char *key)
{
    for (size_t i = 0; i < G_N_ELEMENTS(settings); i++)
        if (g_ascii_strcasecmp(settings[i].key, key) == 0)
            return settings[i].key;
    return NULL;
}

/*
 * Unknown keys and sections are refused: if a key is misspelt, the default would silently apply, and a lock might not
 * be one.
 */
static bool complain_of_key(const struct reader *reader, const char *section, const char *key, GError **error)
{
    const char *near = meant(key);
    g_autofree char *sentence = near ? g_strdup_printf("there is no such key; it is written %s", near)
                                     : g_strdup("there is no such key here: dmutex-preload(5) has the list");

    return complain(reader, section, key, sentence, error);
}

/* Reads all settings of the section. `others`: keys that are not settings, which are left to the caller. */
static bool read_settings(const struct reader *reader, const char *section, const char *const others[],
                          struct values *values, GError **error)
{
    g_auto(GStrv) keys = g_key_file_get_keys(reader->file, section, NULL, error);

    for (char **key = keys; key && *key; key++) {
        const struct setting *setting = setting_by_key(*key);

        if (!setting && others && g_strv_contains(others, *key))
            continue;
        if (!setting)
            return complain_of_key(reader, section, *key, error);
        if (!read_setting(reader, section, setting, values, error))
            return false;
    }
    return keys != NULL;
}

/* ---- sections ---------------------------------------------------------------------------- */

/*
 * There is only one such section in all files, because config_lines_check() refuses a second. The path is kept, because
 * a password is passed on through the file and not the environment (set_server()).
 */
static bool read_server(const struct reader *reader, const char *section, GError **error)
{
    struct plan *plan = reader->plan;
    g_auto(GStrv) keys = g_key_file_get_keys(reader->file, section, NULL, error);

    for (char **key = keys; key && *key; key++)
        if (strcmp(*key, "Url") != 0)
            return complain(reader, section, *key, "there is no such key here, only Url", error);
    if (!keys || !keys[0])
        return complain(reader, section, NULL, "has no Url", error);
    plan->url = value_of(reader, section, "Url", error);
    plan->url_from = g_strdup_printf("%s: [server] Url", reader->path);
    plan->url_file = g_strdup(reader->path);
    if (!plan->url)
        return false;
    return *plan->url || complain(reader, section, "Url", "is empty: write redis://HOST or unix:///PATH", error);
}

/*
 * The name of the condition variable at this position of Cond=. Each is separate, in the mutex's group, because two
 * conditions with one name would take each other's signals. The first has the mutex's name: names of mutexes and of
 * conditions do not collide. A mutex without a slash is its own group, so the slash comes before the number.
 */
static char *condition_name(const char *mutex, guint index)
{
    if (index == 0)
        return g_strdup(mutex);
    return g_strdup_printf("%s%s%u", mutex, strchr(mutex, '/') ? "." : "/", index + 1);
}

/*
 * Reads one value of Match= or Cond=. The file's escapes have been removed, and those of DMUTEX_RULES are added. The
 * rules are in the order of files and sections: the first one that matches wins.
 */
static bool read_rule(const struct reader *reader, const char *origin, const char *match, const char *name,
                      const char *words, GError **error)
{
    g_autoptr(GString) text = g_string_new(NULL);

    wording_escape(text, match);
    g_string_append(text, " => ");
    wording_escape(text, name);
    g_string_append(text, words);
    return plan_read(reader->plan, reader->plan->rules, text->str, origin, error);
}

/* All mutexes of a section have the same name: they are one mutex, and exclude each other. */
static bool read_mutexes(const struct reader *reader, const char *section, const char *words, GError **error)
{
    g_auto(GStrv) values = values_of(reader, section, "Match", error);
    g_autofree char *place = g_strdup_printf("%s: [%s] Match", reader->path, section);
    const char *origin = plan_keep(reader->plan, place);

    if (!values)
        return false;
    if (!values[0])
        return complain(reader, section, "Match", "is empty", error);
    for (char **value = values; *value; value++) {
        if (g_str_has_prefix(*value, "cond:"))
            return complain(reader, section, "Match", "a condition variable belongs into Cond=", error);
        if (!read_rule(reader, origin, *value, section + strlen(LOCK), words, error))
            return false;
    }
    return true;
}

static bool read_conditions(const struct reader *reader, const char *section, const char *words, GError **error)
{
    g_auto(GStrv) values = values_of(reader, section, "Cond", error);
    g_autofree char *place = g_strdup_printf("%s: [%s] Cond", reader->path, section);
    const char *origin = plan_keep(reader->plan, place);

    if (!values)
        return false;
    for (guint i = 0; values[i]; i++) {
        bool is_complete = g_str_has_prefix(values[i], "cond:"); /* as --list shows a rule */
        g_autofree char *rule = g_strconcat(is_complete ? "" : "cond:", values[i], NULL);
        g_autofree char *name = condition_name(section + strlen(LOCK), i);

        if (!read_rule(reader, origin, rule, name, words, error))
            return false;
    }
    return true;
}

/* Blanks around a name are refused: they are invisible, but would make it the name of another mutex. */
static bool read_lock(const struct reader *reader, const char *section, GError **error)
{
    static const char *const others[] = { "Match", "Cond", NULL };
    struct values values = *reader->defaults;
    g_autoptr(GString) words = g_string_new(NULL);
    const char *name = section + strlen(LOCK);

    if (!*name || g_ascii_isspace(*name) || g_ascii_isspace(name[strlen(name) - 1]))
        return complain(reader, section, NULL, "a name must follow, without blanks around it", error);
    if (!g_key_file_has_key(reader->file, section, "Match", NULL))
        return complain(reader, section, NULL, "has no Match: which mutex or lock file is it?", error);
    if (!read_settings(reader, section, others, &values, error))
        return false;
    for (size_t i = 0; i < G_N_ELEMENTS(values.words); i++)
        g_string_append(words, values.words[i] ? values.words[i] : "");
    return read_mutexes(reader, section, words->str, error) && read_conditions(reader, section, words->str, error);
}

/* ---- files ------------------------------------------------------------------------------- */

/*
 * Reads everything except the locks: these need the defaults, which may follow them or be in another file. So each pass
 * goes over all files.
 */
static bool read_common(const struct reader *reader, GError **error)
{
    g_auto(GStrv) sections = g_key_file_get_groups(reader->file, NULL);

    for (char **section = sections; *section; section++) {
        bool is_good = true;

        if (strcmp(*section, "server") == 0)
            is_good = read_server(reader, *section, error);
        else if (strcmp(*section, "defaults") == 0)
            is_good = read_settings(reader, *section, NULL, reader->defaults, error);
        else if (!g_str_has_prefix(*section, LOCK))
            is_good = complain(reader, *section, NULL,
                               "there is no such section: there are [server], [defaults] and [lock NAME]", error);
        if (!is_good)
            return false;
    }
    return true;
}

static bool read_locks(const struct reader *reader, GError **error)
{
    g_auto(GStrv) sections = g_key_file_get_groups(reader->file, NULL);

    for (char **section = sections; *section; section++)
        if (g_str_has_prefix(*section, LOCK) && !read_lock(reader, *section, error))
            return false;
    return true;
}

/* Returns the parsed file, or NULL. */
static GKeyFile *parse(const char *path, GHashTable *sections, GError **error)
{
    g_autofree char *text = config_files_load(path, error);
    g_autoptr(GKeyFile) file = g_key_file_new();
    g_autoptr(GError) reason = NULL;

    if (!text || !config_lines_check(sections, path, text, error))
        return NULL;
    /* Keys with a language would be silently dropped; with this flag they are unknown keys. */
    if (!g_key_file_load_from_data(file, text, strlen(text), G_KEY_FILE_KEEP_TRANSLATIONS, &reason)) {
        refuse(error, REFUSE_CONFIG, "%s: %s", path, reason->message);
        return NULL;
    }
    return g_steal_pointer(&file);
}

/* Parses all files before any is used, because a section may occur in two files. */
static bool parse_all(const GPtrArray *paths, GPtrArray *files, GError **error)
{
    g_autoptr(GHashTable) sections = config_lines_new();

    for (guint i = 0; i < paths->len; i++) {
        GKeyFile *file = parse(paths->pdata[i], sections, error);

        if (!file)
            return false;
        g_ptr_array_add(files, file);
    }
    return true;
}

bool config_read(struct plan *plan, const GPtrArray *paths, GError **error)
{
    g_autoptr(GPtrArray) files = g_ptr_array_new_with_free_func((GDestroyNotify)g_key_file_unref);
    struct values defaults = { .words = { NULL } };
    bool (*const passes[])(const struct reader *, GError **) = { read_common, read_locks };

    if (!parse_all(paths, files, error))
        return false;
    for (size_t pass = 0; pass < G_N_ELEMENTS(passes); pass++)
        for (guint i = 0; i < files->len; i++) {
            struct reader reader = {
                .plan = plan, .path = paths->pdata[i], .file = files->pdata[i], .defaults = &defaults
            };

            if (!passes[pass](&reader, error))
                return false;
        }
    return true;
}
