/* SPDX-License-Identifier: BSD-2-Clause */
#include "plan.h"

#include <string.h>
#include <unistd.h>

#include <dmutex/dmutex.h>

#include "place.h"
#include "refuse.h"

struct plan *plan_new(void)
{
    struct plan *plan = g_new0(struct plan, 1);

    plan->map = g_array_new(FALSE, FALSE, sizeof(struct planned));
    plan->rules = g_array_new(FALSE, FALSE, sizeof(struct planned));
    plan->texts = g_ptr_array_new_with_free_func(g_free);
    return plan;
}

void plan_free(struct plan *plan)
{
    g_array_unref(plan->map);
    g_array_unref(plan->rules);
    g_ptr_array_unref(plan->texts);
    g_free(plan->url);
    g_free(plan->url_from);
    g_free(plan->url_file);
    g_free(plan);
}

/* The same, but writable: rules_parse() cuts the text into words in place, and the rules point into it. */
static char *keep(struct plan *plan, const char *text)
{
    char *copy = g_strdup(text);

    g_ptr_array_add(plan->texts, copy);
    return copy;
}

const char *plan_keep(struct plan *plan, const char *text)
{
    return keep(plan, text);
}

/*
 * Each % stands for the rule's own path, its program, or this user. The module expands the name again at the first
 * lock, and may find it too long then.
 */
bool plan_example_name(const struct rule *rule, char ret_name[PLAN_NAME_ROOM])
{
    const char *program = rule->program ? rule->program : "program";
    struct rule_words words = { .path = rule->module, .program = program, .uid = getuid() };

    return rules_expand(rule, &words, ret_name, PLAN_NAME_ROOM);
}

/* The library knows the limits of a name. */
static bool check_name(const struct planned *planned, GError **error)
{
    char name[PLAN_NAME_ROOM];
    dmutexattr_t attr;

    if (!plan_example_name(&planned->rule, name))
        return refuse(error, REFUSE_CONFIG,
                      "%s: the name \"%s\" is too long, or has another %%-word than %%b, %%p, %%x and %%u",
                      planned->origin, planned->rule.name);
    dmutexattr_init(&attr);
    if (dmutexattr_setname_np(&attr, name) != 0)
        return refuse(error, REFUSE_CONFIG, "%s: \"%s\" cannot be a mutex's name: %s", planned->origin, name,
                      dmutex_strerror_np());
    return true;
}

/* The path is compared with the kernel's: a relative path would never match. */
static bool check_path(const struct planned *planned, const char *path, GError **error)
{
    if (!path || path[0] == '/' || !strchr(path, '/'))
        return true;
    return refuse(error, REFUSE_CONFIG, "%s: %s is a relative path: write an absolute one, or only its last part",
                  planned->origin, path);
}

static bool check(const struct planned *planned, GError **error)
{
    return check_name(planned, error) && check_path(planned, planned->rule.module, error) &&
           check_path(planned, planned->rule.program, error);
}

/*
 * Replaces the old text by the new one, which may be NULL. The old one stays with the plan, because other rules point
 * into it.
 */
static const char *replaced(struct plan *plan, const char *old, char *new)
{
    const char *kept = new &&strcmp(new, old) != 0 ? keep(plan, new) : old;

    g_free(new);
    return kept;
}

/*
 * Replaces paths of the rule that lead through symbolic links. Only those of lock files and programs: the module
 * compares these with the kernel's paths, but modules also by the loader's name.
 */
static void resolve_paths(struct plan *plan, struct rule *rule)
{
    if (rule->kind == RULE_FLOCK || rule->kind == RULE_FCNTL)
        rule->module = replaced(plan, rule->module, place_resolve_glob(rule->module));
    if (rule->program && rule->program[0] == '/')
        rule->program = replaced(plan, rule->program, place_resolve(rule->program));
}

/* After a refusal the list may contain some of the rules; dmutex-run then ends, and nothing uses it. */
bool plan_read(struct plan *plan, GArray *list, const char *text, const char *origin, GError **error)
{
    g_autofree struct rule *rules = g_new(struct rule, rules_count(text));
    char reason[RULES_REASON_ROOM];
    int count = rules_parse(keep(plan, text), rules, reason);

    if (count < 0)
        return refuse(error, REFUSE_CONFIG, "%s: %s", origin, reason);
    for (int i = 0; i < count; i++) {
        struct planned planned = { .rule = rules[i], .origin = origin };

        if (!check(&planned, error))
            return false;
        resolve_paths(plan, &planned.rule);
        g_array_append_val(list, planned);
    }
    return true;
}

unsigned plan_count(const struct plan *plan)
{
    return plan->map->len + plan->rules->len;
}

/*
 * The rules of the map come first here, in the environment and in the module's table. The first rule that matches wins,
 * so a rule of the command line overrides the configuration's.
 */
static struct planned *at(const struct plan *plan, unsigned index)
{
    if (index < plan->map->len)
        return &g_array_index(plan->map, struct planned, index);
    return &g_array_index(plan->rules, struct planned, index - plan->map->len);
}

const struct planned *plan_at(const struct plan *plan, unsigned index)
{
    return at(plan, index);
}

void plan_excuse(struct plan *plan, unsigned index)
{
    at(plan, index)->rule.required = REQUIRED_NO;
}
