/* SPDX-License-Identifier: BSD-2-Clause */
#include "holders.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <glib.h>
#include <mntent.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Errors that mean that a process ended, or closed a descriptor, while we read /proc. All others leave a doubt. */
static enum sight sight_of_error(int error)
{
    return error == 0 || error == ENOENT || error == ESRCH ? SIGHT_NONE : SIGHT_UNSURE;
}

static int open_folder(int folder, const char *name)
{
    return openat(folder, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

static int open_thread(int folder, const char *thread)
{
    char path[24];

    snprintf(path, sizeof path, "task/%.12s", thread);
    return open_folder(folder, path);
}

/*
 * Checks whether the descriptor is of the lock's file, or of another one that the kernel's lists cannot distinguish
 * from it.
 */
static enum sight look_at_file(int folder, const char *fd, const struct kernel_lock *lock)
{
    char path[16];
    struct stat status;

    snprintf(path, sizeof path, "fd/%.11s", fd);
    if (fstatat(folder, path, &status, 0) < 0)
        return sight_of_error(errno);
    return status.st_dev == lock->device && status.st_ino == lock->number ? SIGHT_HOLDER : SIGHT_NONE;
}

/* The kernel may no longer show a pid; if it shows another one, that is the next owner's. */
static enum sight look_at_descriptor(int folder, const char *fd, const struct kernel_lock *lock)
{
    struct kernel_lock found;

    if (!kernel_lock_of_descriptor(folder, fd, lock->kind, &found))
        return sight_of_error(errno);
    if (strcmp(found.inode, lock->inode) != 0 || kernel_lock_is_of_other(&found, lock))
        return SIGHT_NONE;
    return lock->device ? look_at_file(folder, fd, lock) : SIGHT_HOLDER;
}

/* Continues from where the listing is. */
static struct dirent *next_number(DIR *listing)
{
    struct dirent *entry;

    while (listing && (entry = readdir(listing)))
        if (entry->d_name[0] >= '0' && entry->d_name[0] <= '9')
            return entry;
    return NULL;
}

/* NULL, with errno, if the folder is gone or this user may not list it. */
static DIR *list(int folder, const char *name)
{
    int fd = open_folder(folder, name);
    DIR *listing = fd >= 0 ? fdopendir(fd) : NULL;

    if (fd >= 0 && !listing)
        close(fd);
    return listing;
}

/*
 * Looks for the lock in the folder of a process or thread, and returns the descriptor. *ret_is_bare: no descriptor was
 * seen. The kernel refuses all descriptors or none, so the first refusal will do.
 */
static enum sight find_at(int folder, const struct kernel_lock *lock, char ret_fd[12], bool *ret_is_bare)
{
    DIR *descriptors = list(folder, "fd");
    enum sight sight = descriptors ? SIGHT_NONE : sight_of_error(errno);
    bool is_refused = false;
    struct dirent *entry;

    *ret_is_bare = true;
    while (sight != SIGHT_HOLDER && !is_refused && (entry = next_number(descriptors))) {
        enum sight one = strlen(entry->d_name) < 12 ? look_at_descriptor(folder, entry->d_name, lock) : SIGHT_NONE;

        is_refused = one == SIGHT_UNSURE && errno == EACCES;
        *ret_is_bare = false;
        if (one == SIGHT_HOLDER)
            strcpy(ret_fd, entry->d_name);
        if (one != SIGHT_NONE)
            sight = one;
    }
    if (descriptors)
        closedir(descriptors);
    return sight;
}

/* A process's folder always belongs to its user, but its contents belong to root once the first thread has ended. */
static bool is_own(int folder)
{
    struct stat status;

    return fstat(folder, &status) == 0 && status.st_uid == geteuid();
}

static enum sight find_in_threads(int folder, const struct kernel_lock *lock, struct holder *ret_holder)
{
    DIR *threads = list(folder, "task");
    enum sight sight = threads ? SIGHT_NONE : sight_of_error(errno);
    struct dirent *entry;
    bool is_bare;

    while (sight != SIGHT_HOLDER && (entry = next_number(threads))) {
        int thread = open_thread(folder, entry->d_name);
        enum sight one = thread >= 0 ? find_at(thread, lock, ret_holder->fd, &is_bare) : sight_of_error(errno);

        if (one == SIGHT_HOLDER)
            snprintf(ret_holder->thread, sizeof ret_holder->thread, "%.11s", entry->d_name);
        if (one != SIGHT_NONE)
            sight = one;
        if (thread >= 0)
            close(thread);
    }
    if (threads)
        closedir(threads);
    return sight;
}

/* If the first thread has ended, the process shows no descriptors, but its other threads do. */
static enum sight find_in(int folder, const struct kernel_lock *lock, struct holder *ret_holder)
{
    bool is_bare;
    enum sight sight = find_at(folder, lock, ret_holder->fd, &is_bare), of_threads = SIGHT_NONE;

    ret_holder->thread[0] = '\0';
    if (is_bare && (sight == SIGHT_NONE || is_own(folder)))
        of_threads = find_in_threads(folder, lock, ret_holder);
    return of_threads == SIGHT_NONE ? sight : of_threads;
}

/*
 * Finds the next process that has the file locked. Returns its /proc folder, which the caller closes, or -1. Sets
 * *is_unsure if a process on the way could not be inspected, and otherwise leaves it unchanged.
 */
static int next_holder(DIR *processes, const struct kernel_lock *lock, pid_t *ret_pid, struct holder *ret_holder,
                       bool *is_unsure)
{
    struct dirent *entry;

    while ((entry = next_number(processes))) {
        int folder = open_folder(dirfd(processes), entry->d_name);
        enum sight sight = folder >= 0 ? find_in(folder, lock, ret_holder) : sight_of_error(errno);

        if (sight == SIGHT_HOLDER) {
            *ret_pid = (pid_t)atol(entry->d_name);
            return folder;
        }
        *is_unsure |= sight == SIGHT_UNSURE;
        if (folder >= 0)
            close(folder);
    }
    return -1;
}

void holder_forget(struct holder *known)
{
    if (known->folder)
        close(known->folder);
    known->folder = 0;
}

bool holder_has_still(struct holder *known, const struct kernel_lock *lock)
{
    int thread = known->folder && *known->thread ? open_thread(known->folder, known->thread) : -1;
    int folder = thread >= 0 ? thread : known->folder;
    bool has_still = folder && look_at_descriptor(folder, known->fd, lock) == SIGHT_HOLDER;

    if (thread >= 0)
        close(thread);
    if (!has_still)
        holder_forget(known);
    return has_still;
}

/* True if a line of the process's mappings contains `needle`. */
static bool has_mapping(int folder, const char *needle)
{
    int fd = openat(folder, "maps", O_RDONLY | O_CLOEXEC);
    FILE *maps = fd >= 0 ? fdopen(fd, "r") : NULL;
    char *line = NULL;
    size_t room = 0;
    bool is_found = false;

    while (maps && !is_found && getline(&line, &room, maps) > 0)
        is_found = strstr(line, needle) != NULL;
    free(line);
    if (maps)
        fclose(maps);
    else if (fd >= 0)
        close(fd);
    return is_found;
}

/* In the list of mappings a blank precedes the inode number. */
bool holders_map_file(const struct kernel_lock *lock)
{
    DIR *processes = opendir("/proc");
    char needle[sizeof lock->inode + 2];
    struct dirent *entry;
    bool is_found = false;

    snprintf(needle, sizeof needle, " %s ", lock->inode);
    *strrchr(needle, ':') = ' ';
    while (!is_found && (entry = next_number(processes))) {
        int folder = open_folder(dirfd(processes), entry->d_name);

        is_found = folder >= 0 && has_mapping(folder, needle);
        if (folder >= 0)
            close(folder);
    }
    if (processes)
        closedir(processes);
    return is_found;
}

/*
 * True if /proc may hide other users' processes (mount option hidepid=). If it is mounted more than once, the last
 * mount counts.
 */
static bool is_hiding(void)
{
    FILE *mounts = setmntent("/proc/self/mounts", "re");
    char room[4096];
    struct mntent mount;
    bool is_hiding = !mounts;

    while (mounts && getmntent_r(mounts, &mount, room, sizeof room)) {
        const char *option = hasmntopt(&mount, "hidepid");

        if (strcmp(mount.mnt_dir, "/proc") == 0)
            is_hiding = option && strncmp(option, "hidepid=0", 9) != 0 && strncmp(option, "hidepid=off", 11) != 0;
    }
    if (mounts)
        endmntent(mounts);
    return is_hiding;
}

/*
 * The remembered process costs one read. All processes with all their descriptors may be thousands of reads, so they
 * follow only if the remembered one no longer has the lock. A folder of /proc always stands for the same process: reads
 * fail if the pid is used again.
 */
enum sight holders_look_at_all(const struct kernel_lock *lock, struct holder *known)
{
    DIR *processes;
    bool is_unsure;
    pid_t pid;
    int folder;

    if (holder_has_still(known, lock))
        return SIGHT_HOLDER;
    processes = opendir("/proc");
    is_unsure = !processes;
    folder = next_holder(processes, lock, &pid, known, &is_unsure);
    if (processes)
        closedir(processes);
    if (folder >= 0) {
        known->folder = folder;
        return SIGHT_HOLDER;
    }
    return is_unsure || is_hiding() ? SIGHT_UNSURE : SIGHT_NONE;
}

/* Asks one process instead of all: the lists of locks have already been searched. */
enum sight holders_look_at_owner(const struct kernel_lock *lock, struct holder *known)
{
    char path[32];
    enum sight sight;
    int folder;

    if (holder_has_still(known, lock))
        return SIGHT_HOLDER;
    if (lock->pid <= 0)
        return SIGHT_NONE;
    snprintf(path, sizeof path, "/proc/%ld", lock->pid);
    folder = open_folder(AT_FDCWD, path);
    sight = folder >= 0 ? find_in(folder, lock, known) : sight_of_error(errno);
    if (sight == SIGHT_HOLDER)
        known->folder = folder;
    else if (folder >= 0)
        close(folder);
    return sight;
}

/* The pids in /proc are ours unless it belongs to another pid namespace; then its number for this process differs. */
static bool are_pids_ours(void)
{
    char pid[16];
    ssize_t length = readlink("/proc/self", pid, sizeof pid - 1);

    pid[length > 0 ? length : 0] = '\0';
    return atol(pid) == getpid();
}

/*
 * The folder stands for exactly this process, even if its pid is used again later. Before Linux 5.1 the pid has to do,
 * and in containers whose filter answers EPERM to system calls that it does not know. If EPERM had another reason,
 * kill() is refused, too.
 */
static bool send_signal(int folder, pid_t pid, int number)
{
#ifdef SYS_pidfd_send_signal
    if (syscall(SYS_pidfd_send_signal, folder, number, NULL, 0) == 0)
        return true;
    if ((errno != ENOSYS && errno != EPERM) || faccessat(folder, "stat", R_OK, 0) < 0)
        return false;
#endif
    return are_pids_ours() && kill(pid, number) == 0;
}

/* Reads as much as fits, with a NUL; "" if the kernel does not say. */
static void read_file(int folder, const char *name, char *ret_content, size_t room)
{
    int fd = openat(folder, name, O_RDONLY | O_CLOEXEC);
    ssize_t length = fd >= 0 ? read(fd, ret_content, room - 1) : 0;

    ret_content[length > 0 ? length : 0] = '\0';
    if (fd >= 0)
        close(fd);
}

/* Reads the process's number and the program's name as the kernel has it, without the newline. */
static void describe(int folder, pid_t *ret_pid, char ret_program[HOLDER_PROGRAM_ROOM])
{
    char number[16];

    read_file(folder, "stat", number, sizeof number);
    *ret_pid = (pid_t)atol(number);
    read_file(folder, "comm", ret_program, HOLDER_PROGRAM_ROOM);
    ret_program[strcspn(ret_program, "\n")] = '\0';
}

bool holders_find(const struct kernel_lock *lock, struct holder *known, pid_t *ret_pid,
                  char ret_program[HOLDER_PROGRAM_ROOM])
{
    bool is_found =
        holders_look_at_owner(lock, known) == SIGHT_HOLDER || holders_look_at_all(lock, known) == SIGHT_HOLDER;

    if (is_found)
        describe(known->folder, ret_pid, ret_program);
    return is_found;
}

/* True if the signal is in the set (blocked or caught) on the line that begins with `title`. */
static bool has_signal(const char *status, const char *title, int number)
{
    const char *line = strstr(status, title);

    return line && (strtoull(line + strlen(title), NULL, 16) >> (number - 1) & 1);
}

/* True if the signal has no effect: process 1 of a pid namespace only gets signals that it asked for. */
static bool is_spared(int folder, pid_t pid, int number)
{
    char status[2048];

    if (pid != 1)
        return false;
    read_file(folder, "status", status, sizeof status);
    return !has_signal(status, "\nSigBlk:\t", number) && !has_signal(status, "\nSigCgt:\t", number);
}

/* The signal goes out unless the process is spared. Returns how many got it, 0 or 1. */
static int signal_one(int folder, pid_t pid, int number, bool *is_any_spared)
{
    bool is = is_spared(folder, pid, number);

    *is_any_spared |= is;
    return !is && send_signal(folder, pid, number);
}

/* ---- the roll ---------------------------------------------------------------------------- */

/*
 * When hundreds of locks are lost at once, a search of all processes for each of them would take far longer than the
 * leases. So one search notes the locks of all processes, and for the losses that follow soon only new processes are
 * searched. A process counts only if it still has the lock. If nobody on the roll has it, the roll may be too old, and
 * is made again; but if it has just been made, as when the holders cannot be seen, that would be a search for each lock
 * again. So a roll is used for as long as it took to make, whoever is missing.
 */
#define ROLL_COUNTS_US (200 * 1000)

struct entry {
    pid_t pid;
    struct kernel_lock lock;
    struct holder holder; /* without a folder */
};

struct roll {
    GArray *entries; /* those of a process follow each other; NULL: no roll yet */
    GHashTable *seen;
    gint64 made_us, took_us;
};

static struct roll rolls[LOCK_OF_FILE + 1]; /* by the kind of lock */

/* *ret_is_bare: no descriptor was seen. */
static void enrol_at(struct roll *roll, int folder, enum kernel_lock_kind kind, struct entry *entry, bool *ret_is_bare)
{
    DIR *descriptors = list(folder, "fd");
    bool is_refused = false;
    struct dirent *fd;

    *ret_is_bare = true;
    while (!is_refused && (fd = next_number(descriptors))) {
        *ret_is_bare = false;
        if (strlen(fd->d_name) >= sizeof entry->holder.fd)
            continue;
        if (!kernel_lock_of_descriptor(folder, fd->d_name, kind, &entry->lock)) {
            is_refused = errno == EACCES;
            continue;
        }
        strcpy(entry->holder.fd, fd->d_name);
        g_array_append_vals(roll->entries, entry, 1);
    }
    if (descriptors)
        closedir(descriptors);
}

static void enrol(struct roll *roll, int folder, enum kernel_lock_kind kind, pid_t pid)
{
    struct entry entry = { .pid = pid };
    bool is_bare;
    DIR *threads;
    struct dirent *thread;

    enrol_at(roll, folder, kind, &entry, &is_bare);
    threads = is_bare ? list(folder, "task") : NULL;
    while ((thread = next_number(threads))) {
        int own = open_thread(folder, thread->d_name);

        snprintf(entry.holder.thread, sizeof entry.holder.thread, "%.11s", thread->d_name);
        if (own >= 0) {
            enrol_at(roll, own, kind, &entry, &is_bare);
            close(own);
        }
    }
    if (threads)
        closedir(threads);
}

static void enrol_new_processes(struct roll *roll, enum kernel_lock_kind kind)
{
    DIR *processes = opendir("/proc");
    struct dirent *process;

    while ((process = next_number(processes))) {
        pid_t pid = (pid_t)atol(process->d_name);
        int folder =
            g_hash_table_add(roll->seen, GINT_TO_POINTER(pid)) ? open_folder(dirfd(processes), process->d_name) : -1;

        if (folder >= 0) {
            enrol(roll, folder, kind, pid);
            close(folder);
        }
    }
    if (processes)
        closedir(processes);
}

/* Its age counts from the end of the search, which may take long on a busy machine. */
static bool is_older(const struct roll *roll, gint64 age_us)
{
    return !roll->entries || g_get_monotonic_time() - roll->made_us > age_us;
}

static void make_roll(struct roll *roll, enum kernel_lock_kind kind)
{
    gint64 begin_us = g_get_monotonic_time();

    if (!roll->entries) {
        roll->entries = g_array_new(FALSE, FALSE, sizeof(struct entry));
        roll->seen = g_hash_table_new(g_direct_hash, g_direct_equal);
    }
    g_array_set_size(roll->entries, 0);
    g_hash_table_remove_all(roll->seen);
    enrol_new_processes(roll, kind);
    roll->made_us = g_get_monotonic_time();
    roll->took_us = roll->made_us - begin_us;
}

/* The process's folder, if it has the lock, perhaps by another descriptor than before; or -1. */
static int open_holder(const struct entry *entry, const struct kernel_lock *lock)
{
    struct holder holder = entry->holder;
    char path[32];

    snprintf(path, sizeof path, "/proc/%d", (int)entry->pid);
    holder.folder = open_folder(AT_FDCWD, path);
    if (holder.folder < 0 || holder_has_still(&holder, lock))
        return holder.folder;
    holder.folder = open_folder(AT_FDCWD, path); /* the look has closed it */
    if (holder.folder < 0 || find_in(holder.folder, lock, &holder) == SIGHT_HOLDER)
        return holder.folder;
    close(holder.folder);
    return -1;
}

/* Continues after *at, and skips the other entries of *ret_pid. Returns the folder, which the caller closes, or -1. */
static int next_on_roll(const struct roll *roll, guint *at, const struct kernel_lock *lock, pid_t *ret_pid)
{
    int folder = -1;

    for (; *at < roll->entries->len && folder < 0; ++*at) {
        const struct entry *entry = &g_array_index(roll->entries, struct entry, *at);

        if (entry->pid == *ret_pid || strcmp(entry->lock.inode, lock->inode) != 0)
            continue;
        folder = open_holder(entry, lock);
        if (folder >= 0)
            *ret_pid = entry->pid;
    }
    return folder;
}

/* The roll, with *at and *ret_pid as for next_on_roll(), and the folder of the first holder, or -1. */
static const struct roll *call_roll(const struct kernel_lock *lock, guint *ret_at, pid_t *ret_pid, int *ret_folder)
{
    struct roll *roll = &rolls[lock->kind];

    *ret_at = 0;
    *ret_pid = 0;
    if (is_older(roll, ROLL_COUNTS_US))
        make_roll(roll, lock->kind);
    else
        enrol_new_processes(roll, lock->kind);
    *ret_folder = next_on_roll(roll, ret_at, lock, ret_pid);
    if (*ret_folder >= 0 || !is_older(roll, roll->took_us))
        return roll;
    make_roll(roll, lock->kind);
    *ret_at = 0;
    *ret_folder = next_on_roll(roll, ret_at, lock, ret_pid);
    return roll;
}

int holders_signal(const struct kernel_lock *lock, int number, bool *ret_is_spared)
{
    guint at;
    pid_t pid;
    int folder, count = 0;
    const struct roll *roll = call_roll(lock, &at, &pid, &folder);

    *ret_is_spared = false;
    for (; folder >= 0; folder = next_on_roll(roll, &at, lock, &pid)) {
        count += signal_one(folder, pid, number, ret_is_spared);
        close(folder);
    }
    return count;
}

/* Any holder will do, so processes that are new are searched only if nobody on the roll has the lock. */
bool holders_name(const struct kernel_lock *lock, pid_t *ret_pid, char ret_program[HOLDER_PROGRAM_ROOM])
{
    const struct roll *roll = &rolls[lock->kind];
    guint at = 0;
    int folder = -1;

    *ret_pid = 0;
    if (!is_older(roll, ROLL_COUNTS_US))
        folder = next_on_roll(roll, &at, lock, ret_pid);
    if (folder < 0)
        call_roll(lock, &at, ret_pid, &folder);
    if (folder < 0)
        return false;
    describe(folder, ret_pid, ret_program);
    close(folder);
    return true;
}
