/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Writes one JSON document.  It is well-formed whatever bytes the texts contain.
 *
 *     struct json json = json_begin(stdout);
 *
 *     json_open(&json, NULL, '{');
 *     json_text(&json, "host", host);
 *     json_close(&json);
 *     json_end(&json);
 *
 * The key is NULL inside an array, and for the outermost value.
 */
#ifndef DM_TOOLS_JSON_H
#define DM_TOOLS_JSON_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#define JSON_DEPTH 8

struct json {
    FILE *to;
    char brackets[JSON_DEPTH];
    bool has_members[JSON_DEPTH + 1];
    int depth;
};

struct json json_begin(FILE *to);
void json_end(struct json *json);

/* bracket: '{' or '['. */
void json_open(struct json *json, const char *key, char bracket);
void json_close(struct json *json);

/* Bytes that are not UTF-8 become U+FFFD. */
void json_text(struct json *json, const char *key, const char *text);
void json_number(struct json *json, const char *key, int64_t number);
void json_bool(struct json *json, const char *key, bool is_true);
void json_null(struct json *json, const char *key);

/* A number that may exceed 2^53, which many JSON readers would round: written as text. */
void json_long(struct json *json, const char *key, uint64_t number);

/*
 * A name, as two members: "name" for people, and "encoded", which loses nothing: there, bytes outside A-Z a-z 0-9 . _ -
 * / are %XX.
 */
void json_name(struct json *json, const char *name);

/* A time in ms since 1970, as "2026-11-23T08:15:30.123Z". */
void json_moment(struct json *json, const char *key, int64_t ms);

#endif
