/* SPDX-License-Identifier: BSD-2-Clause */
/* Counts, opens, maps and describes the process's resources, as commands of legacy.c. */
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "legacy.h"

/* ---- counting ---------------------------------------------------------------------------- */

/* Shows to two processes apart, in a file that both share, whether both are inside: read, think, write. */
struct page {
    int64_t number, inside;
};

static int add_one(int fd)
{
    struct page page;
    int is_alone;

    if (pread(fd, &page, sizeof page, 0) != sizeof page)
        return EIO;
    is_alone = page.inside == 0;
    page.inside++;
    if (pwrite(fd, &page, sizeof page, 0) != sizeof page)
        return EIO;
    sched_yield();
    page.number++;
    page.inside--;
    if (pwrite(fd, &page, sizeof page, 0) != sizeof page)
        return EIO;
    return is_alone ? 0 : ENOTUNIQ;
}

static void do_count(struct call *call)
{
    int fd = open(call->words[1], O_RDWR | O_CLOEXEC), result = fd < 0 ? errno : 0;
    void *mutex = object_of(call, 3);

    for (long i = strtol(call->words[2], NULL, 10); i > 0 && !result; i--) {
        result = pthread_mutex_lock(mutex);
        result = result ? result : add_one(fd);
        result = result ? result : pthread_mutex_unlock(mutex);
    }
    close(fd);
    answer(call, result);
}

/* ---- modules and mappings ---------------------------------------------------------------- */

void *module = RTLD_DEFAULT;
char *mapped;
static size_t mapped_size;

static void do_open(struct call *call)
{
    void *opened = dlopen(call->words[1], RTLD_NOW | (has_word(call, "deepbind") ? RTLD_DEEPBIND : 0));

    snprintf(call->answer, ROOM, "%s", opened ? "0" : dlerror());
    if (opened)
        module = opened;
}

static void do_close(struct call *call)
{
    answer(call, dlclose(module) ? EINVAL : 0);
    module = RTLD_DEFAULT;
}

static void do_loads(struct call *call)
{
    int result = 0;

    for (long i = strtol(call->words[2], NULL, 10); i > 0 && !result; i--) {
        void *opened = dlopen(call->words[1], RTLD_NOW);

        result = !opened || dlclose(opened) ? ENOEXEC : 0;
    }
    answer(call, result);
}

/* Maps at the place of the last mapping, if the place is free. */
static int map_file(int fd)
{
    mapped_size = 2 * (size_t)sysconf(_SC_PAGESIZE);
    if (fd < 0 || ftruncate(fd, (off_t)mapped_size) < 0)
        return errno;
    mapped = mmap(mapped, mapped_size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    close(fd);
    return mapped == MAP_FAILED ? errno : 0;
}

static void do_map(struct call *call)
{
    answer(call, map_file(open(call->words[1], O_RDWR | O_CREAT | O_CLOEXEC, 0600)));
}

static void do_shm(struct call *call)
{
    answer(call, map_file(shm_open(call->words[1], O_RDWR | O_CREAT, 0600)));
}

/* Keeps `mapped`, as a hint for the next mapping: the same address. */
static void do_unmap(struct call *call)
{
    size_t size = call->words[1] ? strtoul(call->words[1], NULL, 0) : mapped_size;

    answer(call, munmap(mapped, size) < 0 ? errno : 0);
}

static void do_remaps(struct call *call)
{
    int result = 0;

    for (long i = strtol(call->words[2], NULL, 10); i > 0 && !result; i--) {
        result = map_file(open(call->words[1], O_RDWR | O_CLOEXEC));
        result = result ? result : pthread_mutex_lock(object_of(call, 3));
        result = result ? result : pthread_mutex_unlock(object_of(call, 3));
        munmap(mapped, mapped_size);
    }
    answer(call, result);
}

/* After each init it calls unlock, which fails, because the module reads a mutex's type at its first use. */
static void do_remakes(struct call *call)
{
    void *mutex = object_of(call, 2);
    pthread_mutexattr_t attr;
    int result = 0;

    pthread_mutexattr_init(&attr);
    pthread_mutexattr_settype(&attr, PTHREAD_MUTEX_ERRORCHECK);
    for (long i = strtol(call->words[1], NULL, 10); i > 0 && !result; i--) {
        result = pthread_mutex_init(mutex, &attr);
        result = result || pthread_mutex_unlock(mutex) == EPERM ? result : EINVAL;
        result = result ? result : pthread_mutex_destroy(mutex);
    }
    answer(call, result);
}

/* ---- resources --------------------------------------------------------------------------- */

static long entries(const char *path)
{
    DIR *folder = opendir(path);
    long count = 0;

    for (struct dirent *entry; (entry = readdir(folder));)
        count += entry->d_name[0] != '.';
    closedir(folder);
    return count;
}

static void do_tasks(struct call *call)
{
    answer_number(call, entries("/proc/self/task"));
}
static void do_descriptors(struct call *call)
{
    answer_number(call, entries("/proc/self/fd") - 1);
}

static void do_has(struct call *call)
{
    FILE *maps = fopen("/proc/self/maps", "r");
    char line[4096];
    long count = 0;

    while (fgets(line, sizeof line, maps))
        count += strstr(line, call->words[1]) != NULL;
    fclose(maps);
    answer_number(call, count);
}

/* "0 KIB": the process's own memory. */
static void do_memory(struct call *call)
{
    FILE *status = fopen("/proc/self/status", "r");
    char line[256];
    long kib = -1;

    while (fgets(line, sizeof line, status))
        sscanf(line, "RssAnon: %ld", &kib);
    fclose(status);
    answer_number(call, kib);
}

const struct command around[] = {
    { "count", do_count },
    { "open", do_open },
    { "close", do_close },
    { "loads", do_loads },
    { "map", do_map },
    { "shm", do_shm },
    { "unmap", do_unmap },
    { "remaps", do_remaps },
    { "remakes", do_remakes },
    { "tasks", do_tasks },
    { "descriptors", do_descriptors },
    { "has", do_has },
    { "memory", do_memory },
    { NULL, NULL },
};
