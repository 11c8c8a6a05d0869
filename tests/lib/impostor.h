/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A program that pretends to be a server, by a thread of the test, at a path and at a port of 127.0.0.1.  There is one
 * at a time.
 */
#ifndef TEST_IMPOSTOR_H
#define TEST_IMPOSTOR_H

#include <stddef.h>

enum manner {
    MANNER_SILENT,          /* accepts, reads, and never says anything */
    MANNER_CLOSING,         /* closes each accepted connection */
    MANNER_BABBLING,        /* answers every command with the nonsense */
    MANNER_CLOSING_HALFWAY, /* answers properly, by half, and closes */
    MANNER_FLAPPING,        /* a proper server that closes on a script */
    MANNER_LYING,           /* a proper server, but scripts are answered with the nonsense */
    MANNER_REDIRECTING,     /* a node of a Cluster that sends each script to another address */
    MANNER_REFUSING_ONCE    /* a node of a Cluster that refuses to tell the slots, and is silent when asked again */
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
 * Until the manner is changed: another answer to the commands that begin with these words; "" closes the connection.
 * The first order that fits counts.  The texts stay the caller's.
 */
void impostor_answer(const char *words, const char *reply);

/* The number of answers but for the greeting, since the manner was last changed. */
int impostor_said(void);

/* The path; the URL by the path, without grace; the port. */
const char *impostor_path(void);
const char *impostor_url(void);
int impostor_port(void);

#endif
