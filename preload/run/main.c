/* SPDX-License-Identifier: BSD-2-Clause */
/* dmutex-run: reads the rules for distribution, checks them, and becomes the command. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <dmutex/version.h>

#include "base/relay.h"

#include "ask.h"
#include "child.h"
#include "config.h"
#include "environment.h"
#include "gather.h"
#include "holders.h"
#include "listing.h"
#include "loaded.h"
#include "mark.h"
#include "options.h"
#include "program.h"
#include "refuse.h"
#include "resolve.h"
#include "wording.h"

/* The state of one run. */
struct run {
    struct options options;
    struct plan *plan;
    char *config; /* the path of --config, absolute; NULL */
    char *path;   /* of the command; NULL: none was given */
    struct program program;
};

/* ---- becoming the command ---------------------------------------------------------------- */

/*
 * Returns only on failure. Uses execve(), not execvp(): the path was found and examined, and a second search might find
 * another file. The memory for matched rules is made as late as possible, because System V shared memory outlives a
 * process that dies in between. With -q there is no warning of unmatched rules, so no memory either.
 */
static bool become(const struct run *run, char ***environment, GError **error)
{
    bool is_marked = plan_count(run->plan) > 0 && say_level >= SAY_WARNINGS;
    int mark = is_marked ? mark_begin(run->plan, environment) : -1, reason;

    execve(run->path, run->options.command, *environment);
    reason = errno;
    mark_end(mark);
    return refuse(error, reason == ENOENT ? REFUSE_NOT_FOUND : REFUSE_CANNOT_RUN, "%s: %s", run->path,
                  g_strerror(reason));
}

/* AddressSanitizer's runtime refuses to start after another library. */
static void put_asan_first(const struct run *run, char ***environment)
{
    g_autofree char *runtime = run->path ? loaded_find_asan(&run->program) : NULL;

    if (!runtime)
        return;
    say_note("%s stands before the module, because the command is built with AddressSanitizer", runtime);
    environment_put_first(environment, runtime);
}

/* ---- --list ------------------------------------------------------------------------------ */

/* Removes the folder before this process ends in the way that the child did, perhaps by a signal. */
static bool list_into(const struct run *run, int folder, const char *path, FILE *to, char ***environment,
                      GError **error)
{
    int status;

    if (!environment_observe(environment, path, error)) {
        listing_remove(folder, path);
        return false;
    }
    put_asan_first(run, environment);
    if (!child_run(run->path, run->options.command, *environment, &status, error)) {
        listing_remove(folder, path);
        return false;
    }
    listing_print(folder, to);
    listing_remove(folder, path);
    exit(dm_relay_end(status));
}

/*
 * Returns only if the command cannot be run. The output is opened first, so that a bad path is reported before the
 * command runs, and close-on-exec, so that the command does not inherit it.
 */
static bool list(const struct run *run, char ***environment, GError **error)
{
    const char *output = run->options.output;
    FILE *to = output ? fopen(output, "we") : stderr;
    g_autofree char *path = NULL;
    int folder;

    if (!to)
        return refuse(error, REFUSE_USAGE, "%s: %s", output, g_strerror(errno));
    return listing_make(&path, &folder, error) && list_into(run, folder, path, to, environment, error);
}

/* ---- checks ------------------------------------------------------------------------------ */

/*
 * Prints one line for each rule, and returns the worst result. --check continues after a bad rule, so that one run
 * reports all.
 */
static bool report_rules(const struct plan *plan, const GPtrArray *resolutions, GError **error)
{
    static const char *const marks[] = { [FINDING_GOOD] = "good",
                                         [FINDING_LATER] = "later",
                                         [FINDING_DOUBTFUL] = "not there",
                                         [FINDING_SUSPECT] = "doubtful",
                                         [FINDING_BAD] = "BAD" };
    unsigned bad = 0;

    for (guint i = 0; i < resolutions->len; i++) {
        const struct resolution *resolution = resolutions->pdata[i];
        const struct planned *planned = plan_at(plan, i);
        g_autofree char *words = wording_of_rule(&planned->rule);
        g_autofree char *line = g_strdup_printf("%s => %s: %s", words, planned->rule.name, resolution->sentence);
        g_autofree char *clean = say_clean(line);

        printf("%s: %s\n", marks[resolution->finding], clean);
        bad += resolution->finding == FINDING_BAD;
    }
    return !bad || refuse(error, REFUSE_CONFIG, "%u of %u rules cannot be used", bad, resolutions->len);
}

/* Refuses the first bad rule; warns of other rules with a fault. */
static bool require_rules(const struct plan *plan, const GPtrArray *resolutions, GError **error)
{
    for (guint i = 0; i < resolutions->len; i++) {
        const struct resolution *resolution = resolutions->pdata[i];
        const struct planned *planned = plan_at(plan, i);
        g_autofree char *words = wording_of_rule(&planned->rule);

        if (resolution->finding == FINDING_BAD)
            return refuse(error, REFUSE_CONFIG, "%s: %s: %s", planned->origin, words, resolution->sentence);
        if (resolution->finding == FINDING_DOUBTFUL)
            say_warning("%s: %s: %s; it stays local", planned->origin, words, resolution->sentence);
        else if (resolution->finding == FINDING_SUSPECT)
            say_warning("%s: %s: %s", planned->origin, words, resolution->sentence);
        else
            say_note("%s => %s: %s", words, planned->rule.name, resolution->sentence);
    }
    return true;
}

/* --list is how one finds the rules to replace those that a new build has made wrong, so here they are no errors. */
static void excuse_rules(struct plan *plan, const GPtrArray *resolutions)
{
    for (guint i = 0; i < resolutions->len; i++) {
        struct resolution *resolution = resolutions->pdata[i];

        if (resolution->finding == FINDING_BAD) {
            resolution->finding = FINDING_DOUBTFUL;
            plan_excuse(plan, i);
        }
    }
}

static bool check_rules(const struct run *run, GError **error)
{
    g_autoptr(GPtrArray) resolutions = resolve_all(run->plan, run->path ? &run->program : NULL);

    if (run->options.action == ACTION_CHECK)
        return report_rules(run->plan, resolutions, error);
    if (run->options.action == ACTION_LIST)
        excuse_rules(run->plan, resolutions);
    return require_rules(run->plan, resolutions, error);
}

/*
 * A server that is down is an error only for rules whose locks would fail. A refusal because of the configuration (78)
 * is always an error. --dry-run sends nothing.
 */
static bool check_server(const struct run *run, GError **error)
{
    g_autoptr(GError) reason = NULL;

    if (run->options.action == ACTION_DRY_RUN || ask_server(run->plan, &reason))
        return true;
    if (run->options.action == ACTION_CHECK || reason->code != REFUSE_DOWN || ask_is_needed(run->plan)) {
        g_propagate_error(error, g_steal_pointer(&reason));
        return false;
    }
    say_warning("%s", reason->message);
    return true;
}

/* The checks that need no network come first, so that a wrong rule is reported even while the server is down. */
static bool check(struct run *run, GError **error)
{
    gather_advise(run->plan, run->options.action == ACTION_CHECK);
    return ask_configure(run->plan, error) && check_rules(run, error) && check_server(run, error);
}

static void report_server(const struct plan *plan)
{
    g_autofree char *described = ask_describe(plan->url);

    printf("good: the server %s (%s) answers\n", described, plan->url_from);
}

/* ---- actions ----------------------------------------------------------------------------- */

/*
 * An action that changes the environment changes a copy that belongs to this run. Without rules it stays as it is:
 * nothing is preloaded, so nothing can go wrong in a command that needs nothing.
 */
static bool act(const struct run *run, GError **error)
{
    g_auto(GStrv) environment = NULL;
    bool is_plain = plan_count(run->plan) == 0 && run->options.action != ACTION_LIST;

    if (is_plain)
        environment = g_get_environ();
    else if (!environment_make(run->plan, run->config, &environment, error))
        return false;
    if (!is_plain)
        put_asan_first(run, &environment);
    if (run->options.action == ACTION_DRY_RUN) {
        environment_print(environment, run->options.command);
        return true;
    }
    return run->options.action == ACTION_LIST ? list(run, &environment, error) : become(run, &environment, error);
}

/* Without rules every command is fit, except for the listing, which preloads the module to see what is used. */
static bool prepare(struct run *run, GError **error)
{
    bool has_rules = plan_count(run->plan) > 0;
    const char *name = run->options.command[0];

    if (name && !program_find(name, &run->path, error))
        return false;
    if (run->path && (has_rules || run->options.action == ACTION_LIST) &&
        !program_examine(run->path, &run->program, error))
        return false;
    if (has_rules)
        return check(run, error);
    if (run->options.action == ACTION_CHECK)
        return ask_configure(run->plan, error) && ask_server(run->plan, error);
    if (run->options.action == ACTION_LIST)
        say_note("there is no rule: nothing is distributed");
    else
        say_warning("there is no rule, so nothing is distributed: write rules into %s, or give one with -e; dmutex-run "
                    "--list COMMAND proposes rules, and -q ends this warning",
                    CONFIG_SYSTEM_FILE);
    return true;
}

static bool run_command(struct run *run, GError **error)
{
    if (!gather(run->plan, &run->options, &run->config, error) || !prepare(run, error))
        return false;
    if (run->options.action != ACTION_CHECK)
        return act(run, error);
    report_server(run->plan);
    if (plan_count(run->plan) == 0)
        puts("there is no rule: nothing is distributed");
    return true;
}

static bool run_options(struct run *run, int argc, char **argv, GError **error)
{
    if (!options_read(argc, argv, &run->options, error))
        return false;
    if (run->options.action == ACTION_HELP)
        options_print_help();
    else if (run->options.action == ACTION_VERSION)
        puts("dmutex-run " DMUTEX_VERSION_STRING);
    else if (run->options.action == ACTION_HOLDERS)
        return holders_print(error);
    else
        return run_command(run, error);
    return true;
}

/*
 * Every failure arrives here as a GError whose code is the exit status. Only --list ends elsewhere, as its child has
 * ended.
 */
int main(int argc, char **argv)
{
    g_autoptr(GError) error = NULL;
    struct run run = { .plan = plan_new() };
    bool is_done = run_options(&run, argc, argv, &error);

    if (!is_done)
        say_error("%s", error->message);
    options_clear(&run.options);
    program_clear(&run.program);
    plan_free(run.plan);
    g_free(run.config);
    g_free(run.path);
    return is_done ? EXIT_SUCCESS : error->code;
}
