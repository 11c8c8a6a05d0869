/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Error sentences, lost holds, log messages, and the address of the server.
 *
 * Common to all functions of this header, unless stated otherwise:
 *
 *   Returns    0 or a positive errno value; errno itself stays unchanged.
 *   Blocking   None.  No network.
 *   Threads    Any thread, at any time.
 *   Signals    Not async-signal-safe.
 *   Cancel     No function here is a cancellation point.
 *   Fork       A child of fork() keeps the callbacks and the URL, and may name another server before its own first use
 *              of a mutex.
 *   Since      0.1, every function.
 *   Source     doc/man/dmutex_configure_np.3.
 */
#ifndef DMUTEX_ERROR_H
#define DMUTEX_ERROR_H

#include <dmutex/types.h>

DMUTEX_BEGIN_DECLS

/* Levels of messages. */
#define DMUTEX_LOG_ERROR 1
#define DMUTEX_LOG_WARN 2
#define DMUTEX_LOG_INFO 3
#define DMUTEX_LOG_DEBUG 4

/*
 * Callback for a lost hold: the lease could not be confirmed in time, the max-hold is over, or someone broke the lock
 * by force.  It runs in the library's own thread, one call at a time, before another thread can own the name (or, after
 * a break by force, as soon as the message arrives).
 *
 * It should be short, because renewals and grants wait for it: a callback that takes half a lease loses all other holds
 * of the process.  It must not lock or unlock, wait for a thread that is inside a call of this library, or take a lock
 * that such a thread may hold.  It may call dmutex functions that do no I/O, and fork().
 *
 * name is valid during the call, and "" for an anonymous mutex; token is the fencing token of the lost hold.
 */
typedef void (*dmutex_lost_fn)(const char *name, uint64_t token, void *user);

/*
 * Callback for log messages: one line of text without a newline, valid during the call.  It runs in any thread that
 * uses the library.  It must not call dmutex functions, or wait for a thread that is inside one.
 */
typedef void (*dmutex_log_fn)(int level, const char *message, void *user);

/*
 * Sets the process's callback for lost holds; NULL removes it.  `user` is passed to it and remains the caller's.
 * DMUTEX_ONLOST=log|abort|signal:NAME selects a further action (default log).
 *
 * Returns 0.
 */
DMUTEX_API int dmutex_setlost_np(dmutex_lost_fn lost, void *user);

/*
 * Sets the process's callback for log messages of all levels; NULL removes it.  `user` is passed to it and remains the
 * caller's.  Without a callback, DMUTEX_LOG=warn|info|debug[:path] logs to a file or to standard error; by default the
 * library is silent.
 *
 * Returns 0.
 */
DMUTEX_API int dmutex_setlog_np(dmutex_log_fn log, void *user);

/*
 * Names the server of this process, before the first use of a mutex:
 *
 *   redis://[user[:password]@]host[:port][/db][?option=value&...]
 *   rediss://...     the same, with TLS
 *   unix:///path/redis.sock[?db=n&...]
 *   redis+sentinel://[user[:password]@]host[:port],host[:port].../master-name[/db]
 *                    the master of a Sentinel group; the hosts are sentinels, port 26379
 *   redis+cluster://[user[:password]@]host[:port],host[:port]...
 *                    a Cluster; the hosts are some of its nodes
 *   redis+quorum://[user[:password]@]host[:port],host[:port],host[:port]...[/db]
 *                    3, 5 or 7 independent servers, of which a majority decides; no condition variables
 *   postgresql://... a database of PostgreSQL; libpq reads the URL, and our options begin with "dmutex."
 *   etcd://[user[:password]@]host[:port],host[:port]...[/prefix]
 *                    members of etcd, port 2379; etcds:// with TLS
 *   zookeeper://[user:password@]host[:port],host[:port]...[/path]
 *                    servers of ZooKeeper, port 2181; zookeepers:// with TLS
 *   memcached://host[:port]?lossy=yes
 *                    a server of memcached, port 11211; locks may get lost
 *   mariadb://[user[:password]@]host[:port],host[:port].../database
 *                    a database of MariaDB or MySQL, port 3306; also mysql://; with socket=/path instead of hosts
 *   local:           a private server of this user on this machine, started on demand
 *
 * Options: connect_timeout, command_timeout (ms, default 2000, etcd, ZooKeeper and MariaDB 5000), prefix (default
 * "dmutex"), user_file, password_file, eviction=allow (accept a server that may evict keys), grace=off, wait (the
 * number of replicas that must have a hold); for Sentinel: switch (ms, default 5000), sentinel_user,
 * sentinel_password_file; for a Cluster: switch (ms, default 2000); for TLS: tls=yes, cacert, cert, key, servername,
 * verify=none.  dmutex(7) describes each of them.  Values are percent-decoded.  The string is copied.
 *
 * Without a call, the server is that of DMUTEX_URL, or else Url of dmutex.conf(5), or else "local:" unless
 * dmutex.conf(5) or DMUTEX_LOCAL forbids it.  While a server of <dmutex/testing.h> exists, the process uses that one
 * regardless.
 *
 * Returns 0; EINVAL if the URL cannot be used, with the reason in dmutex_strerror_np(); EBUSY after the first use of a
 * mutex; ENOMEM.  Reads the files that user_file and password_file name.
 */
DMUTEX_API int dmutex_configure_np(const char *url);

/*
 * Checks the automatic names of a program or shared library: those that <dmutex/pthread.h> gives to the static
 * initialisers of units compiled with DMUTEX_GROUP.  That header calls this function when the module is loaded; no
 * other code needs to.
 *
 * *is_read, a static variable of the module, is 0 before and 1 afterwards; a call with 1 does nothing.
 *
 * Returns 0; EINVAL if an object cannot have its name: then every call on the object returns EINVAL, and the sentence
 * goes to the log or, if there is no log, to standard error; ENOMEM.
 *
 * One thread at a time, as in the loader.
 */
DMUTEX_API int dmutex_readnames_np(char *is_read);

/*
 * Returns the calling thread's last failure as a sentence with advice; "" before the first.  The string belongs to the
 * thread and is valid until the thread's next failing call; it must not be freed.
 */
DMUTEX_API const char *dmutex_strerror_np(void);

DMUTEX_END_DECLS

#endif
