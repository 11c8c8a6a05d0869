/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The command: its path, the program that finally runs, and whether a preloaded library has any effect there. If it has
 * none, the dynamic loader says nothing.
 */
#ifndef DM_RUN_PROGRAM_H
#define DM_RUN_PROGRAM_H

#include <stdbool.h>

#include <glib.h>

struct program {
    char *command; /* the file that is executed */
    char *path;    /* the ELF program, resolved: the command itself, or its interpreter */
};

/*
 * Finds the command as execvp() does. Refuses if it is not found (127) or not executable (126). The caller frees
 * *ret_path.
 */
bool program_find(const char *name, char **ret_path, GError **error);

/* Follows the command to an ELF program, and refuses (126) one that would ignore the module. */
bool program_examine(const char *command, struct program *ret_program, GError **error);
void program_clear(struct program *program);

#endif
