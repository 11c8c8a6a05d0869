/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A lock and unlock of a name that no other thread wants, over TLS and over plain TCP.
 *
 * One server listens on both, with a certificate made by the openssl program. A process uses one URL, so each way has
 * its own process, and the two take turns. Then the library's scripts over bare connections of both kinds show what TLS
 * costs a bare client. The workload is left out, with a line to standard error, if the library, the server or
 * openssl(1) cannot do this.
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "config.h"

#include "bench/contest.h"
#include "bench/own.h"
#include "bench/runner.h"
#include "bench/secured.h"
#include "bench/server.h"
#include "bench/workload.h"

static pid_t server_pid;
static int plain_port, secure_port;
static struct own own;

static void run_server(const struct bench_scene *scene, const char *folder)
{
    const char *program = getenv("DMUTEX_TEST_SERVER");
    char plain[16], secure[16], certificate[96], key[96];

    prctl(PR_SET_PDEATHSIG, SIGKILL);
    bench_pin(0, scene->place->server_core);
    program = program && *program ? program : "redis-server";
    snprintf(plain, sizeof plain, "%d", plain_port);
    snprintf(secure, sizeof secure, "%d", secure_port);
    snprintf(certificate, sizeof certificate, "%s/tls.crt", folder);
    snprintf(key, sizeof key, "%s/tls.key", folder);
    execlp(program, program, "--bind", "127.0.0.1", "--port", plain, "--tls-port", secure, "--tls-cert-file",
           certificate, "--tls-key-file", key, "--tls-ca-cert-file", certificate, "--tls-auth-clients", "no", "--save",
           "", "--appendonly", "no", "--dir", folder, "--logfile", "tls.log", (char *)NULL);
    _exit(127);
}

/* False if a part is missing. */
static bool start_server(const struct bench_scene *scene, const char *folder)
{
    struct bench_server plain = { .way = BENCH_TCP, .port = plain_port };
    char command[400];

    snprintf(command, sizeof command,
             "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2 -subj /CN=127.0.0.1 "
             "-addext subjectAltName=IP:127.0.0.1 -keyout %s/tls.key -out %s/tls.crt >%s/tls.log 2>&1",
             folder, folder, folder);
    if (system(command) != 0)
        return false;
    server_pid = fork();
    if (server_pid == 0)
        run_server(scene, folder);
    usleep(300000);
    if (waitpid(server_pid, NULL, WNOHANG) != 0)
        return false;
    redisFree(bench_connect(&plain));
    return true;
}

static void secured_pair(void *secured)
{
    own_lock_by(&own, secured_command, secured);
    own_unlock_by(&own, secured_command, secured);
}

static void plain_pair(void *context)
{
    own_lock(&own, context);
    own_unlock(&own, context);
}

static void compare_bare(const struct bench_scene *scene)
{
    redisContext *context = bench_connect(&(struct bench_server){ .way = BENCH_TCP, .port = plain_port });
    const struct contender contenders[] = {
        { "own scripts by TLS", secured_pair, secured_open(secure_port) },
        { "own scripts by TCP", plain_pair, context },
        { NULL, NULL, NULL },
    };

    own_load(context);
    own_init(&own, "own", 1);
    contest_hold(&(struct contest){ scene, "bare TLS", "lock + unlock", "us", contenders, NULL, 0, 0 });
}

static void compare(const struct bench_scene *scene, const char *plain, const char *secure)
{
    struct figure figure = { .when = "TLS",
                             .name = "lock + unlock",
                             .unit = "us",
                             .budget = "<= 1.30 of plain TCP",
                             .limits = { { .name = "plain TCP" } } };

    runner_compare(scene, secure, plain, &figure);
}

static void run(const struct bench_scene *scene)
{
    static const char *const files[] = { "tls.crt", "tls.key", "tls.log" };
    char folder[] = "/tmp/dmutex-bench-XXXXXX", path[96], plain[64], secure[96];

    plain_port = bench_free_port();
    secure_port = bench_free_port();
    if (!mkdtemp(folder))
        bench_die("no temporary directory");
    snprintf(plain, sizeof plain, "redis://127.0.0.1:%d?grace=off", plain_port);
    snprintf(secure, sizeof secure, "rediss://127.0.0.1:%d?grace=off&cacert=%s/tls.crt", secure_port, folder);
    if (DM_HAVE_TLS && start_server(scene, folder)) {
        compare(scene, plain, secure);
        bench_apart(scene, compare_bare);
    } else {
        fprintf(stderr, "tls: left out, without openssl(1), or a library or server with TLS\n");
    }
    if (server_pid > 0 && kill(server_pid, SIGKILL) == 0)
        waitpid(server_pid, NULL, 0);
    for (size_t i = 0; i < BENCH_COUNT(files); i++) {
        snprintf(path, sizeof path, "%s/%s", folder, files[i]);
        unlink(path);
    }
    rmdir(folder);
}

const struct workload workload_tls = { "tls", "the pair over TLS, against plain TCP", run, true, ON_REDIS };
