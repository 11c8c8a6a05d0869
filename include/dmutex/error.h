/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Error sentences, lost holds, log messages, and the address of the server.
 *
 * Functions here return 0 or a positive errno value, keep errno, may be called by any thread, do
 * no I/O and are no cancellation points.  Since 0.1.
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
 * Callback for a lost hold: the lease could not be confirmed in time, or a force unlock broke the hold.  Runs in
 * the library's own thread, one call at a time, before another thread can own the name (after a force unlock: as
 * soon as the message arrives).  The callback should be short, because renewals and grants wait for its end.  The
 * callback must not wait for a thread inside a call of this library, nor take a lock such a thread may hold.
 * The callback may call dmutex functions without I/O, and fork().
 *
 * name is valid during the call ("" for an anonymous mutex); token is the fencing token of the lost hold.
 */
typedef void (*dmutex_lost_fn)(const char *name, uint64_t token, void *user);

/* Callback for log messages: a line of text without newline.  Runs in any thread that uses the library. */
typedef void (*dmutex_log_fn)(int level, const char *message, void *user);

/*
 * Sets the process's lost callback; NULL: none.  `user` is passed on and stays the caller's.
 * In addition, DMUTEX_ONLOST=log|abort|signal:NAME selects a further action at a loss (default log).
 *
 * Returns 0.
 */
DMUTEX_API int dmutex_setlost_np(dmutex_lost_fn lost, void *user);

/*
 * Sets the process's log callback, for all levels; NULL: none.  DMUTEX_LOG=warn|info|debug[:path]
 * logs to a file or standard error without a callback; by default the library is silent.  The callback must
 * not call dmutex functions, nor wait for a thread inside a dmutex function.
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
 *                    the master of a group of Sentinel; the hosts are sentinels, port 26379
 *   redis+cluster://[user[:password]@]host[:port],host[:port]...
 *                    a Cluster; the hosts are some of its nodes
 *   redis+quorum://[user[:password]@]host[:port],host[:port],host[:port]...[/db]
 *                    3, 5 or 7 independent servers, of which a majority decides; no condition variables
 *   local:           a private server of this user on this machine, started on demand
 *
 * Options: connect_timeout, command_timeout (ms, default 2000), prefix (default "dmutex"),
 * user_file, password_file, eviction=allow (accept a server that may evict keys), wait (replicas that
 * must have a hold); for Sentinel: switch (ms, default 5000), sentinel_user, sentinel_password_file; for a
 * Cluster: switch (ms, default 2000); for TLS: tls=yes, cacert, cert, key, servername, verify=none.  dmutex(7)
 * describes each option.  Values are percent-decoded.  The string is copied.  Without a call: DMUTEX_URL, else
 * Url of dmutex.conf(5), else "local:", unless dmutex.conf(5) or DMUTEX_LOCAL forbids "local:".
 *
 * Returns 0; EINVAL when the URL does not parse, with the reason in dmutex_strerror_np(); EBUSY after
 * the first use.  While a server of <dmutex/testing.h> exists, the process uses the test server all the same.
 */
DMUTEX_API int dmutex_configure_np(const char *url);

/*
 * Checks the automatic names of a program or shared library.  <dmutex/pthread.h> gives such names to the static
 * initialisers of units compiled with DMUTEX_GROUP.  The same header calls this function when the module is
 * loaded; no other code needs to call it.
 *
 * *is_read, a static variable of the module, is 0 before and 1 afterwards; a call with 1 does nothing.
 *
 * Returns 0; EINVAL if an object cannot have its name: then every call on the object returns EINVAL, and the
 * sentence of dmutex_strerror_np() goes to the log or, without a log, to standard error; ENOMEM.
 * Does not block; one thread at a time, as the loader does.  Since 0.1.
 */
DMUTEX_API int dmutex_readnames_np(char *is_read);

/*
 * Returns the calling thread's last failure as a sentence with advice; "" before the first failure.  The string is
 * memory of the thread, valid until the next failing call of the thread; not to be freed.
 */
DMUTEX_API const char *dmutex_strerror_np(void);

DMUTEX_END_DECLS

#endif
