/* SPDX-License-Identifier: BSD-2-Clause */
#include "bench.h"

#include <dmutex/dmutex.h>
#include <limits.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "server.h"
#include "store.h"

/* ---- places ---------------------------------------------------------------------- */

const struct bench_place *bench_places(void)
{
    static const struct bench_place two_cores[] = {
        { "apart", "server on one core, clients on another", 0, 1 },
        { "together", "all on one core", 0, 0 },
        { "anywhere", "placed by the kernel", -1, -1 },
        { NULL, NULL, 0, 0 },
    };

    return sysconf(_SC_NPROCESSORS_ONLN) > 1 ? two_cores : &two_cores[1];
}

void bench_pin(pid_t pid, int core)
{
    cpu_set_t set;

    CPU_ZERO(&set);
    for (int i = 0; i < sysconf(_SC_NPROCESSORS_ONLN); i++) {
        if (core < 0 || i == core)
            CPU_SET(i, &set);
    }
    if (sched_setaffinity(pid, sizeof set, &set) < 0)
        bench_die("a process cannot be put on one core");
}

/* ---- processes ------------------------------------------------------------------- */

pid_t bench_begin(const struct bench_scene *scene, void (*work)(void *), void *user)
{
    pid_t pid;

    fflush(stdout);
    pid = fork();
    if (pid < 0)
        bench_die("no process");
    if (pid > 0)
        return pid;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    setenv("DMUTEX_URL", scene->server->url, 1);
    bench_pin(0, scene->place->client_core);
    work(user);
    exit(0);
}

void bench_await(pid_t pid)
{
    int status;

    if (waitpid(pid, &status, 0) != pid || status != 0)
        bench_die("a process of the benchmark failed");
}

void bench_kill(pid_t pid)
{
    kill(pid, SIGKILL);
    waitpid(pid, NULL, 0);
}

struct measuring {
    const struct bench_scene *scene;
    void (*measure)(const struct bench_scene *);
};

static void measure_apart(void *user)
{
    const struct measuring *measuring = user;

    measuring->measure(measuring->scene);
}

void bench_apart(const struct bench_scene *scene, void (*measure)(const struct bench_scene *))
{
    struct measuring measuring = { scene, measure };

    bench_await(bench_begin(scene, measure_apart, &measuring));
}

const char *bench_budget(const struct bench_scene *scene, const char *on_redis, const char *on_registers)
{
    return scene->server->store == &bench_redis ? on_redis : on_registers;
}

/* ---- figures --------------------------------------------------------------------- */

double bench_now(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

void bench_pause(double seconds)
{
    usleep((useconds_t)(seconds * 1e6));
}

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

double bench_median(double *values, int count)
{
    qsort(values, (size_t)count, sizeof *values, compare);
    return count % 2 ? values[count / 2] : (values[count / 2 - 1] + values[count / 2]) / 2;
}

double bench_quantile(double *values, int count, double part)
{
    int place = (int)(part * count);

    if (count == 0)
        return 0;
    qsort(values, (size_t)count, sizeof *values, compare);
    return values[place < count ? place : count - 1];
}

double bench_memory(pid_t pid, const char *kind)
{
    char path[64], line[256];
    double kib = 0;
    FILE *file;

    snprintf(path, sizeof path, "/proc/%d/status", (int)pid);
    file = fopen(path, "r");
    if (!file)
        bench_die("no /proc");
    while (fgets(line, sizeof line, file)) {
        if (strncmp(line, kind, strlen(kind)) == 0 && line[strlen(kind)] == ':')
            kib = atof(line + strlen(kind) + 1);
    }
    fclose(file);
    return kib * 1024;
}

void *bench_share(size_t size)
{
    void *memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

    if (memory == MAP_FAILED)
        bench_die("no memory");
    return memory;
}

const char *bench_path(const char *file)
{
    static char path[PATH_MAX];
    ssize_t length = readlink("/proc/self/exe", path, sizeof path - 1);
    char *slash;

    path[length > 0 ? length : 0] = '\0';
    slash = strrchr(path, '/');
    if (!slash || (size_t)(slash + 1 - path) + strlen(file) >= sizeof path)
        bench_die("the program does not know its own place");
    strcpy(slash + 1, file);
    return path;
}

/* ---- errors ---------------------------------------------------------------------- */

void bench_must(int error)
{
    if (error)
        bench_die(dmutex_strerror_np());
}

void bench_die(const char *what)
{
    fprintf(stderr, "bench: %s\n", what);
    exit(1);
}
