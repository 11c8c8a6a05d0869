/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The resource guarded by the mutexes: a separate process, which keeps a number of things on a table and refuses a
 * token lower than an earlier token.  The process is never killed, and no fault reaches the process.
 *
 * Counts the callers that enter while another caller has not left: a resource without tokens would suffer each.
 */
#ifndef CHAOS_RESOURCE_H
#define CHAOS_RESOURCE_H

#include <stdint.h>
#include <sys/types.h>

#include "history.h"

/* The state for each name.  Written by the resource, read by all. */
struct guarded {
    uint64_t token;  /* the highest so far */
    uint64_t inside; /* the token of the caller inside, 0: no caller */
    int64_t accepted;
    int64_t refused;  /* lower tokens */
    int64_t overlaps; /* entries while another caller was inside */
    int64_t things, made, taken;
};

enum wish {
    WISH_ENTER,
    WISH_LEAVE,
    WISH_MAKE, /* a thing more */
    WISH_TAKE, /* a thing less, if there is any */
};

struct resource {
    pid_t pid;
    char path[64];           /* of the socket */
    struct guarded *guarded; /* NAMES elements, shared */
};

/* Starts the resource, with a socket in `folder`.  Call before the first use of the library. */
void resource_start(struct resource *resource, const char *folder);
void resource_end(struct resource *resource);

/* Empties the resource: no caller inside, no things; the highest tokens stay. */
void resource_clear(struct resource *resource);

/* Returns a connection, for one thread. */
int resource_connect(const struct resource *resource);

/* 0; EACCES: the token is too low, nothing was done. */
int resource_do(int fd, enum name name, enum wish wish, uint64_t token);

#endif
