/* SPDX-License-Identifier: BSD-2-Clause */
#include "spawn/pgserver.h"

#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <grp.h>
#include <pwd.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/shm.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/attrs.h"
#include "base/place.h"

/* Debian's folders are not in PATH, because there may be several versions. */
#define DEBIAN_FOLDERS "/usr/lib/postgresql/*/bin"

/* All in the server's directory, which is the working directory. */
#define DATA "data"
#define PID_FILE DATA "/postmaster.pid"

/* Lines of the file, counted from 0. */
enum { PID_LINE, SEGMENT_LINE = 6, STATUS_LINE };

/* ---- the programs and the user ----------------------------------------------------------- */

static bool is_program(char *ret_path, size_t size, const char *folder, size_t length, const char *name)
{
    return snprintf(ret_path, size, "%.*s/%s", (int)length, folder, name) < (int)size && access(ret_path, X_OK) == 0;
}

static bool find_in(struct dm_pgserver *server, const char *folder, size_t length)
{
    return length && folder[0] == '/' && is_program(server->initdb, sizeof server->initdb, folder, length, "initdb") &&
           is_program(server->postgres, sizeof server->postgres, folder, length, "postgres");
}

static bool find_in_path(struct dm_pgserver *server)
{
    const char *path = getenv("PATH");

    for (size_t length; path && *path; path += length + (path[length] == ':')) {
        length = strcspn(path, ":");
        if (find_in(server, path, length))
            return true;
    }
    return false;
}

/* The newest version: glob() would put 9 after 17. */
static bool find_newest(struct dm_pgserver *server)
{
    const char *newest = NULL;
    glob_t all;
    bool is_found;

    if (glob(DEBIAN_FOLDERS, GLOB_NOSORT, NULL, &all) != 0)
        return false;
    for (size_t i = 0; i < all.gl_pathc; i++) {
        if (find_in(server, all.gl_pathv[i], strlen(all.gl_pathv[i])) &&
            (!newest || strverscmp(all.gl_pathv[i], newest) > 0))
            newest = all.gl_pathv[i];
    }
    is_found = newest && find_in(server, newest, strlen(newest));
    globfree(&all);
    return is_found;
}

static bool find_user(struct dm_pgserver *server)
{
    static const char *const names[] = { "postgres", "nobody" };
    struct passwd entry, *found = NULL;
    char room[1024];

    server->is_of_other = geteuid() == 0;
    for (size_t i = 0; server->is_of_other && !found && i < DM_COUNT(names); i++)
        getpwnam_r(names[i], &entry, room, sizeof room, &found);
    if (found) {
        server->user = found->pw_uid;
        server->group = found->pw_gid;
    }
    return !server->is_of_other || found;
}

int dm_pgserver_find(struct dm_pgserver *ret_server, const char *directory)
{
    if (!find_in_path(ret_server) && !find_newest(ret_server))
        return ENOENT;
    snprintf(ret_server->pid_file, sizeof ret_server->pid_file, "%s/" PID_FILE, directory);
    return find_user(ret_server) ? 0 : ESRCH;
}

/*
 * By system calls: those of libc would also change the program's other threads, which do not exist here.
 * The old numbers of 32-bit systems have room for 16 bits only.
 */
#ifdef SYS_setuid32
#define SET_GROUPS SYS_setgroups32
#define SET_GROUP SYS_setgid32
#define SET_USER SYS_setuid32
#else
#define SET_GROUPS SYS_setgroups
#define SET_GROUP SYS_setgid
#define SET_USER SYS_setuid
#endif

/* The directory must stay one that this process may delete, so it changes its owner only if we do. */
int dm_pgserver_become_user(const struct dm_pgserver *server, const char *directory)
{
    struct dm_fault fault;
    int folder, error = 0;

    if (!server->is_of_other)
        return 0;
    folder = dm_place_open_own(directory, false, &fault);
    if (folder < 0)
        return fault.error ? fault.error : EPERM;
    if (syscall(SET_GROUPS, 0, NULL) < 0 || syscall(SET_GROUP, server->group) < 0 ||
        fchownat(folder, "", server->user, server->group, AT_EMPTY_PATH) < 0) {
        error = errno;
    } else if (syscall(SET_USER, server->user) < 0) {
        error = errno;
        if (fchownat(folder, "", 0, 0, AT_EMPTY_PATH) < 0)
            error = errno;
    }
    close(folder);
    return error;
}

/* ---- its processes ----------------------------------------------------------------------- */

int dm_pgserver_plan_log(struct dm_server_plan *plan)
{
    int error = posix_spawn_file_actions_addopen(&plan->actions, 1, DM_SERVER_LOG, O_WRONLY | O_CREAT | O_APPEND, 0600);

    return error ? error : posix_spawn_file_actions_adddup2(&plan->actions, 1, 2);
}

static int spawn(const struct dm_server_plan *plan, const char *const *arguments, pid_t *ret_pid)
{
    return posix_spawn(ret_pid, arguments[0], &plan->actions, &plan->attributes, (char **)arguments, plan->environment);
}

/* Whoever may enter the directory is trusted. */
int dm_pgserver_spawn_initdb(const struct dm_pgserver *server, const struct dm_server_plan *plan, pid_t *ret_pid)
{
    const char *const arguments[] = {
        server->initdb,    "-D",          DATA, "-A", "trust", "-U", DM_PGSERVER_USER, "-E", "UTF8", "--no-sync",
        "--wal-segsize=1", "--no-locale", NULL
    };

    return spawn(plan, arguments, ret_pid);
}

/*
 * Paths are relative to the data, so that none has to be quoted.  Other shared memory than files in the data would
 * outlive a server that is killed.
 */
int dm_pgserver_spawn(const struct dm_pgserver *server, const struct dm_server_plan *plan, pid_t *ret_pid)
{
    const char *const arguments[] = { server->postgres,
                                      "-D",
                                      DATA,
                                      "-p",
                                      DM_PGSERVER_PORT,
                                      "-c",
                                      "listen_addresses=",
                                      "-c",
                                      "unix_socket_directories=..",
                                      "-c",
                                      "unix_socket_permissions=0700",
                                      "-c",
                                      "fsync=off",
                                      "-c",
                                      "shared_buffers=16MB",
                                      "-c",
                                      "dynamic_shared_memory_type=mmap",
                                      NULL };

    return spawn(plan, arguments, ret_pid);
}

/* ---- what it says of itself -------------------------------------------------------------- */

/* Reads what fits, and terminates it; "" if there is no file. */
static void read_file(const char *path, char *ret_text, size_t size)
{
    int file = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t got = file >= 0 ? read(file, ret_text, size - 1) : 0;

    ret_text[got > 0 ? got : 0] = '\0';
    if (file >= 0)
        close(file);
}

static const char *line_of(const char *text, int line)
{
    while (line-- && *text) {
        text = strchrnul(text, '\n');
        text += *text == '\n';
    }
    return text;
}

/* Takes a number off the text, and blanks before it. */
static unsigned long take_number(const char **text)
{
    unsigned long number = 0;

    while (**text == ' ')
        ++*text;
    for (; **text >= '0' && **text <= '9'; ++*text)
        number = number * 10 + (unsigned long)(**text - '0');
    return number;
}

/* A file of an earlier server has another number. */
bool dm_pgserver_is_ready(const struct dm_pgserver *server, pid_t postmaster)
{
    char text[512];
    const char *pid = text;

    read_file(server->pid_file, text, sizeof text);
    return take_number(&pid) == (unsigned long)postmaster && strncmp(line_of(text, STATUS_LINE), "ready", 5) == 0;
}

void dm_pgserver_clean(const struct dm_pgserver *server)
{
    char text[512];
    const char *line;
    struct shmid_ds segment;
    unsigned long key;
    int id;

    read_file(server->pid_file, text, sizeof text);
    line = line_of(text, SEGMENT_LINE);
    key = take_number(&line);
    id = (int)take_number(&line);
    if (key && shmctl(id, IPC_STAT, &segment) == 0 && (unsigned long)segment.shm_perm.__key == key &&
        segment.shm_nattch == 0)
        shmctl(id, IPC_RMID, NULL);
    unlink(server->pid_file);
}

/* ---- the postmaster's children ----------------------------------------------------------- */

static char *put_number(char *to, pid_t number)
{
    if (number >= 10)
        to = put_number(to, number / 10);
    *to++ = (char)('0' + number % 10);
    return to;
}

static bool send_signal(pid_t pid, int number)
{
    kill(pid, number);
    return true;
}

/* By the state in /proc/PID/stat, which follows the name; "X" and "Z" are dead. */
static bool is_stopped(pid_t pid, int unused)
{
    char path[40], text[128];
    const char *name_end;

    (void)unused;
    strcpy(put_number(stpcpy(path, "/proc/"), pid), "/stat");
    read_file(path, text, sizeof text);
    name_end = strrchr(text, ')');
    return !name_end || strchr("TtXZ", name_end[2]);
}

/* True if the function returned true for each child.  False without /proc. */
static bool for_children(pid_t parent, bool (*function)(pid_t pid, int value), int value)
{
    char path[60], text[256];
    bool are_all = true;
    ssize_t got;
    pid_t pid = 0;
    int file;

    strcpy(put_number(stpcpy(put_number(stpcpy(path, "/proc/"), parent), "/task/"), parent), "/children");
    file = open(path, O_RDONLY | O_CLOEXEC);
    if (file < 0)
        return false;
    while ((got = read(file, text, sizeof text)) > 0) {
        for (ssize_t i = 0; i < got; i++) {
            if (text[i] >= '0' && text[i] <= '9') {
                pid = pid * 10 + text[i] - '0';
            } else if (pid) {
                are_all = function(pid, value) && are_all;
                pid = 0;
            }
        }
    }
    close(file);
    return are_all;
}

bool dm_pgserver_signal_children(pid_t parent, int signal)
{
    return for_children(parent, send_signal, signal);
}

bool dm_pgserver_have_children_stopped(pid_t parent)
{
    return for_children(parent, is_stopped, 0);
}
