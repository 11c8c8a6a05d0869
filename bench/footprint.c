/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Run by the workload `memory`.  A program that is linked only to libc prints its memory use three times: before it
 * loads the library that the argument names, after that, and after a lock and unlock.
 */
#include <dlfcn.h>
#include <dmutex/dmutex.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* KiB of RAM: all, and the part that is not shared with other processes. */
struct size {
    long all, own;
};

static struct size size_now(void)
{
    static char text[4096];
    struct size size = { 0, 0 };
    FILE *file = fopen("/proc/self/status", "r");
    size_t length = file ? fread(text, 1, sizeof text - 1, file) : 0;
    const char *all, *own;

    text[length] = '\0';
    all = strstr(text, "VmRSS:");
    own = strstr(text, "RssAnon:");
    if (all && own)
        size = (struct size){ atol(all + 6), atol(own + 8) };
    if (file)
        fclose(file);
    return size;
}

static void print(struct size size)
{
    printf("%ld %ld\n", size.all, size.own);
}

int main(int argc, char **argv)
{
    static dmutex_t mutex = DMUTEX_INITIALIZER("bench/footprint");
    struct size before = size_now(), loaded, used;
    void *library = argc > 1 ? dlopen(argv[1], RTLD_NOW) : NULL;
    int (*lock)(dmutex_t *), (*unlock)(dmutex_t *);

    if (!library)
        return 1;
    *(void **)&lock = dlsym(library, "dmutex_lock");
    *(void **)&unlock = dlsym(library, "dmutex_unlock");
    loaded = size_now();
    if (!lock || !unlock || lock(&mutex) || unlock(&mutex))
        return 1;
    used = size_now();
    print(before);
    print(loaded);
    print(used);
    return 0;
}
