/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * An actor: another process, with its own library state, that does what the test says.
 *
 * It is the test program itself, executed again, so that nothing is inherited.  An actor takes one line at a time and
 * answers each with one line; the result of a dmutex call is "0" or the name of the errno value, such as "EBUSY".
 *
 *     struct actor *b = actor_start(the_server);
 *     actor_do(b, "0", "init t/x robust lease=300");
 *     actor_send(b, "lock t/x");                        // blocks over there
 *     wait_until(waiters_of(&mutex) == 1);
 *     actor_kill(a);
 *     actor_expect(b, "EOWNERDEAD");
 *     actor_end(b);
 *
 * The commands; X is a handle, and also the mutex's name unless init says otherwise.  The first use of a handle without
 * an init sets up the mutex with default attributes.
 *
 *   init X [recursive|errorcheck] [robust] [shared] [anonymous] [name=N] [lease=MS] [maxhold=MS]
 *          [linger=MS] [fair]
 *   zero X                        all bytes zero: an anonymous, private mutex
 *   map X FILE OFFSET             X is the object at this offset of a file, used as it is there
 *   lock X, trylock X, unlock X, consistent X, renew X, destroy X, forceunlock X
 *   timedlock X MS, clocklock X MS   until MS from now (may be negative), REALTIME or MONOTONIC
 *   token X, remaining X, holdcount X, islocked X     "0 VALUE", or the error
 *   health X, waiters X           the same, from getinfo
 *   count FILE N X [THREADS]      N times, in each thread: lock, add 1 to the number in FILE,
 *                                 unlock; ENOTUNIQ if another was inside at the same time.  As many
 *                                 times in four threads if mutexes_are_handed()
 *   wait C X, timedwait C X MS    on the condition named C, with the mutex X; MS as above
 *   signal C, broadcast C
 *   crowd FILE N C X              in each of N threads: lock, wait once, add 1 to the number in
 *                                 FILE, unlock; ENOTUNIQ as above
 *   turns FILE N C X 0|1          N times: lock, wait until the number in FILE is even (0) or odd
 *                                 (1), add 1, signal, unlock
 *   lost                          "N TOKEN": calls of the lost callback so far, and the last token
 *   strerror                      dmutex_strerror_np()
 *   configure URL                 dmutex_configure_np()
 *   in-thread COMMAND             runs COMMAND in a thread that then ends, and answers as COMMAND does
 *   in-child COMMAND              runs COMMAND in a forked child that ends by _exit(), and answers as
 *                                 COMMAND does.  in-child-exit: by exit(); in-vfork-exec: /bin/true
 *   start COMMAND                 starts COMMAND in a thread: "0";  join: waits for COMMAND's answer
 *   cancel                        pthread_cancel() of that thread: "0"
 *   say WORDS                     WORDS
 *   exit N, _exit N, abort, segv  do not answer
 *   exec                          becomes a new actor in the same process: "ready"
 *
 * One command is in progress at a time.  The actor ends, by exit(0), when the test ends the conversation; all actors
 * die with the test program.
 */
#ifndef TEST_ACTOR_H
#define TEST_ACTOR_H

#include <stdarg.h>
#include <stdbool.h>
#include <sys/types.h>

#include "server.h"

struct actor;

/* Starts an actor, with its own host label and with DMUTEX_URL for the server; NULL: none. */
struct actor *actor_start(const struct server *server);

/* The same with further environment strings, "NAME=value", ended by NULL. */
struct actor *actor_start_with(const struct server *server, ...) __attribute__((__sentinel__));

/* The same with another URL, such as a proxy's. */
struct actor *actor_start_at(const char *url);

/* An actor that holds the mutex with this name; options as for init, or "". */
struct actor *actor_start_holder(const struct server *server, const char *name, const char *options);

/*
 * Starts another program that speaks like an actor, on descriptor 3: "ready" first, then a line for each line.  Its
 * standard error is appended to the file `errors`.
 */
struct actor *actor_start_program(const struct server *server, char *const *arguments, const char *errors,
                                  va_list environment);

void actor_send(struct actor *actor, const char *format, ...) __attribute__((__format__(__printf__, 2, 3)));

/* Waits for the answer, which is valid until the next one.  Fails the test after WAIT_LIMIT_MS. */
const char *actor_answer(struct actor *actor);

/* True if no answer has come yet. */
bool actor_is_silent(struct actor *actor);

/* Sends nothing; the next answer must be `wanted`. */
#define actor_expect(actor, wanted) assert_string_equal(actor_answer(actor), wanted)

/* Sends a command; the answer must be `wanted`. */
#define actor_do(actor, wanted, ...)    \
    do {                                \
        actor_send(actor, __VA_ARGS__); \
        actor_expect(actor, wanted);    \
    } while (0)

/* Sends a command that answers "0 VALUE", and returns the value. */
long long actor_value(struct actor *actor, const char *format, ...) __attribute__((__format__(__printf__, 2, 3)));

/*
 * Opens the actor's inbox at the server that this process uses, too.  A short wait for a mutex may not: on a busy
 * machine the time is over before the inbox is open.
 */
void actor_open_inbox(struct actor *actor);

/* How many of the actor's holds were lost. */
int actor_losses(struct actor *actor);

/* Asserts that the sentence about the actor's last failure contains these words. */
void actor_assert_words(struct actor *actor, const char *words);

/* The number in a file in which actors count; the second makes a new file containing 0. */
long long actor_counted(const char *path);
void actor_begin_count(const char *path);

/* Waits for an answer as long as the number in the file keeps changing: counting may take any time. */
const char *actor_answer_of_count(struct actor *actor, const char *path);

/* Fails the test when the number has not changed for WAIT_LIMIT_MS.  Starts as zeros. */
struct count_watch {
    long long last;
    int64_t since_ms;
};
void actor_watch_count(struct count_watch *watch, const char *path);

pid_t actor_pid(const struct actor *actor);

/* SIGKILL; the actor is gone when this returns. */
void actor_kill(struct actor *actor);

/* SIGSTOP, and waits for it; SIGCONT. */
void actor_stop(struct actor *actor);
void actor_cont(struct actor *actor);

/* Waits for the actor's end after exit, _exit, abort or segv, and frees it.  Returns the wait status. */
int actor_await(struct actor *actor);

/* Ends the conversation and waits for exit(0); after actor_kill() only frees the actor. */
void actor_end(struct actor *actor);

/* The actor's side: serves commands on descriptor 3, and never returns. test_begin() calls it. */
void actor_serve(void) __attribute__((__noreturn__));

#endif
