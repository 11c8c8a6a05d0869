/* SPDX-License-Identifier: BSD-2-Clause */
#include "spawn/local.h"

#include <errno.h>
#include <fcntl.h>
#include <pwd.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/attrs.h"
#include "base/clock.h"
#include "base/descriptor.h"
#include "base/log.h"
#include "base/place.h"
#include "base/text.h"
#include "spawn/outside.h"
#include "spawn/server.h"

static bool DM_PRINTF(2, 3) complain(char *ret_reason, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    vsnprintf(ret_reason, DM_REASON_ROOM, format, args);
    va_end(args);
    return false;
}

bool dm_local_place(struct dm_url *url, char ret_reason[DM_REASON_ROOM])
{
    const char *given = secure_getenv("DMUTEX_LOCAL_DIR");
    char path[256];
    int length;

    if (given && *given && *given != '/')
        return complain(ret_reason, "DMUTEX_LOCAL_DIR=%.90s is not an absolute path", given);
    if (given && *given)
        length = snprintf(path, sizeof path, "%s/" DM_SERVER_SOCKET, given);
    else
        length = snprintf(path, sizeof path, "/tmp/dmutex-%u/" DM_SERVER_SOCKET, (unsigned)geteuid());
    if (length >= (int)sizeof((struct sockaddr_un *)0)->sun_path)
        return complain(ret_reason, "DMUTEX_LOCAL_DIR is too long for a socket's path of 107 bytes");
    url->path = strdup(path);
    return url->path || complain(ret_reason, "out of memory");
}

/* Copies the folder of the server's socket, without slashes at the end. */
static void copy_folder(const struct dm_url *url, char ret_folder[256])
{
    size_t length = strlen(url->path) - strlen("/" DM_SERVER_SOCKET);

    while (length > 1 && url->path[length - 1] == '/')
        length--;
    snprintf(ret_folder, 256, "%.*s", (int)length, url->path);
}

/* ---- refused ----------------------------------------------------------------------------- */

/* Writes the owner's number, and the name if there is one.  Looking up the name may block. */
static void describe_owner(uid_t owner, bool may_block, char *ret_text, size_t size)
{
    char room[1024];
    struct passwd entry, *found = NULL;

    if (may_block)
        getpwuid_r(owner, &entry, room, sizeof room, &found);
    snprintf(ret_text, size, found ? "%u (%.32s)" : "%u", (unsigned)owner, found ? found->pw_name : "");
}

/* Returns -1. */
static int refuse(const struct dm_fault *fault, bool may_block, char *ret_reason)
{
    char owner[60];

    if (fault->kind == DM_FAULT_OWNER) {
        describe_owner(fault->owner, may_block, owner, sizeof owner);
        complain(ret_reason,
                 fault->is_open ? "%.90s %s %s: it is not used; chmod +t it, or set DMUTEX_LOCAL_DIR to a folder "
                                  "elsewhere, as /dev/shm/dmutex, or DMUTEX_URL"
                                : "%.90s %s %s: it is not used; set DMUTEX_LOCAL_DIR to a folder of your own, or "
                                  "DMUTEX_URL",
                 fault->place, fault->words, owner);
    } else if (fault->error == EAFNOSUPPORT) {
        complain(ret_reason, "this process may make no unix socket, which the local server needs: allow AF_UNIX, as in "
                             "RestrictAddressFamilies= of its unit, or set DMUTEX_URL");
    } else {
        complain(ret_reason, "%.90s cannot be used for the local server: %s%s", fault->place,
                 dm_text_error(fault->error),
                 fault->error == EROFS || fault->error == EACCES || fault->error == ENOSPC
                     ? ": set DMUTEX_LOCAL_DIR to a folder that can be written, or DMUTEX_URL"
                     : "");
    }
    return -1;
}

/* ---- connected --------------------------------------------------------------------------- */

/* Connects to a server of this user.  Returns the socket, or -1 with a fault whose place is the socket's path. */
static int connect_in(int folder, const struct dm_url *url, struct dm_fault *ret_fault)
{
    int fd = dm_place_connect(folder, DM_SERVER_SOCKET, SOCK_STREAM | SOCK_NONBLOCK, ret_fault);

    if (fd < 0 && strcmp(ret_fault->place, DM_SERVER_SOCKET) == 0) /* and not /proc */
        snprintf(ret_fault->place, sizeof ret_fault->place, "%s", url->path);
    return dm_descriptor_move_up(fd);
}

/* ---- present ----------------------------------------------------------------------------- */

/*
 * The files for a server that was started when nobody could hold anything, and for one that ended with nothing held;
 * when the next server is started, the second is renamed to the first.
 */
#define ALONE_FILE "alone"
#define IDLE_FILE "idle"

/* The folder, locked by this process since its first connect; -1 before.  Atomic. */
static int presence = -1;

/* Opens the folder for reading, because an O_PATH descriptor cannot be locked. -1 with errno. */
static int open_again(int folder)
{
    return openat(folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

static void keep_presence(int fd)
{
    int old = __atomic_exchange_n(&presence, fd, __ATOMIC_RELAXED);

    if (dm_descriptor_is(old, DM_TAG_FOLDER))
        close(old);
}

void dm_local_fork_child(void)
{
    keep_presence(-1);
}

/*
 * Called after each connect, before anything is asked: the folder may be a new one, or the program may have closed the
 * descriptor.  A lock that excludes ours belongs to a starter, which has found the server that we connected to gone, to
 * systemd-tmpfiles for a moment, or to another program.
 */
static bool announce(int folder, const struct dm_url *url, bool may_wait, char *ret_reason)
{
    struct dm_deadline deadline = dm_deadline_in_ms(may_wait ? url->connect_timeout_ms : 0);
    int fd = dm_descriptor_move_up(open_again(folder)), error = fd < 0 ? errno : 0;

    while (!error && flock(fd, LOCK_SH | LOCK_NB) < 0) {
        if (errno != EINTR && (errno != EWOULDBLOCK || dm_deadline_left_ns(&deadline) == 0))
            error = errno;
        else
            dm_server_nap();
    }
    if (!error) {
        dm_descriptor_tag(fd, DM_TAG_FOLDER);
        keep_presence(fd);
        return true;
    }
    if (fd >= 0)
        close(fd);
    return complain(ret_reason, "the folder of %.90s cannot be locked: %s", url->path,
                    error == EWOULDBLOCK ? "another program has locked it, which lslocks shows" : dm_text_error(error));
}

/* True if no process is left that has used a server in this folder. */
static bool is_deserted(int folder)
{
    int fd = open_again(folder);
    bool is_ours = fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) == 0;

    if (fd >= 0)
        close(fd);
    return is_ours;
}

/* If the file cannot be created, the next server has an unnecessary grace. */
static void make_file(int folder, const char *name)
{
    int fd = openat(folder, name, O_WRONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);

    if (fd >= 0)
        close(fd);
}

/*
 * Records whether the server that is about to start is alone.  False with the reason if another server's file remains.
 */
static bool note_start(int folder, const char *directory, char *ret_reason)
{
    if (renameat(folder, IDLE_FILE, folder, ALONE_FILE) == 0)
        return true;
    if (is_deserted(folder)) {
        make_file(folder, ALONE_FILE);
        return true;
    }
    dm_log_info("programs that used the previous local server are still running: the new one begins with a grace");
    return unlinkat(folder, ALONE_FILE, 0) == 0 || errno == ENOENT ||
           complain(ret_reason, "%.90s/" ALONE_FILE " cannot be removed: %s", directory, dm_text_error(errno));
}

/* Called after the connect: if a server is started later, it is another one, and the socket is useless. */
static void find_grace(int folder, struct dm_url *url)
{
    if (url->is_grace_found && faccessat(folder, ALONE_FILE, F_OK, 0) < 0)
        __atomic_store_n(&url->has_grace, true, __ATOMIC_RELAXED);
}

/* ---- started ----------------------------------------------------------------------------- */

/* The started program goes into the background by itself: waits for its parent process to end. */
static void reap(pid_t pid)
{
    while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
        continue;
}

/* True if a server may come: there is no listener yet, or its queue is full. */
static bool may_come(const struct dm_fault *fault)
{
    return fault->kind == DM_FAULT_ABSENT || (fault->kind == DM_FAULT_ERROR && fault->error == EAGAIN);
}

/*
 * Tries again after any error, even a lack of descriptors: if the lock of starters were free before the server listens,
 * the next starter would start a second server in the same folder.
 */
static int await_answer(int folder, const struct dm_url *url, struct dm_fault *ret_fault)
{
    struct dm_deadline deadline = dm_deadline_in_ms(url->connect_timeout_ms);
    int fd;

    while ((fd = connect_in(folder, url, ret_fault)) < 0 && ret_fault->kind != DM_FAULT_OWNER &&
           dm_deadline_left_ns(&deadline) > 0)
        dm_server_nap();
    return fd;
}

/*
 * The path of the server's socket as the kernel knows it, without links; "" if it is too long for a socket's address.
 * The server binds this path, and not just the name in its folder, so that it can be found among the kernel's sockets:
 * systemd-tmpfiles does not delete a socket that is in use, and we start no second server.
 */
static void find_path(int folder, char ret_path[256])
{
    char link[40];
    ssize_t length;

    snprintf(link, sizeof link, "/proc/thread-self/fd/%d", folder);
    length = readlink(link, ret_path, 256 - sizeof "/" DM_SERVER_SOCKET);
    if (length < 1 || (size_t)length + strlen("/" DM_SERVER_SOCKET) >= sizeof((struct sockaddr_un *)0)->sun_path)
        length = 0;
    strcpy(ret_path + length, length ? "/" DM_SERVER_SOCKET : "");
}

/* When a service ends, so do all processes that it has started, unless it has KillMode=process, which we cannot see. */
static void warn_of_unit(void)
{
    char unit[DM_OUTSIDE_UNIT_ROOM];

    if (dm_outside_unit(unit))
        dm_log_warn("the local server was started by %s, and ends with it unless its KillMode is process, for all "
                    "programs of this user: start it by \"dmutex local start\" in a unit of its own, or set DMUTEX_URL",
                    unit);
}

/*
 * Opens the folder with an fcntl() lock that the server keeps.  The lock shows everyone who shares the folder that the
 * server lives, even in another network namespace, where it is not among the kernel's sockets.  Left out on a file
 * system without such locks.
 */
static int open_with_mark(int folder)
{
    struct flock lock = { .l_type = F_RDLCK, .l_whence = SEEK_SET };
    int fd = dm_descriptor_move_up(open_again(folder));

    if (fd >= 0)
        fcntl(fd, F_OFD_SETLK, &lock);
    return fd;
}

static bool has_mark(int folder)
{
    struct flock lock = { .l_type = F_WRLCK, .l_whence = SEEK_SET };
    int fd = open_again(folder);
    bool is_there = fd >= 0 && fcntl(fd, F_OFD_GETLK, &lock) == 0 && lock.l_type != F_UNLCK;

    if (fd >= 0)
        close(fd);
    return is_there;
}

/*
 * All of the user's processes may command the server, so it gets none of the capabilities that the program's children
 * inherit.  Only a thread of the library, or `dmutex local start`, comes here, and it starts nothing else.
 */
static int spawn(int folder, const char *directory, const char *path, pid_t *ret_pid, const char **ret_program)
{
    struct dm_server_plan plan;
    int mark = open_with_mark(folder), error = dm_server_plan_init(&plan, directory, mark, true);

    prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0);
    if (!error) {
        if (*path)
            plan.socket = path;
        error = dm_server_spawn(&plan, ret_pid, ret_program);
        dm_server_plan_clear(&plan);
    }
    if (mark >= 0)
        close(mark);
    return error;
}

/* True if the machine lacks something that it may have again later. */
static bool is_shortage(int error)
{
    return error == EAGAIN || error == ENOMEM || error == EMFILE || error == ENFILE;
}

/* 0, or -1 or DM_OPEN_LATER with the reason. */
static int start_server(int folder, const char *directory, const char *path, char *ret_reason)
{
    const char *program;
    pid_t pid;
    int error = spawn(folder, directory, path, &pid, &program);

    if (error == ENOENT && access("/dev/null", F_OK) < 0)
        complain(ret_reason, "the local server cannot be started without /dev/null: mount a /dev here, or set "
                             "DMUTEX_URL");
    else if (error == ENOENT)
        complain(ret_reason, "neither redis-server nor valkey-server is installed: install the package "
                             "redis-server, or set DMUTEX_URL");
    else if (error)
        complain(ret_reason, "the local server cannot be started: %s%s", dm_text_error(error),
                 error == EAGAIN ? ": look at ulimit -u and pids.max" : "");
    if (error)
        return is_shortage(error) ? DM_OPEN_LATER : -1;
    dm_log_info("starting %s in %s", program, directory);
    warn_of_unit();
    reap(pid);
    return 0;
}

/* A server that is just ending can be seen for a moment longer than it can be reached. */
static bool is_served(int folder, const char *path, unsigned limit_ms)
{
    struct dm_deadline deadline = dm_deadline_in_ms(limit_ms);

    while (has_mark(folder) || (*path && dm_outside_has_listener(path))) {
        if (dm_deadline_left_ns(&deadline) == 0)
            return true;
        dm_server_nap();
    }
    return false;
}

/*
 * Refuses if nobody answers although a server that was bound to this path lives: a second one would grant what the
 * first has granted.  Returns as start_server().
 */
static int start_if_alone(int folder, const struct dm_url *url, const char *directory, char *ret_reason)
{
    char path[256];

    find_path(folder, path);
    if (is_served(folder, path, url->connect_timeout_ms / 4)) {
        complain(ret_reason,
                 "%.90s is served, but cannot be reached from here: the socket was deleted, or this process has "
                 "a folder of its own there (PrivateTmp, a container): end that server, which ss -xlp shows, or "
                 "set DMUTEX_LOCAL_DIR",
                 *path ? path : directory);
        return -1;
    }
    return note_start(folder, directory, ret_reason) ? start_server(folder, directory, path, ret_reason) : -1;
}

/*
 * Otherwise the limits of the program that happens to start it, for example on processor time, would end a server that
 * all programs use.  The hard limits stay: see dmutex(7).
 */
static void lift_limits(int fd)
{
    static const int kinds[] = { RLIMIT_CPU, RLIMIT_FSIZE, RLIMIT_DATA, RLIMIT_AS, RLIMIT_NPROC };
    struct ucred server;
    socklen_t size = sizeof server;
    struct rlimit limit;

    if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &server, &size) < 0 || server.pid <= 0)
        return;
    for (size_t i = 0; i < DM_COUNT(kinds); i++) {
        if (prlimit(server.pid, (__rlimit_resource_t)kinds[i], NULL, &limit) < 0)
            continue;
        limit.rlim_cur = limit.rlim_max;
        prlimit(server.pid, (__rlimit_resource_t)kinds[i], &limit, NULL);
    }
}

/* Called with the lock of starters held. */
static int connect_or_start(int folder, const struct dm_url *url, const char *directory, char *ret_reason)
{
    struct dm_fault fault;
    int fd = connect_in(folder, url, &fault);
    bool is_first = fd < 0 && fault.kind == DM_FAULT_ABSENT;
    int started = is_first ? start_if_alone(folder, url, directory, ret_reason) : 0;

    if (started < 0)
        return started;
    if (fd < 0 && may_come(&fault))
        fd = await_answer(folder, url, &fault);
    if (is_first && fd >= 0)
        lift_limits(fd);
    if (fd < 0 && may_come(&fault))
        complain(ret_reason, "the local server does not answer: see %.90s/" DM_SERVER_LOG, directory);
    else if (fd < 0)
        refuse(&fault, true, ret_reason);
    return fd;
}

/* Lets in one starter at a time.  The lock ends with the descriptor, even if its process dies. -1 with the reason. */
static int lock_starters(int folder, const char *directory, char *ret_reason)
{
    int lock = openat(folder, "lock", O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);

    if (lock < 0)
        complain(ret_reason, "%.90s/lock cannot be made: %s", directory, dm_text_error(errno));
    while (lock >= 0 && flock(lock, LOCK_EX) < 0 && errno == EINTR)
        continue;
    return lock;
}

static int start_locked(int folder, const struct dm_url *url, const char *directory, char *ret_reason)
{
    int lock = lock_starters(folder, directory, ret_reason), fd;

    if (lock < 0)
        return -1;
    fd = connect_or_start(folder, url, directory, ret_reason);
    close(lock);
    return fd;
}

/* ---- both -------------------------------------------------------------------------------- */

static int connect_or_refuse(int folder, const struct dm_url *url, char *ret_reason)
{
    struct dm_fault fault;
    int fd = connect_in(folder, url, &fault);

    if (fd < 0)
        refuse(&fault, false, ret_reason);
    return fd;
}

int dm_local_open(struct dm_url *url, bool may_start, char ret_reason[DM_REASON_ROOM])
{
    char directory[256];
    struct dm_fault fault;
    int folder, fd;

    if (dm_server_is_unsafe()) {
        complain(ret_reason, "a program with more rights than its caller uses no local server: configure one");
        return -1;
    }
    copy_folder(url, directory);
    folder = dm_place_open_own(directory, may_start, &fault);
    if (folder < 0)
        return refuse(&fault, may_start, ret_reason);
    fd = may_start ? start_locked(folder, url, directory, ret_reason) : connect_or_refuse(folder, url, ret_reason);
    if (fd >= 0 && !announce(folder, url, may_start, ret_reason)) {
        close(fd);
        fd = -1;
    }
    if (fd >= 0)
        find_grace(folder, url);
    close(folder);
    return fd;
}

/* ---- ended ------------------------------------------------------------------------------- */

static int open_folder(const struct dm_url *url, char ret_directory[256], char *ret_reason)
{
    struct dm_fault fault;
    int folder;

    copy_folder(url, ret_directory);
    folder = dm_place_open_own(ret_directory, false, &fault);
    return folder >= 0 ? folder : refuse(&fault, true, ret_reason);
}

int dm_local_bar_starts(const struct dm_url *url, char ret_reason[DM_REASON_ROOM])
{
    char directory[256];
    int folder = open_folder(url, directory, ret_reason), lock;

    if (folder < 0)
        return -1;
    lock = lock_starters(folder, directory, ret_reason);
    close(folder);
    return lock;
}

void dm_local_note_idle(const struct dm_url *url)
{
    char directory[256], reason[DM_REASON_ROOM];
    int folder = open_folder(url, directory, reason);

    if (folder < 0)
        return;
    make_file(folder, IDLE_FILE);
    close(folder);
}
