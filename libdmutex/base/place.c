/* SPDX-License-Identifier: BSD-2-Clause */
#include "base/place.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/un.h>
#include <unistd.h>

/* Bounds the recursion of walk(): the stack may be as small as 16 KiB (doc/design/threads-and-fork.md). */
#define MOST_LINKS 8
#define TARGET_ROOM 256
/* O_PATH: folders on the way need not be readable, and opening a FIFO or a device has no effect. */
#define STEP_FLAGS (O_PATH | O_NOFOLLOW | O_CLOEXEC)

/* Not /proc/self: it is the first thread's, and has no descriptors once that thread has ended. */
#define OWN_DESCRIPTORS "/proc/thread-self/fd/"

/* ---- faults ------------------------------------------------------------------------------ */

static void set_place(struct dm_fault *fault, const char *path, size_t length)
{
    if (length >= sizeof fault->place)
        length = sizeof fault->place - 1;
    memcpy(fault->place, path, length);
    fault->place[length] = '\0';
}

/* Returns -1. */
static int fail(struct dm_fault *fault, enum dm_fault_kind kind, int error)
{
    fault->is_open = false;
    fault->kind = kind;
    fault->error = error;
    return -1;
}

/* Called before any close(), which may change errno. */
static int fail_by_error(struct dm_fault *fault)
{
    return fail(fault, errno == ENOENT ? DM_FAULT_ABSENT : DM_FAULT_ERROR, errno);
}

static int fail_by_owner(struct dm_fault *fault, const char *words, uid_t owner)
{
    fault->words = words;
    fault->owner = owner;
    return fail(fault, DM_FAULT_OWNER, 0);
}

/* Closes the descriptor; returns -1. */
static int drop(int fd)
{
    close(fd);
    return -1;
}

/* ---- the way ----------------------------------------------------------------------------- */

static bool is_known(uid_t owner)
{
    return owner == 0 || owner == geteuid();
}

/*
 * In a user namespace that does not map root, root's files have the same owner (65534) as those of all other unmapped
 * users.  Such a file is taken for root's if nobody else can have put it there: see check_parent().
 */
bool dm_place_is_trusted(uid_t owner)
{
    struct stat root;

    return is_known(owner) || (stat("/", &root) == 0 && owner == root.st_uid);
}

/*
 * True if nobody can change the folder by this path, whatever its mode.  The volumes of a pod are such folders: their
 * mode is 0777, but the mount is read-only.  Someone who can write there by another mount can put nothing there that
 * root owns, and what others own is refused.
 */
bool dm_place_is_read_only(int fd)
{
    struct statvfs status;

    return fstatvfs(fd, &status) == 0 && (status.f_flag & ST_RDONLY);
}

/* What a path leads to, and how many links have been followed. */
struct way {
    bool is_to_output;
    int links;
};

/*
 * Checks a folder or link on the way.  The target of a link is checked in its own step, and the mode of a link means
 * nothing.  The caller checks the mode of a file at the end.
 */
static bool check_step(int fd, const struct stat *status, struct way way, struct dm_fault *fault)
{
    bool is_folder = S_ISDIR(status->st_mode);
    mode_t others = way.is_to_output ? S_IWOTH : S_IWGRP | S_IWOTH;
    bool is_open = is_folder && (status->st_mode & others) && !(status->st_mode & S_ISVTX);

    if (!dm_place_is_trusted(status->st_uid) && !(way.is_to_output && is_folder))
        return fail_by_owner(fault, "belongs to user", status->st_uid) == 0;
    if (!is_open || dm_place_is_read_only(fd))
        return true;
    fail_by_owner(fault, "can be changed by others than its owner, user", status->st_uid);
    fault->is_open = true;
    return false;
}

/* In a folder where others may create files, as in /tmp, only files of a known owner are trusted. */
static bool check_parent(int folder, const struct stat *status, struct way way, struct dm_fault *fault)
{
    struct stat parent;

    if (way.is_to_output || is_known(status->st_uid))
        return true;
    if (fstat(folder, &parent) < 0)
        return fail(fault, DM_FAULT_ERROR, errno) == 0;
    if (!(parent.st_mode & (S_IWGRP | S_IWOTH)) || dm_place_is_read_only(folder))
        return true;
    return fail_by_owner(fault, "belongs to user", status->st_uid) == 0;
}

static int walk(int from, const char *path, size_t length, struct way way, struct dm_fault *fault);

/* Follows the link from the folder `from`.  Closes both descriptors. */
static int follow(int from, int link, struct way way, struct dm_fault *fault)
{
    char target[TARGET_ROOM];
    ssize_t length = readlinkat(link, "", target, sizeof target);

    close(link);
    if (length > 0 && length < (ssize_t)sizeof target && way.links++ < MOST_LINKS)
        return walk(from, target, (size_t)length, way, fault);
    close(from);
    return fail(fault, DM_FAULT_ERROR, length == (ssize_t)sizeof target ? ENAMETOOLONG : ELOOP);
}

/* Takes one step from the folder `from`, and closes it. */
static int take_step(int from, const char *name, struct way way, struct dm_fault *fault)
{
    int fd = openat(from, name, STEP_FLAGS);
    struct stat status;

    if (fd < 0 || fstat(fd, &status) < 0) {
        fail_by_error(fault);
        if (fd >= 0)
            close(fd);
        return drop(from);
    }
    if (!check_parent(from, &status, way, fault) || !check_step(fd, &status, way, fault)) {
        close(fd);
        return drop(from);
    }
    if (S_ISLNK(status.st_mode))
        return follow(from, fd, way, fault);
    close(from);
    return fd;
}

/*
 * Walks from the folder `from`, and closes it.  Returns the folder at the end of the path.  ".." needs no rule of its
 * own: the folder it leads to is checked like any other.  "/" is checked by walk_from_root(), where every walk begins.
 */
static int walk(int from, const char *path, size_t length, struct way way, struct dm_fault *fault)
{
    const char *at = path, *end = path + length;
    char name[NAME_MAX + 1];
    size_t size;

    if (path[0] == '/') {
        close(from);
        from = open("/", STEP_FLAGS | O_DIRECTORY);
        if (from < 0)
            return fail(fault, DM_FAULT_ERROR, errno);
    }
    for (; from >= 0 && at < end; at += size) {
        const char *slash = memchr(at, '/', (size_t)(end - at));

        size = slash ? (size_t)(slash - at) : (size_t)(end - at);
        if (size == 0) {
            size = 1; /* the slash itself */
            continue;
        }
        set_place(fault, path, (size_t)(at - path) + size);
        if (size > NAME_MAX) {
            fail(fault, DM_FAULT_ERROR, ENAMETOOLONG);
            return drop(from);
        }
        memcpy(name, at, size);
        name[size] = '\0';
        from = take_step(from, name, way, fault);
    }
    return from;
}

/* Walks along the first `length` bytes of an absolute path. */
static int walk_from_root(const char *path, size_t length, struct way way, struct dm_fault *fault)
{
    struct stat status;
    int root = open("/", STEP_FLAGS | O_DIRECTORY);

    set_place(fault, "/", 1);
    if (root < 0)
        return fail(fault, DM_FAULT_ERROR, errno);
    if (fstat(root, &status) < 0) {
        fail(fault, DM_FAULT_ERROR, errno);
        return drop(root);
    }
    if (!check_step(root, &status, way, fault))
        return drop(root);
    return walk(root, path, length, way, fault);
}

static int open_parent(const char *path, struct way way, const char **ret_leaf, struct dm_fault *ret_fault)
{
    const char *slash = strrchr(path, '/');

    set_place(ret_fault, path, strlen(path));
    if (path[0] != '/' || !slash[1])
        return fail(ret_fault, DM_FAULT_ERROR, EINVAL);
    *ret_leaf = slash + 1;
    return walk_from_root(path, (size_t)(slash - path), way, ret_fault);
}

int dm_place_open_parent(const char *path, const char **ret_leaf, struct dm_fault *ret_fault)
{
    return open_parent(path, (struct way){ .links = 0 }, ret_leaf, ret_fault);
}

int dm_place_open_parent_of_output(const char *path, const char **ret_leaf, struct dm_fault *ret_fault)
{
    return open_parent(path, (struct way){ .is_to_output = true }, ret_leaf, ret_fault);
}

int dm_place_open(const char *path, struct dm_fault *ret_fault)
{
    set_place(ret_fault, path, strlen(path));
    if (path[0] != '/')
        return fail(ret_fault, DM_FAULT_ERROR, EINVAL);
    return walk_from_root(path, strlen(path), (struct way){ .links = 0 }, ret_fault);
}

/* ---- a folder of one's own --------------------------------------------------------------- */

static bool check_own(int fd, struct dm_fault *fault)
{
    struct stat status;

    if (fstat(fd, &status) < 0)
        return fail_by_error(fault) == 0;
    if (!S_ISDIR(status.st_mode))
        return fail_by_owner(fault, "is not a folder, but a link or file of user", status.st_uid) == 0;
    if (status.st_uid != geteuid())
        return fail_by_owner(fault, "belongs to another user:", status.st_uid) == 0;
    if (status.st_mode & 077)
        return fail_by_owner(fault, "is open to others (chmod it to 0700) than user", status.st_uid) == 0;
    return true;
}

/*
 * EEXIST is no fault: another process of this user may have been faster, and check_own() refuses another user's folder.
 * The umask can only remove bits from 0700.
 */
int dm_place_open_own(const char *path, bool may_make, struct dm_fault *ret_fault)
{
    const char *leaf;
    int parent = dm_place_open_parent(path, &leaf, ret_fault), fd;

    if (parent < 0)
        return -1;
    set_place(ret_fault, path, strlen(path));
    if (may_make && mkdirat(parent, leaf, 0700) < 0 && errno != EEXIST) {
        fail(ret_fault, DM_FAULT_ERROR, errno);
        return drop(parent);
    }
    fd = openat(parent, leaf, STEP_FLAGS);
    if (fd < 0)
        fail_by_error(ret_fault);
    close(parent);
    if (fd >= 0 && !check_own(fd, ret_fault))
        return drop(fd);
    return fd;
}

/*
 * Goes by the folder's own parent, where the name must still be this folder's and not that of a newer one.  Between the
 * check and the removal, only its owner, or someone who may change the parent, can exchange it.
 */
bool dm_place_remove(int folder, const char *path)
{
    const char *slash = strrchr(path, '/'), *leaf = slash ? slash + 1 : path;
    int parent = openat(folder, "..", STEP_FLAGS | O_DIRECTORY);
    struct stat own, there;
    bool is_removed;

    if (parent < 0)
        return false;
    is_removed = fstat(folder, &own) == 0 && fstatat(parent, leaf, &there, AT_SYMLINK_NOFOLLOW) == 0 &&
                 own.st_dev == there.st_dev && own.st_ino == there.st_ino && unlinkat(parent, leaf, AT_REMOVEDIR) == 0;
    close(parent);
    return is_removed;
}

/* ---- a socket in it ---------------------------------------------------------------------- */

/* Writes OWN_DESCRIPTORS, the descriptor's number, the name. Without snprintf(), which is not async-signal-safe. */
bool dm_place_address(int folder, const char *name, struct sockaddr_un *ret_address)
{
    char digits[12], *at = digits + sizeof digits - 1;
    char *to = ret_address->sun_path;
    size_t length = strlen(name);

    *at = '\0';
    do
        *--at = (char)('0' + folder % 10);
    while (folder /= 10);
    if (sizeof OWN_DESCRIPTORS + sizeof digits + length >= sizeof ret_address->sun_path)
        return false;
    ret_address->sun_family = AF_UNIX;
    to = stpcpy(to, OWN_DESCRIPTORS);
    to = stpcpy(to, at);
    *to++ = '/';
    memcpy(to, name, length + 1);
    return true;
}

/* Distinguishes an absent listener from an absent /proc. */
static int fail_to_connect(struct dm_fault *fault, int error)
{
    static const char needed[] = "/proc (needed to find a socket safely)";
    bool is_absent = error == ENOENT || error == ECONNREFUSED;

    if (is_absent && access(OWN_DESCRIPTORS, F_OK) < 0) {
        set_place(fault, needed, strlen(needed));
        return fail(fault, DM_FAULT_ERROR, ENOENT);
    }
    return fail(fault, is_absent ? DM_FAULT_ABSENT : DM_FAULT_ERROR, error);
}

/*
 * SO_PEERCRED has the user at the time of listen().  The check comes after connect() and before the first byte, because
 * a socket's file says nothing about the process that listens.
 */
static bool check_peer(int fd, struct dm_fault *fault)
{
    struct ucred peer;
    socklen_t size = sizeof peer;

    if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) < 0)
        return fail(fault, DM_FAULT_ERROR, errno) == 0;
    if (peer.uid != geteuid())
        return fail_by_owner(fault, "is served by another user:", peer.uid) == 0;
    return true;
}

/*
 * connect() is repeated after EINTR: a local socket connects at once or not at all, whereas a TCP socket would go on
 * connecting by itself.
 */
int dm_place_connect(int folder, const char *name, int type, struct dm_fault *ret_fault)
{
    struct sockaddr_un address = { .sun_family = AF_UNIX };
    int fd, result;

    set_place(ret_fault, name, strlen(name));
    if (!dm_place_address(folder, name, &address))
        return fail(ret_fault, DM_FAULT_ERROR, ENAMETOOLONG);
    fd = socket(AF_UNIX, type | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return fail(ret_fault, DM_FAULT_ERROR, errno);
    do
        result = connect(fd, (const struct sockaddr *)&address, sizeof address);
    while (result < 0 && errno == EINTR);
    if (result < 0) {
        fail_to_connect(ret_fault, errno);
        return drop(fd);
    }
    return check_peer(fd, ret_fault) ? fd : drop(fd);
}

bool dm_place_is_out_of_reach(const char *path)
{
    struct dm_fault fault;
    const char *leaf;
    int folder = dm_place_open_parent(path, &leaf, &fault);

    if (folder >= 0)
        close(folder);
    return folder < 0 && fault.kind == DM_FAULT_ERROR && fault.error == EACCES;
}
