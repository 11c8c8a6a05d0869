/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A lock and unlock of a name that no other thread wants, by TLS and by plain TCP.
 *
 * One server listens to both, with a certificate that the openssl program makes. A process uses one URL, so each way
 * has a process; the two take turns. Left out, with a line to standard error, where the library, the server or
 * openssl(1) cannot do that.
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "config.h"

#include "bench/runner.h"
#include "bench/server.h"
#include "bench/workload.h"

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

static void measure(const struct bench_scene *scene, const char *plain, const char *secure)
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
    int ports[2] = { bench_free_port(), bench_free_port() };
    char folder[] = "/tmp/dmutex-bench-XXXXXX", path[96], plain[64], secure[96];

    if (!mkdtemp(folder))
        bench_die("no temporary directory");
    snprintf(plain, sizeof plain, "redis://127.0.0.1:%d?grace=off", ports[0]);
    snprintf(secure, sizeof secure, "rediss://127.0.0.1:%d?grace=off&cacert=%s/tls.crt", ports[1], folder);
    if (DM_HAVE_TLS && start_server(scene, folder, ports[0], ports[1]))
        measure(scene, plain, secure);
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
