/* SPDX-License-Identifier: BSD-2-Clause */
/* DMUTEX_MAP and DMUTEX_RULES: a rule that is taken is whole, and points into the text. */
#include <string.h>

#include "fuzz.h"
#include "shared/rules.h"
#include "shared/text.h"

static const char *const seeds[] = {
    "sym:libm.so:lock => g/l lease=10s linger=5 robust=yes ; cond:sym:/usr/bin/x:cond+0x10 => g/c",
    "off:prog@build-id:00ff+0x20 => g/%b required=yes program=prog",
    "shm:/pool+64 => shm%p ondown=fail onlost=signal:TERM",
    "map:/srv/a\\ b+0 => a sharedstate=yes",
    "flock:/var/lock/*.lck => locks/%b ondown=local shared=exclusive",
    "fcntl:/srv/?x => f%%%u%x",
    ";;",
    NULL,
};

static const char *const words[] = {
    "sym:",
    "off:",
    "shm:",
    "map:",
    "flock:",
    "fcntl:",
    "cond:",
    " => ",
    " ; ",
    "@build-id:",
    "+0x",
    "+",
    "\\",
    "\\;",
    "*",
    "?",
    "%b",
    "%p",
    "%x",
    "%u",
    "%%",
    "lease=",
    "10s",
    "1min",
    "500ms",
    "linger=",
    "robust=yes",
    "ondown=block",
    "onlost=kill",
    "required=auto",
    "sharedstate=no",
    "shared=refuse",
    "program=",
    NULL,
};

const struct fuzzer fuzzer = { "rules", seeds, words, 60000, 4000000 };

static const char *text_end;

static void must_be_in(const char *text, const char *part)
{
    must(part && part >= text && part <= text_end);
}

static void look_at(const char *text, const struct rule *rule)
{
    const struct rule_words usual = { .path = "/var/lock/a.lck", .program = "prog", .uid = 1000 };
    char name[256], written[64];
    struct text out = text_in(written, sizeof written);

    must_be_in(text, rule->module);
    must_be_in(text, rule->name);
    must(*rule->name && (rule->lease_ms == 0 || rule->lease_ms >= 100) && rule->lease_ms <= 3600000);
    if (rule->kind == RULE_SYMBOL)
        must_be_in(text, rule->symbol);
    if (rule->kind == RULE_OFFSET)
        must_be_in(text, rule->build_id);
    must(!rule->is_condition || (rule->kind != RULE_FLOCK && rule->kind != RULE_FCNTL));
    rules_write(rule, &out);
    must(strlen(written) == out.length && out.length < sizeof written);
    if (rules_expand(rule, &usual, name, sizeof name))
        must(strlen(name) <= 200);
    rules_is_for(rule, "/usr/bin/prog");
    rules_names_file(rule->module, "/var/lock/a.lck");
    if (rule->kind == RULE_FLOCK || rule->kind == RULE_FCNTL)
        text_matches(rule->module, "/var/lock/a.lck");
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length)
{
    char *text = strdup(fuzz_text(bytes, length)), reason[RULES_REASON_ROOM] = "";
    size_t most = rules_count(text);
    struct rule *rules = malloc(most * sizeof *rules);
    int count;

    must(text && rules);
    text_end = text + strlen(text);
    count = rules_parse(text, rules, reason);
    must(count <= (int)most && (count >= 0 || (reason[0] && strlen(reason) < sizeof reason)));
    for (int i = 0; i < count; i++)
        look_at(text, &rules[i]);
    free(rules);
    free(text);
    return 0;
}
