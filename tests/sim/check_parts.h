/* SPDX-License-Identifier: BSD-2-Clause */
/* What the parts of check.h share: who believes (check.c), what the server has (look.c), what a script does (judge.c). */
#ifndef SIM_CHECK_PARTS_H
#define SIM_CHECK_PARTS_H

#include "check.h"
#include "redis/keys.h"

#define WAITERS_MAX 64
#define IDS (1 << 14)
#define HOLDS_REMEMBERED 64

struct waiter {
    char id[80];
    uint64_t place; /* in the order of arrival, as seen here; 0: it came back to a place of before */
    bool is_live, is_robust;
    bool is_behind_cursor; /* not among those that were looked at in vain last time */
};

struct hold {
    uint64_t id, token;
};

/* What is known of a name. */
struct known {
    struct dm_keys *keys, *condition;
    char hold[80]; /* the id of the hold that the server has, "" none */
    uint64_t most_token, entered_token; /* since the last loss of data */
    uint64_t ever_token;                /* the highest there ever was */
    uint64_t lost_token; /* where the server's clock was when data were lost: behind it nothing is known */
    struct hold holds[HOLDS_REMEMBERED];
    int hold_count;
    bool is_hold_found; /* was there when data were lost: how it began is not known */
    uint64_t dead_hold; /* granted with the word that an owner died */
    bool was_unhealthy; /* before the script */
    int signals;        /* before the script: on their way to a waiter, or owed to one */
    bool had_sleeper;   /* before the script: a live one */
    struct waiter waiters[WAITERS_MAX]; /* before the script */
    int waiter_count;
    int64_t idle_since_ns;
    bool has_revived; /* entries whose end had come live again since the clock was set back, and not what names them */
};

struct check {
    struct known names[NAMES_MAX];
    int count;
    uint64_t over[IDS]; /* attempts that the server was told the end of */
    int over_count;
    struct arrival {
        uint64_t id, place;
    } arrivals[IDS]; /* one that meets another here is forgotten, and not compared */
    uint64_t last_place;
    int64_t forgiven_until_ns;
    bool is_due;
    bool is_torn; /* keys of a name do not fit each other, by no fault of the library */
    int locks;
};
extern struct check check;

/* ---- look.c: what the server has ----------------------------------------------------------- */

struct key *look_key(const struct dm_keys *keys, int which);

/* "" where there is none. */
const char *look_field(const struct key *key, const char *name);

/* The id of a `hold`. */
void look_copy_id(char id[80], const char *hold);

/* The text behind `count` words. */
const char *look_behind_words(const char *text, int count);

/* What is to be known before a script. */
void look_at_queue(struct known *known);

/* Carried by waiters, carried by an owner that has not been heard of since, owed. */
int look_count_signals(const struct known *known);

/* Entries of those who wait that no queue and no condition names. */
bool look_has_orphans(const struct known *known);

/* ---- look.c: attempts of this run ---------------------------------------------------------- */

uint64_t look_hash(const char *bytes, size_t length);

/* Of an attempt that the server was told the end of. */
bool look_is_over(uint64_t id);
void look_note_over(struct text id);

/* Who came when; who is there now and was not before has just come. */
void look_note_arrival(const char *id, uint64_t place);
void look_note_arrivals(const struct known *known, bool is_back);

#endif
