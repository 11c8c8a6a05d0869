/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * One call of the library fails: the n-th of a kind, after fail_arm().
 *
 * libc's functions are defined once more in the test program (fail.c), which goes before libc.  Calls
 * that come from libdmutex or hiredis are counted, those of the test, of GLib and of libc itself are
 * not: a program whose GLib is out of memory is ended by it, which is no promise of ours
 * (doc/design/faults.md).
 */
#ifndef TEST_FAIL_H
#define TEST_FAIL_H

#include <stdbool.h>

enum fail_kind {
    FAIL_MEMORY,    /* there is none */
    FAIL_NETWORK,   /* a socket's call says that it broke */
    FAIL_INTERRUPT, /* EINTR, where the kernel can say that */
    FAIL_SHORT,     /* one byte passes */
    FAIL_START,     /* no thread, no process, no eventfd */
    FAIL_FILE,      /* of a local server */
    FAIL_KINDS
};

extern const char *const fail_names[FAIL_KINDS];

/* Lies in memory that forked processes share: one of them has the failure. */
struct fail_seen {
    unsigned count; /* calls of the kind since it was armed */
    char call[40];  /* the one that failed; "" none */
};

/* Looks where the library is; before anything else. */
void fail_begin(void);

/* From now on; nth 0: none fails, they are counted. */
void fail_arm(enum fail_kind kind, unsigned nth, struct fail_seen *seen);
void fail_disarm(void);

#endif
