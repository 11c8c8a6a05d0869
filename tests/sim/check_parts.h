/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Declarations that the parts of check.h share: certain holders (check.c), the server's data (look.c),
 * effects of a script (judge.c), attempts named by a request (named.c).
 */
#ifndef SIM_CHECK_PARTS_H
#define SIM_CHECK_PARTS_H

#include "check.h"
#include "stores/redis/wire/keys.h"

#define WAITERS_MAX 64
#define IDS (1 << 14)
#define HOLDS_REMEMBERED 64
#define TOLD_MAX 128

struct waiter {
    char id[80];
    uint64_t place; /* in the order of arrival, as seen here; 0: came back to an earlier place */
    bool is_live, is_robust;
    bool is_behind_cursor; /* not among the waiters that the last look passed over as dead */
};

struct hold {
    uint64_t id, token;
    bool is_dead; /* granted with the word "an owner died" */
};

/* The facts known of a name. */
struct known {
    struct dm_place *keys, *condition;
    char hold[80];                      /* the id of the hold that the server has, "" none */
    uint64_t most_token, entered_token; /* since the last loss of data */
    uint64_t ever_token;                /* the highest token ever */
    uint64_t lost_token; /* the server's clock at the loss of data; while the clock is behind that, nothing is known */
    struct hold holds[HOLDS_REMEMBERED];
    int hold_count;
    bool is_hold_found;                 /* held when data were lost: the hold's beginning is not known */
    uint64_t dead_hold;                 /* granted with the word "an owner died" */
    bool was_unhealthy;                 /* before the script */
    char mark;                          /* before the script: of the hold; 0 none */
    int signals;                        /* before the script: on their way to a waiter, or owed to one */
    bool had_sleeper;                   /* before the script: a live one */
    struct waiter waiters[WAITERS_MAX]; /* before the script */
    int waiter_count;
    int64_t idle_since_ns;
    bool has_revived; /* since the clock was set back, ended entries live again, without the keys that name them */
};

struct check {
    struct known names[NAMES_MAX];
    int count;
    uint64_t over[IDS]; /* attempts reported to the server as ended */
    int over_count;
    struct arrival {
        uint64_t id, place;
    } arrivals[IDS]; /* two attempts with one index: the older is forgotten, and not compared */
    uint64_t last_place;
    char told[TOLD_MAX][80]; /* by the script: messages "wanted", with the uuid of the inbox before the message */
    int told_count;
    int64_t forgiven_until_ns;
    bool is_due;
    bool is_torn; /* keys of a name do not fit each other, by no fault of the library */
    int locks;
};
extern struct check check;

/*
 * Arguments of an acquire: a waiter's words, which say whether it is robust; try, queue or an arrival number; and from
 * LOOK_OWED on, releases that the server has not confirmed.
 */
#define LOOK_WORDS 2
#define LOOK_MANNER 4
#define LOOK_OWED 8

/* ---- named.c: attempts named by a request --------------------------------------------------- */

void named_check(int script, const struct text *arguments, int count);

/* ---- look.c: the server's data ------------------------------------------------------------- */

struct key *look_key(const struct dm_place *keys, int which);

/* "" where there is none. */
const char *look_field(const struct key *key, const char *name);

/* The field `hold` of a mutex; "" if there is none, or it has ended. */
const char *look_hold(const struct known *known);

/* The id of a `hold`. */
void look_copy_id(char id[80], const char *hold);

/* The text after the first `count` words. */
const char *look_behind_words(const char *text, int count);

/*
 * The waiters of the mutex: those in the queue, or the lone one in `state`. look_waiter() returns the words of the
 * waiter with that number, or "", and sets the id.
 */
int look_count_waiters(const struct known *known);
const char *look_waiter(const struct known *known, int number, char id[80]);
bool look_waits(const struct known *known, const char *id);

/* Notes the facts needed before a script. */
void look_at_queue(struct known *known);

/* Counts signals: carried by waiters, carried by an owner not heard of since, owed. */
int look_count_signals(const struct known *known);

/* True if there are entries of waiters without a queue or condition that names the waiters. */
bool look_has_orphans(const struct known *known);

/* ---- look.c: attempts of this run ---------------------------------------------------------- */

uint64_t look_hash(const char *bytes, size_t length);

/* True if the server was informed of the end of the attempt. */
bool look_is_over(uint64_t id);
void look_note_over(struct text id);
void look_forget_over(struct text id);

/* Note the order of arrival; a waiter in the queue now, and not before, has just come. */
void look_note_arrival(const char *id, uint64_t place);
void look_note_arrivals(const struct known *known, bool is_back);

#endif
