/* SPDX-License-Identifier: BSD-2-Clause */
#include "databases.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../lib/command.h"
#include "../lib/proc.h"
#include "../registers/pgserver.h"
#include "nemesis.h"

#define ROLE "app" /* of the processes */
#define SOCKET ".s.PGSQL.5432"

static struct pgserver *primary_of(const struct stage *stage)
{
    return stage->databases->servers[stage->databases->primary];
}

static struct pgserver *standby_of(const struct stage *stage)
{
    return stage->databases->servers[1 - stage->databases->primary];
}

/* ---- the networks ------------------------------------------------------------------------ */

static struct proxy **proxy_of(struct stage *stage, int host, int server)
{
    return &stage->proxies[2 * host + server];
}

static void write_socket(const struct stage *stage, int server, char *ret_path, size_t size)
{
    snprintf(ret_path, size, "%s/" SOCKET, stage->databases->servers[server]->folder);
}

/* New connections lead to the server that is in this place now. */
static void lead_to(struct stage *stage, int server)
{
    char path[64];

    write_socket(stage, server, path, sizeof path);
    for (int i = 0; i < HOSTS; i++)
        proxy_lead_new_to_path(*proxy_of(stage, i, server), path);
}

static void open_network(struct stage *stage, int host, int server)
{
    char folder[64], path[96], to[64];

    snprintf(folder, sizeof folder, "%s/%d%d", stage->databases->folder, host, server);
    assert_return_code(mkdir(folder, 0755), errno);
    snprintf(path, sizeof path, "%s/" SOCKET, folder);
    write_socket(stage, server, to, sizeof to);
    *proxy_of(stage, host, server) = proxy_start_postgres(path, to);
}

/* A host speaks TCP or a unix socket, and gives up soon or late. */
static void write_url(const struct stage *stage, int host, char *ret_url, size_t size)
{
    const char *folder = stage->databases->folder;
    struct proxy *const *proxies = &stage->proxies[2 * host];
    char hosts[160];

    if (host % 2)
        snprintf(hosts, sizeof hosts, "host=127.0.0.1,127.0.0.1&port=%d,%d", proxy_port(proxies[0]),
                 proxy_port(proxies[1]));
    else
        snprintf(hosts, sizeof hosts, "host=%s/%d0,%s/%d1", folder, host, folder, host);
    snprintf(ret_url, size,
             "postgresql:///postgres?%s&user=" ROLE "&sslmode=disable&gssencmode=disable&dmutex.command_timeout=%d%s",
             hosts, host < HOSTS / 2 ? 5000 : 400, stage->databases->options);
}

/* ---- the servers ------------------------------------------------------------------------- */

/* True if the standby has what the primary had at this place in its log, and commits wait for it if they are to. */
static bool is_following(struct stage *stage, const char *place)
{
    return atoi(pgserver_sql(primary_of(stage),
                             "SELECT count(*) FROM pg_stat_replication WHERE sync_state = '%s' AND flush_lsn >= '%s'",
                             stage->databases->are_waited_for ? "sync" : "async", place)) == 1;
}

static void await_standby(struct stage *stage)
{
    char place[32];

    snprintf(place, sizeof place, "%s", pgserver_sql(primary_of(stage), "SELECT pg_current_wal_flush_lsn()"));
    wait_until(is_following(stage, place));
}

static void start_standby(struct stage *stage)
{
    struct databases *databases = stage->databases;

    databases->servers[1 - databases->primary] = pgserver_start_standby(primary_of(stage));
    lead_to(stage, 1 - databases->primary);
    await_standby(stage);
}

/* The standby gets no more of what the primary writes. */
static void part(struct stage *stage)
{
    pgserver_sql(standby_of(stage), "ALTER SYSTEM SET primary_conninfo = ''");
    pgserver_sql(standby_of(stage), "SELECT pg_reload_conf()");
    wait_until(strcmp(pgserver_sql(standby_of(stage), "SELECT count(*) FROM pg_stat_wal_receiver"), "0") == 0);
}

/* The primary is lost, with all its processes, and the standby takes its place. */
static void promote(struct stage *stage)
{
    pgserver_crash(primary_of(stage));
    pgserver_promote(standby_of(stage));
    stage->databases->primary = 1 - stage->databases->primary;
    stage->promotions++;
}

/* The old primary begins anew. */
static void replace_standby(struct stage *stage)
{
    pgserver_end(standby_of(stage));
    start_standby(stage);
}

/* ---- faults ------------------------------------------------------------------------------ */

#define OUR_SESSIONS "FROM pg_stat_activity WHERE usename = '" ROLE "'"

static unsigned below(struct nemesis *nemesis, unsigned limit)
{
    return dice_below(&nemesis->stage->dice, limit);
}

/* The number of one of the processes' sessions, or 0. */
static pid_t some_session(struct stage *stage)
{
    return atoi(pgserver_sql(primary_of(stage), "SELECT pid " OUR_SESSIONS " ORDER BY md5(pid::text || '%u') LIMIT 1",
                             dice_below(&stage->dice, 1000000)));
}

static void kill_server(struct stage *stage)
{
    pgserver_kill(primary_of(stage));
    pgserver_restart(primary_of(stage));
    stage->restarts++;
}

static void restart_server(struct stage *stage)
{
    pgserver_shutdown(primary_of(stage));
    pgserver_restart(primary_of(stage));
    stage->restarts++;
}

/* The server ends all other sessions, and recovers as from a crash.  A session that is ending would spare it that. */
static void kill_session(struct stage *stage)
{
    pid_t pid = some_session(stage);

    if (pid == 0 || kill(pid, SIGSTOP) < 0)
        return;
    wait_until(proc_state(pid) == 'T' || !proc_is_alive(pid));
    if (!proc_is_alive(pid))
        return;
    kill(pid, SIGKILL);
    pgserver_await(primary_of(stage));
    stage->restarts++;
}

static void stop_server(struct stage *stage)
{
    pgserver_stop(primary_of(stage));
}

static void cont_server(struct stage *stage)
{
    pgserver_cont(primary_of(stage));
}

static void stop_standby(struct stage *stage)
{
    pgserver_stop(standby_of(stage));
}

static void cont_standby(struct stage *stage)
{
    pgserver_cont(standby_of(stage));
}

/* Perhaps in the middle of a swap, with its row locked. */
static void stop_session(struct stage *stage)
{
    stage->databases->stopped = some_session(stage);
    if (stage->databases->stopped)
        kill(stage->databases->stopped, SIGSTOP);
}

static void cont_session(struct stage *stage)
{
    if (stage->databases->stopped)
        kill(stage->databases->stopped, SIGCONT);
}

static void end_sessions(struct stage *stage)
{
    pgserver_sql(primary_of(stage), "SELECT count(pg_terminate_backend(pid)) " OUR_SESSIONS);
}

static void cancel_statements(struct stage *stage)
{
    for (int i = 0; i < 20; i++) {
        pgserver_sql(primary_of(stage), "SELECT count(pg_cancel_backend(pid)) " OUR_SESSIONS);
        stage_rest(stage, 5);
    }
}

static void lock_table(struct stage *stage)
{
    pgserver_sql(primary_of(stage), "BEGIN");
    pgserver_sql(primary_of(stage), "LOCK TABLE dmutex.registers IN ACCESS EXCLUSIVE MODE");
}

static void unlock_table(struct stage *stage)
{
    pgserver_sql(primary_of(stage), "ROLLBACK");
}

static void rewrite_table(struct stage *stage)
{
    pgserver_sql(primary_of(stage), "VACUUM FULL dmutex.registers");
    pgserver_sql(primary_of(stage), "REINDEX TABLE dmutex.registers");
}

static void refuse_sessions(struct stage *stage)
{
    pgserver_sql(primary_of(stage), "ALTER ROLE " ROLE " CONNECTION LIMIT 0");
    end_sessions(stage);
}

static void admit_sessions(struct stage *stage)
{
    pgserver_sql(primary_of(stage), "ALTER ROLE " ROLE " CONNECTION LIMIT -1");
}

/*
 * Commits wait for the standby, so the owner's hold is there, and its death will be told.  In the control they do not,
 * and the standby lacks some.
 */
static void promote_waited(struct nemesis *nemesis)
{
    struct stage *stage = nemesis->stage;
    bool does_die = !stage->databases->are_waited_for || below(nemesis, 2);

    if (!stage->databases->are_waited_for) {
        part(stage);
        stage_rest(stage, LEASE);
    }
    nemesis_stop_owner(nemesis);
    promote(stage);
    if (does_die) {
        stage_kill_process(stage, nemesis->stopped);
        stage_start_process(stage, nemesis->stopped);
    } else {
        nemesis_wake_owner(nemesis);
    }
    replace_standby(stage);
}

static void promote_behind(struct nemesis *nemesis)
{
    part(nemesis->stage);
    stage_rest(nemesis->stage, LEASE);
    nemesis_stop_owner(nemesis);
    promote(nemesis->stage);
    nemesis_wake_owner(nemesis);
}

static void promote_unwaited(struct nemesis *nemesis)
{
    promote_behind(nemesis);
    replace_standby(nemesis->stage);
}

/* What a process sends once it knows which data these are, and never before. */
#define LATER_STATEMENTS "^(LISTEN|UPDATE|INSERT|DELETE|SELECT r|SELECT pg_catalog.set_config.''sync)"

/* True if each process has seen the new primary. */
static bool have_all_seen(struct stage *stage)
{
    return atoi(pgserver_sql(primary_of(stage),
                             "SELECT count(*) " OUR_SESSIONS " AND query ~ '" LATER_STATEMENTS "'")) >= PROCESSES;
}

/* The old primary knows nothing of the new one, and takes connections for a while. */
static void let_old_return(struct nemesis *nemesis)
{
    struct stage *stage = nemesis->stage;

    promote_behind(nemesis);
    wait_until(have_all_seen(stage));
    pgserver_restart(standby_of(stage));
    for (int i = 0; i < stage->network_count; i++)
        proxy_cut(stage->proxies[i]);
    stage_rest(stage, 2 * LEASE);
    pgserver_crash(standby_of(stage));
    replace_standby(stage);
}

/* ---- backups ----------------------------------------------------------------------------- */

/* What the guide says: the new epoch comes in the same transaction. */
static const char *statements_of(bool has_epoch)
{
    char path[128];

    if (!has_epoch)
        return "";
    test_build_path(path, sizeof path, "tools/dmutex");
    command_run("exec %s sql --restored postgresql", path);
    assert_status(0);
    return ran.output;
}

static void restore_with(struct nemesis *nemesis, bool has_epoch)
{
    struct pgserver *server = primary_of(nemesis->stage);

    pgserver_dump(server);
    stage_rest(nemesis->stage, LEASE);
    nemesis_stop_owner(nemesis);
    wait_until(pgserver_restore(server, statements_of(has_epoch)));
    nemesis_wake_owner(nemesis);
    nemesis->stage->restarts++;
}

static void restore_backup(struct nemesis *nemesis)
{
    restore_with(nemesis, true);
}

static void restore_badly(struct nemesis *nemesis)
{
    restore_with(nemesis, false);
}

#define LONG (2 * LEASE)

static const struct fault faults[] = {
    { "SIGKILL of the postmaster", FAULTS_OF_DATABASE, 4, NULL, NULL, 0, kill_server, NULL },
    { "SIGKILL of a session", FAULTS_OF_DATABASE, 4, NULL, NULL, 0, kill_session, NULL },
    { "restart of PostgreSQL", FAULTS_OF_DATABASE, 2, NULL, NULL, 0, restart_server, NULL },
    { "SIGSTOP of PostgreSQL", FAULTS_OF_DATABASE, 4, NULL, NULL, LONG, stop_server, cont_server },
    { "SIGSTOP of the standby", FAULTS_OF_DATABASE, 3, NULL, NULL, LONG, stop_standby, cont_standby },
    { "SIGSTOP of a session", FAULTS_OF_DATABASE, 4, NULL, NULL, LONG, stop_session, cont_session },
    { "sessions ended", FAULTS_OF_DATABASE, 3, NULL, NULL, 0, end_sessions, NULL },
    { "statements cancelled", FAULTS_OF_DATABASE, 3, NULL, NULL, 0, cancel_statements, NULL },
    { "table locked", FAULTS_OF_DATABASE, 3, NULL, NULL, LONG, lock_table, unlock_table },
    { "table rewritten", FAULTS_OF_DATABASE, 2, NULL, NULL, 0, rewrite_table, NULL },
    { "limit of connections", FAULTS_OF_DATABASE, 2, NULL, NULL, LEASE, refuse_sessions, admit_sessions },
    { "promotion, commits wait", FAULTS_OF_WAITED, 30, promote_waited, NULL, 0, NULL, NULL },
    { "promotion, standby behind", FAULTS_OF_UNWAITED, 30, promote_unwaited, NULL, 0, NULL, NULL },
    { "the same, old primary back", FAULTS_OF_RETURN, 20, let_old_return, NULL, 0, NULL, NULL },
    { "backup restored", FAULTS_OF_BACKUP, 20, restore_backup, NULL, 0, NULL, NULL },
    { "backup, same epoch", FAULTS_OF_BAD_BACKUP, 4, restore_badly, NULL, 0, NULL, NULL },
};

/* ---- the stage --------------------------------------------------------------------------- */

static void print(struct stage *stage)
{
    const char *const arguments[] = {
        "-h",
        primary_of(stage)->folder,
        "-U",
        "postgres",
        "-X",
        "-c",
        "SELECT name, encode(version, 'hex'), encode(value, 'hex'), written FROM dmutex.registers",
        NULL
    };

    pgserver_run(primary_of(stage), "psql", arguments);
    command_run("cat %s/log", primary_of(stage)->folder);
    printf("%s", ran.output);
}

static void end(struct stage *stage)
{
    for (int i = 0; i < stage->network_count; i++)
        proxy_end(stage->proxies[i]);
    pgserver_end(stage->databases->servers[0]);
    pgserver_end(stage->databases->servers[1]);
    keeper_remove_folder(stage->databases->folder);
    free(stage->databases);
}

static const struct venue venue = { write_url, print, end, faults, sizeof faults / sizeof faults[0] };

/* By what "dmutex sql" prints, as an admin does it: the role may make no tables. */
static void make_tables(struct stage *stage)
{
    char path[128];

    test_build_path(path, sizeof path, "tools/dmutex");
    command_run("exec %s sql postgresql " ROLE, path);
    assert_status(0);
    pgserver_sql(primary_of(stage), "CREATE ROLE " ROLE " LOGIN");
    pgserver_sql(primary_of(stage), "%s", ran.output);
}

/* The standby has settings of its own, and its copies will have them, too. */
static void begin_to_wait(struct stage *stage)
{
    for (int i = 0; i < 2; i++) {
        pgserver_sql(stage->databases->servers[i], "ALTER SYSTEM SET synchronous_standby_names = '*'");
        pgserver_sql(stage->databases->servers[i], "SELECT pg_reload_conf()");
    }
}

void databases_begin(struct stage *stage, bool has_grace, bool are_waited_for, const char *options)
{
    struct databases *databases = calloc(1, sizeof *databases);

    assert_non_null(databases);
    *stage = (struct stage){ .has_grace = has_grace, .venue = &venue, .databases = databases };
    keeper_make_folder(databases->folder, sizeof databases->folder);
    snprintf(databases->options, sizeof databases->options, "%s", options);
    databases->servers[0] = pgserver_start();
    make_tables(stage);
    databases->servers[1] = pgserver_start_standby(primary_of(stage));
    databases->are_waited_for = are_waited_for;
    if (are_waited_for)
        begin_to_wait(stage);
    await_standby(stage);
    for (int i = 0; i < 2 * HOSTS; i++)
        open_network(stage, i / 2, i % 2);
    stage->network_count = 2 * HOSTS;
    stage_begin_venue(stage, databases->folder);
}

static bool has_no_session(struct stage *stage)
{
    return strcmp(pgserver_sql(primary_of(stage), "SELECT count(*) " OUR_SESSIONS), "0") == 0;
}

void databases_check_end(struct stage *stage)
{
    wait_until(has_no_session(stage));
}
