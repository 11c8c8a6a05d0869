/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Reads JSON: values are places in a text that dm_json_check() has checked, so no function can fail on them but by
 * finding something else than it was asked for.
 *
 * The JSON of protobuf leaves out fields that are false, zero or empty, and writes numbers of 64 bits as strings.
 */
#ifndef DM_ETCD_JSON_H
#define DM_ETCD_JSON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A value in the text; at NULL: none, in which everything is missing. */
struct dm_json {
    const char *at;
};

/* The whole text as one value; none if it is not JSON, or nests more than 16 deep.  A NUL ends the text. */
struct dm_json dm_json_check(const char *text);

/* A member of an object. */
struct dm_json dm_json_get(struct dm_json object, const char *name);

/* The elements of an array, one after the other: for (e = dm_json_first(a); e.at; e = dm_json_next(e)). */
struct dm_json dm_json_first(struct dm_json array);
struct dm_json dm_json_next(struct dm_json element);

bool dm_json_is_true(struct dm_json value);

/* A number, or a string with one; 0 for anything else. */
int64_t dm_json_int64(struct dm_json value);

/* Copies a string, cut if need be, with its escapes resolved as far as they are ASCII.  "" for anything else. */
void dm_json_text(struct dm_json value, char *ret_text, size_t room);

/* The bytes of a string as they are in the text; NULL for anything else. */
const char *dm_json_raw(struct dm_json value, size_t *ret_size);

#endif
