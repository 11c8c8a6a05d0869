/* SPDX-License-Identifier: BSD-2-Clause */
#include "mariaserver.h"

#include <fcntl.h>
#include <pwd.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../lib/testlib.h"

static const char *program(const char *name)
{
    static char path[512];
    const char *folders[] = { getenv("DMUTEX_TEST_MARIADB"), "/usr/sbin", "/usr/bin" };

    for (int i = 0; i < 3; i++) {
        snprintf(path, sizeof path, "%s/%s", folders[i] ? folders[i] : "", name);
        if (access(path, X_OK) == 0)
            break;
    }
    return path;
}

bool mariaserver_is_possible(void)
{
    return access(program("mariadbd"), X_OK) == 0 && access(program("mariadb-install-db"), X_OK) == 0;
}

/* Runs a program in the server's folder; its output goes to the log there. */
static pid_t spawn(const struct mariaserver *server, const char *name, const char *const *arguments)
{
    const char *all[32] = { program(name) };
    struct passwd *user = getpwuid(geteuid());
    char own[64];
    int count = 1, log;
    pid_t pid;

    snprintf(own, sizeof own, "--user=%s", user ? user->pw_name : "root");
    all[count++] = "--no-defaults";
    all[count++] = own;
    while (*arguments)
        all[count++] = *arguments++;
    for (const char *const *option = server->options; option && *option; option++)
        all[count++] = *option;
    pid = keeper_fork();
    if (pid == 0) {
        if (chdir(server->folder) < 0)
            _exit(98);
        log = open("log", O_WRONLY | O_CREAT | O_APPEND, 0644);
        dup2(log, 1);
        dup2(log, 2);
        setenv("TMPDIR", server->folder, 1); /* a server that starts deletes the temporary tables of others there */
        execv(all[0], (char *const *)all);
        _exit(97);
    }
    return pid;
}

/* Other programs are to get neither the library's sockets, nor its action for SIGPIPE. */
MYSQL *mariaserver_connect(const struct mariaserver *server)
{
    char path[64];
    struct sigaction action;
    MYSQL *connection;

    assert_return_code(sigaction(SIGPIPE, NULL, &action), errno);
    connection = mysql_init(NULL);
    assert_return_code(sigaction(SIGPIPE, &action, NULL), errno);

    snprintf(path, sizeof path, "%s/socket", server->folder);
    if (mysql_real_connect(connection, NULL, "root", NULL, NULL, 0, path, 0)) {
        assert_return_code(fcntl(mysql_get_socket(connection), F_SETFD, FD_CLOEXEC), errno);
        return connection;
    }
    mysql_close(connection);
    return NULL;
}

static bool is_up(struct mariaserver *server)
{
    server->admin = mariaserver_connect(server);
    return server->admin != NULL;
}

static void run(struct mariaserver *server)
{
    char data[64], path[64], port[24];
    const char *const arguments[] = { data,
                                      path,
                                      server->port ? "--bind-address=127.0.0.1" : "--skip-networking",
                                      port,
                                      "--innodb-buffer-pool-size=8M",
                                      "--innodb-log-file-size=4M",
                                      "--key-buffer-size=64K",
                                      "--aria-pagecache-buffer-size=128K",
                                      "--max-connections=60",
                                      "--skip-name-resolve",
                                      NULL };

    snprintf(data, sizeof data, "--datadir=%s/data", server->folder);
    snprintf(path, sizeof path, "--socket=%s/socket", server->folder);
    snprintf(port, sizeof port, "--port=%d", server->port ? server->port : 3306);
    server->pid = spawn(server, "mariadbd", arguments);
    wait_until(is_up(server));
    mariaserver_sql(server, "SET SESSION lock_wait_timeout = 10");
}

struct mariaserver *mariaserver_start(void)
{
    struct mariaserver *server = calloc(1, sizeof *server);
    char data[64];
    const char *const arguments[] = { data,
                                      "--auth-root-authentication-method=normal",
                                      "--skip-test-db",
                                      "--skip-name-resolve",
                                      "--innodb-log-file-size=4M",
                                      "--innodb-buffer-pool-size=8M",
                                      NULL };

    assert_non_null(server);
    keeper_make_folder(server->folder, sizeof server->folder);
    snprintf(data, sizeof data, "--datadir=%s/data", server->folder);
    snprintf(server->url, sizeof server->url, "mariadb://root@/locks?socket=%s/socket", server->folder);
    assert_int_equal(keeper_reap(spawn(server, "mariadb-install-db", arguments)), 0);
    run(server);
    mariaserver_sql(server, "CREATE DATABASE locks");
    return server;
}

static void disconnect(struct mariaserver *server)
{
    mysql_close(server->admin);
    server->admin = NULL;
}

void mariaserver_kill(struct mariaserver *server)
{
    kill(server->pid, SIGKILL);
    keeper_reap(server->pid);
    disconnect(server);
    server->pid = 0;
}

void mariaserver_restart(struct mariaserver *server, const char *const *options)
{
    if (server->pid) {
        disconnect(server);
        kill(server->pid, SIGTERM);
        assert_int_equal(keeper_reap(server->pid), 0);
    }
    server->options = options;
    run(server);
}

const char *mariaserver_use_tls(struct mariaserver *server, const char *certificate, const char *key)
{
    static char url[96], texts[2][96];
    static const char *const options[] = { texts[0], texts[1], NULL };

    snprintf(texts[0], sizeof texts[0], "--ssl-cert=%s", certificate);
    snprintf(texts[1], sizeof texts[1], "--ssl-key=%s", key);
    server->port = server_free_port();
    mariaserver_restart(server, options);
    mariaserver_sql(server, "CREATE USER tester@'127.0.0.1' REQUIRE SSL");
    mariaserver_sql(server, "GRANT ALL ON locks.* TO tester@'127.0.0.1'");
    snprintf(url, sizeof url, "mariadb://tester@127.0.0.1:%d/locks", server->port);
    return url;
}

void mariaserver_end(struct mariaserver *server)
{
    if (server->pid)
        mariaserver_kill(server);
    keeper_remove_folder(server->folder);
    free(server);
}

/* ---- SQL --------------------------------------------------------------------------------- */

static const char *execute(MYSQL *connection, const char *statement)
{
    static char values[4][256];
    static int last;
    MYSQL_RES *result;
    MYSQL_ROW row;

    if (mysql_query(connection, statement) != 0)
        fail_msg("%s: %s", statement, mysql_error(connection));
    result = mysql_store_result(connection);
    row = result ? mysql_fetch_row(result) : NULL;
    last = (last + 1) % 4;
    snprintf(values[last], sizeof values[last], "%s", row && row[0] ? row[0] : "");
    mysql_free_result(result);
    return values[last];
}

static const char *execute_formatted(MYSQL *connection, const char *format, va_list values)
{
    char *statement;
    const char *value;

    assert_true(vasprintf(&statement, format, values) >= 0);
    value = execute(connection, statement);
    free(statement);
    return value;
}

const char *mariaserver_sql(struct mariaserver *server, const char *format, ...)
{
    va_list values;
    const char *value;

    va_start(values, format);
    value = execute_formatted(server->admin, format, values);
    va_end(values);
    return value;
}

const char *mariaserver_sql_by(MYSQL *connection, const char *format, ...)
{
    va_list values;
    const char *value;

    va_start(values, format);
    value = execute_formatted(connection, format, values);
    va_end(values);
    return value;
}

void mariaserver_cut(struct mariaserver *server)
{
    unsigned long ids[60];
    MYSQL_RES *result;
    MYSQL_ROW row;
    int count = 0;

    assert_int_equal(mysql_query(server->admin, "SELECT ID FROM information_schema.PROCESSLIST WHERE DB = 'locks'"), 0);
    result = mysql_store_result(server->admin);
    while (result && (row = mysql_fetch_row(result)) && count < 60)
        ids[count++] = strtoul(row[0], NULL, 10);
    mysql_free_result(result);
    for (int i = 0; i < count; i++) {
        char statement[64];

        snprintf(statement, sizeof statement, "KILL CONNECTION %lu", ids[i]);
        mysql_query(server->admin, statement); /* it may have ended by itself */
    }
    for (int i = 0; i < count; i++)
        wait_until(atoi(mariaserver_sql(server, "SELECT COUNT(*) FROM information_schema.PROCESSLIST WHERE ID = %lu",
                                        ids[i])) == 0);
}
