/* SPDX-License-Identifier: BSD-2-Clause */
/* Where the server is and how to talk to it, from a URL as described at dmutex_configure_np(). */
#ifndef DM_CONFIG_URL_H
#define DM_CONFIG_URL_H

#include <stdbool.h>
#include <stddef.h>

#include "base/text.h"

enum dm_url_kind {
    DM_URL_TCP,
    DM_URL_UNIX,
    DM_URL_LOCAL,
    DM_URL_SENTINEL,  /* one master with its replicas, and the sentinels that say which server the master is */
    DM_URL_CLUSTER,   /* several masters, each with some of the slots of a Cluster */
    DM_URL_QUORUM,    /* independent servers, of which a majority decides */
    DM_URL_POSTGRES,  /* a database, which a register driver opens */
    DM_URL_ETCD,      /* members of a cluster of etcd */
    DM_URL_ZOOKEEPER, /* servers of an ensemble of ZooKeeper */
    DM_URL_MEMCACHED,
    DM_URL_MARIADB /* a database of MariaDB or MySQL, which a register driver opens */
};

/* The most servers that a list may have. */
#define DM_URL_HOSTS_MOST 15

struct dm_url_host {
    char *host, *port;
};

struct dm_url {
    enum dm_url_kind kind;
    char *host; /* TCP, MEMCACHED */
    char *port; /* TCP, MEMCACHED */
    char *path; /* UNIX, and MEMCACHED and MARIADB without a host; LOCAL: set by dm_local_place() */
    struct dm_url_host
        hosts[DM_URL_HOSTS_MOST]; /* SENTINEL: sentinels; CLUSTER: nodes; ETCD and the like: members; QUORUM: all */
    int host_count;
    char *master;        /* SENTINEL: the name by which the sentinels know the group of servers */
    char *sentinel_user; /* of the sentinels' own login, or NULL */
    char *sentinel_password, *sentinel_password_file; /* likewise, as password and password_file */
    unsigned wait;                                    /* how many replicas must have a hold before it counts */
    unsigned switch_ms; /* SENTINEL, CLUSTER: for how long clients may go on using a replaced master, at most; else 0 */
    char *user;         /* or NULL */
    char *password;     /* or NULL */
    char *user_file, *password_file; /* or NULL; absolute paths; the texts above are their first lines */
    char *database; /* POSTGRES: the URL for libpq, which may have a password, without our options; MARIADB: a name */
    char *prefix;
    unsigned db;
    unsigned connect_timeout_ms;
    unsigned command_timeout_ms;
    bool may_evict;      /* accept a server that may evict keys */
    bool is_lossy;       /* MEMCACHED: accept that locks may get lost */
    bool has_grace;      /* a new server grants nothing until the owners have had time to come back; LOCAL: atomic */
    bool is_grace_found; /* LOCAL, unless grace= is given: dm_local_open() sets has_grace if the server needs it */
    bool is_part;        /* one server of a quorum; not from the text */

    bool has_tls;
    bool is_verified;          /* TLS: the server's certificate is verified */
    char *servername;          /* the name in the server's certificate; NULL: the host */
    char *cacert, *cert, *key; /* absolute paths, or NULL */
};

/*
 * Parses a URL, and reads the files of user and password if it names any.  Returns a new object, which the caller
 * passes to dm_url_free(), or NULL with the reason in a sentence; errno is then ENOMEM if memory was missing.
 */
struct dm_url *dm_url_parse(const char *text, char ret_reason[DM_REASON_ROOM]);

void dm_url_free(struct dm_url *url);

/*
 * New URLs with the settings of `list`: for one of the servers with data, and for a sentinel, which has the sentinels'
 * login.  NULL without memory.
 */
struct dm_url *dm_url_of_server(const struct dm_url *list, const char *host, const char *port);
struct dm_url *dm_url_of_sentinel(const struct dm_url *list, const char *host, const char *port);

#define DM_PLACE_ROOM 280 /* a host name of 255 bytes */

struct dm_place_text {
    char text[DM_PLACE_ROOM];
};

/* HOST:PORT, as in a URL: an IPv6 address has brackets. */
struct dm_place_text dm_url_place(const char *host, const char *port);

/*
 * For people, without secrets: "host:port", the socket's path, the first sentinel and the master's name, the first node
 * of a Cluster, or the first host of a database.
 */
void dm_url_describe(const struct dm_url *url, char *buf, size_t size);

#endif
