/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * outsider URL NAME [BEGUN GO-ON]
 *
 * Acquires the lock NAME on the server, gives it back, and prints the result, the sentence, and whether the process has
 * libssl.  With two more arguments, forks during the acquisition, once there is a file BEGUN, and makes the file GO-ON
 * at the end.
 *
 * Some builds export functions with names of our dependencies, as a program does that contains another hiredis or
 * OpenSSL.  None of them must be called.
 */
#include <dmutex/dmutex.h>
#include <dmutex/testing.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

/* clang-format off */
#define FOREIGN(name) void name(void); void name(void) { fputs(#name " of the program was called\n", stderr); abort(); }
/* clang-format on */
#ifdef EXPORTS_HIREDIS
FOREIGN(freeReplyObject)
FOREIGN(redisReaderCreate)
FOREIGN(redisReaderCreateWithFunctions)
FOREIGN(redisReaderFeed)
FOREIGN(redisReaderFree)
FOREIGN(redisReaderGetReply)
FOREIGN(sdscatlen)
FOREIGN(sdsempty)
FOREIGN(sdsfree)
FOREIGN(sdsnewlen)
FOREIGN(sdsrange)
#endif
#ifdef EXPORTED
FOREIGN(EXPORTED)
#endif

static bool has_libssl(void)
{
    FILE *maps = fopen("/proc/self/maps", "r");
    char line[4096];
    bool found = false;

    while (maps && fgets(line, sizeof line, maps))
        found |= strstr(line, "/libssl.") != NULL;
    return found;
}

static void *use(void *user)
{
    dmutex_t mutex;
    int result = dmutex_init_np(&mutex, user, NULL);

    if (result == 0)
        result = dmutex_trylock(&mutex);
    printf("%d %s %s\n", result, result ? dmutex_strerror_np() : "", has_libssl() ? "libssl" : "no libssl");
    if (result == 0)
        dmutex_unlock(&mutex);
    return NULL;
}

/* A child is made while another thread waits for its connection. */
static void fork_meanwhile(const char *begun, const char *go_on)
{
    pid_t child;

    while (access(begun, F_OK) != 0)
        usleep(1000);
    child = fork();
    if (child == 0)
        _exit(0);
    waitpid(child, NULL, 0);
    close(open(go_on, O_CREAT | O_WRONLY, 0600));
}

int main(int argc, char **argv)
{
    pthread_t thread;

    if (argc < 3 || dmutex_configure_np(argv[1]) != 0 || pthread_create(&thread, NULL, use, argv[2]) != 0)
        return 2;
    if (argc == 5)
        fork_meanwhile(argv[3], argv[4]);
    return pthread_join(thread, NULL);
}
