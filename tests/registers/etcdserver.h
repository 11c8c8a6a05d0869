/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A private etcd of one member, or of three, on ports of the loopback interface, with data in a folder of their own;
 * all end with the test program.  $DMUTEX_TEST_ETCD is a program to use instead of Debian's.
 *
 * The functions fail the running test if the work cannot be done.
 */
#ifndef TESTS_REGISTERS_ETCDSERVER_H
#define TESTS_REGISTERS_ETCDSERVER_H

#include <stdbool.h>
#include <sys/types.h>

#define ETCDSERVER_MEMBERS_MOST 3

struct etcdserver {
    char folder[32];
    char url[128];    /* etcd://127.0.0.1:PORT,… */
    int count, quota; /* quota 0: the default */
    int tls_port;     /* 0: none */
    int ports[ETCDSERVER_MEMBERS_MOST], peer_ports[ETCDSERVER_MEMBERS_MOST];
    pid_t pids[ETCDSERVER_MEMBERS_MOST]; /* 0: not running */
};

/* False where no etcd is installed. */
bool etcdserver_is_possible(void);

struct etcdserver *etcdserver_start(int members);
/* One member, whose data may take so many bytes. */
struct etcdserver *etcdserver_start_with_quota(int bytes);
/* One member, whose URL is etcds://; tests ask it without TLS. */
struct etcdserver *etcdserver_start_with_tls(const char *certificate, const char *key);
/* SIGKILL, and the same data again. */
void etcdserver_kill(struct etcdserver *server, int member);
void etcdserver_restart(struct etcdserver *server, int member);
/* Those that do not run; waits for all. */
void etcdserver_restart_all(struct etcdserver *server);
/* Copies the data of a server of one member that does not run, and puts the copy back. */
void etcdserver_save(const struct etcdserver *server);
void etcdserver_restore(const struct etcdserver *server);
void etcdserver_end(struct etcdserver *server);

/* Asks a member, /v3/kv/put for example, and returns the answer.  Valid until the next call. */
const char *etcdserver_ask(const struct etcdserver *server, int member, const char *path, const char *body);

/* From now on users log in: root, whom nobody uses, and one that may do everything with the keys FROM up to TO. */
void etcdserver_use_login(const struct etcdserver *server, const char *user, const char *password, const char *from,
                          const char *to);

/* Writes until the quota is used up. */
void etcdserver_fill(const struct etcdserver *server);

/* Deletes what was written for that, and disarms the alarm. */
void etcdserver_make_room(const struct etcdserver *server);

/* Writes a key. */
void etcdserver_put(const struct etcdserver *server, const char *key, const char *value);

/* Of the first member: changes with each write of the key, valid until the next call; how many keys begin so; and the
 * connections of all processes to it. */
const char *etcdserver_version_of(const struct etcdserver *server, const char *key);
int etcdserver_count(const struct etcdserver *server, const char *prefix);
int etcdserver_count_connections(const struct etcdserver *server);

#endif
