/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Stops: moments inside the library at which one thread of this process waits until the test lets it continue; and a
 * message of the server that arrives when the test says so.  The program contains the library's parts, and links with
 * $(stop_wraps): functions here replace functions of the library.
 *
 *     static int call(dmutex_t *at) { stop_at(STOP_WOKEN); return dmutex_lock(at); }   // in another thread
 *
 *     errand_begin(&errand, call, &mutex);
 *     stop_await();    // the thread has been woken, and has not looked
 *     stop_end();
 */
#ifndef TEST_STOPS_H
#define TEST_STOPS_H

#include <stdbool.h>

enum stop {
    STOP_NOWHERE,
    STOP_ANSWERED,  /* with the answer to a question for the mutex in hand; once */
    STOP_SEAT,      /* before the thread sits down in a line, which it has found held; with the state lock, once */
    STOP_WOKEN,     /* after each sleep on a seat */
    STOP_CLOCK,     /* before the next reading of the clock; once */
    STOP_CLOCK_ALL, /* the same, while no other thread of the library runs, as in a stopped process */
    STOP_VISIT,     /* where a call continues with the state lock; once */
    STOP_RELEASED   /* when the thread has awaited pending releases; once */
};

/* For the calling thread; the second: at `then`, once the thread has stopped at `where`, which stops once. */
void stop_at(enum stop where);
void stop_at_both(enum stop where, enum stop then);

/* Waits until that thread stops; the second lets it continue, to the next stop. */
void stop_await(void);
void stop_end(void);

/* The same without a next stop. */
void stop_end_all(void);

/* The next grant that the server sends to this process is kept until message_deliver(). */
void message_keep(void);
bool message_is_kept(void);
void message_deliver(void);

#endif
