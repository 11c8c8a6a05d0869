/* SPDX-License-Identifier: BSD-2-Clause */
#include "program.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "binary.h"
#include "refuse.h"

#define MOST_SCRIPTS 5 /* interpreters that are scripts themselves; the kernel has the same limit */

/* ---- found ------------------------------------------------------------------------------- */

/*
 * Returns 0, or the errno value of executing the file. This is a hint: the file may change before execve(), which
 * decides.
 */
static int try_path(const char *path)
{
    struct stat status;

    if (stat(path, &status) < 0)
        return errno;
    if (!S_ISREG(status.st_mode))
        return EACCES;
    return access(path, X_OK) == 0 ? 0 : errno;
}

/* Uses the statuses of shells: 127 if there is no such file, 126 if it cannot be executed. */
static bool refuse_path(const char *path, int reason, GError **error)
{
    bool is_missing = reason == ENOENT || reason == ENOTDIR;

    return refuse(error, is_missing ? REFUSE_NOT_FOUND : REFUSE_CANNOT_RUN, "%s: %s", path, g_strerror(reason));
}

/*
 * As in execvp(): "permission denied" is remembered while the search continues, and an empty part of PATH is the
 * current folder. Without PATH, uses glibc's default.
 */
bool program_find(const char *name, char **ret_path, GError **error)
{
    const char *path = g_getenv("PATH");
    g_auto(GStrv) directories = g_strsplit(path ? path : "/bin:/usr/bin", ":", -1);
    int reason = ENOENT;

    if (strchr(name, '/')) {
        reason = try_path(name);
        *ret_path = reason ? NULL : g_strdup(name);
        return reason == 0 || refuse_path(name, reason, error);
    }
    for (char **directory = directories; *name && *directory; directory++) {
        g_autofree char *candidate = g_build_filename(**directory ? *directory : ".", name, NULL);
        int result = try_path(candidate);

        if (result == 0) {
            *ret_path = g_steal_pointer(&candidate);
            return true;
        }
        if (result == EACCES)
            reason = EACCES;
    }
    if (reason == ENOENT)
        return refuse(error, REFUSE_NOT_FOUND, "%s: no such command in PATH", name);
    return refuse_path(name, reason, error);
}

/* ---- fit --------------------------------------------------------------------------------- */

/*
 * True for a file whose set-id bits and capabilities the kernel ignores: then the program gains nothing, and the loader
 * obeys LD_PRELOAD.
 */
static bool is_powerless(const char *path)
{
    struct statvfs system;

    return prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) == 1 || (statvfs(path, &system) == 0 && (system.f_flag & ST_NOSUID));
}

/*
 * A program that gains rights ignores LD_PRELOAD. One that root executes does not, if it would become root. S_ISGID
 * without S_IXGRP gives no rights: the two bits once meant mandatory locking.
 */
static bool check_rights(const char *path, GError **error)
{
    struct stat status;
    const char *what = NULL;

    if (stat(path, &status) < 0)
        return refuse_path(path, errno, error);
    if ((status.st_mode & S_ISUID) && status.st_uid != getuid())
        what = "is set-user-ID";
    else if ((status.st_mode & S_ISGID) && (status.st_mode & S_IXGRP) && status.st_gid != getgid())
        what = "is set-group-ID";
    else if (getuid() != 0 && getxattr(path, "security.capability", NULL, 0) > 0)
        what = "has file capabilities";
    if (!what || is_powerless(path))
        return true;
    return refuse(
        error, REFUSE_CANNOT_RUN,
        "%s %s, and ignores preloaded libraries: run it as the user whom it becomes, or a copy without that right",
        path, what);
}

/* Compares with the architecture of this program, because the module was built for the same. */
static bool check_architecture(const char *path, const struct binary *binary, const struct binary *own, GError **error)
{
    g_autofree char *theirs = binary_machine(binary), *ours = binary_machine(own);

    if (binary->elf_class == own->elf_class && binary->byte_order == own->byte_order && binary->machine == own->machine)
        return true;
    return refuse(error, REFUSE_CANNOT_RUN,
                  "%s is a program for another architecture (%s; libdmutex is for %s): install libdmutex for that one",
                  path, theirs, ours);
}

/*
 * The name of the loader identifies the C library. Another folder is accepted: it may be a loader of the same glibc
 * elsewhere.
 */
static bool check_loader(const char *path, const struct binary *binary, const struct binary *own, GError **error)
{
    g_autofree char *theirs = NULL, *ours = NULL;

    if (!binary->interpreter)
        return refuse(
            error, REFUSE_CANNOT_RUN,
            "%s is a static program, into which nothing can be preloaded: link it dynamically, or with libdmutex",
            path);
    theirs = g_path_get_basename(binary->interpreter);
    ours = own->interpreter ? g_path_get_basename(own->interpreter) : g_strdup(theirs);
    if (strcmp(theirs, ours) == 0)
        return true;
    return refuse(
        error, REFUSE_CANNOT_RUN,
        "%s is linked to another C library than libdmutex (its loader is %s, not %s): build libdmutex with that one",
        path, theirs, ours);
}

/* The architecture is checked first, because the interpreter of a foreign file was not read. */
static bool check_elf(const char *path, const struct binary *binary, GError **error)
{
    struct binary own;
    bool is_fit;

    binary_read("/proc/self/exe", &own);
    if (own.kind != BINARY_ELF)
        return refuse(error, REFUSE_CANNOT_RUN, "%s cannot be examined, because /proc is not mounted here: mount it",
                      path);
    is_fit = check_architecture(path, binary, &own, error) && check_loader(path, binary, &own, error) &&
             check_rights(path, error);
    binary_clear(&own);
    return is_fit;
}

/* ---- followed ---------------------------------------------------------------------------- */

/*
 * The program that runs the script. `#!/usr/bin/env python3` is followed, because env(1) becomes the program that it
 * finds; but not with options or variables, which only env(1) understands.
 */
static char *interpreter_of(const struct binary *script, GError **error)
{
    g_autofree char *name = g_path_get_basename(script->interpreter);
    char *path = NULL;

    if (strcmp(name, "env") == 0 && script->argument && !strpbrk(script->argument, "-= \t"))
        program_find(script->argument, &path, error);
    else if (try_path(script->interpreter) == 0)
        path = g_strdup(script->interpreter);
    else
        refuse_path(script->interpreter, try_path(script->interpreter), error);
    return path;
}

/*
 * Returns the path of the ELF program; the headers are in *ret_binary, which the caller clears. After MOST_SCRIPTS it
 * is still a script, which program_examine() refuses.
 */
static char *follow(const char *command, struct binary *ret_binary, GError **error)
{
    char *path = g_strdup(command);

    binary_read(path, ret_binary);
    for (int depth = 0; path && ret_binary->kind == BINARY_SCRIPT && depth < MOST_SCRIPTS; depth++) {
        char *next = interpreter_of(ret_binary, error);

        if (!next)
            g_prefix_error(error, "%s: its interpreter ", path);
        g_free(path);
        path = next;
        binary_clear(ret_binary);
        if (path)
            binary_read(path, ret_binary);
    }
    return path;
}

/* The path is resolved, because rules name a program by the path that the kernel reports (place.h). */
bool program_examine(const char *command, struct program *ret_program, GError **error)
{
    struct binary binary;
    g_autofree char *path = follow(command, &binary, error);
    bool is_fit = false;

    if (path && binary.kind == BINARY_ELF)
        is_fit = check_elf(path, &binary, error);
    else if (path && binary.kind == BINARY_UNREADABLE)
        refuse(error, REFUSE_CANNOT_RUN, "%s cannot be read, so nobody knows whether a module has effect in it", path);
    else if (path)
        refuse(error, REFUSE_CANNOT_RUN,
               "%s is neither a program nor a script that begins with #!: give its interpreter "
               "before it",
               path);
    if (is_fit) {
        char *resolved = realpath(path, NULL);

        *ret_program = (struct program){ g_strdup(command), g_strdup(resolved ? resolved : path) };
        free(resolved);
    }
    binary_clear(&binary);
    return is_fit;
}

void program_clear(struct program *program)
{
    g_free(program->command);
    g_free(program->path);
}
