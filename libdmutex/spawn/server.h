/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Starts redis-server, or else valkey-server, with a socket in a directory, without a TCP port or persistence.
 *
 * The server inherits nothing from the program that starts it: no descriptor, no blocked or ignored signal, no variable
 * such as LD_PRELOAD.  Spawning and waiting allocate nothing and take no lock, so that a process that has just been
 * forked can do both, with a plan that was prepared before.
 */
#ifndef DM_SPAWN_SERVER_H
#define DM_SPAWN_SERVER_H

#include <spawn.h>
#include <stdbool.h>
#include <sys/types.h>

#define DM_SERVER_SOCKET "s" /* in the server's directory */
#define DM_SERVER_LOG "log"

struct dm_server_plan {
    const char *directory;
    const char *socket; /* DM_SERVER_SOCKET, which is in the directory, or the whole path */
    bool is_daemon;     /* goes into the background by itself */
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attributes;
    char *environment[2];
};

/*
 * `directory` stays the caller's, and must live as long as the plan. folder: a descriptor that the server keeps as long
 * as it lives; -1: none. 0, or ENOMEM: there is no plan.
 */
int dm_server_plan_init(struct dm_server_plan *plan, const char *directory, int folder, bool is_daemon);
void dm_server_plan_clear(struct dm_server_plan *plan);

/*
 * 0, ENOENT if neither program is installed, or another errno value.  A folder of PATH that this user may not enter
 * gives EACCES even for a program that exists nowhere, so the other program is tried after that, too.
 */
int dm_server_spawn(const struct dm_server_plan *plan, pid_t *ret_pid, const char **ret_program);

/* True if somebody listens on a socket. */
bool dm_server_answers(const char *path);

/* A pause between two checks. */
void dm_server_nap(void);

/* True if the program has more rights than its caller: it would run a server found by the caller's PATH. */
bool dm_server_is_unsafe(void);

#endif
