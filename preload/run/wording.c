/* SPDX-License-Identifier: BSD-2-Clause */
#include "wording.h"

#include <signal.h>
#include <string.h>

#include "plan.h"
#include "shared/text.h"

void wording_escape(GString *to, const char *text)
{
    for (; *text; text++) {
        if (strchr(" \t\n;\\", *text))
            g_string_append_c(to, '\\');
        g_string_append_c(to, *text);
    }
}

/*
 * The room is enough for the longest form: the texts, one number and the words in between. rules_write() escapes
 * nothing; the caller does so where needed.
 */
char *wording_of_rule(const struct rule *rule)
{
    size_t room = strlen(rule->module) + (rule->symbol ? strlen(rule->symbol) : 0) +
                  (rule->build_id ? strlen(rule->build_id) : 0) + 64;
    struct text text = text_in(g_malloc(room), room);

    rules_write(rule, &text);
    return text.bytes;
}

static void add_setting(GString *to, const char *key, const char *value)
{
    g_string_append_printf(to, " %s=", key);
    wording_escape(to, value);
}

static void add_time(GString *to, const char *key, unsigned ms)
{
    if (ms)
        g_string_append_printf(to, " %s=%u", key, ms);
}

static void add_on_lost(GString *to, int number)
{
    if (number == SIGKILL)
        g_string_append(to, " onlost=kill");
    else if (number)
        g_string_append_printf(to, " onlost=signal:%s", sigabbrev_np(number));
}

/* Leaves out the module's defaults, because environment variables have a size limit. */
static void add_settings(GString *to, const struct rule *rule)
{
    static const char *const down[] = { [DOWN_BLOCK] = "block", [DOWN_FAIL] = "fail", [DOWN_LOCAL] = "local" };
    bool is_file = rule->kind == RULE_FLOCK || rule->kind == RULE_FCNTL;

    add_time(to, "lease", rule->lease_ms);
    add_time(to, "linger", rule->linger_ms);
    if (rule->robust != ROBUST_AS_MADE)
        add_setting(to, "robust", rule->robust == ROBUST_YES ? "yes" : "no");
    if (rule->on_down != (is_file ? DOWN_FAIL : DOWN_BLOCK))
        add_setting(to, "ondown", down[rule->on_down]);
    add_on_lost(to, rule->on_lost);
    if (rule->required != REQUIRED_AUTO)
        add_setting(to, "required", rule->required == REQUIRED_YES ? "yes" : "no");
    if (rule->is_state_shared)
        add_setting(to, "sharedstate", "yes");
    if (rule->shared_is_exclusive)
        add_setting(to, "shared", "exclusive");
    if (rule->program)
        add_setting(to, "program", rule->program);
}

static void add_rule(GString *to, const struct rule *rule)
{
    g_autofree char *words = wording_of_rule(rule);

    if (to->len)
        g_string_append(to, "; ");
    wording_escape(to, words);
    g_string_append(to, " => ");
    wording_escape(to, rule->name);
    add_settings(to, rule);
}

/* ---- read back --------------------------------------------------------------------------- */

static bool is_same_text(const char *one, const char *other)
{
    return g_strcmp0(one, other) == 0;
}

/* Compares everything that the parser reads except `number`, because the module numbers the rules itself. */
static bool is_same(const struct rule *one, const struct rule *other)
{
    return one->kind == other->kind && one->is_condition == other->is_condition &&
           is_same_text(one->module, other->module) && is_same_text(one->symbol, other->symbol) &&
           is_same_text(one->build_id, other->build_id) && one->offset == other->offset &&
           is_same_text(one->name, other->name) && one->lease_ms == other->lease_ms &&
           one->linger_ms == other->linger_ms && one->robust == other->robust && one->on_down == other->on_down &&
           one->on_lost == other->on_lost && one->required == other->required &&
           one->is_state_shared == other->is_state_shared && one->shared_is_exclusive == other->shared_is_exclusive &&
           is_same_text(one->program, other->program);
}

/*
 * A difference is a bug in dmutex-run, not the user's mistake: the module would do something other than what was
 * checked. g_error() aborts, because a wrong lock is worse than none.
 */
static void check_read_back(const char *written, const GArray *list)
{
    g_autofree char *copy = g_strdup(written);
    g_autofree struct rule *rules = g_new(struct rule, rules_count(written));
    char reason[RULES_REASON_ROOM] = "";
    int count = rules_parse(copy, rules, reason);

    if (count != (int)list->len)
        g_error("rules are not read back: %s (%s)", written, reason);
    for (int i = 0; i < count; i++)
        if (!is_same(&rules[i], &g_array_index(list, struct planned, i).rule))
            g_error("rule %d is read back as another one: %s", i + 1, written);
}

char *wording_of_list(const GArray *list)
{
    GString *text = g_string_new(NULL);

    for (guint i = 0; i < list->len; i++)
        add_rule(text, &g_array_index(list, struct planned, i).rule);
    check_read_back(text->str, list);
    return g_string_free(text, FALSE);
}
