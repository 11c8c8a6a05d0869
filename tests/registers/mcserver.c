/* SPDX-License-Identifier: BSD-2-Clause */
#include "mcserver.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "../lib/testlib.h"

static const char *program(void)
{
    const char *given = getenv("DMUTEX_TEST_MEMCACHED");

    return given && *given ? given : "/usr/bin/memcached";
}

bool mcserver_is_possible(void)
{
    if (access(program(), X_OK) == 0)
        return true;
    puts("1..0 # SKIP no memcached is installed");
    return false;
}

/* ---- asking -------------------------------------------------------------------------------- */

static int connect_to(int port)
{
    struct sockaddr_in address = { .sin_family = AF_INET,
                                   .sin_port = htons((uint16_t)port),
                                   .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    if (connect(fd, (struct sockaddr *)&address, sizeof address) == 0)
        return fd;
    close(fd);
    return -1;
}

static const char *read_until(int fd, const char *end)
{
    static char answers[65536];
    size_t size = 0, length = strlen(end);
    ssize_t got;

    do {
        got = read(fd, answers + size, sizeof answers - 1 - size);
        assert_true(got > 0);
        size += (size_t)got;
        answers[size] = '\0';
    } while (size < length || strcmp(answers + size - length, end) != 0);
    answers[size - length] = '\0';
    return answers;
}

const char *mcserver_ask(const struct mcserver *server, const char *format, ...)
{
    int fd = connect_to(server->port);
    const char *answers;
    va_list arguments;

    assert_true(fd >= 0);
    va_start(arguments, format);
    vdprintf(fd, format, arguments);
    va_end(arguments);
    dprintf(fd, "\r\nmn\r\n"); /* no other command has its answer */
    answers = read_until(fd, "MN\r\n");
    close(fd);
    return answers;
}

void mcserver_fill(const struct mcserver *server)
{
    static char value[301];
    int i = 0;

    memset(value, 'x', sizeof value - 1);
    for (size_t size = 50; size <= 300; size += 50) {
        while (strncmp(mcserver_ask(server, "ms filler%d %zu\r\n%s", i++, size, value + 300 - size), "HD", 2) == 0)
            continue;
    }
}

unsigned long mcserver_version_of(const struct mcserver *server, const char *key)
{
    unsigned long number = 0;

    sscanf(mcserver_ask(server, "mg dmutex:r/%s c", key), "HD c%lu", &number);
    return number;
}

/* The server encodes keys as in a URL, and reads no command that came together with this one. */
int mcserver_count(const struct mcserver *server, const char *prefix)
{
    char wanted[64] = "key=dmutex%3Ar%2F";
    int count = 0, fd = connect_to(server->port);
    const char *at;

    assert_true(fd >= 0);
    dprintf(fd, "lru_crawler metadump all\r\n");
    at = read_until(fd, "END\r\n");
    close(fd);

    for (; *prefix; prefix++)
        snprintf(wanted + strlen(wanted), sizeof wanted - strlen(wanted), *prefix == '/' ? "%%2F" : "%c", *prefix);
    while ((at = strstr(at, wanted))) {
        at++;
        count++;
    }
    return count;
}

/* ---- the server ---------------------------------------------------------------------------- */

static void run(const struct mcserver *server)
{
    char port[8], words[128], *rest = words;
    const char *arguments[16] = { program(), "-l", "127.0.0.1", "-u", "root", "-p", port };
    int count = 7, log;

    snprintf(port, sizeof port, "%d", server->port);
    snprintf(words, sizeof words, "%s", server->options);
    while (rest && *rest && count < 15)
        arguments[count++] = strsep(&rest, " ");
    if (chdir(server->folder) < 0)
        _exit(98);
    log = open("log", O_WRONLY | O_CREAT | O_APPEND, 0644);
    dup2(log, 1);
    dup2(log, 2);
    execv(arguments[0], (char *const *)arguments);
    _exit(97);
}

static bool serves(const struct mcserver *server)
{
    int fd = connect_to(server->port);

    if (fd >= 0)
        close(fd);
    return fd >= 0;
}

void mcserver_restart(struct mcserver *server)
{
    server->pid = keeper_fork();
    if (server->pid == 0)
        run(server);
    wait_until(serves(server));
}

struct mcserver *mcserver_start(const char *options)
{
    struct mcserver *server = calloc(1, sizeof *server);
    char login[64];
    FILE *file;

    assert_non_null(server);
    keeper_make_folder(server->folder, sizeof server->folder);
    server->port = server_free_port();
    server->options = options;
    snprintf(login, sizeof login, "%s/login", server->folder);
    file = fopen(login, "w");
    assert_non_null(file);
    fputs("user:password\n", file);
    fclose(file);
    snprintf(server->url, sizeof server->url, "memcached://127.0.0.1:%d?lossy=yes", server->port);
    mcserver_restart(server);
    return server;
}

void mcserver_kill(struct mcserver *server)
{
    kill(server->pid, SIGKILL);
    keeper_reap(server->pid);
    server->pid = 0;
}

void mcserver_end(struct mcserver *server)
{
    if (server->pid)
        mcserver_kill(server);
    keeper_remove_folder(server->folder);
    free(server);
}

struct proxy *mcserver_proxy(const struct mcserver *server)
{
    struct server place = { 0 };

    snprintf(place.folder, sizeof place.folder, "%s", server->folder);
    return proxy_start_raw(&place, server->port);
}
