/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A private MariaDB: Debian's, or the programs of the folder $DMUTEX_TEST_MARIADB.  It listens on a socket in a folder
 * of its own, and ends with the test program.
 *
 * The functions fail the running test if the work cannot be done.
 */
#ifndef TESTS_REGISTERS_MARIASERVER_H
#define TESTS_REGISTERS_MARIASERVER_H

#include <mysql.h>
#include <stdbool.h>
#include <sys/types.h>

struct mariaserver {
    char folder[32];
    char url[96];               /* mariadb://root@/locks?socket=FOLDER/socket: options are added with & */
    MYSQL *admin;               /* the test's own connection; NULL: not running */
    pid_t pid;                  /* 0: not running */
    int port;                   /* of 127.0.0.1; 0: none */
    const char *const *options; /* more of them, which end with NULL; or NULL */
};

/* False where no MariaDB is installed. */
bool mariaserver_is_possible(void);

struct mariaserver *mariaserver_start(void);
/* SIGKILL; the data stay. */
void mariaserver_kill(struct mariaserver *server);
/* Ends it cleanly, if it runs, and starts it with these options, which end with NULL. */
void mariaserver_restart(struct mariaserver *server, const char *const *options);
/* Restarts it with a certificate and its key, on a port of 127.0.0.1.  Returns the URL there, without options. */
const char *mariaserver_use_tls(struct mariaserver *server, const char *certificate, const char *key);
void mariaserver_end(struct mariaserver *server);

/* Executes one statement; the first value, "" if there is none.  Valid until the fourth call from now. */
const char *mariaserver_sql(struct mariaserver *server, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* The same on a connection of the test's own. */
const char *mariaserver_sql_by(MYSQL *connection, const char *format, ...) __attribute__((format(printf, 2, 3)));
MYSQL *mariaserver_connect(const struct mariaserver *server);

/* Ends all connections but the test's, and waits for their ends. */
void mariaserver_cut(struct mariaserver *server);

#endif
