/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A thread of the test that pretends to be a server, at a path and at a port of 127.0.0.1.  There is only one at a
 * time.
 */
#ifndef TEST_IMPOSTOR_H
#define TEST_IMPOSTOR_H

#include <stddef.h>

enum manner {
    MANNER_SILENT,          /* accepts and reads, but never sends anything */
    MANNER_CLOSING,         /* closes every accepted connection */
    MANNER_BABBLING,        /* answers every command with the nonsense */
    MANNER_CLOSING_HALFWAY, /* answers properly, but only by half, and closes */
    MANNER_FLAPPING,        /* a proper server that closes on a script */
    MANNER_LYING,           /* a proper server, but scripts are answered with the nonsense */
    MANNER_REDIRECTING,     /* a node of a Cluster that sends each script to another address */
    MANNER_REFUSING_ONCE    /* a node of a Cluster that refuses CLUSTER SLOTS, and when asked again is silent */
};

/* Silent at first. */
void impostor_begin(const char *folder);
void impostor_end(void);

/* Bytes to answer with, any of them 0: IMPOSTOR_BYTES("...") for a literal. */
struct impostor_bytes {
    const char *bytes;
    size_t length;
};
#define IMPOSTOR_BYTES(text)   \
    {                          \
        text, sizeof(text) - 1 \
    }

/* The second: redirect is "MOVED" or "ASK". */
void impostor_be(enum manner manner, const char *nonsense, size_t length);
void impostor_redirect(const char *redirect, int slot);

/*
 * Until the manner changes: another answer to commands that begin with these words; "" closes the connection.  The
 * first order that matches counts.  The texts stay the caller's.
 */
void impostor_answer(const char *words, const char *reply);

/* How many answers were sent since the manner last changed, without those to the greeting. */
int impostor_said(void);

/* The path; the URL with the path, without grace; the port. */
const char *impostor_path(void);
const char *impostor_url(void);
int impostor_port(void);

#endif
