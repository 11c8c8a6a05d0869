/* SPDX-License-Identifier: BSD-2-Clause */
#include "bench.h"

#include <arpa/inet.h>
#include <dmutex/dmutex.h>
#include <netinet/in.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* ---- server ---------------------------------------------------------------------- */

const char *const bench_way_names[BENCH_WAYS] = { "unix socket", "TCP" };

static int free_port(void)
{
    struct sockaddr_in address = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
    socklen_t length = sizeof address;
    int fd = socket(AF_INET, SOCK_STREAM, 0);

    if (fd < 0 || bind(fd, (struct sockaddr *)&address, sizeof address) < 0 ||
        getsockname(fd, (struct sockaddr *)&address, &length) < 0)
        bench_die("no free port");
    close(fd);
    return ntohs(address.sin_port);
}

static void run_server(const struct bench_server *server)
{
    const char *program = getenv("DMUTEX_TEST_SERVER");
    char port[16];

    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (!program || !*program)
        program = "redis-server";
    snprintf(port, sizeof port, "%d", server->port);
    execlp(program, program, "--bind", "127.0.0.1", "--port", port, "--unixsocket", server->socket, "--save", "",
           "--appendonly", "no", "--loglevel", "warning", "--dir", server->directory, "--logfile", "log", (char *)NULL);
    _exit(127);
}

redisContext *bench_connect(const struct bench_server *server)
{
    redisContext *context = NULL;

    for (int tries = 0; tries < 2000; tries++) {
        context = server->way == BENCH_TCP ? redisConnect("127.0.0.1", server->port) : redisConnectUnix(server->socket);
        if (context && !context->err)
            return context;
        redisFree(context);
        usleep(2000);
    }
    bench_die("the server does not answer: is redis-server or valkey-server installed?");
}

struct bench_server bench_server_start(void)
{
    struct bench_server server;

    strcpy(server.directory, "/tmp/dmutex-bench-XXXXXX");
    if (!mkdtemp(server.directory))
        bench_die("no temporary directory");
    snprintf(server.socket, sizeof server.socket, "%s/s", server.directory);
    server.port = free_port();
    bench_server_use(&server, BENCH_UNIX);
    server.pid = fork();
    if (server.pid == 0)
        run_server(&server);
    redisFree(bench_connect(&server));
    return server;
}

void bench_server_use(struct bench_server *server, enum bench_way way)
{
    server->way = way;
    if (way == BENCH_TCP)
        snprintf(server->url, sizeof server->url, "redis://127.0.0.1:%d?grace=off", server->port);
    else
        snprintf(server->url, sizeof server->url, "unix://%s?grace=off", server->socket);
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
        bench_die(reply ? reply->str : "the server has gone");
    return reply;
}

void bench_run(redisContext *context, int count, const char **words)
{
    freeReplyObject(bench_command(context, count, words));
}

char *bench_load(redisContext *context, const char *script)
{
    const char *load[] = { "SCRIPT", "LOAD", script };
    redisReply *reply = bench_command(context, 3, load);
    char *sha = strdup(reply->str);

    freeReplyObject(reply);
    return sha;
}

void bench_stats_reset(redisContext *context)
{
    bench_run(context, 2, (const char *[]){ "CONFIG", "RESETSTAT" });
}

/* cmdstat_evalsha:calls=12,usec=345,... */
double bench_stat(redisContext *context, const char *command, const char *field)
{
    redisReply *reply = bench_command(context, 2, (const char *[]){ "INFO", "commandstats" });
    char name[64];
    const char *at;
    double value = 0;

    snprintf(name, sizeof name, "cmdstat_%s:", command);
    at = strstr(reply->str, name);
    snprintf(name, sizeof name, "%s=", field);
    if (at && (at = strstr(at, name)) != NULL)
        value = atof(at + strlen(name));
    freeReplyObject(reply);
    return value;
}

double bench_scripts_sent(redisContext *context)
{
    return bench_stat(context, "evalsha", "calls") + bench_stat(context, "eval", "calls");
}

/* ---- places ---------------------------------------------------------------------- */

const struct bench_place *bench_places(void)
{
    static const struct bench_place two_cores[] = {
        { "server on one core, clients on another", 0, 1 },
        { "all on one core", 0, 0 },
        { "placed by the kernel", -1, -1 },
        { NULL, 0, 0 },
    };
    static const struct bench_place one_core[] = {
        { "all on one core", 0, 0 },
        { NULL, 0, 0 },
    };

    return sysconf(_SC_NPROCESSORS_ONLN) > 1 ? two_cores : one_core;
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

void bench_apart(const struct bench_server *server, int core, void (*measure)(void *), void *user)
{
    int status;
    pid_t pid;

    fflush(stdout);
    pid = fork();
    if (pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        setenv("DMUTEX_URL", server->url, 1);
        bench_pin(0, core);
        measure(user);
        exit(0);
    }
    if (waitpid(pid, &status, 0) < 0 || status != 0)
        bench_die("a process of the benchmark failed");
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
