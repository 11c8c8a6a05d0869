/* SPDX-License-Identifier: BSD-2-Clause */
#include "bench.h"

#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static void die(const char *what)
{
    fprintf(stderr, "bench: %s\n", what);
    exit(1);
}

static void run_server(const struct bench_server *server)
{
    const char *program = getenv("DMUTEX_TEST_SERVER");

    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (!program || !*program)
        program = "redis-server";
    execlp(program, program, "--port", "0", "--unixsocket", server->socket, "--save", "", "--appendonly", "no",
           "--loglevel", "warning", "--dir", server->directory, "--logfile", "log", (char *)NULL);
    _exit(127);
}

redisContext *bench_connect(const struct bench_server *server)
{
    redisContext *context = NULL;

    for (int tries = 0; tries < 2000; tries++) {
        context = redisConnectUnix(server->socket);
        if (context && !context->err)
            return context;
        redisFree(context);
        usleep(2000);
    }
    die("the server does not answer: is redis-server or valkey-server installed?");
    return NULL;
}

struct bench_server bench_server_start(void)
{
    struct bench_server server;

    strcpy(server.directory, "/tmp/dmutex-bench-XXXXXX");
    if (!mkdtemp(server.directory))
        die("no temporary directory");
    snprintf(server.socket, sizeof server.socket, "%s/s", server.directory);
    snprintf(server.url, sizeof server.url, "unix://%s", server.socket);
    server.pid = fork();
    if (server.pid == 0)
        run_server(&server);
    redisFree(bench_connect(&server));
    return server;
}

void bench_server_stop(struct bench_server *server)
{
    char path[96];

    kill(server->pid, SIGKILL);
    waitpid(server->pid, NULL, 0);
    unlink(server->socket);
    snprintf(path, sizeof path, "%s/log", server->directory);
    unlink(path);
    rmdir(server->directory);
}

redisReply *bench_command(redisContext *context, int count, const char **words)
{
    redisReply *reply = redisCommandArgv(context, count, words, NULL);

    if (!reply || reply->type == REDIS_REPLY_ERROR)
        die(reply ? reply->str : "the server has gone");
    return reply;
}

/* Every script call is one command of a client; what it calls inside is counted apart by name. */
long long bench_commands_sent(redisContext *context)
{
    static const char *const names[] = { "cmdstat_evalsha:calls=", "cmdstat_eval:calls=" };
    redisReply *reply = bench_command(context, 2, (const char *[]){ "INFO", "commandstats" });
    long long sum = 0;

    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        const char *at = strstr(reply->str, names[i]);

        if (at)
            sum += atoll(at + strlen(names[i]));
    }
    freeReplyObject(reply);
    return sum;
}

double bench_now(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
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

int bench_cores(void)
{
    return (int)sysconf(_SC_NPROCESSORS_ONLN);
}

int bench_pin(pid_t pid, int core)
{
    cpu_set_t set;

    CPU_ZERO(&set);
    for (int i = 0; i < bench_cores(); i++) {
        if (core < 0 || i == core)
            CPU_SET(i, &set);
    }
    return sched_setaffinity(pid, sizeof set, &set) == 0;
}
