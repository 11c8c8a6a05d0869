/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A private ZooKeeper of one server, or of three, on ports of the loopback interface, with data in a folder of their
 * own; all end with the test program.  $DMUTEX_TEST_ZOOKEEPER is a class path to use instead of Debian's.
 *
 * The functions fail the running test if the work cannot be done.
 */
#ifndef TESTS_REGISTERS_ZKSERVER_H
#define TESTS_REGISTERS_ZKSERVER_H

#include <stdbool.h>
#include <sys/types.h>

#include "stores/zookeeper/jute.h"

#define ZKSERVER_MEMBERS_MOST 3

struct zkserver {
    char folder[32];
    char url[128]; /* zookeeper://127.0.0.1:PORT,… */
    int count;
    int tls_port; /* 0: none */
    int ports[ZKSERVER_MEMBERS_MOST], quorum_ports[ZKSERVER_MEMBERS_MOST], election_ports[ZKSERVER_MEMBERS_MOST];
    pid_t pids[ZKSERVER_MEMBERS_MOST]; /* 0: not running */
};

/* False where no ZooKeeper is installed. */
bool zkserver_is_possible(void);

struct zkserver *zkserver_start(int members);
/* One server, whose URL is zookeepers://; tests ask it without TLS. */
struct zkserver *zkserver_start_with_tls(const char *certificate, const char *key);
/* SIGKILL, and the same data again. */
void zkserver_kill(struct zkserver *server, int member);
void zkserver_restart(struct zkserver *server, int member);
/* Those that do not run; waits for all. */
void zkserver_restart_all(struct zkserver *server);
/* Copies the data of a server alone that does not run, and puts the copy back. */
void zkserver_save(const struct zkserver *server);
void zkserver_restore(const struct zkserver *server);
void zkserver_end(struct zkserver *server);

/*
 * Asks the first member, or one that answers, in a session of its own: a request without its head.  Returns the error
 * of the answer; what follows is valid until the next call.
 */
int zkserver_ask(const struct zkserver *server, int type, const struct dm_bytes *request, struct dm_jute *ret_answer);
/* The same as user:password. */
void zkserver_use_login(const char *login);

/* Makes a node, whose parents are there. */
void zkserver_make(const struct zkserver *server, const char *path, const char *value);
/* Deletes a node with all below it. */
void zkserver_delete(const struct zkserver *server, const char *path);
/* The child of /dmutex/epoch becomes this one. */
void zkserver_set_epoch(const struct zkserver *server, const char *epoch);

/* Changes with each write of the node, valid until the next call; and how many children of a node begin so. */
const char *zkserver_version_of(const struct zkserver *server, const char *path);
int zkserver_count(const struct zkserver *server, const char *path, const char *prefix);
/* Connections of all processes to the first member. */
int zkserver_count_connections(const struct zkserver *server);

#endif
