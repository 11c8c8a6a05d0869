/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Calls in threads with the smallest stack, and in a handler with 4.5 KiB more than the kernel's frame; a thread that
 * is cancelled while the module prints. Prints "well" at the end; a hang ends by SIGALRM.
 *
 *   open FILE    dlopen()
 *   lock         the first lock of a named mutex
 *   shared       the first lock of a mutex in a mapping of the file FILE
 *   flock FILE   flock() and fcntl() in a handler
 *   cancel
 *   late FILE    flock(), and a mutex in a mapping of FILE, which are held elsewhere, when the first thread has ended
 */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <unistd.h>

#define STACK_SIZE (16 * 1024)
#define HANDLER_ROOM 4608
#define GUARD_SIZE (64 * 1024)
#define PATIENCE_S 30

static pthread_mutex_t named_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t inheriting_lock, other_lock = PTHREAD_MUTEX_INITIALIZER;
static const char *file;
static int locked_file = -1;

/* A stack with a guard below. */
static unsigned char *make_stack(size_t size)
{
    unsigned char *room = mmap(NULL, GUARD_SIZE + size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    if (room == MAP_FAILED || mprotect(room + GUARD_SIZE, size, PROT_READ | PROT_WRITE) != 0)
        exit(3);
    return room + GUARD_SIZE;
}

static pthread_t begin(void *(*play)(void *))
{
    pthread_attr_t attributes;
    pthread_t thread;

    pthread_attr_init(&attributes);
    if (pthread_attr_setstack(&attributes, make_stack(STACK_SIZE), STACK_SIZE) != 0 ||
        pthread_create(&thread, &attributes, play, NULL) != 0)
        exit(3);
    return thread;
}

static void *play_open(void *user)
{
    (void)user;
    return dlopen(file, RTLD_NOW);
}

static void *play_lock(void *user)
{
    (void)user;
    return pthread_mutex_lock(&named_lock) == 0 && pthread_mutex_unlock(&named_lock) == 0 ? &named_lock : NULL;
}

static void *play_shared(void *user)
{
    int fd = open(file, O_RDWR);
    pthread_mutex_t *mutex = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    pthread_mutexattr_t attr;

    (void)user;
    pthread_mutexattr_init(&attr);
    pthread_mutexattr_setpshared(&attr, PTHREAD_PROCESS_SHARED);
    pthread_mutex_init(mutex, &attr);
    return pthread_mutex_lock(mutex) == 0 && pthread_mutex_unlock(mutex) == 0 ? mutex : NULL;
}

static bool lock_by_fcntl(int fd, short type)
{
    struct flock lock = { .l_type = type };

    return fcntl(fd, F_SETLK, &lock) == 0;
}

/* The last lock is one that the process has by another descriptor already. */
static void lock_file(int number)
{
    int other;

    (void)number;
    locked_file = open(file, O_RDWR | O_CREAT, 0600);
    other = open(file, O_RDWR);
    if (flock(locked_file, LOCK_EX) != 0 || flock(locked_file, LOCK_UN) != 0 || !lock_by_fcntl(locked_file, F_WRLCK) ||
        !lock_by_fcntl(other, F_WRLCK) || !lock_by_fcntl(other, F_UNLCK))
        locked_file = -1;
}

static void do_nothing(int number)
{
    (void)number;
}

static void handle_on(unsigned char *stack, size_t size, void (*handler)(int))
{
    stack_t given = { .ss_sp = stack, .ss_size = size };
    struct sigaction action = { .sa_handler = handler, .sa_flags = SA_ONSTACK };

    if (sigaltstack(&given, NULL) != 0 || sigaction(SIGUSR1, &action, NULL) != 0)
        exit(3);
    raise(SIGUSR1);
}

/* The kernel's frame depends on the processor: as much of a stack as an empty handler has changed. */
static size_t size_of_frame(void)
{
    size_t size = 64 * 1024, left = 0;
    unsigned char *stack = make_stack(size);

    memset(stack, 0xa5, size);
    handle_on(stack, size, do_nothing);
    while (left < size && stack[left] == 0xa5)
        left++;
    return size - left;
}

static void *play_flock(void *user)
{
    size_t size = (size_of_frame() + HANDLER_ROOM) & ~(size_t)15;

    (void)user;
    handle_on(make_stack(size), size, lock_file);
    return locked_file < 0 ? NULL : &locked_file;
}

/* The module says that such a mutex is left local, into a full pipe. */
static void *lock_inheriting(void *user)
{
    (void)user;
    pthread_mutex_lock(&inheriting_lock);
    pthread_mutex_unlock(&inheriting_lock);
    return NULL;
}

static void make_inheriting(void)
{
    pthread_mutexattr_t attr;

    pthread_mutexattr_init(&attr);
    pthread_mutexattr_setprotocol(&attr, PTHREAD_PRIO_INHERIT);
    pthread_mutex_init(&inheriting_lock, &attr);
}

static int fill_standard_error(void)
{
    static const char bytes[4096];
    int ends[2];

    if (pipe(ends) != 0)
        exit(3);
    fcntl(ends[1], F_SETFL, O_NONBLOCK);
    while (write(ends[1], bytes, sizeof bytes) > 0)
        continue;
    fcntl(ends[1], F_SETFL, 0);
    dup2(ends[1], STDERR_FILENO);
    return ends[0];
}

static char state_of(pid_t thread)
{
    char path[64], state = '?';
    FILE *status;

    snprintf(path, sizeof path, "/proc/self/task/%d/stat", (int)thread);
    status = fopen(path, "r");
    if (status && fscanf(status, "%*d (%*[^)]) %c", &state) != 1)
        state = '?';
    if (status)
        fclose(status);
    return state;
}

static pid_t speaker; /* atomic */

static void *speak(void *user)
{
    __atomic_store_n(&speaker, gettid(), __ATOMIC_RELEASE);
    return lock_inheriting(user);
}

static void *play_cancel(void)
{
    pthread_t thread;
    int reader;
    char bytes[4096];
    void *value;

    make_inheriting();
    if (pthread_mutex_lock(&other_lock) != 0 || pthread_mutex_unlock(&other_lock) != 0) /* opens the library */
        return NULL;
    reader = fill_standard_error();
    pthread_create(&thread, NULL, speak, NULL);
    while (!__atomic_load_n(&speaker, __ATOMIC_ACQUIRE) || state_of(speaker) != 'S')
        sched_yield();
    pthread_cancel(thread);
    while (state_of(speaker) == 'S' && read(reader, bytes, sizeof bytes) > 0)
        continue;
    pthread_join(thread, &value);
    return play_lock(NULL);
}

/* By then /proc/self shows neither descriptors nor mappings. */
static void *play_late(void *user)
{
    int fd = open(file, O_RDWR);
    pthread_mutex_t *mutex = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    pthread_mutexattr_t attr;

    while (state_of(getpid()) != 'Z')
        sched_yield();
    pthread_mutexattr_init(&attr);
    pthread_mutexattr_setpshared(&attr, PTHREAD_PROCESS_SHARED);
    pthread_mutex_init(mutex, &attr);
    puts(flock(fd, LOCK_EX | LOCK_NB) == 0       ? "flock() came to nobody"
         : pthread_mutex_trylock(mutex) != EBUSY ? "the mutex is not named"
                                                 : "well");
    exit(0);
    return user;
}

int main(int argc, char **argv)
{
    void *value = NULL;

    if (argc < 2)
        return 2;
    alarm(PATIENCE_S);
    file = argc > 2 ? argv[2] : "";
    if (strcmp(argv[1], "late") == 0) {
        begin(play_late);
        pthread_exit(NULL);
    }
    if (strcmp(argv[1], "cancel") == 0)
        value = play_cancel();
    else
        pthread_join(begin(strcmp(argv[1], "open") == 0     ? play_open
                           : strcmp(argv[1], "lock") == 0   ? play_lock
                           : strcmp(argv[1], "shared") == 0 ? play_shared
                                                            : play_flock),
                     &value);
    puts(value ? "well" : "failed");
    return value ? 0 : 1;
}
