/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the mutexes guard: a process of its own that keeps a number of things on a table, and
 * refuses who comes with a lower token than somebody before.  It is never killed, and no fault
 * reaches it.
 *
 * Who enters while another has not left is noted: that is what a resource without tokens would
 * suffer.
 */
#ifndef CHAOS_RESOURCE_H
#define CHAOS_RESOURCE_H

#include <stdint.h>
#include <sys/types.h>

#include "history.h"

/* For each name.  Written by the resource, read by all. */
struct guarded {
    uint64_t token;  /* the highest that came */
    uint64_t inside; /* of who has entered and not left, 0: nobody */
    int64_t accepted;
    int64_t refused;  /* lower tokens */
    int64_t overlaps; /* entered while another had not left */
    int64_t things, made, taken;
};

enum wish {
    WISH_ENTER,
    WISH_LEAVE,
    WISH_MAKE, /* a thing more */
    WISH_TAKE, /* one less, if there is any */
};

struct resource {
    pid_t pid;
    char path[64];           /* of its socket */
    struct guarded *guarded; /* NAMES of them, shared */
};

/* Its socket is in that folder.  Before the first use of the library. */
void resource_start(struct resource *resource, const char *folder);
void resource_end(struct resource *resource);

/* Nobody is inside, and there are no things. */
void resource_clear(struct resource *resource);

/* A connection, for one thread. */
int resource_connect(const struct resource *resource);

/* 0; EACCES: the token is too low, nothing was done. */
int resource_do(int fd, enum name name, enum wish wish, uint64_t token);

#endif
