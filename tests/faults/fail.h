/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Makes one call of the library fail: the n-th of a kind, after fail_arm(). The test program defines libc's functions
 * once more (fail.c), in front of libc. Calls from libdmutex, with the hiredis inside, and from its module for TLS are
 * counted, or those from OpenSSL; calls from the test, GLib and libc are not, because GLib ends a program that is out
 * of memory, and libdmutex promises nothing there (doc/design/faults.md).
 */
#ifndef TEST_FAIL_H
#define TEST_FAIL_H

#include <stdbool.h>

enum fail_kind {
    FAIL_MEMORY,    /* no memory */
    FAIL_NETWORK,   /* a socket's call reports a broken connection */
    FAIL_INTERRUPT, /* EINTR, where the kernel can return EINTR */
    FAIL_SHORT,     /* one byte passes */
    FAIL_START,     /* no thread, no process, no eventfd */
    FAIL_FILE,      /* a call on the files of a local server */
    FAIL_OPENSSL,   /* no memory for OpenSSL */
    FAIL_KINDS
};

extern const char *const fail_names[FAIL_KINDS];

/* In memory shared by forked processes: only one of them has the failure. */
struct fail_seen {
    unsigned count; /* calls of the kind since fail_arm() */
    char call[40];  /* the call that failed; "" none */
};

/* Finds the addresses of the library; call before anything else. */
void fail_begin(void);

/* Arms from now on; nth 0: no call fails, the calls are counted. */
void fail_arm(enum fail_kind kind, unsigned nth, struct fail_seen *seen);
void fail_disarm(void);

#endif
