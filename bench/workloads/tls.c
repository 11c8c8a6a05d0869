/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A lock and unlock of a name that no other thread wants, by TLS and by plain TCP.
 *
 * One server listens to both, with a certificate that the openssl program makes. A process uses one URL, so each way
 * has a process; the two take turns. Left out, with a line to standard error, where the library, the server or
 * openssl(1) cannot do that.
 */
#include <dmutex/dmutex.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "config.h"

#include "bench/server.h"
#include "bench/workload.h"

enum { TURNS_MAX = 1000, TURNS_A_ROUND = 10 };

/* A process that reads a number, does so many pairs, and writes the time. */
struct runner {
    struct bench_server server; /* the address alone */
    struct bench_scene scene;
    int orders[2], answers[2];
    pid_t pid;
    long pairs; /* a turn */
    double times[TURNS_MAX];
};

static pid_t server_pid;

static void run_server(const struct bench_scene *scene, const char *folder, int port, int tls_port)
{
    const char *program = getenv("DMUTEX_TEST_SERVER");
    char plain[16], secure[16], certificate[96], key[96];

    prctl(PR_SET_PDEATHSIG, SIGKILL);
    bench_pin(0, scene->place->server_core);
    program = program && *program ? program : "redis-server";
    snprintf(plain, sizeof plain, "%d", port);
    snprintf(secure, sizeof secure, "%d", tls_port);
    snprintf(certificate, sizeof certificate, "%s/tls.crt", folder);
    snprintf(key, sizeof key, "%s/tls.key", folder);
    execlp(program, program, "--bind", "127.0.0.1", "--port", plain, "--tls-port", secure, "--tls-cert-file",
           certificate, "--tls-key-file", key, "--tls-ca-cert-file", certificate, "--tls-auth-clients", "no", "--save",
           "", "--appendonly", "no", "--dir", folder, "--logfile", "tls.log", (char *)NULL);
    _exit(127);
}

/* False if a part is missing. */
static bool start_server(const struct bench_scene *scene, const char *folder, int port, int tls_port)
{
    struct bench_server plain = { .way = BENCH_TCP, .port = port };
    char command[400];

    snprintf(command, sizeof command,
             "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2 -subj /CN=127.0.0.1 "
             "-addext subjectAltName=IP:127.0.0.1 -keyout %s/tls.key -out %s/tls.crt >%s/tls.log 2>&1",
             folder, folder, folder);
    if (system(command) != 0)
        return false;
    server_pid = fork();
    if (server_pid == 0)
        run_server(scene, folder, port, tls_port);
    usleep(300000);
    if (waitpid(server_pid, NULL, WNOHANG) != 0)
        return false;
    redisFree(bench_connect(&plain));
    return true;
}

static void run_pairs(void *user)
{
    static dmutex_t mutex = DMUTEX_INITIALIZER("bench/pair");
    struct runner *runner = user;
    long pairs;

    while (read(runner->orders[0], &pairs, sizeof pairs) == sizeof pairs) {
        double start = bench_now();

        for (long i = 0; i < pairs; i++) {
            bench_must(dmutex_lock(&mutex));
            bench_must(dmutex_unlock(&mutex));
        }
        start = bench_now() - start;
        if (write(runner->answers[1], &start, sizeof start) != sizeof start)
            bench_die("a pipe is closed");
    }
}

static void begin_runner(struct runner *runner, const struct bench_scene *scene)
{
    runner->scene = *scene;
    runner->scene.server = &runner->server;
    if (pipe(runner->orders) < 0 || pipe(runner->answers) < 0)
        bench_die("no pipe");
    runner->pid = bench_begin(&runner->scene, run_pairs, runner);
}

static double turn(struct runner *runner, long pairs)
{
    double seconds;

    if (write(runner->orders[1], &pairs, sizeof pairs) != sizeof pairs ||
        read(runner->answers[0], &seconds, sizeof seconds) != sizeof seconds)
        bench_die("a process that locks has ended");
    return seconds;
}

/* Finds by doubling how many pairs fill a turn; the first pairs also open the connection. */
static void warm_up(struct runner *runner, double seconds)
{
    runner->pairs = 1;
    while (turn(runner, runner->pairs) < seconds)
        runner->pairs *= 2;
}

static void measure(const struct bench_scene *scene, struct runner *plain, struct runner *secure)
{
    struct runner *const runners[] = { secure, plain };
    int turns = scene->rounds * TURNS_A_ROUND < TURNS_MAX ? scene->rounds * TURNS_A_ROUND : TURNS_MAX;
    struct figure figure = { .when = "TLS",
                             .name = "lock + unlock",
                             .unit = "us",
                             .budget = "<= 1.30 of plain TCP",
                             .limits = { { .name = "plain TCP" } } };

    for (int i = 0; i < 2; i++) {
        begin_runner(runners[i], scene);
        warm_up(runners[i], scene->seconds / TURNS_A_ROUND);
    }
    for (int at = 0; at < turns; at++) {
        for (int i = 0; i < 2; i++)
            runners[i]->times[at] = turn(runners[i], runners[i]->pairs) / (double)runners[i]->pairs;
    }
    figure.value = bench_median(secure->times, turns) * 1e6;
    figure.limits[0].value = bench_median(plain->times, turns) * 1e6;
    report(&figure);
    bench_kill(plain->pid);
    bench_kill(secure->pid);
}

static void run(const struct bench_scene *scene)
{
    static struct runner plain, secure;
    static const char *const files[] = { "tls.crt", "tls.key", "tls.log" };
    int ports[2] = { bench_free_port(), bench_free_port() };
    char folder[] = "/tmp/dmutex-bench-XXXXXX", path[96];

    if (!mkdtemp(folder))
        bench_die("no temporary directory");
    snprintf(plain.server.url, sizeof plain.server.url, "redis://127.0.0.1:%d?grace=off", ports[0]);
    snprintf(secure.server.url, sizeof secure.server.url, "rediss://127.0.0.1:%d?grace=off&cacert=%s/tls.crt", ports[1],
             folder);
    if (DM_HAVE_TLS && start_server(scene, folder, ports[0], ports[1]))
        measure(scene, &plain, &secure);
    else
        fprintf(stderr, "tls: left out, without openssl(1), or a library or server with TLS\n");
    if (server_pid > 0 && kill(server_pid, SIGKILL) == 0)
        waitpid(server_pid, NULL, 0);
    for (size_t i = 0; i < BENCH_COUNT(files); i++) {
        snprintf(path, sizeof path, "%s/%s", folder, files[i]);
        unlink(path);
    }
    rmdir(folder);
}

const struct workload workload_tls = { "tls", "the pair over TLS, against plain TCP", run, true };
