/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A private PostgreSQL: of $DMUTEX_TEST_POSTGRES, a folder with its programs, or of the newest one of Debian's.  It
 * listens on a socket in a folder of its own, runs as another user if we are root, and ends with the test program.
 *
 * The functions fail the running test if the work cannot be done.
 */
#ifndef TESTS_REGISTERS_PGSERVER_H
#define TESTS_REGISTERS_PGSERVER_H

#include <libpq-fe.h>
#include <stdbool.h>
#include <sys/types.h>

struct pgserver {
    char folder[32];
    char url[96];  /* postgresql:///postgres?host=FOLDER&user=postgres: options are added with & */
    PGconn *admin; /* the test's own connection, as superuser; NULL: not running */
    pid_t pid;     /* 0: not running */
};

/* False where no PostgreSQL is installed, or no user whom it could run as. */
bool pgserver_is_possible(void);

struct pgserver *pgserver_start(void);
/*
 * Starts it again with a certificate and its key, which are copied, on a port of 127.0.0.1, too.  Returns the URL
 * there, postgresql://…?sslmode=…, to which options are added with &.  Valid until the next call.
 */
const char *pgserver_use_tls(struct pgserver *server, const char *certificate, const char *key);
/* A standby that follows the server, without being waited for. */
struct pgserver *pgserver_start_standby(const struct pgserver *primary);
/* SIGKILL to the postmaster; its processes follow. */
void pgserver_kill(struct pgserver *server);
/* SIGKILL to all its processes at once, as when a machine is lost. */
void pgserver_crash(struct pgserver *server);
/* SIGSTOP and SIGCONT to all of them. */
void pgserver_stop(struct pgserver *server);
void pgserver_cont(struct pgserver *server);
/* Disconnects all, and ends cleanly. */
void pgserver_shutdown(struct pgserver *server);
/* Starts it again. */
void pgserver_restart(struct pgserver *server);
/* After SIGKILL to one of its processes: waits until it has ended all sessions and recovered. */
void pgserver_await(struct pgserver *server);
/* Makes a primary of a standby, and waits for it. */
void pgserver_promote(struct pgserver *server);
void pgserver_end(struct pgserver *server);

/* Executes SQL; the first value, "" if there is none.  Valid until the fourth call from now. */
const char *pgserver_sql(struct pgserver *server, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* The same on a connection of the test's own. */
const char *pgserver_sql_by(PGconn *connection, const char *format, ...) __attribute__((format(printf, 2, 3)));
PGconn *pgserver_connect(const struct pgserver *server, const char *user);

/* Runs one of PostgreSQL's programs in the server's folder; `arguments` end with NULL.  Returns the wait status. */
int pgserver_run(const struct pgserver *server, const char *name, const char *const *arguments);

/* Runs a line of the shell there, with PostgreSQL's programs in PATH; fails the test unless it returns 0. */
void pgserver_shell(const struct pgserver *server, const char *line);

/*
 * Writes a backup of the tables with pg_dump; and puts it in the place of the tables, in one transaction with the
 * statements.  False if the server refused it, as it may while locks are used.
 */
void pgserver_dump(const struct pgserver *server);
bool pgserver_restore(const struct pgserver *server, const char *statements);

/* A pgbouncer before the server; `mode`: "transaction" or "session".  The URL is valid until the next. */
pid_t pgbouncer_start(const struct pgserver *server, const char *mode, const char **ret_url);
bool pgbouncer_is_possible(void);

#endif
