/* SPDX-License-Identifier: BSD-2-Clause */
#include "process/life/testserver.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/error.h"
#include "base/place.h"
#include "base/text.h"
#include "process/life/runtime.h"
#include "spawn/pgserver.h"
#include "spawn/server.h"

#define TEMPLATE "dmutex-test-XXXXXX"
#define PATH_ROOM sizeof((struct sockaddr_un *)0)->sun_path

/* The URL is one of these around the place.  The test wants the earlier server's data to be forgotten. */
#define SOCKET_URL "unix://"
#define SOCKET_OPTIONS "?grace=off"
#define POSTGRES_URL "postgresql:///" DM_PGSERVER_USER "?host="
#define POSTGRES_OPTIONS "&port=" DM_PGSERVER_PORT "&user=" DM_PGSERVER_USER "&dmutex.grace=off"
#define URL_ROOM (sizeof POSTGRES_URL POSTGRES_OPTIONS + 3 * PATH_ROOM)

/* How long a start waits for earlier unlocks on the previous server. */
#define PATIENCE_MS 2000

struct dmutex_test_server {
    struct dmutex_test_server *below; /* the test server that this process used before; NULL: none */
    pid_t pid;                        /* the process that started the server */
    struct dm_reaper reaper;
    bool is_postgres;
    struct dm_pgserver postgres;
    char directory[PATH_ROOM];
    char path[PATH_ROOM];
    char url[URL_ROOM];
    char *url_before; /* DMUTEX_URL; NULL: not set */
};

/* The test server that this process uses.  Like all functions here, for one thread at a time. */
static struct dmutex_test_server *top;

/* ---- the server's directory ------------------------------------------------------------------ */

/* In a directory that another user can change, another server could replace ours. */
static bool is_safe(const char *directory)
{
    struct dm_fault fault;
    const char *leaf;
    int parent = dm_place_open_parent(directory, &leaf, &fault);

    if (parent >= 0)
        close(parent);
    return parent >= 0;
}

/* mkdtemp() writes the name, which is then copied to the front of the socket's path. */
static bool make_directory_in(struct dmutex_test_server *server, const char *parent)
{
    const char *socket = server->is_postgres ? DM_PGSERVER_SOCKET : DM_SERVER_SOCKET;
    int length;

    if (!parent || parent[0] != '/')
        return false;
    length = snprintf(server->path, sizeof server->path, "%s/" TEMPLATE "/%s", parent, socket);
    if (length >= (int)sizeof server->path)
        return false;
    snprintf(server->directory, sizeof server->directory, "%s/" TEMPLATE, parent);
    if (!is_safe(server->directory) || !mkdtemp(server->directory))
        return false;
    memcpy(server->path, server->directory, strlen(server->directory));
    return true;
}

/* True for a byte that a URL may contain as it is. */
static bool is_plain(unsigned char byte)
{
    return isalnum(byte) || strchr("/._-~", byte);
}

/*
 * Writes %XX for all other bytes: a comma or a question mark would mean something else in a URL.  There is room for
 * three bytes each.
 */
static void write_url(struct dmutex_test_server *server)
{
    const char *place = server->is_postgres ? server->directory : server->path;
    char *at = stpcpy(server->url, server->is_postgres ? POSTGRES_URL : SOCKET_URL);

    for (const char *byte = place; *byte; byte++) {
        if (is_plain((unsigned char)*byte))
            *at++ = *byte;
        else
            at += sprintf(at, "%%%02x", (unsigned)(unsigned char)*byte);
    }
    strcpy(at, server->is_postgres ? POSTGRES_OPTIONS : SOCKET_OPTIONS);
}

/*
 * In $TMPDIR, if there is room for a socket's path, or in /tmp.  Root's own $TMPDIR may be closed to the user as whom
 * PostgreSQL runs.
 */
static int make_directory(struct dmutex_test_server *server)
{
    const char *given = server->is_postgres && geteuid() == 0 ? NULL : secure_getenv("TMPDIR");

    if (!make_directory_in(server, given) && !make_directory_in(server, "/tmp"))
        return dm_fail(DM_FAIL_TEST_SERVER, "no directory can be made in /tmp: %s", dm_text_error(errno));
    write_url(server);
    return 0;
}

/* ---- the server's process ---------------------------------------------------------------- */

/* True for a line that says more than all that follow it. */
static bool is_reason(const char *line)
{
    return strstr(line, "FATAL:") || strstr(line, "PANIC:") || strstr(line, "initdb: error:");
}

/* Reads the last line that the server has written, or the last reason, "" if none, for error texts. */
static void read_last_line(const struct dmutex_test_server *server, char *ret_line, size_t size)
{
    char path[PATH_ROOM + sizeof DM_SERVER_LOG], line[256];
    bool has_reason = false;
    FILE *log;

    ret_line[0] = '\0';
    snprintf(path, sizeof path, "%s/" DM_SERVER_LOG, server->directory);
    log = fopen(path, "re");
    if (!log)
        return;
    while (fgets(line, sizeof line, log)) {
        if (line[0] == '\n' || (has_reason && !is_reason(line)))
            continue;
        has_reason = is_reason(line);
        snprintf(ret_line, size, "%.*s", (int)strcspn(line, "\n"), line);
    }
    fclose(log);
}

/*
 * People read these texts in the output of their tests, so each says what to do next, or repeats the server's own last
 * line.
 */
static int fail_by_result(const struct dmutex_test_server *server, int result)
{
    char line[200];

    switch (result) {
    case 0:
        return 0;
    case DM_REAPER_ENDED:
    case DM_REAPER_SILENT:
        read_last_line(server, line, sizeof line);
        return dm_fail(DM_FAIL_TEST_SERVER, "it %s: %s", result == DM_REAPER_ENDED ? "has ended" : "does not answer",
                       line);
    case DM_REAPER_NOTHING:
        return dm_fail(DM_FAIL_TEST_SERVER, "it does not run: call dmutex_test_server_restart() first");
    case DM_REAPER_GONE:
        return dm_fail(DM_FAIL_TEST_SERVER, "the process that kept it was killed");
    case DM_REAPER_BLIND:
        return dm_fail(DM_FAIL_TEST_SERVER, "its processes cannot be found: mount /proc");
    case ENOENT:
        return dm_fail(DM_FAIL_TEST_SERVER, "neither redis-server nor valkey-server is installed: install the "
                                            "package redis-server");
    default:
        return dm_fail(DM_FAIL_TEST_SERVER, "it cannot be started: %s", dm_text_error(result));
    }
}

/* Not for a forked child, which has no reaper and must not kill its parent's server. */
int dm_testserver_do(struct dmutex_test_server *server, enum dm_reaper_order order)
{
    if (server->pid != getpid())
        return dm_fail(DM_FAIL_TEST_FOREIGN, NULL);
    return fail_by_result(server, dm_reaper_do(&server->reaper, order));
}

/* The directory is removed again if it fails. */
static int find_postgres(struct dmutex_test_server *server)
{
    int error = dm_pgserver_find(&server->postgres, server->directory);

    if (error)
        rmdir(server->directory);
    switch (error) {
    case 0:
        return 0;
    case ESRCH:
        return dm_fail(DM_FAIL_TEST_SERVER, "PostgreSQL does not run as root, and there is no user postgres or nobody");
    default:
        return dm_fail(DM_FAIL_TEST_SERVER, "initdb and postgres are neither in a folder of PATH nor in "
                                            "/usr/lib/postgresql: install the package postgresql");
    }
}

/* The reaper outlives a test that crashes, and then ends the server and deletes its directory. */
static int begin(struct dmutex_test_server *server)
{
    int error = make_directory(server);

    if (!error && server->is_postgres)
        error = find_postgres(server);
    if (error)
        return error;
    error = dm_reaper_begin(&server->reaper, server->directory, server->path,
                            server->is_postgres ? &server->postgres : NULL);
    if (error) {
        rmdir(server->directory);
        return dm_fail(DM_FAIL_TEST_SERVER, "no process can be made for it: %s", dm_text_error(error));
    }
    server->pid = getpid();
    error = dm_testserver_do(server, DM_REAPER_START);
    if (error)
        dm_reaper_end(&server->reaper);
    return error;
}

/* ---- the processes that use the server --------------------------------------------------- */

/* By this variable, programs that the test executes find the server. */
static int set_environment(const char *url)
{
    int result = url ? setenv("DMUTEX_URL", url, 1) : unsetenv("DMUTEX_URL");

    return result == 0 ? 0 : dm_fail(DM_FAIL_NO_MEMORY, NULL);
}

/* Makes this process and the programs that it executes use the server instead of any configured one. */
static int push(struct dmutex_test_server *server)
{
    const char *before = getenv("DMUTEX_URL");
    int error;

    server->url_before = before ? strdup(before) : NULL;
    if (before && !server->url_before)
        return dm_fail(DM_FAIL_NO_MEMORY, NULL);
    error = dm_runtime_switch(server->url, PATIENCE_MS);
    if (error)
        return error;
    error = set_environment(server->url);
    if (error) {
        dm_runtime_switch(top ? top->url : NULL, 0);
        return error;
    }
    server->below = top;
    top = server;
    return 0;
}

/* A server that is not the last one started is taken out from below the later ones. */
static int pull(struct dmutex_test_server *server)
{
    struct dmutex_test_server *above = top;
    char *url_before = server->url_before;
    int error;

    if (top == server) {
        error = set_environment(url_before);
        if (!error)
            error = dm_runtime_switch(server->below ? server->below->url : NULL, 0);
        if (error)
            set_environment(server->url);
        else
            top = server->below;
        return error;
    }
    while (above && above->below != server)
        above = above->below;
    if (above) {
        above->below = server->below;
        server->url_before = above->url_before;
        above->url_before = url_before;
    }
    return 0;
}

/* The reaper has ended, or was never started. */
static void destroy(struct dmutex_test_server *server)
{
    free(server->url_before);
    free(server);
}

/* Before it returns, ends a server that cannot be used, so that a failure leaves nothing behind. */
int dm_testserver_start(bool is_postgres, struct dmutex_test_server **ret_server)
{
    struct dmutex_test_server *server;
    int error;

    if (dm_server_is_unsafe())
        return dm_fail(DM_FAIL_TEST_SERVER, "a program with more rights than its caller starts none");
    server = calloc(1, sizeof *server);
    if (!server)
        return dm_fail(DM_FAIL_NO_MEMORY, NULL);
    server->is_postgres = is_postgres;
    error = begin(server);
    if (!error) {
        error = push(server);
        if (error)
            dm_reaper_end(&server->reaper);
    }
    if (error)
        destroy(server);
    else
        *ret_server = server;
    return error;
}

/* The process first stops using the server; if that is refused, the server stays. */
int dm_testserver_stop(struct dmutex_test_server *server)
{
    int error;

    if (server->pid != getpid())
        return dm_fail(DM_FAIL_TEST_FOREIGN, NULL);
    error = pull(server);
    if (error)
        return error;
    dm_reaper_end(&server->reaper);
    destroy(server);
    return 0;
}

const char *dm_testserver_url(const struct dmutex_test_server *server)
{
    return server->url;
}
