/* SPDX-License-Identifier: BSD-2-Clause */
#include "server.h"

#include <fcntl.h>
#include <netinet/in.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "hosts.h"
#include "keeper.h"
#include "testlib.h"

extern char **environ;

static void add(struct server *server, const char *argument)
{
    assert_true(server->argument_count < (int)(sizeof server->arguments / sizeof(char *)) - 1);
    server->arguments[server->argument_count++] = strdup(argument);
}

/* Below the ports that the kernel gives to connections, of which other tests make thousands. */
enum { PORT_LEAST = 10000, PORT_SPAN = 20000 };

static int ports_taken;

int server_ports_taken(void)
{
    return ports_taken;
}

/*
 * Takes the port for this process: nobody else finds it free, but a server of ours can listen on it, because our socket
 * does not listen.  The socket stays open, so the port stays ours while the server is down.
 */
static bool has_taken(int port)
{
    struct sockaddr_in address = { AF_INET, htons((uint16_t)port), { htonl(INADDR_ANY) }, { 0 } };
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), on = 1;

    assert_return_code(fd, errno);
    if (bind(fd, (struct sockaddr *)&address, sizeof address) == 0) {
        assert_return_code(setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on), errno);
        ports_taken++;
        return true;
    }
    close(fd);
    return false;
}

int server_free_port(void)
{
    int port;

    do {
        unsigned chance = 0;

        assert_return_code(getrandom(&chance, sizeof chance, 0), errno);
        port = PORT_LEAST + (int)(chance % PORT_SPAN);
    } while (!has_taken(port));
    return port;
}

/* ---- the address ------------------------------------------------------------------------- */

const char *server_place(const struct server *server)
{
    static char texts[4][32];
    static int last;
    bool is_v6 = strchr(server->address, ':');

    last = (last + 1) % 4;
    snprintf(texts[last], sizeof texts[last], "%s%s%s:%d", is_v6 ? "[" : "", server->address, is_v6 ? "]" : "",
             server->port);
    return texts[last];
}

/* ---- the process ------------------------------------------------------------------------- */

static void add_standard(struct server *server)
{
    const char *program = getenv("DMUTEX_TEST_SERVER");
    char port[16];

    snprintf(port, sizeof port, "%d", server->port);
    const char *const standard[] = {
        program && *program ? program : "redis-server",
        "--port",
        port,
        "--bind",
        server->address,
        "--protected-mode",
        "no",
        "--unixsocket",
        server->path,
        "--unixsocketperm",
        "700",
        "--dir",
        server->folder,
        "--save",
        "",
        "--appendonly",
        "no",
        "--enable-debug-command",
        "local",
    };
    for (size_t i = 0; i < sizeof standard / sizeof standard[0]; i++)
        add(server, standard[i]);
}

static void show_log(const struct server *server)
{
    char path[64], line[512];
    FILE *log;

    snprintf(path, sizeof path, "%s/log", server->folder);
    log = fopen(path, "r");
    while (log && fgets(line, sizeof line, log))
        print_error("server: %s", line);
    if (log)
        fclose(log);
}

static void spawn(struct server *server)
{
    posix_spawn_file_actions_t actions;
    char log[64];
    int here = hosts_here(), error;

    snprintf(log, sizeof log, "%s/log", server->folder);
    hosts_enter(server->host);
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_addopen(&actions, 1, log, O_WRONLY | O_CREAT | O_APPEND, 0600);
    posix_spawn_file_actions_adddup2(&actions, 1, 2);
    error = posix_spawnp(&server->pid, server->arguments[0], &actions, NULL, server->arguments, environ);
    posix_spawn_file_actions_destroy(&actions);
    hosts_enter(here);
    if (error)
        print_error("%s cannot be started: %s\n", server->arguments[0], strerror(error));
    assert_int_equal(error, 0);
    keeper_watch(server->pid);
}

static void await_ready(struct server *server)
{
    int64_t until_ms = wait_now_ms() + WAIT_LIMIT_MS;

    while (!(server->side = side_try_open(server->path))) {
        if (waitpid(server->pid, NULL, WNOHANG) != 0 || wait_now_ms() > until_ms) {
            show_log(server);
            fail_msg("the server does not start");
        }
        wait_nap();
    }
}

/* Makes a folder, and the addresses in it and by TCP. */
static struct server *prepare(int port)
{
    struct server *server = calloc(1, sizeof *server);

    assert_non_null(server);
    server->port = port;
    server->host = hosts_here();
    snprintf(server->address, sizeof server->address, "%s", hosts_address());
    keeper_make_folder(server->folder, sizeof server->folder);
    snprintf(server->path, sizeof server->path, "%s/s", server->folder);
    snprintf(server->url, sizeof server->url, "unix://%s?grace=off", server->path);
    if (port)
        snprintf(server->tcp_url, sizeof server->tcp_url, "redis://%s?grace=off", server_place(server));
    return server;
}

struct server *server_start(void)
{
    return server_start_with(false, NULL);
}

struct server *server_start_with(int has_tcp, ...)
{
    struct server *server = prepare(has_tcp ? server_free_port() : 0);
    const char *argument;
    va_list more;

    add_standard(server);
    va_start(more, has_tcp);
    while ((argument = va_arg(more, const char *)))
        add(server, argument);
    va_end(more);
    spawn(server);
    await_ready(server);
    return server;
}

struct server *server_start_by_file(const char *lines, const char *option)
{
    struct server *server = prepare(server_free_port());
    const char *program = getenv("DMUTEX_TEST_SERVER");
    char path[64];
    FILE *file;

    snprintf(path, sizeof path, "%s/conf", server->folder);
    file = fopen(path, "w");
    assert_non_null(file);
    fprintf(file, "port %d\nbind %s\ndir %s\nunixsocket %s\n%s", server->port, server->address, server->folder,
            server->path, lines);
    fclose(file);
    add(server, program && *program ? program : "redis-server");
    add(server, path);
    if (option)
        add(server, option);
    spawn(server);
    await_ready(server);
    return server;
}

void server_set_argument(struct server *server, const char *option, const char *value)
{
    for (int i = 1; i < server->argument_count - 1; i++) {
        if (strcmp(server->arguments[i], option) == 0) {
            free(server->arguments[i + 1]);
            server->arguments[i + 1] = strdup(value);
            return;
        }
    }
    add(server, option);
    add(server, value);
}

static void reap(struct server *server)
{
    side_close(server->side);
    server->side = NULL;
    keeper_forget(server->pid);
    assert_int_equal(waitpid(server->pid, NULL, 0), server->pid);
    server->pid = 0;
}

/* Without a process, kill() would signal the test's own process group. */
static void signal_to(const struct server *server, int number)
{
    assert_true(server->pid > 0);
    assert_return_code(kill(server->pid, number), errno);
}

void server_kill(struct server *server)
{
    signal_to(server, SIGKILL);
    reap(server);
}

void server_shutdown(struct server *server)
{
    signal_to(server, SIGTERM);
    reap(server);
}

void server_restart(struct server *server)
{
    assert_int_equal(server->pid, 0);
    spawn(server);
    await_ready(server);
}

void server_reconnect(struct server *server)
{
    side_close(server->side);
    server->side = NULL;
    await_ready(server);
}

const char *server_file(const struct server *server, const char *name)
{
    static char room[4][128];
    static unsigned last;
    char *path = room[last++ % 4];

    snprintf(path, sizeof room[0], "%s/%s", server->folder, name);
    return path;
}

void server_make_old(const struct server *server)
{
    const char *id = strstr(side_text(server->side, "INFO server"), "run_id:");
    char run_id[41];

    assert_non_null(id);
    snprintf(run_id, sizeof run_id, "%.40s", id + strlen("run_id:"));
    side_text(server->side, "HSET dmutex:server mark %s/- since 1", run_id);
}

void server_stop(struct server *server)
{
    signal_to(server, SIGSTOP);
    assert_int_equal(waitpid(server->pid, NULL, WUNTRACED), server->pid);
}

void server_cont(struct server *server)
{
    signal_to(server, SIGCONT);
}

void server_end(struct server *server)
{
    if (server->pid)
        server_kill(server);
    keeper_remove_folder(server->folder);
    for (int i = 0; i < server->argument_count; i++)
        free(server->arguments[i]);
    free(server);
}
