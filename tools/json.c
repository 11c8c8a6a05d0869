/* SPDX-License-Identifier: BSD-2-Clause */
#include "json.h"

#include <ctype.h>
#include <inttypes.h>
#include <string.h>
#include <time.h>

#include "base/bug.h"
#include "base/text.h"

struct json json_begin(FILE *to)
{
    return (struct json){ .to = to };
}

void json_end(struct json *json)
{
    DM_BUG(json->depth != 0);
    putc('\n', json->to);
}

static void put_escaped(struct json *json, char c)
{
    if (c == '"' || c == '\\')
        fprintf(json->to, "\\%c", c);
    else if ((unsigned char)c < ' ' || c == 127)
        fprintf(json->to, "\\u%04x", (unsigned char)c);
    else
        putc(c, json->to);
}

/* JSON allows control characters above ASCII, such as U+0085, but a terminal would obey some, so we escape them. */
static void put_character(struct json *json, const char *text, size_t length)
{
    if (length == 1)
        put_escaped(json, *text);
    else if (dm_text_printable(text))
        fwrite(text, 1, length, json->to);
    else if (length == 2)
        fprintf(json->to, "\\u%04x", ((unsigned)text[0] & 0x1F) << 6 | ((unsigned)text[1] & 0x3F));
    else if (length == 3)
        fprintf(json->to, "\\u%04x",
                ((unsigned)text[0] & 0xF) << 12 | ((unsigned)text[1] & 0x3F) << 6 | ((unsigned)text[2] & 0x3F));
    else
        fputs("\\ufffd", json->to);
}

static void put_text(struct json *json, const char *text)
{
    putc('"', json->to);
    while (*text) {
        size_t length = dm_text_character(text);

        if (length)
            put_character(json, text, length);
        else
            fputs("\\ufffd", json->to);
        text += length ? length : 1;
    }
    putc('"', json->to);
}

/* Writes the comma before a member, and the member's key. */
static void begin_member(struct json *json, const char *key)
{
    if (json->has_members[json->depth])
        putc(',', json->to);
    json->has_members[json->depth] = true;
    if (!key)
        return;
    put_text(json, key);
    putc(':', json->to);
}

void json_open(struct json *json, const char *key, char bracket)
{
    DM_BUG(json->depth == JSON_DEPTH);
    begin_member(json, key);
    putc(bracket, json->to);
    json->brackets[json->depth++] = bracket;
    json->has_members[json->depth] = false;
}

void json_close(struct json *json)
{
    DM_BUG(json->depth == 0);
    putc(json->brackets[--json->depth] == '{' ? '}' : ']', json->to);
}

void json_text(struct json *json, const char *key, const char *text)
{
    begin_member(json, key);
    put_text(json, text);
}

void json_number(struct json *json, const char *key, int64_t number)
{
    begin_member(json, key);
    fprintf(json->to, "%" PRId64, number);
}

void json_bool(struct json *json, const char *key, bool is_true)
{
    begin_member(json, key);
    fputs(is_true ? "true" : "false", json->to);
}

void json_null(struct json *json, const char *key)
{
    begin_member(json, key);
    fputs("null", json->to);
}

void json_long(struct json *json, const char *key, uint64_t number)
{
    begin_member(json, key);
    fprintf(json->to, "\"%" PRIu64 "\"", number);
}

void json_name(struct json *json, const char *name)
{
    json_text(json, "name", name);
    begin_member(json, "encoded");
    putc('"', json->to);
    for (; *name; name++) {
        unsigned char c = (unsigned char)*name;

        if (c < 128 && (isalnum(c) || strchr("._-/", c)))
            putc(c, json->to);
        else
            fprintf(json->to, "%%%02X", c);
    }
    putc('"', json->to);
}

void json_moment(struct json *json, const char *key, int64_t ms)
{
    time_t seconds = (time_t)(ms / 1000);
    struct tm parts;
    char text[40];

    begin_member(json, key);
    if (ms < 0 || !gmtime_r(&seconds, &parts))
        fputs("null", json->to);
    else if (strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%S", &parts) > 0)
        fprintf(json->to, "\"%s.%03dZ\"", text, (int)(ms % 1000));
    else
        fputs("null", json->to);
}
