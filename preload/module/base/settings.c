/* SPDX-License-Identifier: BSD-2-Clause */
#include "settings.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "memory.h"
#include "shared/text.h"
#include "shared/url_file.h"

/* dmutex-run's exit status for an unusable configuration (EX_CONFIG). */
#define BAD_CONFIGURATION 78

static struct settings settings;

static void *get_memory(size_t size)
{
    return memory_get(size, "the rules", BAD_CONFIGURATION);
}

static void note(const struct rule *rule)
{
    settings.has_objects |= rule->kind == RULE_SYMBOL || rule->kind == RULE_OFFSET;
    settings.has_mappings |= rule->kind == RULE_SHM || rule->kind == RULE_MAP;
    settings.has_flock |= rule->kind == RULE_FLOCK;
    settings.has_fcntl |= rule->kind == RULE_FCNTL;
}

/* Keeps the rules for this program. A wrong rule ends the program, which would otherwise run without the mutex. */
static void read_rules(const char *variable, struct rule *rules)
{
    static unsigned before; /* the number of rules in earlier variables */
    const char *value = secure_getenv(variable);
    char reason[RULES_REASON_ROOM], *text;
    struct rule *read;
    int count;

    if (!value)
        return;
    text = get_memory(strlen(value) + 1);
    strcpy(text, value);
    read = rules + settings.count;
    count = rules_parse(text, read, reason);
    if (count < 0) {
        text_say(variable, ": ", reason, NULL);
        _exit(BAD_CONFIGURATION);
    }
    for (int i = 0; i < count; i++) {
        if (!rules_is_for(&read[i], settings.program))
            continue;
        read[i].number = before + (unsigned)i;
        rules[settings.count] = read[i];
        note(&rules[settings.count++]);
    }
    before += (unsigned)count;
}

/* Resolves once for all modules that are compared with the rule. */
static void resolve(int index)
{
    static char resolved[PATH_MAX]; /* used only by the constructor */
    const struct rule *rule = &settings.rules[index];
    const char *path = rule->module;

    if (rule->kind != RULE_SYMBOL && rule->kind != RULE_OFFSET)
        return;
    if (path[0] != '/' || !realpath(path, resolved) || strcmp(path, resolved) == 0)
        return;
    settings.resolved[index] = strcpy(get_memory(strlen(resolved) + 1), resolved);
}

/* Reads it now, because the process may have fewer rights later. */
static void read_url(void)
{
    static char url[URL_ROOM];
    const char *path = secure_getenv(URL_FILE_VARIABLE);

    settings.url = secure_getenv("DMUTEX_URL");
    if (!path || (settings.url && *settings.url))
        return;
    settings.is_url_secret = url_file_read(path, url, &settings.url_fault);
    settings.url = settings.is_url_secret ? url : NULL;
}

static size_t count_of(const char *variable)
{
    const char *value = secure_getenv(variable);

    return value ? rules_count(value) : 0;
}

/* The loader calls constructors one after another, so the first call is alone. */
const struct settings *settings_get(void)
{
    static bool is_read;
    size_t count;
    ssize_t length;

    if (__builtin_expect(is_read, 1))
        return &settings;
    is_read = true;
    length = readlink("/proc/self/exe", settings.program, sizeof settings.program - 1);
    settings.program[length > 0 ? length : 0] = '\0';
    settings.list_folder = secure_getenv("DMUTEX_LIST");
    settings.report = secure_getenv("DMUTEX_REPORT");
    read_url();
    count = count_of("DMUTEX_MAP") + count_of("DMUTEX_RULES");
    if (count > 0) {
        struct rule *rules = get_memory(count * sizeof *rules);

        settings.rules = rules;
        settings.resolved = get_memory(count * sizeof *settings.resolved);
        read_rules("DMUTEX_MAP", rules);
        read_rules("DMUTEX_RULES", rules);
        for (int i = 0; i < settings.count; i++)
            resolve(i);
    }
    return &settings;
}

void settings_say_url_fault(void)
{
    text_say("the server is not known: its URL is in ", secure_getenv(URL_FILE_VARIABLE), ", and ", settings.url_fault,
             "; run the program by its file's owner, or set DMUTEX_URL", NULL);
}

bool settings_name(const struct rule *rule, const char *path, char *ret_name, size_t room)
{
    struct rule_words words = {
        .path = path,
        .program = text_basename(settings.program),
        .uid = (unsigned)getuid(),
    };

    if (rules_expand(rule, &words, ret_name, room))
        return true;
    text_say("the name ", rule->name, " is too long, or has a % that means nothing", NULL);
    return false;
}
