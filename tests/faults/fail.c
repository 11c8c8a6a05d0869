/* SPDX-License-Identifier: BSD-2-Clause */
#undef _FILE_OFFSET_BITS /* with the macro, open() is compiled as open64() */

#include "fail.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <netdb.h>
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <spawn.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "config.h"

const char *const fail_names[FAIL_KINDS] = { "memory", "network", "interrupt", "short", "start", "file", "openssl" };

/* The calls that can fail, with the errno value of each failure. */
static const struct way {
    const char *call;
    enum fail_kind kind;
    int number;
} ways[] = {
    { "malloc", FAIL_MEMORY, ENOMEM },
    { "calloc", FAIL_MEMORY, ENOMEM },
    { "realloc", FAIL_MEMORY, ENOMEM },
    { "strdup", FAIL_MEMORY, ENOMEM },
    { "strndup", FAIL_MEMORY, ENOMEM },
    { "setenv", FAIL_MEMORY, ENOMEM },
    { "posix_spawn_file_actions_addopen", FAIL_MEMORY, ENOMEM },
    { "posix_spawn_file_actions_adddup2", FAIL_MEMORY, ENOMEM },
    { "posix_spawn_file_actions_addclosefrom_np", FAIL_MEMORY, ENOMEM },
    { "posix_spawn_file_actions_addchdir_np", FAIL_MEMORY, ENOMEM },

    { "socket", FAIL_NETWORK, EMFILE },
    { "setsockopt", FAIL_NETWORK, ENOBUFS },
    { "getsockopt", FAIL_NETWORK, ENOBUFS },
    { "connect", FAIL_NETWORK, ECONNREFUSED },
    { "send", FAIL_NETWORK, ECONNRESET },
    { "recv", FAIL_NETWORK, ECONNRESET },
    { "poll", FAIL_NETWORK, ENOMEM },
    { "ppoll", FAIL_NETWORK, ENOMEM },
    { "getaddrinfo", FAIL_NETWORK, EAI_AGAIN },

    { "connect", FAIL_INTERRUPT, EINTR },
    { "send", FAIL_INTERRUPT, EINTR },
    { "recv", FAIL_INTERRUPT, EINTR },
    { "poll", FAIL_INTERRUPT, EINTR },
    { "ppoll", FAIL_INTERRUPT, EINTR },
    { "sem_wait", FAIL_INTERRUPT, EINTR },
    { "sem_clockwait", FAIL_INTERRUPT, EINTR },
    { "flock", FAIL_INTERRUPT, EINTR },
    { "waitpid", FAIL_INTERRUPT, EINTR },

    { "send", FAIL_SHORT, 0 },
    { "recv", FAIL_SHORT, 0 },

    { "pthread_create", FAIL_START, EAGAIN },
    { "eventfd", FAIL_START, EMFILE },
    { "posix_spawnp", FAIL_START, EAGAIN },
    { "socketpair", FAIL_START, EMFILE },
    { "syscall", FAIL_START, EAGAIN },

    { "mkdir", FAIL_FILE, ENOSPC },
    { "mkdtemp", FAIL_FILE, ENOSPC },
    { "open", FAIL_FILE, EMFILE },
    { "openat", FAIL_FILE, EMFILE },
    { "fstat", FAIL_FILE, EIO },
    { "flock", FAIL_FILE, ENOLCK },

    { "malloc", FAIL_OPENSSL, ENOMEM },
    { "calloc", FAIL_OPENSSL, ENOMEM },
    { "realloc", FAIL_OPENSSL, ENOMEM },
};

/* ---- which calls count ------------------------------------------------------------------- */

/* Where the code of each library is. */
enum { DMUTEX, TLS, OPENSSL_SSL, OPENSSL_CRYPTO, LIBRARIES };
static struct {
    uintptr_t from, to;
} libraries[LIBRARIES];

static struct {
    bool is_set;
    enum fail_kind kind;
    unsigned nth;
    struct fail_seen *seen;
} armed;

static int note_library(struct dl_phdr_info *info, size_t size, void *user)
{
    static const char *const names[LIBRARIES] = { "/libdmutex.so", "/libdmutex-tls.so", "/libssl.so", "/libcrypto.so" };

    (void)size;
    (void)user;
    for (int i = 0; i < LIBRARIES; i++) {
        if (!strstr(info->dlpi_name, names[i]))
            continue;
        for (int at = 0; at < info->dlpi_phnum; at++) {
            if (info->dlpi_phdr[at].p_type != PT_LOAD || !(info->dlpi_phdr[at].p_flags & PF_X))
                continue;
            libraries[i].from = info->dlpi_addr + info->dlpi_phdr[at].p_vaddr;
            libraries[i].to = libraries[i].from + info->dlpi_phdr[at].p_memsz;
        }
    }
    return 0;
}

void fail_begin(void)
{
    dl_iterate_phdr(note_library, NULL);
    if (!libraries[DMUTEX].from || (DM_HAVE_TLS && !libraries[TLS].from)) {
        fprintf(stderr, "libdmutex is not a shared library here, or its module is not loaded\n");
        exit(2);
    }
}

void fail_arm(enum fail_kind kind, unsigned nth, struct fail_seen *seen)
{
    armed.kind = kind;
    armed.nth = nth;
    armed.seen = seen;
    __atomic_store_n(&armed.is_set, true, __ATOMIC_RELEASE);
}

void fail_disarm(void)
{
    __atomic_store_n(&armed.is_set, false, __ATOMIC_RELEASE);
}

static bool is_from(const void *caller, int library)
{
    return (uintptr_t)caller >= libraries[library].from && (uintptr_t)caller < libraries[library].to;
}

/* True if the caller's calls count for the kind that is armed. */
static bool is_counted(const void *caller)
{
    if (armed.kind == FAIL_OPENSSL)
        return is_from(caller, OPENSSL_SSL) || is_from(caller, OPENSSL_CRYPTO);
    return is_from(caller, DMUTEX) || is_from(caller, TLS);
}

/* Counts a call; true if the call must fail. */
static bool is_nth(const char *call)
{
    if (__atomic_add_fetch(&armed.seen->count, 1, __ATOMIC_RELAXED) != armed.nth)
        return false;
    snprintf(armed.seen->call, sizeof armed.seen->call, "%s", call);
    return true;
}

/* Returns the errno value with which a call of a libc function must fail now; 0: the call does not fail. */
static int failure_of(const char *call, const void *caller)
{
    if (!__atomic_load_n(&armed.is_set, __ATOMIC_ACQUIRE) || armed.kind == FAIL_SHORT || !is_counted(caller))
        return 0;
    for (size_t i = 0; i < sizeof ways / sizeof ways[0]; i++) {
        if (ways[i].kind == armed.kind && strcmp(ways[i].call, call) == 0)
            return is_nth(call) ? ways[i].number : 0;
    }
    return 0;
}

static size_t passing(const char *call, size_t length, const void *caller)
{
    if (!__atomic_load_n(&armed.is_set, __ATOMIC_ACQUIRE) || armed.kind != FAIL_SHORT || !is_counted(caller))
        return length;
    return length > 1 && is_nth(call) ? 1 : length;
}

/* ---- libc's functions -------------------------------------------------------------------- */

/* The value by which a function reports a failure. */
#define BY_ERRNO(number) (errno = (number), -1)
#define BY_NULL(number) (errno = (number), NULL)
#define BY_NUMBER(number) (number)

/* Defines a function that fails by `by`, or calls the next function of the name: libc's, or the sanitizer's. */
#define DEFINE(type, name, parameters, arguments, by)                \
    type name parameters                                             \
    {                                                                \
        static type(*next) parameters;                               \
        int number = failure_of(#name, __builtin_return_address(0)); \
                                                                     \
        if (number)                                                  \
            return by(number);                                       \
        if (!next)                                                   \
            next = (type(*) parameters)dlsym(RTLD_NEXT, #name);      \
        return next arguments;                                       \
    }

/* Calls the allocator of libc, or of the sanitizer, without a lookup, because dlsym() itself may allocate. */
#define DEFINE_ALLOCATOR(name, parameters, arguments)                                           \
    void *__interceptor_##name parameters __attribute__((weak));                                \
    void *__libc_##name parameters;                                                             \
    void *name parameters                                                                       \
    {                                                                                           \
        int number = failure_of(#name, __builtin_return_address(0));                            \
                                                                                                \
        if (number)                                                                             \
            return BY_NULL(number);                                                             \
        return __interceptor_##name ? __interceptor_##name arguments : __libc_##name arguments; \
    }

DEFINE_ALLOCATOR(malloc, (size_t size), (size))
DEFINE_ALLOCATOR(calloc, (size_t count, size_t size), (count, size))
DEFINE_ALLOCATOR(realloc, (void *block, size_t size), (block, size))
DEFINE(char *, strdup, (const char *text), (text), BY_NULL)
DEFINE(char *, strndup, (const char *text, size_t length), (text, length), BY_NULL)

DEFINE(int, socket, (int family, int type, int protocol), (family, type, protocol), BY_ERRNO)
DEFINE(int, setsockopt, (int fd, int level, int option, const void *value, socklen_t length),
       (fd, level, option, value, length), BY_ERRNO)
DEFINE(int, getsockopt, (int fd, int level, int option, void *value, socklen_t *length),
       (fd, level, option, value, length), BY_ERRNO)
DEFINE(int, connect, (int fd, const struct sockaddr *address, socklen_t length), (fd, address, length), BY_ERRNO)
DEFINE(int, poll, (struct pollfd * fds, nfds_t count, int timeout), (fds, count, timeout), BY_ERRNO)
DEFINE(int, ppoll, (struct pollfd * fds, nfds_t count, const struct timespec *timeout, const sigset_t *mask),
       (fds, count, timeout, mask), BY_ERRNO)
DEFINE(int, getaddrinfo, (const char *node, const char *service, const struct addrinfo *hints, struct addrinfo **found),
       (node, service, hints, found), BY_NUMBER)

DEFINE(int, sem_wait, (sem_t * semaphore), (semaphore), BY_ERRNO)
DEFINE(int, sem_clockwait, (sem_t * semaphore, clockid_t clock, const struct timespec *until),
       (semaphore, clock, until), BY_ERRNO)
DEFINE(pid_t, waitpid, (pid_t pid, int *status, int options), (pid, status, options), BY_ERRNO)

DEFINE(int, pthread_create, (pthread_t * thread, const pthread_attr_t *attributes, void *(*run)(void *), void *user),
       (thread, attributes, run, user), BY_NUMBER)
DEFINE(int, eventfd, (unsigned count, int flags), (count, flags), BY_ERRNO)
DEFINE(int, posix_spawnp,
       (pid_t * pid, const char *file, const posix_spawn_file_actions_t *actions, const posix_spawnattr_t *attributes,
        char *const arguments[], char *const environment[]),
       (pid, file, actions, attributes, arguments, environment), BY_NUMBER)
DEFINE(int, posix_spawn_file_actions_addopen,
       (posix_spawn_file_actions_t * actions, int fd, const char *path, int flags, mode_t mode),
       (actions, fd, path, flags, mode), BY_NUMBER)
DEFINE(int, posix_spawn_file_actions_adddup2, (posix_spawn_file_actions_t * actions, int from, int to),
       (actions, from, to), BY_NUMBER)
DEFINE(int, posix_spawn_file_actions_addclosefrom_np, (posix_spawn_file_actions_t * actions, int from), (actions, from),
       BY_NUMBER)
DEFINE(int, posix_spawn_file_actions_addchdir_np, (posix_spawn_file_actions_t * actions, const char *path),
       (actions, path), BY_NUMBER)

DEFINE(int, setenv, (const char *name, const char *value, int overwrite), (name, value, overwrite), BY_ERRNO)
DEFINE(int, socketpair, (int family, int type, int protocol, int ends[2]), (family, type, protocol, ends), BY_ERRNO)
DEFINE(char *, mkdtemp, (char *template), (template), BY_NULL)
DEFINE(int, mkdir, (const char *path, mode_t mode), (path, mode), BY_ERRNO)

/* On a socket it cannot fail: whoever takes a failure for "not my socket" is right. */
int fstat(int fd, struct stat *status)
{
    static int (*next)(int, struct stat *);
    int number, result;

    if (!next)
        next = (int (*)(int, struct stat *))dlsym(RTLD_NEXT, "fstat");
    result = next(fd, status);
    if (result == 0 && S_ISSOCK(status->st_mode))
        return 0;
    number = failure_of("fstat", __builtin_return_address(0));
    return number ? BY_ERRNO(number) : result;
}
DEFINE(int, flock, (int fd, int operation), (fd, operation), BY_ERRNO)

#define MODE_OF(flags)                   \
    mode_t mode = 0;                     \
    va_list more;                        \
                                         \
    va_start(more, flags);               \
    if ((flags) & (O_CREAT | O_TMPFILE)) \
        mode = va_arg(more, mode_t);     \
    va_end(more)

int openat(int folder, const char *path, int flags, ...)
{
    static int (*next)(int, const char *, int, ...);
    int number = failure_of("openat", __builtin_return_address(0));
    MODE_OF(flags);

    if (number)
        return BY_ERRNO(number);
    if (!next)
        next = (int (*)(int, const char *, int, ...))dlsym(RTLD_NEXT, "openat");
    return next(folder, path, flags, mode);
}

int open(const char *path, int flags, ...)
{
    int number = failure_of("open", __builtin_return_address(0));
    MODE_OF(flags);

    return number ? BY_ERRNO(number) : openat(AT_FDCWD, path, flags, mode);
}

/* The library's clone() and pidfd_open(). */
long syscall(long call, ...)
{
    static long (*next)(long, ...);
    int number = failure_of("syscall", __builtin_return_address(0));
    long arguments[6];
    va_list more;

    va_start(more, call);
    for (int i = 0; i < 6; i++)
        arguments[i] = va_arg(more, long);
    va_end(more);
    if (number)
        return BY_ERRNO(number);
    if (!next)
        next = (long (*)(long, ...))dlsym(RTLD_NEXT, "syscall");
    return next(call, arguments[0], arguments[1], arguments[2], arguments[3], arguments[4], arguments[5]);
}

ssize_t send(int fd, const void *bytes, size_t length, int flags)
{
    static ssize_t (*next)(int, const void *, size_t, int);
    int number = failure_of("send", __builtin_return_address(0));

    if (number)
        return BY_ERRNO(number);
    if (!next)
        next = (ssize_t(*)(int, const void *, size_t, int))dlsym(RTLD_NEXT, "send");
    return next(fd, bytes, passing("send", length, __builtin_return_address(0)), flags);
}

ssize_t recv(int fd, void *bytes, size_t length, int flags)
{
    static ssize_t (*next)(int, void *, size_t, int);
    int number = failure_of("recv", __builtin_return_address(0));

    if (number)
        return BY_ERRNO(number);
    if (!next)
        next = (ssize_t(*)(int, void *, size_t, int))dlsym(RTLD_NEXT, "recv");
    return next(fd, bytes, passing("recv", length, __builtin_return_address(0)), flags);
}
