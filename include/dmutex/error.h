/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What went wrong, what was lost, what the library has to say, and where its server is.
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
 * Told of a hold that was lost: its lease could not be confirmed in time, or it was broken by
 * force.  Runs in the library's own thread, one call at a time, before anyone else can own the
 * name (force excepted: then as soon as the message arrives).  It should be short: renewals and
 * grants wait for it.  It must not wait for a thread that is inside a call of this library, nor take
 * a lock such a thread may hold.  It may call dmutex functions that do no I/O, and fork().
 *
 * name is valid during the call ("" for an anonymous mutex); token is that of the lost hold.
 */
typedef void (*dmutex_lost_fn)(const char *name, uint64_t token, void *user);

/* Told of what happens, one line without newline.  Runs in any thread that uses the library. */
typedef void (*dmutex_log_fn)(int level, const char *message, void *user);

/*
 * Sets the process's lost callback; NULL: none.  `user` is handed on and stays the caller's.
 * Besides, DMUTEX_ONLOST=log|abort|signal:NAME decides what else a loss does (default log).
 *
 * Returns 0.
 */
DMUTEX_API int dmutex_setlost_np(dmutex_lost_fn lost, void *user);

/*
 * Sets the process's log callback, for all levels; NULL: none.  DMUTEX_LOG=warn|info|debug[:path]
 * logs to a file or standard error without it; by default the library is silent.  The callback
 * must not call dmutex functions, nor wait for a thread that is inside one.
 *
 * Returns 0.
 */
DMUTEX_API int dmutex_setlog_np(dmutex_log_fn log, void *user);

/*
 * Names the server of this process, before the first use of a mutex:
 *
 *   redis://[user[:password]@]host[:port][/db][?option=value&...]
 *   unix:///path/redis.sock[?db=n&...]
 *   local:           a private server of this user on this machine, started on demand
 *
 * Options: connect_timeout, command_timeout (ms, default 2000), prefix (default "dmutex"),
 * password_file, eviction=allow (accept a server that may evict keys).  Values are
 * percent-decoded.  The string is copied.  Without this call: DMUTEX_URL, else Url of dmutex.conf(5),
 * else "local:", unless that file or DMUTEX_LOCAL forbids it.
 *
 * Returns 0; EINVAL when it does not parse, with the reason in dmutex_strerror_np(); EBUSY after
 * the first use.  While a server of <dmutex/testing.h> is there, that one is used all the same.
 */
DMUTEX_API int dmutex_configure_np(const char *url);

/*
 * Checks the automatic names of a program or shared library: those that <dmutex/pthread.h> gives to the static
 * initialisers of units compiled with DMUTEX_GROUP.  That header calls this when the module is loaded; nothing
 * else needs to.
 *
 * *is_read, a static variable of the module, is 0 before and 1 afterwards: then nothing more is done.
 *
 * Returns 0; EINVAL if an object cannot have its name: then every call on the object says EINVAL, and the sentence
 * of dmutex_strerror_np() goes to the log or, if nothing takes the log, to standard error; ENOMEM.
 * Does not block; one thread at a time, as the loader does.  Since 0.1.
 */
DMUTEX_API int dmutex_readnames_np(char *is_read);

/*
 * The calling thread's last failure in one sentence that says what to do; "" before any.  The
 * thread's own memory, valid until its next failing call; not to be freed.
 */
DMUTEX_API const char *dmutex_strerror_np(void);

DMUTEX_END_DECLS

#endif
