/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A stage with PostgreSQL in place of Redis: a primary and a standby, which commits wait for or not.  Processes name
 * both in their URL, and each host has its own network to each.  After a promotion the other server is a new standby.
 */
#ifndef CHAOS_DATABASES_H
#define CHAOS_DATABASES_H

#include "stage.h"

struct databases {
    struct pgserver *servers[2]; /* a standby of the other one, or the primary: */
    int primary;
    bool are_waited_for; /* commits wait for the standby */
    int stopped;         /* the process of a fault that lasts */
    char folder[32];
    char options[80]; /* of the processes' URL */
};

/* `options`: "&dmutex.grace=off". */
void databases_begin(struct stage *stage, bool has_grace, bool are_waited_for, const char *options);

/* Checks that no process has left a session on the server. */
void databases_check_end(struct stage *stage);

#endif
