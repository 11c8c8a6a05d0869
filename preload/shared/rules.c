/* SPDX-License-Identifier: BSD-2-Clause */
#include "rules.h"

#include <signal.h>
#include <string.h>

#include "text.h"

#define NAME_MAX_BYTES 200 /* of a mutex */

/* ---- words ------------------------------------------------------------------------------- */

size_t rules_count(const char *text)
{
    size_t count = 1;

    for (; *text; text++)
        count += *text == ';';
    return count;
}

static bool is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\n';
}

static char *skip_blanks(char *at)
{
    while (is_blank(*at))
        at++;
    return at;
}

/*
 * Removes the next word from the text: up to a blank or a `;`, unless a backslash makes it part of the word. The word
 * is terminated in place. *ret_end: the byte that ended it, which the terminator may have overwritten.
 */
static char *take_word(char **text, char *ret_end)
{
    char *word = skip_blanks(*text), *to = word, *from = word;

    for (; *from && *from != ';' && !is_blank(*from); from++) {
        if (*from == '\\' && from[1])
            from++;
        *to++ = *from;
    }
    *ret_end = *from;
    *text = *from ? from + 1 : from;
    *to = '\0';
    return word;
}

/* Begins the message with the faulty rule or key. */
static bool complain(struct text *reason, const char *what)
{
    text_add(reason, ": ");
    text_add(reason, what);
    return false;
}

/* ---- a rule ------------------------------------------------------------------------------ */

/* Cuts the text at the last of these bytes. Returns what follows it, or NULL. */
static char *cut_at_last(char *text, char at)
{
    char *found = strrchr(text, at);

    if (!found)
        return NULL;
    *found = '\0';
    return found + 1;
}

static bool is_hex(const char *text)
{
    return *text && strspn(text, "0123456789abcdef") == strlen(text);
}

/* MODULE:SYMBOL[+OFFSET] */
static bool read_symbol(struct rule *rule, char *text)
{
    char *offset = cut_at_last(text, '+'), *colon = strchr(text, ':');

    if (!colon)
        return false;
    *colon = '\0'; /* the first colon, because C++ names contain more */
    rule->module = text;
    rule->symbol = colon + 1;
    return *rule->symbol && *text && (!offset || text_number(offset, &rule->offset));
}

/* MODULE@build-id:HEX+OFFSET */
static bool read_offset(struct rule *rule, char *text)
{
    char *offset = cut_at_last(text, '+'), *id = strstr(text, "@build-id:");

    if (!offset || !id || !text_number(offset, &rule->offset))
        return false;
    *id = '\0';
    rule->module = text;
    rule->build_id = id + strlen("@build-id:");
    return *text && is_hex(rule->build_id);
}

/* /NAME+OFFSET */
static bool read_mapping(struct rule *rule, char *text)
{
    char *offset = cut_at_last(text, '+');

    rule->module = text;
    return *text == '/' && offset && text_number(offset, &rule->offset);
}

static bool read_files(struct rule *rule, char *text)
{
    rule->module = text;
    return *text == '/';
}

static const struct {
    const char *word;
    enum rule_kind kind;
    bool (*read)(struct rule *rule, char *text);
    const char *form;
} kinds[] = {
    { "sym:", RULE_SYMBOL, read_symbol, "not of the form sym:MODULE:SYMBOL or sym:MODULE:SYMBOL+OFFSET" },
    { "off:", RULE_OFFSET, read_offset, "not of the form off:MODULE@build-id:HEX+OFFSET" },
    { "shm:", RULE_SHM, read_mapping, "not of the form shm:/NAME+OFFSET" },
    { "map:", RULE_MAP, read_mapping, "not of the form map:/PATH+OFFSET" },
    { "flock:", RULE_FLOCK, read_files, "not of the form flock:/GLOB" },
    { "fcntl:", RULE_FCNTL, read_files, "not of the form fcntl:/GLOB" },
};

static bool is_of_file(const struct rule *rule)
{
    return rule->kind == RULE_FLOCK || rule->kind == RULE_FCNTL;
}

static bool read_rule(struct rule *rule, char *text, struct text *reason)
{
    rule->is_condition = strncmp(text, "cond:", 5) == 0;
    if (rule->is_condition)
        text += 5;
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
        size_t length = strlen(kinds[i].word);

        if (strncmp(text, kinds[i].word, length) != 0)
            continue;
        rule->kind = kinds[i].kind;
        if (!kinds[i].read(rule, text + length))
            return complain(reason, kinds[i].form);
        if (rule->is_condition && is_of_file(rule))
            return complain(reason, "a file is not a condition variable");
        rule->on_down = is_of_file(rule) ? DOWN_FAIL : DOWN_BLOCK;
        return true;
    }
    if (strncmp(text, "sem:", 4) == 0)
        return complain(reason, "semaphores are not distributed");
    return complain(reason, "does not begin with sym:, off:, shm:, map:, flock: or fcntl:");
}

/* ---- settings ---------------------------------------------------------------------------- */

static bool read_word(const char *value, const char *const words[], int *ret_index)
{
    for (int i = 0; words[i]; i++)
        if (strcmp(value, words[i]) == 0) {
            *ret_index = i;
            return true;
        }
    return false;
}

static bool read_yes(const char *value, bool *ret_yes)
{
    static const char *const words[] = { "no", "yes", NULL };
    int index;

    if (!read_word(value, words, &index))
        return false;
    *ret_yes = index == 1;
    return true;
}

/* Milliseconds, or a number with a unit: 500ms, 10s, 1min. */
static bool read_time(const char *value, unsigned *ret_ms)
{
    static const struct {
        const char *unit;
        unsigned ms;
    } units[] = { { "ms", 1 }, { "s", 1000 }, { "min", 60000 }, { "", 1 } };
    size_t digits = strspn(value, "0123456789");
    char number[12];
    uint64_t count;

    if (digits == 0 || digits >= sizeof number)
        return false;
    memcpy(number, value, digits);
    number[digits] = '\0';
    for (size_t i = 0; i < sizeof units / sizeof units[0]; i++)
        if (strcmp(value + digits, units[i].unit) == 0 && text_number(number, &count) &&
            count <= 3600000 / units[i].ms) {
            *ret_ms = (unsigned)count * units[i].ms;
            return true;
        }
    return false;
}

static bool read_on_lost(const char *value, int *ret_signal)
{
    static const struct {
        const char *word;
        int number;
    } signals[] = { { "log", 0 },
                    { "kill", SIGKILL },
                    { "signal:TERM", SIGTERM },
                    { "signal:INT", SIGINT },
                    { "signal:HUP", SIGHUP },
                    { "signal:USR1", SIGUSR1 },
                    { "signal:USR2", SIGUSR2 },
                    { "signal:ABRT", SIGABRT },
                    { "signal:STOP", SIGSTOP } };

    for (size_t i = 0; i < sizeof signals / sizeof signals[0]; i++)
        if (strcmp(value, signals[i].word) == 0) {
            *ret_signal = signals[i].number;
            return true;
        }
    return false;
}

static bool read_setting(struct rule *rule, const char *key, const char *value)
{
    static const char *const down[] = { "block", "fail", "local", NULL };
    static const char *const required[] = { "auto", "yes", "no", NULL };
    bool yes;
    int index;

    if (strcmp(key, "lease") == 0)
        return read_time(value, &rule->lease_ms) && rule->lease_ms >= 100;
    if (strcmp(key, "linger") == 0)
        return read_time(value, &rule->linger_ms);
    if (strcmp(key, "robust") == 0 && read_yes(value, &yes)) {
        rule->robust = yes ? ROBUST_YES : ROBUST_NO;
        return true;
    }
    if (strcmp(key, "ondown") == 0 && read_word(value, down, &index)) {
        rule->on_down = (enum rule_on_down)index;
        return true;
    }
    if (strcmp(key, "onlost") == 0)
        return read_on_lost(value, &rule->on_lost);
    if (strcmp(key, "required") == 0 && read_word(value, required, &index)) {
        rule->required = (enum rule_required)index;
        return true;
    }
    if (strcmp(key, "sharedstate") == 0)
        return read_yes(value, &rule->is_state_shared);
    if (strcmp(key, "shared") == 0) {
        rule->shared_is_exclusive = strcmp(value, "exclusive") == 0;
        return rule->shared_is_exclusive || strcmp(value, "refuse") == 0;
    }
    if (strcmp(key, "program") == 0) {
        rule->program = value;
        return *value;
    }
    return false;
}

/* key=value, up to the end of the rule. */
static bool read_settings(struct rule *rule, char **text, char end, struct text *reason)
{
    size_t rule_ends = reason->length;

    while (end && end != ';') {
        char *key = take_word(text, &end), *value = strchr(key, '=');

        if (!*key)
            continue;
        text_add(reason, ": ");
        text_add(reason, key);
        if (!value)
            return complain(reason, "not of the form key=value");
        *value = '\0';
        if (!read_setting(rule, key, value + 1))
            return complain(reason, "an unknown key, or a value that it cannot have");
        if (rule->on_down == DOWN_LOCAL && !is_of_file(rule))
            return complain(reason, "only a lock file has a local lock to fall back on");
        reason->length = rule_ends;
    }
    return true;
}

/* ---- all --------------------------------------------------------------------------------- */

/* True if every % in the name has a meaning. */
static bool has_good_words(const char *name)
{
    while ((name = strchr(name, '%'))) {
        if (!name[1] || !strchr("bpxu%", name[1]))
            return false;
        name += 2;
    }
    return true;
}

/* Reads the `=>` and the name after it. */
static bool read_name(struct rule *rule, char **text, char *end, struct text *reason)
{
    if (*end && *end != ';' && strcmp(take_word(text, end), "=>") == 0 && *end && *end != ';') {
        rule->name = take_word(text, end);
        if (!has_good_words(rule->name))
            return complain(reason, "its name has a % that is not one of %b, %p, %x, %u and %%");
        if (*rule->name)
            return true;
    }
    return complain(reason, "must be followed by => and a name, with blanks around the =>");
}

int rules_parse(char *text, struct rule *rules, char ret_reason[RULES_REASON_ROOM])
{
    int count = 0;

    while (*(text = skip_blanks(text))) {
        struct text reason = text_in(ret_reason, RULES_REASON_ROOM);
        struct rule *rule = &rules[count];
        char end, *word = take_word(&text, &end);

        if (!*word)
            continue;
        *rule = (struct rule){ 0 };
        text_add(&reason, word);
        if (!read_name(rule, &text, &end, &reason) || !read_rule(rule, word, &reason) ||
            !read_settings(rule, &text, end, &reason))
            return -1;
        count++;
    }
    return count;
}

static const char *word_of(enum rule_kind kind)
{
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++)
        if (kinds[i].kind == kind)
            return kinds[i].word;
    return "";
}

void rules_write(const struct rule *rule, struct text *text)
{
    if (rule->is_condition)
        text_add(text, "cond:");
    text_add(text, word_of(rule->kind));
    text_add(text, rule->module);
    if (rule->kind == RULE_SYMBOL) {
        text_add(text, ":");
        text_add(text, rule->symbol);
    }
    if (rule->kind == RULE_OFFSET) {
        text_add(text, "@build-id:");
        text_add(text, rule->build_id);
    }
    if (is_of_file(rule) || (rule->kind == RULE_SYMBOL && rule->offset == 0))
        return;
    text_add(text, "+");
    text_add_hex(text, rule->offset);
}

bool rules_expand(const struct rule *rule, const struct rule_words *words, char *ret_name, size_t room)
{
    struct text text = text_in(ret_name, room < NAME_MAX_BYTES + 1 ? room : NAME_MAX_BYTES + 1);

    for (const char *at = rule->name; *at; at++) {
        if (*at != '%') {
            text_add_bytes(&text, at, 1);
            continue;
        }
        switch (*++at) {
        case 'b':
            text_add(&text, text_basename(words->path));
            break;
        case 'p':
            text_add(&text, words->path);
            break;
        case 'x':
            text_add(&text, words->program);
            break;
        case 'u':
            text_add_number(&text, words->uid);
            break;
        case '%':
            text_add(&text, "%");
            break;
        default:
            return false;
        }
    }
    return !text.is_cut;
}

bool rules_names_file(const char *module, const char *path)
{
    return strcmp(module, strchr(module, '/') ? path : text_basename(path)) == 0;
}

bool rules_is_for(const struct rule *rule, const char *program_path)
{
    return !rule->program || rules_names_file(rule->program, program_path);
}
