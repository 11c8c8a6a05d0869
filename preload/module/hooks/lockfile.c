/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The program's flock(), fcntl() and lockf(): we find the file, find a rule for it, and check that the request can be
 * distributed. All other calls go to libc unchanged.
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdarg.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "module/base/real.h"
#include "module/base/scratch.h"
#include "module/base/settings.h"
#include "module/files/mapped.h"
#include "module/watch/matches.h"
#include "module/watch/observe.h"
#include "module/watch/report.h"
#include "shared/rules.h"
#include "shared/text.h"

/* fcntl() and fcntl64() share one layout and one set of commands. */
_Static_assert(sizeof(struct flock) == sizeof(struct flock64), "off_t has 64 bits");

EXPORT int __fcntl(int fd, int command, ...);

/* ---- which file -------------------------------------------------------------------------- */

static bool ends_with(const char *text, const char *end)
{
    size_t length = strlen(text), end_length = strlen(end);

    return length >= end_length && strcmp(text + length - end_length, end) == 0;
}

enum path { PATH_FOUND, PATH_NONE, PATH_UNKNOWN };

static bool is_open(int fd)
{
    return fd >= 0 && real_get()->fcntl(fd, F_GETFD, NULL) >= 0;
}

/*
 * The path as the kernel has it, without links. There is none for a pipe, a deleted file or a closed descriptor. Does
 * not use /proc/self, because the first thread shows no descriptors once it has ended.
 */
static enum path find_path(int fd, char ret_path[PATH_MAX])
{
    char link[40];
    struct text text = text_in(link, sizeof link);
    int kept = errno;
    enum path path = PATH_NONE;
    ssize_t length;

    text_add(&text, "/proc/thread-self/fd/");
    text_add_number(&text, (unsigned)fd);
    length = fd < 0 ? -1 : readlink(link, ret_path, PATH_MAX - 1);
    ret_path[length > 0 ? length : 0] = '\0';
    if (length <= 0 && is_open(fd))
        path = PATH_UNKNOWN;
    else if (*ret_path == '/' && !ends_with(ret_path, " (deleted)"))
        path = PATH_FOUND;
    errno = kept;
    return path;
}

static const struct rule *find_rule(enum rule_kind kind, const char *path)
{
    const struct settings *settings = settings_get();

    for (int i = 0; i < settings->count; i++)
        if (settings->rules[i].kind == kind && text_matches(settings->rules[i].module, path))
            return &settings->rules[i];
    return NULL;
}

enum finding { NOT_MAPPED, MAPPED, NO_NAME, UNKNOWN };

/* How a file is used, for --list: -1 means not locked, else the bits of seen.h. */
enum { NOT_LOCKING = -1 };

/* Records the file, if the list is wanted and the file is locked. */
static void note(enum kernel_lock_kind kind, const char *path, int use)
{
    if (settings_get()->list_folder && use != NOT_LOCKING)
        observe_file(kind == LOCK_OF_FLOCK ? SEEN_FLOCK : SEEN_FCNTL, path, (unsigned)use);
}

static bool has_rules(enum kernel_lock_kind kind)
{
    return kind == LOCK_OF_FLOCK ? settings_get()->has_flock : settings_get()->has_fcntl;
}

/* The rule's name for the file at this descriptor. */
static enum finding find_file(int fd, enum kernel_lock_kind kind, int use, struct mapped *ret_file)
{
    enum path path = find_path(fd, ret_file->path);

    if (path != PATH_FOUND)
        return path == PATH_UNKNOWN && has_rules(kind) ? UNKNOWN : NOT_MAPPED;
    note(kind, ret_file->path, use);
    ret_file->rule = find_rule(kind == LOCK_OF_FLOCK ? RULE_FLOCK : RULE_FCNTL, ret_file->path);
    if (!ret_file->rule)
        return NOT_MAPPED;
    matches_note(ret_file->rule);
    ret_file->fd = fd;
    ret_file->kind = kind;
    if (settings_name(ret_file->rule, ret_file->path, ret_file->name, sizeof ret_file->name))
        return MAPPED;
    errno = ENOLCK;
    return NO_NAME;
}

static void forget_file(void *file)
{
    scratch_give(file, sizeof(struct mapped));
}

/* A call of the program, flock() or fcntl(), and how to answer it. */
struct request {
    int fd;
    enum kernel_lock_kind kind;
    bool is_unlock;
    int number;         /* flock(): the operation; fcntl(): the command */
    struct flock *lock; /* fcntl() */
    int (*lock_file)(const struct mapped *file, const struct request *request);
    int (*pass)(const struct request *request); /* to libc */
};

/* A rule may name the file, and a lock of this host alone would be taken for a lock of all hosts. */
static int refuse_unknown(void)
{
    static bool is_said;

    if (!__atomic_exchange_n(&is_said, true, __ATOMIC_RELAXED))
        text_say("which file is to be locked cannot be seen in /proc, and a rule may be for it: mount /proc where the "
                 "program runs",
                 NULL);
    errno = ENOLCK;
    return -1;
}

/* Not on the usual path: a separate function keeps the buffer for the path off the stack. */
static __attribute__((__noinline__)) int find_and_answer(const struct request *request, int use)
{
    struct mapped *file = scratch_take(sizeof *file);
    enum finding finding = file ? find_file(request->fd, request->kind, use, file) : NO_NAME;
    int result = -1;

    if (!file)
        errno = ENOLCK;
    pthread_cleanup_push(forget_file, file);
    if (finding == MAPPED)
        result = request->lock_file(file, request);
    else if (finding == NOT_MAPPED || (finding == UNKNOWN && request->is_unlock))
        result = request->pass(request);
    else if (finding == UNKNOWN)
        result = refuse_unknown();
    pthread_cleanup_pop(1);
    return result;
}

/* ---- flock ------------------------------------------------------------------------------- */

static int lock_by_flock(const struct mapped *file, const struct request *request)
{
    int operation = request->number;
    bool is_wait = !(operation & LOCK_NB);

    switch (operation & ~LOCK_NB) {
    case LOCK_UN:
        return report_unlock_file(file);
    case LOCK_SH:
        if (!file->rule->shared_is_exclusive)
            return mapped_refuse(file, MAPPED_SHARED);
        return report_lock_file(file, is_wait);
    case LOCK_EX:
        return report_lock_file(file, is_wait);
    default:
        return real_get()->flock(file->fd, operation); /* not an operation */
    }
}

static int pass_flock(const struct request *request)
{
    return real_get()->flock(request->fd, request->number);
}

EXPORT int flock(int fd, int operation)
{
    const struct settings *settings = settings_get();
    int verb = operation & ~LOCK_NB;
    const struct request request = { fd, LOCK_OF_FLOCK, verb == LOCK_UN, operation, NULL, lock_by_flock, pass_flock };

    if (settings->has_flock || settings->list_folder)
        return find_and_answer(&request, verb == LOCK_UN ? NOT_LOCKING : verb == LOCK_SH ? SEEN_SHARED : 0);
    return pass_flock(&request);
}

/* ---- fcntl ------------------------------------------------------------------------------- */

enum lock_verb { NO_LOCK, TRY, WAIT, GET };

static enum lock_verb verb_of(int command, enum kernel_lock_kind *ret_kind)
{
    *ret_kind = command == F_GETLK || command == F_SETLK || command == F_SETLKW ? LOCK_OF_PROCESS : LOCK_OF_FILE;
    switch (command) {
    case F_GETLK:
    case F_OFD_GETLK:
        return GET;
    case F_SETLK:
    case F_OFD_SETLK:
        return TRY;
    case F_SETLKW:
    case F_OFD_SETLKW:
        return WAIT;
    default:
        return NO_LOCK;
    }
}

/* Leaves it to the kernel to refuse requests that it answers with EINVAL. */
static bool is_valid(const struct flock *lock, enum kernel_lock_kind kind)
{
    return (lock->l_type == F_RDLCK || lock->l_type == F_WRLCK || lock->l_type == F_UNLCK) &&
           (lock->l_whence == SEEK_SET || lock->l_whence == SEEK_CUR || lock->l_whence == SEEK_END) &&
           (kind != LOCK_OF_FILE || lock->l_pid == 0);
}

static bool is_whole(int fd, const struct flock *lock)
{
    off_t origin = 0;
    struct stat status;

    if (lock->l_whence == SEEK_CUR)
        origin = lseek(fd, 0, SEEK_CUR);
    if (lock->l_whence == SEEK_END)
        origin = fstat(fd, &status) == 0 ? status.st_size : -1;
    return lock->l_len == 0 && origin >= 0 && origin == -lock->l_start;
}

/* The kernel's answer if a process of this host excludes the caller; otherwise the answer about the other hosts. */
static int get_lock(const struct mapped *file, int command, struct flock *lock)
{
    struct flock answer = *lock;
    bool is_held;

    if (real_get()->fcntl(file->fd, command, &answer) < 0)
        return -1;
    if (answer.l_type == F_UNLCK) {
        if (mapped_test(file, &is_held) < 0)
            return -1;
        if (is_held)
            answer = (struct flock){ .l_type = F_WRLCK, .l_whence = SEEK_SET, .l_pid = -1 };
    }
    *lock = answer;
    return 0;
}

static int lock_by_fcntl(const struct mapped *file, const struct request *request)
{
    enum kernel_lock_kind kind;
    enum lock_verb verb = verb_of(request->number, &kind);
    struct flock *lock = request->lock;

    if (!is_whole(file->fd, lock))
        return mapped_refuse(file, MAPPED_PART);
    if (verb == GET)
        return get_lock(file, request->number, lock);
    if (lock->l_type == F_UNLCK)
        return report_unlock_file(file);
    if (lock->l_type == F_RDLCK && !file->rule->shared_is_exclusive)
        return mapped_refuse(file, MAPPED_SHARED);
    return report_lock_file(file, verb == WAIT);
}

static int use_of(int fd, enum lock_verb verb, const struct flock *lock)
{
    if (verb == GET || lock->l_type == F_UNLCK)
        return NOT_LOCKING;
    return (is_whole(fd, lock) ? 0 : SEEN_PART) | (lock->l_type == F_RDLCK ? SEEN_SHARED : 0);
}

static int pass_fcntl(const struct request *request)
{
    return real_get()->fcntl(request->fd, request->number, request->lock);
}

static int on_fcntl(int fd, int command, void *argument)
{
    struct request request = { fd, LOCK_OF_PROCESS, false, command, argument, lock_by_fcntl, pass_fcntl };
    enum lock_verb verb = verb_of(command, &request.kind);
    const struct settings *settings;

    if (verb != NO_LOCK) {
        settings = settings_get();
        if ((settings->has_fcntl || settings->list_folder) && argument && is_valid(argument, request.kind)) {
            request.is_unlock = verb != GET && request.lock->l_type == F_UNLCK;
            return find_and_answer(&request, settings->list_folder ? use_of(fd, verb, argument) : NOT_LOCKING);
        }
    }
    return pass_fcntl(&request);
}

/* A call without a third argument gets one that nobody reads, as in libc. */
#define DEFINE_FCNTL(name)                      \
    EXPORT int name(int fd, int command, ...)   \
    {                                           \
        va_list more;                           \
        void *argument;                         \
                                                \
        va_start(more, command);                \
        argument = va_arg(more, void *);        \
        va_end(more);                           \
        return on_fcntl(fd, command, argument); \
    }

DEFINE_FCNTL(fcntl)
DEFINE_FCNTL(fcntl64)
DEFINE_FCNTL(__fcntl)

/* ---- lockf ------------------------------------------------------------------------------- */

static int test_by_lockf(int fd, struct flock *lock)
{
    lock->l_type = F_RDLCK;
    if (on_fcntl(fd, F_GETLK, lock) < 0)
        return -1;
    if (lock->l_type == F_UNLCK)
        return 0;
    errno = EACCES;
    return -1;
}

/* As in libc, relative to the offset of the next read or write. */
static int on_lockf(int fd, int command, off_t length)
{
    struct flock lock = { .l_type = F_WRLCK, .l_whence = SEEK_CUR, .l_len = length };
    const struct settings *settings = settings_get();

    if (!settings->has_fcntl && !settings->list_folder)
        return real_get()->lockf(fd, command, length);
    switch (command) {
    case F_TEST:
        return test_by_lockf(fd, &lock);
    case F_LOCK:
        return on_fcntl(fd, F_SETLKW, &lock);
    case F_TLOCK:
        return on_fcntl(fd, F_SETLK, &lock);
    case F_ULOCK:
        lock.l_type = F_UNLCK;
        return on_fcntl(fd, F_SETLK, &lock);
    default:
        return real_get()->lockf(fd, command, length); /* not a command */
    }
}

EXPORT int lockf(int fd, int command, off_t length)
{
    return on_lockf(fd, command, length);
}

EXPORT int lockf64(int fd, int command, off64_t length)
{
    return on_lockf(fd, command, length);
}
