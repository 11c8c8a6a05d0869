/* SPDX-License-Identifier: BSD-2-Clause */
/* preload/shared/rules: the forms and the meaning of DMUTEX_MAP, and the sentences of refused rules. */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "../lib/range.h"
#include "../unit/random.h"
#include "shared/rules.h"
#include "shared/text.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))
#define RULES 16

static char bytes[4096]; /* the text that the rules point into */
static struct rule rules[RULES];
static char reason[RULES_REASON_ROOM];

/* The number of rules in a text, or -1. */
static int parse(const char *text)
{
    assert_within(strlen(text), 0, sizeof bytes - 1);
    strcpy(bytes, text);
    assert_within(rules_count(bytes), 1, RULES);
    return rules_parse(bytes, rules, reason);
}

/* The only rule of a text. */
static const struct rule *parse_one(const char *text)
{
    if (parse(text) != 1)
        fail_msg("%s: %s", text, reason);
    return &rules[0];
}

static void assert_same_text(const char *got, const char *expected)
{
    if (!got || !expected)
        assert_ptr_equal(got, expected);
    else
        assert_string_equal(got, expected);
}

/* ---- forms ------------------------------------------------------------------------------- */

/* A rule of each form is read, in all parts. */
static void test_a_rule_is_read_when_it_has_one_of_the_forms(void **state)
{
    static const struct {
        const char *text;
        enum rule_kind kind;
        bool is_condition;
        const char *module, *symbol, *build_id;
        uint64_t offset;
    } good[] = {
        { "sym:legacyd:lock", RULE_SYMBOL, false, "legacyd", "lock", NULL, 0 },
        { "sym:/usr/sbin/legacyd:lock", RULE_SYMBOL, false, "/usr/sbin/legacyd", "lock", NULL, 0 },
        { "sym:legacyd:table+0x28", RULE_SYMBOL, false, "legacyd", "table", NULL, 0x28 },
        { "sym:legacyd:table+40", RULE_SYMBOL, false, "legacyd", "table", NULL, 40 },
        { "sym:libstdc++.so.6:_ZN3app5mutexE+8", RULE_SYMBOL, false, "libstdc++.so.6", "_ZN3app5mutexE", NULL, 8 },
        { "sym:legacyd:app::Queue::lock", RULE_SYMBOL, false, "legacyd", "app::Queue::lock", NULL, 0 },
        { "cond:sym:legacyd:ready", RULE_SYMBOL, true, "legacyd", "ready", NULL, 0 },
        { "off:pigz@build-id:cb4951e7+0x423e0", RULE_OFFSET, false, "pigz", NULL, "cb4951e7", 0x423e0 },
        { "off:/a/b@c@build-id:0+0", RULE_OFFSET, false, "/a/b@c", NULL, "0", 0 },
        { "cond:off:pigz@build-id:ab+18446744073709551615", RULE_OFFSET, true, "pigz", NULL, "ab", UINT64_MAX },
        { "shm:/ring+0x40", RULE_SHM, false, "/ring", NULL, NULL, 0x40 },
        { "cond:shm:/ring+0x80", RULE_SHM, true, "/ring", NULL, NULL, 0x80 },
        { "map:/var/lib/a+b/lock.mdb+64", RULE_MAP, false, "/var/lib/a+b/lock.mdb", NULL, NULL, 64 },
        { "cond:map:/x+0", RULE_MAP, true, "/x", NULL, NULL, 0 },
        { "flock:/run/lock/*.lock", RULE_FLOCK, false, "/run/lock/*.lock", NULL, NULL, 0 },
        { "fcntl:/var/spool/a+b", RULE_FCNTL, false, "/var/spool/a+b", NULL, NULL, 0 },
    };

    (void)state;
    for (size_t i = 0; i < COUNT(good); i++) {
        char text[200];
        const struct rule *rule;

        snprintf(text, sizeof text, "%s => g/x", good[i].text);
        rule = parse_one(text);
        assert_int_equal(rule->kind, good[i].kind);
        assert_int_equal(rule->is_condition, good[i].is_condition);
        assert_same_text(rule->module, good[i].module);
        assert_same_text(rule->symbol, good[i].symbol);
        assert_same_text(rule->build_id, good[i].build_id);
        assert_int_equal(rule->offset, good[i].offset);
        assert_string_equal(rule->name, "g/x");
    }
}

/* A rule without settings has the defaults of the manual page. */
static void test_a_rule_has_defaults_when_it_says_nothing(void **state)
{
    const struct rule *rule = parse_one("sym:a:b => x");

    (void)state;
    assert_int_equal(rule->lease_ms, 0);
    assert_int_equal(rule->linger_ms, 0);
    assert_int_equal(rule->robust, ROBUST_AS_MADE);
    assert_int_equal(rule->on_down, DOWN_BLOCK);
    assert_int_equal(rule->on_lost, 0);
    assert_int_equal(rule->required, REQUIRED_AUTO);
    assert_false(rule->is_state_shared);
    assert_false(rule->shared_is_exclusive);
    assert_null(rule->program);
    assert_int_equal(parse_one("flock:/a => x")->on_down, DOWN_FAIL);
    assert_int_equal(parse_one("fcntl:/a => x")->on_down, DOWN_FAIL);
}

/* ---- settings ---------------------------------------------------------------------------- */

/* A time is read in milliseconds, or with a unit. */
static void test_a_time_is_read_when_it_has_a_unit_or_none(void **state)
{
    static const struct {
        const char *text;
        unsigned ms;
    } good[] = { { "100", 100 },       { "100ms", 100 },     { "5s", 5000 },        { "1min", 60000 },
                 { "60min", 3600000 }, { "3600s", 3600000 }, { "3600000", 3600000 } };

    (void)state;
    for (size_t i = 0; i < COUNT(good); i++) {
        char text[100];

        snprintf(text, sizeof text, "sym:a:b => x lease=%s linger=%s", good[i].text, good[i].text);
        assert_int_equal(parse_one(text)->lease_ms, good[i].ms);
        assert_int_equal(rules[0].linger_ms, good[i].ms);
    }
    assert_int_equal(parse_one("sym:a:b => x linger=0")->linger_ms, 0);
}

/* A setting is read if it has one of its values. */
static void test_a_setting_is_read_when_it_is_one_of_its_words(void **state)
{
    static const struct {
        const char *word;
        int number;
    } lost[] = { { "log", 0 },
                 { "kill", SIGKILL },
                 { "signal:TERM", SIGTERM },
                 { "signal:INT", SIGINT },
                 { "signal:HUP", SIGHUP },
                 { "signal:USR1", SIGUSR1 },
                 { "signal:USR2", SIGUSR2 },
                 { "signal:ABRT", SIGABRT },
                 { "signal:STOP", SIGSTOP } };

    (void)state;
    assert_int_equal(parse_one("sym:a:b => x robust=yes")->robust, ROBUST_YES);
    assert_int_equal(parse_one("sym:a:b => x robust=no")->robust, ROBUST_NO);
    assert_int_equal(parse_one("flock:/a => x ondown=block")->on_down, DOWN_BLOCK);
    assert_int_equal(parse_one("sym:a:b => x ondown=fail")->on_down, DOWN_FAIL);
    assert_int_equal(parse_one("flock:/a => x ondown=local")->on_down, DOWN_LOCAL);
    assert_int_equal(parse_one("sym:a:b => x required=auto")->required, REQUIRED_AUTO);
    assert_int_equal(parse_one("sym:a:b => x required=yes")->required, REQUIRED_YES);
    assert_int_equal(parse_one("sym:a:b => x required=no")->required, REQUIRED_NO);
    assert_true(parse_one("shm:/a+0 => x sharedstate=yes")->is_state_shared);
    assert_false(parse_one("shm:/a+0 => x sharedstate=no")->is_state_shared);
    assert_true(parse_one("flock:/a => x shared=exclusive")->shared_is_exclusive);
    assert_false(parse_one("flock:/a => x shared=refuse")->shared_is_exclusive);
    assert_string_equal(parse_one("sym:a:b => x program=/usr/sbin/legacyd")->program, "/usr/sbin/legacyd");
    for (size_t i = 0; i < COUNT(lost); i++) {
        char text[100];

        snprintf(text, sizeof text, "sym:a:b => x onlost=%s", lost[i].word);
        assert_int_equal(parse_one(text)->on_lost, lost[i].number);
    }
}

/* ---- the text ---------------------------------------------------------------------------- */

/* Several rules are read, with separate settings, blanks of all kinds, and empty rules in between. */
static void test_all_rules_are_read_when_there_are_several(void **state)
{
    (void)state;
    assert_int_equal(parse(";; sym:a:b\t=>\n x lease=200;shm:/r+1 => y ;\n;"
                           "cond:sym:a:c =>  z  required=no   lease=300 ; flock:/l => w;"),
                     4);
    assert_string_equal(rules[0].name, "x");
    assert_int_equal(rules[0].lease_ms, 200);
    assert_string_equal(rules[1].name, "y");
    assert_int_equal(rules[1].lease_ms, 0);
    assert_string_equal(rules[2].symbol, "c");
    assert_int_equal(rules[2].required, REQUIRED_NO);
    assert_int_equal(rules[2].lease_ms, 300);
    assert_string_equal(rules[3].name, "w");
    assert_int_equal(rules[3].required, REQUIRED_AUTO);
}

/* An empty text has no rules, and is no mistake. */
static void test_no_rules_are_read_when_there_is_nothing(void **state)
{
    (void)state;
    assert_int_equal(parse(""), 0);
    assert_int_equal(parse(" \t\n"), 0);
    assert_int_equal(parse(";"), 0);
    assert_int_equal(parse(" ; ;; "), 0);
}

/*
 * A backslash takes the meaning from a blank, a semicolon, and a backslash; before other bytes the backslash is
 * dropped.
 */
static void test_a_byte_means_itself_when_a_backslash_is_before_it(void **state)
{
    (void)state;
    assert_string_equal(parse_one("flock:/my\\ locks/a\\;b\\\\c => x\\;y/\\z program=my\\ prog")->module,
                        "/my locks/a;b\\c");
    assert_string_equal(rules[0].name, "x;y/z");
    assert_string_equal(rules[0].program, "my prog");
    assert_string_equal(parse_one("flock:/a => x\\")->name, "x\\");
}

static const char symbol_form[] = "not of the form sym:MODULE:SYMBOL or sym:MODULE:SYMBOL+OFFSET";
static const char offset_form[] = "not of the form off:MODULE@build-id:HEX+OFFSET";
static const char shm_form[] = "not of the form shm:/NAME+OFFSET";
static const char map_form[] = "not of the form map:/PATH+OFFSET";
static const char no_name[] = "must be followed by => and a name, with blanks around the =>";
static const char no_value[] = "an unknown key, or a value that it cannot have";
static const struct {
    const char *text, *about, *what;
} bad[] = {
    { "sym:a => x", "sym:a", symbol_form },
    { "sym::b => x", "sym::b", symbol_form },
    { "sym:a: => x", "sym:a:", symbol_form },
    { "sym:a:b+ => x", "sym:a:b+", symbol_form },
    { "sym:a:b+0x => x", "sym:a:b+0x", symbol_form },
    { "sym:a:b+-1 => x", "sym:a:b+-1", symbol_form },
    { "sym:a:b+18446744073709551616 => x", "sym:a:b+18446744073709551616", symbol_form },
    { "sym:a:+8 => x", "sym:a:+8", symbol_form },
    { "off:a+8 => x", "off:a+8", offset_form },
    { "off:a@build-id:12 => x", "off:a@build-id:12", offset_form },
    { "off:a@build-id:+8 => x", "off:a@build-id:+8", offset_form },
    { "off:a@build-id:AB+8 => x", "off:a@build-id:AB+8", offset_form },
    { "off:@build-id:ab+8 => x", "off:@build-id:ab+8", offset_form },
    { "shm:ring+8 => x", "shm:ring+8", shm_form },
    { "shm:/ring => x", "shm:/ring", shm_form },
    { "map:a+8 => x", "map:a+8", map_form },
    { "map:/a+b => x", "map:/a+b", map_form },
    { "flock:a => x", "flock:a", "not of the form flock:/GLOB" },
    { "fcntl: => x", "fcntl:", "not of the form fcntl:/GLOB" },
    { "cond:flock:/a => x", "cond:flock:/a", "a file is not a condition variable" },
    { "cond:cond:sym:a:b => x", "cond:cond:sym:a:b", "does not begin with sym:, off:, shm:, map:, flock: or fcntl:" },
    { "mutex => x", "mutex", "does not begin with sym:, off:, shm:, map:, flock: or fcntl:" },
    { "sym:a:b", "sym:a:b", no_name },
    { "sym:a:b =>", "sym:a:b", no_name },
    { "sym:a:b => ", "sym:a:b", no_name },
    { "sym:a:b => ; sym:a:c => x", "sym:a:b", no_name },
    { "sym:a:b; sym:a:c => x", "sym:a:b", no_name },
    { "sym:a:b = > x", "sym:a:b", no_name },
    { "sym:a:b=> x", "sym:a:b=>", no_name },
    { "sym:a:b=>x", "sym:a:b=>x", no_name },
    { "sym:a:b =>x", "sym:a:b", no_name },
    { "sym:a:c => x; sym:a:b -> y", "sym:a:b", no_name },
    { "sym:a:b => x%h", "sym:a:b", "its name has a % that is not one of %b, %p, %x, %u and %%" },
    { "sym:a:b => x%%%", "sym:a:b", "its name has a % that is not one of %b, %p, %x, %u and %%" },
    { "sym:a:b => x y", "sym:a:b: y", "not of the form key=value" },
    { "sym:a:b => x colour=red", "sym:a:b: colour=red", no_value },
    { "sym:a:b => x Lease=5000", "sym:a:b: Lease=5000", no_value },
    { "sym:a:b => x =5", "sym:a:b: =5", no_value },
    { "sym:a:b => x lease=", "sym:a:b: lease=", no_value },
    { "sym:a:b => x lease=99", "sym:a:b: lease=99", no_value },
    { "sym:a:b => x lease=-1", "sym:a:b: lease=-1", no_value },
    { "sym:a:b => x lease=5h", "sym:a:b: lease=5h", no_value },
    { "sym:a:b => x lease=61min", "sym:a:b: lease=61min", no_value },
    { "sym:a:b => x lease=99999999999999999999s", "sym:a:b: lease=99999999999999999999s", no_value },
    { "sym:a:b => x linger=1.5s", "sym:a:b: linger=1.5s", no_value },
    { "sym:a:b => x robust=maybe", "sym:a:b: robust=maybe", no_value },
    { "sym:a:b => x ondown=wait", "sym:a:b: ondown=wait", no_value },
    { "sym:a:b => x onlost=signal:WINCH", "sym:a:b: onlost=signal:WINCH", no_value },
    { "sym:a:b => x required=sometimes", "sym:a:b: required=sometimes", no_value },
    { "sym:a:b => x sharedstate=", "sym:a:b: sharedstate=", no_value },
    { "flock:/a => x shared=yes", "flock:/a: shared=yes", no_value },
    { "sym:a:b => x program=", "sym:a:b: program=", no_value },
    { "sym:a:b => x ondown=local", "sym:a:b: ondown=local", "only a lock file has a local lock to fall back on" },
    { "sym:a:b => x lease=200 robust=2", "sym:a:b: robust=2", no_value },
};

/* A wrong rule is refused with a sentence. */
static void test_a_sentence_says_why_when_a_rule_is_wrong(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(bad); i++) {
        char sentence[RULES_REASON_ROOM];

        snprintf(sentence, sizeof sentence, "%s: %s", bad[i].about, bad[i].what);
        if (parse(bad[i].text) != -1)
            fail_msg("%s was taken", bad[i].text);
        assert_string_equal(reason, sentence);
    }
}

/* A sentence about a rule is cut if longer than the room. */
static void test_a_sentence_is_cut_when_the_rule_is_long(void **state)
{
    char text[2000] = "sym:";

    (void)state;
    memset(text + 4, 'a', 1500);
    assert_int_equal(parse(text), -1);
    assert_int_equal(strlen(reason), RULES_REASON_ROOM - 1);
}

/* ---- rules as text ----------------------------------------------------------------------- */

/* A rule is written as a person types the rule. */
static void test_a_rule_is_written_as_it_was_typed(void **state)
{
    static const char *const typed[] = {
        "sym:legacyd:lock",
        "sym:/a/b:app::Queue::lock+0x28",
        "off:pigz@build-id:cb4951e7+0x423e0",
        "shm:/ring+0x40",
        "map:/var/lib/a+b+0x0",
        "flock:/run/*.lock",
        "cond:sym:a:b",
        "cond:shm:/ring+0x80",
        "fcntl:/a",
    };

    (void)state;
    for (size_t i = 0; i < COUNT(typed); i++) {
        char text[200], written[200];
        struct text out = text_in(written, sizeof written);

        snprintf(text, sizeof text, "%s => x", typed[i]);
        rules_write(parse_one(text), &out);
        assert_string_equal(written, typed[i]);
    }
}

/* ---- names ------------------------------------------------------------------------------- */

static const struct rule_words words = { .path = "/run/lock/a.lock", .program = "legacyd", .uid = 1000 };

static const char *expand(const char *name)
{
    static char expanded[300];
    struct rule rule = { .name = name };

    return rules_expand(&rule, &words, expanded, sizeof expanded) ? expanded : NULL;
}

/* A % in a name is expanded; an unknown one is refused. */
static void test_a_name_is_expanded_when_it_has_words(void **state)
{
    (void)state;
    assert_string_equal(expand("cron/x"), "cron/x");
    assert_string_equal(expand("cron/%b"), "cron/a.lock");
    assert_string_equal(expand("%p"), "/run/lock/a.lock");
    assert_string_equal(expand("%x-%u/100%%"), "legacyd-1000/100%");
    assert_null(expand("a%h"));
    assert_null(expand("a%"));
}

/* A name longer than 200 bytes, the longest name of a mutex, is refused. */
static void test_a_name_is_refused_when_it_is_too_long(void **state)
{
    char name[202];

    (void)state;
    memset(name, 'n', sizeof name);
    name[200] = '\0';
    assert_string_equal(expand(name), name);
    name[200] = 'n';
    name[201] = '\0';
    assert_null(expand(name));
    strcpy(name + 190, "%p");
    assert_null(expand(name));
}

/* A rule may name a program or a module by the last part of the path, or by the whole path. */
static void test_a_file_is_meant_when_its_path_or_basename_is_said(void **state)
{
    struct rule rule = { .program = NULL };

    (void)state;
    assert_true(rules_names_file("legacyd", "/usr/sbin/legacyd"));
    assert_true(rules_names_file("/usr/sbin/legacyd", "/usr/sbin/legacyd"));
    assert_false(rules_names_file("/sbin/legacyd", "/usr/sbin/legacyd"));
    assert_false(rules_names_file("legacy", "/usr/sbin/legacyd"));
    assert_false(rules_names_file("sbin/legacyd", "/usr/sbin/legacyd"));
    assert_true(rules_is_for(&rule, "/anything"));
    rule.program = "legacyd";
    assert_true(rules_is_for(&rule, "/usr/sbin/legacyd"));
    assert_false(rules_is_for(&rule, "/usr/sbin/legacyd2"));
}

/* ---- random texts ------------------------------------------------------------------------ */

/* Any text is read, or refused with a sentence, and no byte outside the text is touched. */
static void test_any_bytes_are_read_or_refused(void **state)
{
    static const char *const pieces[] = {
        "sym:", "off:", "shm:/", "map:/", "flock:/",    "cond:", ":", "=>",     "+0x",
        " ",    ";",    "\\",    "a",     "@build-id:", "=",     "x", "lease=", "\t"
    };
    int refused = 0, taken = 0;

    (void)state;
    for (int round = 0; round < rounds(100000); round++) {
        char *text = malloc(400), *exact;
        struct rule *read;
        size_t most;

        text[0] = '\0';
        for (unsigned i = random_below(24); i > 0; i--) {
            char one[2] = { (char)(1 + random_below(255)), '\0' };

            strcat(text, random_below(8) ? pieces[random_below(COUNT(pieces))] : one);
        }
        exact = strdup(text); /* a sanitizer notices reads beyond the end */
        most = rules_count(exact);
        read = malloc(most * sizeof *read);
        reason[0] = '\0';
        if (rules_parse(exact, read, reason) < 0) {
            refused++;
            assert_true(reason[0]);
        } else {
            taken++;
        }
        free(read);
        free(exact);
        free(text);
    }
    assert_true(refused > 0 && taken > 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_rule_is_read_when_it_has_one_of_the_forms),
        cmocka_unit_test(test_a_rule_has_defaults_when_it_says_nothing),
        cmocka_unit_test(test_a_time_is_read_when_it_has_a_unit_or_none),
        cmocka_unit_test(test_a_setting_is_read_when_it_is_one_of_its_words),
        cmocka_unit_test(test_all_rules_are_read_when_there_are_several),
        cmocka_unit_test(test_no_rules_are_read_when_there_is_nothing),
        cmocka_unit_test(test_a_byte_means_itself_when_a_backslash_is_before_it),
        cmocka_unit_test(test_a_sentence_says_why_when_a_rule_is_wrong),
        cmocka_unit_test(test_a_sentence_is_cut_when_the_rule_is_long),
        cmocka_unit_test(test_a_rule_is_written_as_it_was_typed),
        cmocka_unit_test(test_a_name_is_expanded_when_it_has_words),
        cmocka_unit_test(test_a_name_is_refused_when_it_is_too_long),
        cmocka_unit_test(test_a_file_is_meant_when_its_path_or_basename_is_said),
        cmocka_unit_test(test_any_bytes_are_read_or_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
