/* SPDX-License-Identifier: BSD-2-Clause */
/* Shared by the files that parse a URL: parts of the text, and the sentences about bad parts. */
#ifndef DM_CONFIG_URL_PARTS_H
#define DM_CONFIG_URL_PARTS_H

#include "config/url.h"

#define DM_URL_SENTINEL_FORM "a group of Sentinel is written redis+sentinel://host1:26379,host2,host3/master-name"
#define DM_URL_CLUSTER_FORM "a Cluster is written redis+cluster://host1:6379,host2,host3"
#define DM_URL_LIST_FORMS DM_URL_SENTINEL_FORM ", and " DM_URL_CLUSTER_FORM
#define DM_URL_QUORUM_FORM "a quorum is written redis+quorum://host1:6379,host2,host3"

#define DM_URL_MARIADB_FORM \
    "a database is written mariadb://user@host:3306/database, or mariadb://user@/database?socket=/path"

/* A part of the URL, not yet decoded.  Points into the caller's text, so no NUL ends it. */
struct dm_part {
    const char *text;
    size_t length;
};

/*
 * Copies the sentence, and returns false.  A sentence must not quote any text that may belong to the user's name or
 * password.
 */
bool dm_url_complain(char *ret_reason, const char *sentence);

struct dm_part dm_part_rest(const char *text);

/* Takes the text before `mark` off `*from`, and the mark; all of `*from` if there is no mark. */
struct dm_part dm_part_cut(struct dm_part *from, char mark, bool *ret_found);

/* The same bytes, undecoded. */
bool dm_part_is(struct dm_part part, const char *word);

/* Percent-decodes into new memory; NULL for a bad escape, a NUL, or without memory. */
char *dm_part_decode(struct dm_part part);

/* False unless the part is a decimal number in `least`..`most`. */
bool dm_part_number(struct dm_part part, unsigned least, unsigned most, unsigned *ret_number);

/* Decodes into `*slot`, and frees the previous text.  False if dm_part_decode() fails. */
bool dm_part_set(char **slot, struct dm_part value);

#define DM_URL_TIMEOUT_MAX_MS 3600000 /* an hour */

/* False for a value that cannot be a prefix. */
bool dm_url_set_prefix(struct dm_url *url, struct dm_part value);

/* True if libpq takes the text for a URL.  Its schemes are in small letters. */
bool dm_url_is_postgres(struct dm_part text);
bool dm_url_read_postgres(struct dm_url *url, struct dm_part text, char *ret_reason);
void dm_url_describe_postgres(const struct dm_url *url, char *buf, size_t size);

/*
 * Parses the options, name=value separated by '&'.  False with the reason. is_behind_login: a login has been parsed, so
 * the options cannot be part of one that lacks its '@'.
 */
bool dm_url_read_options(struct dm_url *url, struct dm_part left, bool is_behind_login, char *ret_reason);

#endif
