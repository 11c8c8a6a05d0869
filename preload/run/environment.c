/* SPDX-License-Identifier: BSD-2-Clause */
#include "environment.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "ask.h"
#include "module.h"
#include "refuse.h"
#include "shared/url_file.h"
#include "wording.h"

#define LONGEST (128 * 1024 - 32) /* bytes that execve() accepts for one variable, including its name */

/*
 * Variables that --dry-run shows if their values for the command differ. DMUTEX_USED is not among them: its memory is
 * made just before the command starts.
 */
static const char *const ours[] = { "LD_PRELOAD",  "DMUTEX_URL",  "DMUTEX_MAP",     "DMUTEX_RULES",
                                    "DMUTEX_CONF", "DMUTEX_LIST", URL_FILE_VARIABLE };

static void set(char ***environment, const char *name, const char *value)
{
    *environment = g_environ_setenv(*environment, name, value, TRUE);
}

/*
 * An empty list removes the variable: one inherited from an outer dmutex-run must not stay in force. The limit is the
 * kernel's (MAX_ARG_STRLEN); execve() would only say E2BIG.
 */
static bool set_rules(char ***environment, const char *name, const GArray *list, GError **error)
{
    g_autofree char *text = wording_of_list(list);

    if (strlen(text) > LONGEST)
        return refuse(error, REFUSE_CONFIG, "the rules are too long for %s: %zu bytes, and %d is the most", name,
                      strlen(text), LONGEST);
    if (*text)
        set(environment, name, text);
    else
        *environment = g_environ_unsetenv(*environment, name);
    return true;
}

/*
 * The module must find the file that was checked. It reads the file without GKeyFile, so that way of reading is tried
 * here, too.
 */
static bool check_file(const struct plan *plan, GError **error)
{
    const char *reason = "its Url is read as another one";
    char url[URL_ROOM];

    if (url_file_read(plan->url_file, url, &reason) && strcmp(url, plan->url) == 0)
        return true;
    return refuse(error, REFUSE_CONFIG, "%s: %s; write the password into a file of its own, by password_file",
                  plan->url_from, reason);
}

static void warn_of_readers(const char *path)
{
    struct stat status;

    if (stat(path, &status) == 0 && (status.st_mode & 044))
        say_warning("%s: has a password, and can be read by others: chmod go-r %s", path, path);
}

/*
 * A password stays in the file, because all programs that the command starts inherit the environment. One of the two
 * variables is removed, because the module would use an inherited DMUTEX_URL.
 */
static bool set_server(char ***environment, const struct plan *plan, GError **error)
{
    if (!plan->url_file || !ask_is_secret(plan->url)) {
        set(environment, "DMUTEX_URL", plan->url);
        *environment = g_environ_unsetenv(*environment, URL_FILE_VARIABLE);
        return true;
    }
    if (!check_file(plan, error))
        return false;
    warn_of_readers(plan->url_file);
    set(environment, URL_FILE_VARIABLE, plan->url_file);
    *environment = g_environ_unsetenv(*environment, "DMUTEX_URL");
    return true;
}

/* Made from a copy, because the library may have a thread here by now, and setenv() is not thread-safe. */
bool environment_make(const struct plan *plan, const char *config, char ***ret_environment, GError **error)
{
    g_auto(GStrv) environment = g_get_environ();
    g_autofree char *module = NULL, *preload = NULL;

    if (!module_find(MODULE_FILE, &module, error) || !set_rules(&environment, "DMUTEX_MAP", plan->map, error) ||
        !set_rules(&environment, "DMUTEX_RULES", plan->rules, error))
        return false;
    say_note("the module is %s", module);
    preload = module_add(g_getenv("LD_PRELOAD"), module);
    set(&environment, "LD_PRELOAD", preload);
    if (plan->url && !set_server(&environment, plan, error))
        return false;
    if (config)
        set(&environment, "DMUTEX_CONF", config);
    *ret_environment = g_steal_pointer(&environment);
    return true;
}

bool environment_observe(char ***environment, const char *folder, GError **error)
{
    g_autofree char *observer = NULL, *preload = NULL;

    if (!module_find(MODULE_OBSERVER_FILE, &observer, error))
        return false;
    preload = module_add(g_environ_getenv(*environment, "LD_PRELOAD"), observer);
    set(environment, "LD_PRELOAD", preload);
    set(environment, "DMUTEX_LIST", folder);
    return true;
}

void environment_put_first(char ***environment, const char *library)
{
    const char *before = g_environ_getenv(*environment, "LD_PRELOAD");
    g_auto(GStrv) there = g_strsplit_set(before ? before : "", ": ", -1);
    g_autoptr(GString) preload = g_string_new(library);

    for (char **one = there; *one; one++) {
        if (**one && strcmp(*one, library) != 0)
            g_string_append_printf(preload, ":%s", *one);
    }
    set(environment, "LD_PRELOAD", preload->str);
}

void environment_print(char *const *environment, char *const *command)
{
    for (size_t i = 0; i < G_N_ELEMENTS(ours); i++) {
        const char *before = g_getenv(ours[i]), *now = g_environ_getenv((char **)environment, ours[i]);
        const char *value = now || !before ? now : ""; /* empty is the same as missing */
        g_autofree char *shown = NULL, *quoted = NULL;

        if (!value || g_strcmp0(value, before) == 0)
            continue;
        shown = ask_describe(value);
        quoted = g_shell_quote(strcmp(ours[i], "DMUTEX_URL") == 0 ? shown : value);
        printf("%s=%s ", ours[i], quoted);
    }
    for (; *command; command++) {
        g_autofree char *quoted = g_shell_quote(*command);

        printf("%s%s", quoted, command[1] ? " " : "\n");
    }
}
