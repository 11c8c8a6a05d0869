/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The library's Lua scripts, run one by one over a plain connection: no library in between. For the tests of the
 * scripts; the only place that knows the order of their arguments.
 *
 *     struct who a = who("a"), b = who("b");
 *
 *     assert_answer(acquire(&a, TRY), "owned");
 *     assert_answer(acquire(&b, QUEUE), "queued");
 *     assert_answer(release(&a, UNLOCKED), "released");
 *
 * An answer is a text: the elements of the reply, nested elements too, one per line; an error is "error" and the
 * message. An answer stays valid for some hundred calls.
 */
#ifndef TEST_SCRIPTS_H
#define TEST_SCRIPTS_H

#include "../lib/testlib.h"

#define LEASE 60000 /* ms; none ends while a test runs */

/* One attempt of one thread of one process, as the scripts see the attempt. */
struct who {
    const char *uuid; /* the process: any word without ':' */
    const char *leaf; /* the mutex is "t/<leaf>" */
    const char *cond; /* the condition is "t/<cond>" */
    long long thread, attempt, request;
    long long lease_ms;
    bool is_robust;
    const char *seen; /* highest token seen */
    const char *mark; /* of the hold, in renewals: "", "+ " or "- " */
    char arrival[24]; /* to bring back, "" */
};

/* Thread 1, attempt 1, request 1 of a process, on "t/x" and "t/c", robust, with LEASE. */
struct who who(const char *uuid);

#define TRY "try"
#define QUEUE "queue"

enum { UNLOCKED, DIED, NOT_RECOVERABLE };

/* The server's start, by the server's clock in us: an argument of scripts that may grant. */
extern const char *server_born;

/* The server's run id, as grants name the server. */
#define SERVER_RUN "0123456789abcdef"

const char *acquire(const struct who *who, const char *how);
const char *acquire_naming(const struct who *who, const char *how, const char *owed); /* "1:1:0" */
const char *release(const struct who *who, int how);
const char *renew(const struct who *who, int depth, const char *token);
const char *poll_of(const struct who *who);
const char *poll_serving(const char *leaf); /* of a process that waits for nothing */
const char *poll_both(const struct who *first, const struct who *second);
const char *renew_both(const struct who *first, const struct who *second);
const char *renew_all(const struct who *who, int count); /* 100 at most */
const char *cancel(const struct who *who);
const char *consistent(const struct who *who);
const char *force(const char *leaf);
const char *info(const char *leaf);
const char *drop(const char *leaf, const char *how);
const char *probe(void);

/* Of conditions: the first argument is the attempt that waits, `hold` the attempt that is given back. */
const char *cond_wait(const struct who *who, long long hold);
const char *cond_acquire(const struct who *who, const char *how); /* after the signal */
const char *cond_wait_ending(const struct who *who, long long hold, int how);
const char *cond_poll(const struct who *who);
const char *cond_poll_both(const struct who *sleeper, const struct who *waiter); /* of a mutex */
const char *cond_cancel(const struct who *who);
const char *cond_release(const struct who *who, int how);
const char *cond_renew(const struct who *who, const char *token);
const char *cond_drop(const char *cond, const char *how);

/* leaf: the mutex that the caller believes to be bound, NULL for none; upto: "" for all. */
const char *cond_signal(const char *cond, const char *leaf, int most, const char *upto);

const char *signal_one(void); /* a waiter of "t/c" with "t/x" */

/* The answer {moved, newest meant, left, more} has these last two. */
void assert_moved(const char *answer, int left, int more);

/* The number of waiters of the condition "t/c", and of the mutex "t/x"; the newest arrival at the condition. */
long long sleepers(void);
long long queued(void);
const char *newest(void);

/* Takes the mutex by the attempt, and gives the mutex up for the condition by the next attempt. */
void fall_asleep(struct who *who);

/*
 * `count` more waiters of a condition that are bound to "t/x", last heard of `age_ms` ago: threads 1, 2, 3 ... of a
 * process, attempt 1, which came before any caller of cond_wait.
 */
void enter_sleepers(const char *uuid, const char *cond, int count, long long age_ms);

/* Any script: `keys` keys, then arguments, then NULL. */
const char *run_script(const char *script, int keys, ...) __attribute__((__sentinel__));

/* The first line of an answer must be this word. */
#define assert_answer(answer, word) assert_string_equal(line_of(answer, 0), word)

/* Line `index` of an answer, "" when there are fewer; as a number. */
const char *line_of(const char *answer, int index);
long long number_of(const char *answer, int index);

/*
 * A key of a mutex: "lock", "state", "queue", "waiter", or of a condition: "cond", "sleeper"; any
 * command on the server.
 */
const char *key(const char *kind, const char *leaf);
const char *command(const char *format, ...);
long long command_number(const char *format, ...);

/* Of a mutex: the owner, "" for none. Of a key: the number of elements, and the ms to live. */
const char *owner(const char *leaf);

/* The field `hold` of a mutex, "" if that hold has ended; and the text of the ended hold, or "". */
const char *hold_of_leaf(const char *leaf);
const char *ended_hold(const char *leaf);
long long size_of(const char *kind, const char *leaf);
long long lifetime(const char *kind, const char *leaf);

/* The last token of "t/x". */
void set_token(const char *token);

/* All keys with their values, without lifetimes and without the time of a waiter's last word. */
const char *dump(void);

/* Puts the lone waiter of "t/x" into the queue, as all ways do but the shortest; the same data in other words. */
void gather(void);

/*
 * Time passes for one: the lease of the owner ends; a waiter of the mutex, or of the
 * condition, has been silent for `ms`.
 */
void end_lease(const char *leaf);
void age(const struct who *who, long long ms);
void age_sleeper(const struct who *who, long long ms);
void age_lone(const char *leaf, long long ms);

/* A text that lives for the next thousand texts. */
const char *scripts_text(const char *format, ...) __attribute__((__format__(__printf__, 1, 2)));

/* The prefix of each inbox, on one server and in a Cluster. */
#define INBOX "dmutex:inbox:"
#define SHARDED_INBOX "dmutex:{t}:inbox:"

/* An inbox with a listener, and all messages since the last look, one per line. */
struct inbox;
struct inbox *inbox_open(const char *uuid);
struct inbox *inbox_open_sharded(const char *uuid);    /* SSUBSCRIBE: in a Cluster */
struct inbox *inbox_open_channel(const char *channel); /* SUBSCRIBE: to any channel */
struct inbox *inbox_open_pattern(const char *pattern); /* PSUBSCRIBE: a monitor */
void inbox_close(struct inbox *inbox);
void inbox_close_all(void);
const char *inbox_messages(struct inbox *inbox);

/* Group fixtures: a server of the group's own; every test begins with an empty server. */
int scripts_group_setup(void **state);
int scripts_group_teardown(void **state);
int scripts_setup(void **state);
#define SCRIPT_TEST(test) cmocka_unit_test_setup(test, scripts_setup)

/* Makes the connection that of a user with these rules in addition to all rights, until become_nobody_special(). */
void become(const char *rules);
void become_nobody_special(void);

/*
 * From now on the connection is to another server, and the scripts have the text for a node of a Cluster, or for a
 * single server. Inboxes are opened there, too.
 */
void scripts_use(struct server *server, bool is_node);

/* Closes the connection and frees all texts, at the end of a group that has its own servers. */
void scripts_close(void);

/* The connection is opened again: after a restart of the server, or to be nobody special again. */
void scripts_reconnect(void);

#endif
