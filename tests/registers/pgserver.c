/* SPDX-License-Identifier: BSD-2-Clause */
#include "pgserver.h"

#include <fcntl.h>
#include <glob.h>
#include <grp.h>
#include <pwd.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/shm.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../lib/testlib.h"

#define CHILDREN 100 /* of a postmaster, at most */

static const char *program_folder(void)
{
    static char found[256];
    const char *given = getenv("DMUTEX_TEST_POSTGRES");
    glob_t all;

    if (given && *given)
        return given;
    if (!found[0] && glob("/usr/lib/postgresql/*/bin/initdb", 0, NULL, &all) == 0) {
        snprintf(found, sizeof found, "%.*s", (int)(strlen(all.gl_pathv[all.gl_pathc - 1]) - strlen("/initdb")),
                 all.gl_pathv[all.gl_pathc - 1]);
        globfree(&all);
    }
    return found;
}

/* PostgreSQL refuses to run as root. */
static struct passwd *other_user(void)
{
    struct passwd *user = getpwnam("postgres");

    return user ? user : getpwnam("nobody");
}

bool pgserver_is_possible(void)
{
    return program_folder()[0] && (geteuid() != 0 || other_user());
}

bool pgbouncer_is_possible(void)
{
    return access("/usr/sbin/pgbouncer", X_OK) == 0;
}

static void become_other(void)
{
    struct passwd *user = other_user();

    if (geteuid() != 0)
        return;
    if (setgroups(0, NULL) < 0 || setgid(user->pw_gid) < 0 || setuid(user->pw_uid) < 0)
        _exit(99);
}

/* Runs a program in the server's folder; its output goes to the log there. */
static pid_t spawn(const struct pgserver *server, const char *const *arguments)
{
    pid_t pid = keeper_fork();
    int log;

    if (pid == 0) {
        become_other();
        if (chdir(server->folder) < 0)
            _exit(98);
        log = open("log", O_WRONLY | O_CREAT | O_APPEND, 0644);
        dup2(log, 1);
        dup2(log, 2);
        setenv("LC_ALL", "C", 1);
        execv(arguments[0], (char *const *)arguments);
        _exit(97);
    }
    return pid;
}

static const char *program(const char *name)
{
    static char path[512];

    snprintf(path, sizeof path, "%s/%s", program_folder(), name);
    return path;
}

int pgserver_run(const struct pgserver *server, const char *name, const char *const *arguments)
{
    const char *all[24] = { program(name) };

    for (int i = 0; arguments[i]; i++)
        all[i + 1] = arguments[i];
    return keeper_reap(spawn(server, all));
}

void pgserver_shell(const struct pgserver *server, const char *line)
{
    char text[1024];
    const char *const arguments[] = { "/bin/sh", "-ec", text, NULL };

    snprintf(text, sizeof text, "PATH=%s:$PATH\n%s", program_folder(), line);
    if (keeper_reap(spawn(server, arguments)) != 0)
        fail_msg("%s: see the log of the server", line);
}

static void append(const struct pgserver *server, const char *file, const char *text)
{
    char path[64];
    FILE *stream;

    snprintf(path, sizeof path, "%s/%s", server->folder, file);
    stream = fopen(path, "a");
    assert_non_null(stream);
    fputs(text, stream);
    fclose(stream);
}

static struct pgserver *make(void)
{
    struct pgserver *server = calloc(1, sizeof *server);

    assert_non_null(server);
    keeper_make_folder(server->folder, sizeof server->folder);
    if (geteuid() == 0)
        assert_return_code(chown(server->folder, other_user()->pw_uid, other_user()->pw_gid), errno);
    snprintf(server->url, sizeof server->url, "postgresql:///postgres?host=%s&user=postgres", server->folder);
    return server;
}

static bool is_up(struct pgserver *server)
{
    server->admin = PQconnectdb(server->url);
    if (PQstatus(server->admin) == CONNECTION_OK)
        return true;
    PQfinish(server->admin);
    server->admin = NULL;
    return false;
}

static void be_quiet(void *user, const char *text)
{
    (void)user;
    (void)text;
}

/* A server that was killed has processes that still end, and until then another one refuses to start. */
static void spawn_again(struct pgserver *server)
{
    const char *const arguments[] = { program("postgres"), "-D", "data", NULL };

    if (server->pid && waitpid(server->pid, NULL, WNOHANG) == 0)
        return;
    if (server->pid)
        keeper_forget(server->pid);
    server->pid = spawn(server, arguments);
}

void pgserver_restart(struct pgserver *server)
{
    wait_until((spawn_again(server), is_up(server)));
    PQsetNoticeProcessor(server->admin, be_quiet, NULL);
}

/* Local users are trusted, but for those whose name begins with "secret". */
struct pgserver *pgserver_start(void)
{
    struct pgserver *server = make();
    const char *const arguments[] = { "-D",         "data", "-A",   "trust",           "-U", "postgres", "--no-sync",
                                      "--locale=C", "-E",   "UTF8", "--wal-segsize=1", NULL };
    char text[512];

    assert_int_equal(pgserver_run(server, "initdb", arguments), 0);
    snprintf(text, sizeof text,
             "listen_addresses = ''\nunix_socket_directories = '%s'\nshared_buffers = 8MB\nmax_connections = 40\n"
             "hot_standby = on\nmax_wal_senders = 4\nwal_keep_size = 64MB\nrestart_after_crash = on\n"
             "wal_retrieve_retry_interval = 100ms\n"
             "dynamic_shared_memory_type = mmap\n",
             server->folder);
    append(server, "data/postgresql.conf", text);
    pgserver_restart(server);
    return server;
}

static void copy_file(const struct pgserver *server, const char *from, const char *to)
{
    char command[512];

    snprintf(command, sizeof command, "install -m 600 -o %s '%s' %s/data/%s",
             geteuid() ? "$(id -u)" : other_user()->pw_name, from, server->folder, to);
    assert_int_equal(system(command), 0);
}

const char *pgserver_use_tls(struct pgserver *server, const char *certificate, const char *key)
{
    static char url[96];
    char text[96];
    int port = server_free_port();

    copy_file(server, certificate, "server.crt");
    copy_file(server, key, "server.key");
    snprintf(text, sizeof text, "ssl = on\nlisten_addresses = '127.0.0.1'\nport = %d\n", port);
    append(server, "data/postgresql.conf", text);
    snprintf(server->url, sizeof server->url, "postgresql:///postgres?host=%s&user=postgres&port=%d", server->folder,
             port);
    pgserver_shutdown(server);
    pgserver_restart(server);
    snprintf(url, sizeof url, "postgresql://postgres@127.0.0.1:%d/postgres?sslmode=verify-full", port);
    return url;
}

struct pgserver *pgserver_start_standby(const struct pgserver *primary)
{
    struct pgserver *server = make();
    const char *const arguments[] = { "-D",   "data", "-h", primary->folder, "-U", "postgres", "-R", "-c",
                                      "fast", "-N",   NULL };
    char text[128];

    assert_int_equal(pgserver_run(server, "pg_basebackup", arguments), 0);
    snprintf(text, sizeof text, "unix_socket_directories = '%s'\n", server->folder);
    append(server, "data/postgresql.conf", text);
    pgserver_restart(server);
    return server;
}

static void disconnect(struct pgserver *server)
{
    PQfinish(server->admin);
    server->admin = NULL;
}

void pgserver_kill(struct pgserver *server)
{
    disconnect(server);
    kill(server->pid, SIGKILL);
    keeper_reap(server->pid);
    server->pid = 0;
}

static void signal_children(const pid_t *children, int number)
{
    for (; *children; children++)
        kill(*children, number);
}

static bool have_ended(const pid_t *children)
{
    while (*children && kill(*children, 0) < 0)
        children++;
    return *children == 0;
}

/* The postmaster must be stopped, or it may start more of them.  `ret_children` ends with 0. */
static void list_children(const struct pgserver *server, pid_t ret_children[CHILDREN])
{
    char path[64];
    FILE *file;
    int count = 0;

    snprintf(path, sizeof path, "/proc/%d/task/%d/children", server->pid, server->pid);
    file = fopen(path, "re");
    assert_non_null(file);
    while (count < CHILDREN - 1 && fscanf(file, "%d", &ret_children[count]) == 1)
        count++;
    ret_children[count] = 0;
    fclose(file);
}

void pgserver_stop(struct pgserver *server)
{
    pid_t children[CHILDREN];

    kill(server->pid, SIGSTOP);
    assert_int_equal(waitpid(server->pid, NULL, WUNTRACED), server->pid);
    list_children(server, children);
    signal_children(children, SIGSTOP);
}

/* The postmaster last: it is not to see that a child goes on before all do. */
void pgserver_cont(struct pgserver *server)
{
    pid_t children[CHILDREN];

    list_children(server, children);
    signal_children(children, SIGCONT);
    kill(server->pid, SIGCONT);
}

void pgserver_crash(struct pgserver *server)
{
    pid_t children[CHILDREN];

    pgserver_stop(server);
    list_children(server, children);
    signal_children(children, SIGKILL);
    kill(server->pid, SIGKILL);
    keeper_reap(server->pid);
    server->pid = 0;
    wait_until(have_ended(children));
    disconnect(server);
}

static bool has_hung_up(struct pgserver *server)
{
    PQclear(PQexec(server->admin, ""));
    return PQstatus(server->admin) == CONNECTION_BAD;
}

void pgserver_await(struct pgserver *server)
{
    wait_until(has_hung_up(server));
    disconnect(server);
    wait_until(is_up(server));
    PQsetNoticeProcessor(server->admin, be_quiet, NULL);
}

void pgserver_shutdown(struct pgserver *server)
{
    disconnect(server);
    kill(server->pid, SIGINT);
    assert_int_equal(keeper_reap(server->pid), 0);
    server->pid = 0;
}

void pgserver_promote(struct pgserver *server)
{
    assert_string_equal(pgserver_sql(server, "SELECT pg_promote(true, 60)"), "t");
}

/* A server that was killed has left a segment of shared memory in the kernel: the last numbers of the 7th line. */
static void remove_segment(const struct pgserver *server)
{
    char path[64], line[256] = "";
    FILE *file;
    int id;

    snprintf(path, sizeof path, "%s/data/postmaster.pid", server->folder);
    file = fopen(path, "re");
    for (int i = 0; file && i < 7; i++) {
        if (!fgets(line, sizeof line, file))
            line[0] = '\0';
    }
    if (file)
        fclose(file);
    if (sscanf(line, "%*u %d", &id) == 1)
        shmctl(id, IPC_RMID, NULL);
}

void pgserver_end(struct pgserver *server)
{
    if (server->pid) {
        disconnect(server);
        kill(server->pid, SIGCONT);
        kill(server->pid, SIGQUIT);
        keeper_reap(server->pid);
    } else {
        remove_segment(server);
    }
    keeper_remove_folder(server->folder);
    free(server);
}

/* ---- SQL --------------------------------------------------------------------------------- */

static const char *execute(PGconn *connection, const char *statement)
{
    static char values[4][256];
    static int last;
    PGresult *result = PQexec(connection, statement);

    if (PQresultStatus(result) != PGRES_TUPLES_OK && PQresultStatus(result) != PGRES_COMMAND_OK)
        fail_msg("%s: %s", statement, PQresultErrorMessage(result));
    last = (last + 1) % 4;
    snprintf(values[last], sizeof values[last], "%s", PQntuples(result) ? PQgetvalue(result, 0, 0) : "");
    PQclear(result);
    return values[last];
}

static const char *execute_formatted(PGconn *connection, const char *format, va_list values)
{
    char *statement;
    const char *value;

    assert_true(vasprintf(&statement, format, values) >= 0);
    value = execute(connection, statement);
    free(statement);
    return value;
}

const char *pgserver_sql(struct pgserver *server, const char *format, ...)
{
    va_list values;
    const char *value;

    va_start(values, format);
    value = execute_formatted(server->admin, format, values);
    va_end(values);
    return value;
}

const char *pgserver_sql_by(PGconn *connection, const char *format, ...)
{
    va_list values;
    const char *value;

    va_start(values, format);
    value = execute_formatted(connection, format, values);
    va_end(values);
    return value;
}

PGconn *pgserver_connect(const struct pgserver *server, const char *user)
{
    char url[160];
    PGconn *connection;

    snprintf(url, sizeof url, "postgresql:///postgres?host=%s&user=%s", server->folder, user);
    connection = PQconnectdb(url);
    assert_int_equal(PQstatus(connection), CONNECTION_OK);
    PQsetNoticeProcessor(connection, be_quiet, NULL);
    return connection;
}

/* ---- backups ----------------------------------------------------------------------------- */

void pgserver_dump(const struct pgserver *server)
{
    const char *const arguments[] = {
        "-h", server->folder, "-U", "postgres", "-n", "dmutex", "-Fc", "-f", "dump", NULL
    };

    assert_int_equal(pgserver_run(server, "pg_dump", arguments), 0);
}

bool pgserver_restore(const struct pgserver *server, const char *statements)
{
    const char *const to_text[] = { "--clean", "--if-exists", "-f", "dump.sql", "dump", NULL };
    const char *const execute[] = { "-h", server->folder,    "-U", "postgres", "-X", "-1",
                                    "-v", "ON_ERROR_STOP=1", "-f", "dump.sql", NULL };

    assert_int_equal(pgserver_run(server, "pg_restore", to_text), 0);
    append(server, "dump.sql", statements);
    return pgserver_run(server, "psql", execute) == 0;
}

/* ---- pgbouncer --------------------------------------------------------------------------- */

static bool is_there(const char *url)
{
    return PQping(url) == PQPING_OK;
}

pid_t pgbouncer_start(const struct pgserver *server, const char *mode, const char **ret_url)
{
    static char url[128];
    const char *const arguments[] = { "/usr/sbin/pgbouncer", "-q", mode, NULL };
    char path[64], text[512];
    FILE *file;
    pid_t pid;

    snprintf(path, sizeof path, "%s/%s", server->folder, mode);
    file = fopen(path, "w");
    assert_non_null(file);
    snprintf(text, sizeof text,
             "[databases]\n* = host=%s\n[pgbouncer]\nunix_socket_dir = %s\nlisten_port = 6432\nauth_type = trust\n"
             "auth_file = %s/users\npool_mode = %s\n",
             server->folder, server->folder, server->folder, mode);
    fputs(text, file);
    fclose(file);
    snprintf(path, sizeof path, "%s/users", server->folder);
    file = fopen(path, "w");
    assert_non_null(file);
    fputs("\"postgres\" \"\"\n", file);
    fclose(file);
    snprintf(url, sizeof url, "postgresql:///postgres?host=%s&port=6432&user=postgres", server->folder);
    pid = spawn(server, arguments);
    wait_until(is_there(url));
    *ret_url = url;
    return pid;
}
