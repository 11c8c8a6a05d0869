/* SPDX-License-Identifier: BSD-2-Clause */
/* A mutex or a condition as a view has shown it, kept after the view, with texts for people and for JSON. */
#ifndef DM_TOOLS_SEEN_H
#define DM_TOOLS_SEEN_H

#include "json.h"
#include "keeper.h"
#include "store/store.h"

/* A copy of a struct dm_seen that owns its texts; freed by seen_clear(). */
struct seen {
    struct dm_seen data;
    char *key, *fault, *mutex, *name;
    struct dm_seen_waiter *waiters;
    struct keeper_job job; /* if the holder is a keeper of this host: the job it holds for; pid 0: not known */
};

/* Exits if there is no memory. */
struct seen seen_copy(const struct dm_seen *data);
void seen_clear(struct seen *seen);

bool seen_is_condition(const struct seen *seen);

/* True if the library made the name, for an object without one. */
bool seen_is_anonymous(const struct seen *seen);

#define SEEN_PARTY_ROOM 512

/* Writes "report (process 4711) on db2" for a holder or a waiter.  Returns ret_text. */
const char *seen_party(uint32_t pid, const char *host, const char *program, char ret_text[SEEN_PARTY_ROOM]);

/* The holder of a mutex, or the job that a keeper holds it for. */
const char *seen_holder(const struct seen *seen, char ret_text[SEEN_PARTY_ROOM]);

/*
 * True if the server has not heard from the waiter for longer than its lease.  A waiter asks three times in a lease, so
 * it is dead, stopped or cut off.
 */
bool seen_is_silent(const struct dm_seen_waiter *waiter);

/* Counts among the waiters that were listed. */
unsigned seen_count_silent(const struct seen *seen);

/* "clean", "dead", "notrecoverable". */
const char *seen_health(const struct seen *seen);

/* Writes the members of an object that is already open. */
void seen_json(struct json *json, const struct seen *seen);

/* Writes the member "holder", which is null if the mutex is free; and the members of a waiter. */
void seen_json_holder(struct json *json, const struct seen *seen);
void seen_json_waiter(struct json *json, const struct dm_seen_waiter *waiter);

#endif
