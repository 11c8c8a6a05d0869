/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A private PostgreSQL for tests, with its data and its socket in a directory: no TCP port, no fsync.
 *
 * PostgreSQL refuses to run as root, so for root the reaper becomes another user, to whom it gives the directory.
 *
 * Each process of the server leads a session of its own, so there is no process group to send signals to.  The reaper
 * finds the processes as the children of the postmaster; when that is gone they are its own children.
 *
 * Only dm_pgserver_find() may allocate and take locks; all others are async-signal-safe.
 */
#ifndef DM_SPAWN_PGSERVER_H
#define DM_SPAWN_PGSERVER_H

#include <stdbool.h>
#include <sys/types.h>

#include "spawn/server.h"

#define DM_PGSERVER_PORT "5432" /* part of the socket's name; nobody listens on TCP */
#define DM_PGSERVER_SOCKET ".s.PGSQL." DM_PGSERVER_PORT
#define DM_PGSERVER_USER "postgres" /* the role, and the database */

struct dm_pgserver {
    char initdb[256], postgres[256]; /* the programs */
    char pid_file[160];
    bool is_of_other; /* we are root, and the server runs as: */
    uid_t user;
    gid_t group;
};

/*
 * Finds the programs, and the user.  0, ENOENT if the programs are not installed, or ESRCH if there is neither a user
 * "postgres" nor "nobody".
 */
int dm_pgserver_find(struct dm_pgserver *ret_server, const char *directory);

/* Adds what PostgreSQL needs to the plan: its log is what it prints. 0 or ENOMEM. */
int dm_pgserver_plan_log(struct dm_server_plan *plan);

/* Becomes the other user, if there is one, for good.  0 or an errno value. */
int dm_pgserver_become_user(const struct dm_pgserver *server, const char *directory);

/* 0 or an errno value. */
int dm_pgserver_spawn_initdb(const struct dm_pgserver *server, const struct dm_server_plan *plan, pid_t *ret_pid);
int dm_pgserver_spawn(const struct dm_pgserver *server, const struct dm_server_plan *plan, pid_t *ret_pid);

/* True once the postmaster has said that it takes connections. */
bool dm_pgserver_is_ready(const struct dm_pgserver *server, pid_t postmaster);

/* Sends a signal to each child of a process.  False without /proc. */
bool dm_pgserver_signal_children(pid_t parent, int signal);

/* True if no child of a process runs. */
bool dm_pgserver_have_children_stopped(pid_t parent);

/* Removes what a killed server has left outside its data: the kernel keeps a segment of shared memory. */
void dm_pgserver_clean(const struct dm_pgserver *server);

#endif
