/* SPDX-License-Identifier: BSD-2-Clause */
/* A mutex or a condition of a view, kept beyond the view, in words for people and in JSON. */
#ifndef DM_TOOLS_SEEN_H
#define DM_TOOLS_SEEN_H

#include "json.h"
#include "keeper.h"
#include "store/store.h"

/* A copy of a struct dm_seen, with texts of its own; freed by seen_clear(). */
struct seen {
    struct dm_seen data;
    char *key, *fault, *mutex, *name;
    struct dm_seen_waiter *waiters;
    struct keeper_job job; /* of a holder that is a keeper of this host: the job behind it; pid 0: not known */
};

/* Ends the program without memory. */
struct seen seen_copy(const struct dm_seen *data);
void seen_clear(struct seen *seen);

bool seen_is_condition(const struct seen *seen);

/* True if the name was made by the library for an object without a name. */
bool seen_is_anonymous(const struct seen *seen);

#define SEEN_PARTY_ROOM 512

/* Writes "report (process 4711) on db2", of a holder or a waiter.  Returns ret_text. */
const char *seen_party(uint32_t pid, const char *host, const char *program, char ret_text[SEEN_PARTY_ROOM]);

/* The holder of a mutex, or the job behind the keeper. */
const char *seen_holder(const struct seen *seen, char ret_text[SEEN_PARTY_ROOM]);

/*
 * True if the server has not heard of the waiter for longer than its lease: a waiter asks three times in that time, so
 * it is dead, stopped or cut off.
 */
bool seen_is_silent(const struct dm_seen_waiter *waiter);

/* Of the waiters that were told. */
unsigned seen_count_silent(const struct seen *seen);

/* "clean", "dead", "notrecoverable". */
const char *seen_health(const struct seen *seen);

/* Writes the members of an object that is open. */
void seen_json(struct json *json, const struct seen *seen);

/* Writes the member "holder", null if the mutex is free; and the members of a waiter. */
void seen_json_holder(struct json *json, const struct seen *seen);
void seen_json_waiter(struct json *json, const struct dm_seen_waiter *waiter);

#endif
