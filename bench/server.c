/* SPDX-License-Identifier: BSD-2-Clause */
#include "server.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bench.h"
#include "store.h"

const char *const bench_way_names[BENCH_WAYS] = { "unix socket", "TCP" };

int bench_free_port(void)
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

struct bench_server bench_server_start(const struct bench_store *store, int core)
{
    struct bench_server server = { .store = store, .lease_ms = 10000 };

    strcpy(server.directory, "/tmp/dmutex-bench-XXXXXX");
    if (!mkdtemp(server.directory))
        bench_die("no temporary directory");
    snprintf(server.socket, sizeof server.socket, "%s/s", server.directory);
    server.port = bench_free_port();
    bench_server_use(&server, BENCH_UNIX);
    fflush(stdout);
    server.pid = fork();
    if (server.pid == 0) {
        store->serve(&server, core);
        _exit(127);
    }
    store->await(&server);
    return server;
}

void bench_server_use(struct bench_server *server, enum bench_way way)
{
    server->way = way;
    server->store->write_url(server);
}

/* PostgreSQL takes SIGQUIT to end at once, and leaves no shared memory; others need SIGKILL. */
void bench_server_stop(struct bench_server *server)
{
    char command[96];

    kill(server->pid, server->store->table_bytes ? SIGQUIT : SIGKILL);
    waitpid(server->pid, NULL, 0);
    snprintf(command, sizeof command, "rm -rf '%s'", server->directory);
    if (system(command) != 0)
        bench_die("the server's directory cannot be removed");
}

/* ---- commands -------------------------------------------------------------------- */

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

long long bench_ask(redisContext *context, const char *command, const char *key)
{
    redisReply *reply = bench_command(context, 2, (const char *[]){ command, key });
    long long number = reply->integer;

    freeReplyObject(reply);
    return number;
}

char *bench_load(redisContext *context, const char *script)
{
    const char *load[] = { "SCRIPT", "LOAD", script };
    redisReply *reply = bench_command(context, 3, load);
    char *sha = strdup(reply->str);

    freeReplyObject(reply);
    return sha;
}

/* redis_version:7.0.15\r\n */
void bench_info(redisContext *context, const char *field, char *buf, size_t size)
{
    redisReply *reply = bench_command(context, 1, (const char *[]){ "INFO" });
    char name[64];
    const char *at;

    snprintf(name, sizeof name, "\n%s:", field);
    at = strstr(reply->str, name);
    buf[0] = '\0';
    if (at) {
        at += strlen(name);
        snprintf(buf, size, "%.*s", (int)strcspn(at, "\r\n"), at);
    }
    freeReplyObject(reply);
}

/* ---- counters -------------------------------------------------------------------- */

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
