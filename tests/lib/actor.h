/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * An actor: another process, with a separate library state, that does what the test says.
 *
 * The actor is the test program itself, executed anew, so that nothing is inherited. The actor takes one line at a time
 * and answers each by one line; the result of a dmutex call is "0" or the name of the errno value, as "EBUSY".
 *
 *     struct actor *b = actor_start(the_server);
 *     actor_do(b, "0", "init t/x robust lease=300");
 *     actor_send(b, "lock t/x");                        // blocks over there
 *     wait_until(waiters_of(&mutex) == 1);
 *     actor_kill(a);
 *     actor_expect(b, "EOWNERDEAD");
 *     actor_end(b);
 *
 * The commands; X is a handle, and the mutex's name unless init says otherwise. The first use of a handle without an
 * init sets up the mutex, with default attributes.
 *
 *   init X [recursive|errorcheck] [robust] [shared] [anonymous] [name=N] [lease=MS] [maxhold=MS]
 *          [linger=MS] [fair]
 *   zero X                        all bytes zero: an anonymous, private mutex
 *   map X FILE OFFSET             X is the object at this offset of a file, used as found there
 *   lock X, trylock X, unlock X, consistent X, renew X, destroy X, forceunlock X
 *   timedlock X MS, clocklock X MS   until MS from now (may be negative), REALTIME or MONOTONIC
 *   token X, remaining X, holdcount X, islocked X     "0 VALUE", or the error
 *   health X, waiters X           the same out of getinfo
 *   count FILE N X [THREADS]      N times, in each thread: lock, add 1 to the number in FILE,
 *                                 unlock; ENOTUNIQ when another was there at the same time.  As many
 *                                 times in four threads, where mutexes_are_handed()
 *   wait C X, timedwait C X MS    on the condition of name C, with the mutex X; MS as above
 *   signal C, broadcast C
 *   crowd FILE N C X              in each of N threads: lock, wait once, add 1 to the number in
 *                                 FILE, unlock; ENOTUNIQ as above
 *   turns FILE N C X 0|1          N times: lock, wait until the number in FILE is even (0) or odd
 *                                 (1), add 1, signal, unlock
 *   lost                          "N TOKEN": calls of the lost callback so far, and the last token
 *   strerror                      dmutex_strerror_np()
 *   configure URL                 dmutex_configure_np()
 *   in-thread COMMAND             runs COMMAND in a thread that ends then; the answer is COMMAND's
 *   in-child COMMAND              runs COMMAND in a forked child that ends by _exit(); the answer is
 *                                 COMMAND's.  in-child-exit: by exit(); in-vfork-exec: /bin/true
 *   start COMMAND                 begins COMMAND in a thread: "0";  join: COMMAND's answer, awaited
 *   cancel                        pthread_cancel() of that thread: "0"
 *   say WORDS                     WORDS
 *   exit N, _exit N, abort, segv  do not answer
 *   exec                          becomes a new actor in the same process: "ready"
 *
 * One command is on the way at a time. The actor ends, by exit(0), when the test ends the conversation; all actors die
 * with the test program.
 */
#ifndef TEST_ACTOR_H
#define TEST_ACTOR_H

#include <stdarg.h>
#include <stdbool.h>
#include <sys/types.h>

#include "server.h"

struct actor;

/* Starts an actor, under a separate host label, with DMUTEX_URL of the server; NULL: none. */
struct actor *actor_start(const struct server *server);

/* The same with further environment strings, "NAME=value", at the end NULL. */
struct actor *actor_start_with(const struct server *server, ...) __attribute__((__sentinel__));

/* The same with another URL, as the URL of a proxy. */
struct actor *actor_start_at(const char *url);

/* An actor that holds the mutex of this name; options: as init takes the words, "" for none. */
struct actor *actor_start_holder(const struct server *server, const char *name, const char *options);

/*
 * Starts another program that speaks as an actor does: "ready" first, then a line for a line, on descriptor 3. The
 * program's standard error is appended to the file `errors`.
 */
struct actor *actor_start_program(const struct server *server, char *const *arguments, const char *errors,
                                  va_list environment);

void actor_send(struct actor *actor, const char *format, ...) __attribute__((__format__(__printf__, 2, 3)));

/* The answer, awaited for at most WAIT_LIMIT_MS, then the test fails.  Until the next answer. */
const char *actor_answer(struct actor *actor);

/* True if no answer has come yet. */
bool actor_is_silent(struct actor *actor);

/* Sends nothing; the answer must be `wanted`. */
#define actor_expect(actor, wanted) assert_string_equal(actor_answer(actor), wanted)

/* Sends a command; the answer must be `wanted`. */
#define actor_do(actor, wanted, ...)    \
    do {                                \
        actor_send(actor, __VA_ARGS__); \
        actor_expect(actor, wanted);    \
    } while (0)

/* Sends a command that answers "0 VALUE", and returns the value. */
long long actor_value(struct actor *actor, const char *format, ...) __attribute__((__format__(__printf__, 2, 3)));

/* The number of the actor's holds that were lost. */
int actor_losses(struct actor *actor);

/* The actor's last failure has a sentence, with these words. */
void actor_assert_words(struct actor *actor, const char *words);

/* The number in a file that actors count in; the second makes a new file with 0. */
long long actor_counted(const char *path);
void actor_begin_count(const char *path);

/* Awaits an answer for as long as the number in the file goes on to change: the count may take any time. */
const char *actor_answer_of_count(struct actor *actor, const char *path);

/* Fails the test when the number has stood still for WAIT_LIMIT_MS; the watch begins as zeros. */
struct count_watch {
    long long last;
    int64_t since_ms;
};
void actor_watch_count(struct count_watch *watch, const char *path);

pid_t actor_pid(const struct actor *actor);

/* SIGKILL; the actor is gone at the return. */
void actor_kill(struct actor *actor);

/* SIGSTOP, awaited; SIGCONT. */
void actor_stop(struct actor *actor);
void actor_cont(struct actor *actor);

/* Awaits the actor's end after exit, _exit, abort or segv, and frees the actor: the wait status. */
int actor_await(struct actor *actor);

/* Ends the conversation and awaits exit(0); after actor_kill() only frees the actor. */
void actor_end(struct actor *actor);

/* The actor's side: serves commands on fd 3, never returns. test_begin() calls the function. */
void actor_serve(void) __attribute__((__noreturn__));

#endif
