/* SPDX-License-Identifier: BSD-2-Clause */
#include "place.h"

#include <stdlib.h>
#include <string.h>

/* The longest part of the path that exists, resolved, with the rest appended; NULL: unchanged. */
static char *resolve(const char *path)
{
    g_autofree char *whole = g_strdup(path);
    char *resolved = NULL;

    for (char *end = whole + strlen(whole); end && end > whole; end = strrchr(whole, '/')) {
        *end = '\0';
        resolved = realpath(*whole ? whole : "/", NULL);
        if (resolved) {
            char *joined = g_strconcat(resolved[1] ? resolved : "", path + (end - whole), NULL);

            free(resolved);
            return joined;
        }
    }
    return NULL;
}

/* Resolves a glob up to the first part with a wildcard; the rest stays unchanged. */
static char *resolve_glob(const char *glob)
{
    size_t plain = strcspn(glob, "*?");
    g_autofree char *directory = NULL, *resolved = NULL;

    if (!glob[plain])
        return resolve(glob);
    while (plain > 0 && glob[plain - 1] != '/')
        plain--;
    if (plain < 2)
        return NULL;
    directory = g_strndup(glob, plain - 1);
    resolved = resolve(directory);
    return resolved ? g_strconcat(resolved, glob + plain - 1, NULL) : NULL;
}

/* Takes the new text, which may be NULL, in the place of the old. */
static const char *replaced(struct plan *plan, const char *old, char *new)
{
    const char *kept = new &&strcmp(new, old) != 0 ? plan_keep(plan, new) : old;

    g_free(new);
    return kept;
}

void place_resolve(struct plan *plan, struct rule *rule)
{
    if (rule->kind == RULE_FLOCK || rule->kind == RULE_FCNTL)
        rule->module = replaced(plan, rule->module, resolve_glob(rule->module));
    if (rule->program && rule->program[0] == '/')
        rule->program = replaced(plan, rule->program, resolve(rule->program));
}
