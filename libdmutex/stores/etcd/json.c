/* SPDX-License-Identifier: BSD-2-Clause */
#include "stores/etcd/json.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#define DEPTH_MOST 16

static const char *skip_blanks(const char *at)
{
    return at + strspn(at, " \t\r\n");
}

/* ---- the end of a value ------------------------------------------------------------------- */

/* Each returns the first byte after what is at `at`, or NULL if something else is there. */
static const char *skip_value(const char *at, int depth);

static const char *skip_string(const char *at)
{
    if (*at++ != '"')
        return NULL;
    for (; *at != '"'; at++) {
        if ((unsigned char)*at < ' ')
            return NULL;
        if (*at == '\\' && (unsigned char)*++at < ' ')
            return NULL;
    }
    return at + 1;
}

static const char *skip_word(const char *at)
{
    size_t length = strspn(at, "+-.0123456789Ee");

    if (length)
        return at + length;
    for (const char *const *word = (const char *const[]){ "true", "false", "null", NULL }; *word; word++) {
        if (strncmp(at, *word, strlen(*word)) == 0)
            return at + strlen(*word);
    }
    return NULL;
}

static const char *skip_member(const char *at, int depth)
{
    at = skip_string(at);
    at = at ? skip_blanks(at) : NULL;
    return at && *at == ':' ? skip_value(skip_blanks(at + 1), depth) : NULL;
}

static const char *skip_list(const char *at, char end, int depth)
{
    if (depth == DEPTH_MOST)
        return NULL;
    at = skip_blanks(at + 1);
    if (*at == end)
        return at + 1;
    while ((at = end == '}' ? skip_member(at, depth + 1) : skip_value(at, depth + 1))) {
        at = skip_blanks(at);
        if (*at == end)
            return at + 1;
        if (*at != ',')
            return NULL;
        at = skip_blanks(at + 1);
    }
    return NULL;
}

static const char *skip_value(const char *at, int depth)
{
    switch (*at) {
    case '{':
        return skip_list(at, '}', depth);
    case '[':
        return skip_list(at, ']', depth);
    case '"':
        return skip_string(at);
    default:
        return skip_word(at);
    }
}

struct dm_json dm_json_check(const char *text)
{
    const char *at = skip_blanks(text), *end = skip_value(at, 0);

    return (struct dm_json){ end && *skip_blanks(end) == '\0' ? at : NULL };
}

/* ---- parts -------------------------------------------------------------------------------- */

/* What comes after a value in its list: another one, or nothing. */
static const char *next_of(const char *at)
{
    at = skip_blanks(at);
    return *at == ',' ? skip_blanks(at + 1) : NULL;
}

static bool has_name(const char *at, const char *name)
{
    size_t length = strlen(name);

    return strncmp(at + 1, name, length) == 0 && at[length + 1] == '"';
}

struct dm_json dm_json_get(struct dm_json object, const char *name)
{
    const char *at = object.at && *object.at == '{' ? skip_blanks(object.at + 1) : NULL;

    while (at && *at == '"') {
        const char *value = skip_blanks(skip_blanks(skip_string(at)) + 1);

        if (has_name(at, name))
            return (struct dm_json){ value };
        at = next_of(skip_value(value, 0));
    }
    return (struct dm_json){ NULL };
}

struct dm_json dm_json_first(struct dm_json array)
{
    const char *at = array.at && *array.at == '[' ? skip_blanks(array.at + 1) : NULL;

    return (struct dm_json){ at && *at != ']' ? at : NULL };
}

struct dm_json dm_json_next(struct dm_json element)
{
    return (struct dm_json){ next_of(skip_value(element.at, 0)) };
}

/* ---- plain values ------------------------------------------------------------------------- */

bool dm_json_is_true(struct dm_json value)
{
    return value.at && *value.at == 't';
}

int64_t dm_json_int64(struct dm_json value)
{
    if (!value.at)
        return 0;
    return strtoll(value.at + (*value.at == '"'), NULL, 10);
}

const char *dm_json_raw(struct dm_json value, size_t *ret_size)
{
    if (!value.at || *value.at != '"')
        return NULL;
    *ret_size = (size_t)(skip_string(value.at) - value.at) - 2;
    return value.at + 1;
}

/* The character of an escape; `*at` is its letter, and becomes its last byte. */
static char unescape(const char **at)
{
    char digits[5] = "";
    long code;

    switch (**at) {
    case 'n':
    case 'r':
    case 't':
    case 'b':
    case 'f':
        return ' ';
    case 'u':
        for (int i = 0; i < 4 && isxdigit((unsigned char)(*at)[1]); i++)
            digits[i] = *++*at;
        code = strtol(digits, NULL, 16);
        return code >= ' ' && code < 127 ? (char)code : '?';
    default:
        return **at;
    }
}

void dm_json_text(struct dm_json value, char *ret_text, size_t room)
{
    size_t size = 0, used = 0;
    const char *at = dm_json_raw(value, &size), *end = at + size;

    for (; at && at < end && used + 1 < room; at++)
        ret_text[used++] = *at != '\\' ? *at : (at++, unescape(&at));
    ret_text[used] = '\0';
}
