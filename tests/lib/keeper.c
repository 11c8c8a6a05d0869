/* SPDX-License-Identifier: BSD-2-Clause */
#include "keeper.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "late.h"
#include "testlib.h"

#define PROCESSES 512
#define FOLDERS 32
#define FOLDER_ROOM 64

/* Shared with the keeper: written by the test program, and read by the keeper after the program's end. */
static struct {
    pid_t pids[PROCESSES];
    char folders[FOLDERS][FOLDER_ROOM];
    struct late late; /* written by the keeper */
} * kept;

static pthread_mutex_t guard = PTHREAD_MUTEX_INITIALIZER;
static int alive = -1; /* tells the keeper that the test program lives: the keeper's end of a pipe */

static void give_up(const char *what)
{
    fprintf(stderr, "# keeper: %s: %s\n", what, strerror(errno));
    abort();
}

static int remove_entry(const char *path, const struct stat *status, int type, struct FTW *at)
{
    (void)status;
    (void)type;
    (void)at;
    remove(path);
    return 0;
}

static void remove_tree(const char *path)
{
    if (*path)
        nftw(path, remove_entry, 16, FTW_DEPTH | FTW_PHYS);
}

/* The keeper is not in the test's session: a signal that ends the session must not end the keeper first. */
static void keep(int fd)
{
    int null = open("/dev/null", O_RDWR);

    setsid();
    for (int i = 0; i < 3; i++)
        dup2(null, i);
    late_watch(&kept->late, fd);
    for (int i = 0; i < PROCESSES; i++) {
        if (kept->pids[i] > 0)
            kill(kept->pids[i], SIGKILL);
    }
    for (int i = 0; i < FOLDERS; i++)
        remove_tree(kept->folders[i]);
    _exit(0);
}

static pid_t minded; /* the process that is checked for leaks */

/*
 * For the leak sanitizer, when a process exits: memory that only the parent's threads know is lost in a forked child.
 * Also, the kernel lets no process trace a program with more rights than its own, and the sanitizer would exit with 1.
 */
int __lsan_is_turned_off(void);
int __lsan_is_turned_off(void)
{
    return getpid() != minded || geteuid() != getuid();
}

/* Also called when a program is loaded. */
__attribute__((constructor)) void keeper_mind_leaks(void)
{
    minded = getpid();
}

/* A forked child does not count as the test program. */
static void in_child(void)
{
    if (alive >= 0)
        close(alive);
    alive = -1;
    pthread_mutex_init(&guard, NULL);
}

void keeper_begin(void)
{
    int ends[2];
    pid_t pid;

    kept = mmap(NULL, sizeof *kept, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (kept == MAP_FAILED || pipe2(ends, O_CLOEXEC) < 0)
        give_up("cannot begin");
    pid = fork();
    if (pid < 0)
        give_up("fork");
    if (pid == 0) {
        close(ends[1]);
        keep(ends[0]);
    }
    close(ends[0]);
    alive = ends[1];
    pthread_atfork(NULL, NULL, in_child);
}

struct late *keeper_late(void)
{
    return &kept->late;
}

static void replace(pid_t from, pid_t to)
{
    int i = 0;

    pthread_mutex_lock(&guard);
    while (i < PROCESSES && kept->pids[i] != from)
        i++;
    if (i < PROCESSES)
        kept->pids[i] = to;
    pthread_mutex_unlock(&guard);
}

void keeper_watch(pid_t pid)
{
    replace(0, pid);
}

void keeper_forget(pid_t pid)
{
    replace(pid, 0);
}

void keeper_make_folder(char *ret_path, size_t size)
{
    int i = 0;

    snprintf(ret_path, size, "/tmp/dmt-XXXXXX");
    if (!mkdtemp(ret_path))
        give_up("mkdtemp");
    while (i < FOLDERS - 1 && kept->folders[i][0])
        i++;
    snprintf(kept->folders[i], FOLDER_ROOM, "%s", ret_path);
}

void keeper_remove_folder(const char *path)
{
    remove_tree(path);
    for (int i = 0; i < FOLDERS; i++) {
        if (strcmp(kept->folders[i], path) == 0)
            kept->folders[i][0] = '\0';
    }
}

pid_t keeper_fork(void)
{
    pid_t pid = fork();

    if (pid < 0)
        give_up("fork");
    if (pid > 0)
        keeper_watch(pid);
    return pid;
}

/* A process may take turns with many others, each of which waits for a core, and has more to do in a long run. */
#define REAP_LIMIT_MS ((int64_t)repetitions(4) * WAIT_LIMIT_MS)

int keeper_reap(pid_t pid)
{
    int64_t began_ms = wait_now_ms();
    int status = 0;

    while (waitpid(pid, &status, WNOHANG) == 0) {
        if (wait_now_ms() > began_ms + REAP_LIMIT_MS) {
            kill(pid, SIGKILL);
            waitpid(pid, &status, 0);
            status = SIGALRM;
            break;
        }
        wait_pause(began_ms);
    }
    keeper_forget(pid);
    return status;
}
