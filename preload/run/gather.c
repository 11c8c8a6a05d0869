/* SPDX-License-Identifier: BSD-2-Clause */
#include "gather.h"

#include <string.h>

#include "config.h"
#include "config_files.h"
#include "refuse.h"
#include "wording.h"

/*
 * -e comes before DMUTEX_MAP, because the first rule that matches wins, and the command line is closest to the command.
 */
static bool gather_map(struct plan *plan, const GPtrArray *map, GError **error)
{
    const char *environment = g_getenv("DMUTEX_MAP");

    for (guint i = 0; i < map->len; i++)
        if (!plan_read(plan, plan->map, map->pdata[i], "-e", error))
            return false;
    return !environment || plan_read(plan, plan->map, environment, "DMUTEX_MAP", error);
}

/* Returns the path of a named file, because a dmutex-run inside the command must read the same file. */
bool gather(struct plan *plan, const struct options *options, char **ret_config, GError **error)
{
    const char *inherited = g_getenv("DMUTEX_RULES"), *environment = g_getenv("DMUTEX_CONF");
    g_autoptr(GPtrArray) paths = NULL;

    if (!gather_map(plan, options->map, error) ||
        !config_files_find(options->config, CONFIG_SYSTEM_FILE, &paths, error))
        return false;
    if (options->config || (environment && *environment))
        *ret_config = g_strdup(paths->pdata[0]);
    if (paths->len == 0 && inherited)
        return plan_read(plan, plan->rules, inherited, "DMUTEX_RULES", error);
    for (guint i = 0; i < paths->len; i++)
        say_note("reading %s", (const char *)paths->pdata[i]);
    return config_read(plan, paths, error);
}

/* ---- advice ------------------------------------------------------------------------------ */

static bool is_of_shared_memory(const struct rule *rule)
{
    return !rule->is_condition && (rule->kind == RULE_SHM || rule->kind == RULE_MAP);
}

/*
 * The first rule with the same text for the same program; the first match wins. An earlier rule without Program= is for
 * all programs, and hides the later rule, too.
 */
static const struct planned *first_like(const struct plan *plan, unsigned index, const char *words)
{
    const char *program = plan_at(plan, index)->rule.program;

    for (unsigned i = 0; i < index; i++) {
        const struct planned *earlier = plan_at(plan, i);
        g_autofree char *theirs = wording_of_rule(&earlier->rule);

        if (strcmp(theirs, words) == 0 && (!earlier->rule.program || g_strcmp0(earlier->rule.program, program) == 0))
            return earlier;
    }
    return NULL;
}

static bool is_lock_of_file(const struct rule *rule)
{
    return !rule->is_condition && (rule->kind == RULE_FLOCK || rule->kind == RULE_FCNTL);
}

/*
 * The kernel keeps the two kinds of locks apart, and the keeper asks the server once for a file of this host. So a name
 * that has both kinds is one lock between hosts, but two on each.
 */
static void advise_kinds(const struct plan *plan, unsigned index)
{
    const struct planned *planned = plan_at(plan, index);

    for (unsigned i = 0; i < index; i++) {
        const struct planned *earlier = plan_at(plan, i);

        if (!is_lock_of_file(&planned->rule) || !is_lock_of_file(&earlier->rule) ||
            planned->rule.kind == earlier->rule.kind || strcmp(planned->rule.name, earlier->rule.name) != 0 ||
            strcmp(planned->rule.module, earlier->rule.module) != 0)
            continue;
        say_warning("%s: %s: on one host, flock() and fcntl() locks of one file do not exclude each other, as without "
                    "dmutex-run; of two hosts they do: let all programs lock the file in one way",
                    planned->origin, planned->rule.name);
    }
}

/* Advice, never a refusal: all of this is allowed, and may be intended. */
void gather_advise(const struct plan *plan, bool is_check)
{
    for (unsigned i = 0; i < plan_count(plan); i++) {
        const struct planned *planned = plan_at(plan, i);
        g_autofree char *words = wording_of_rule(&planned->rule);
        const struct planned *earlier = first_like(plan, i, words);

        if (earlier && strcmp(earlier->rule.name, planned->rule.name) != 0)
            say_warning("%s: %s is \"%s\" already (%s): the first one counts", planned->origin, words,
                        earlier->rule.name, earlier->origin);
        if (is_check)
            advise_kinds(plan, i);
        if (is_of_shared_memory(&planned->rule) && !planned->rule.is_state_shared)
            say_warning(
                "%s: %s: a mutex guards memory, and that of another host is another one: this is of use only if "
                "what it guards is shared by the hosts, too; if so, write SharedState=yes",
                planned->origin, words);
    }
}
