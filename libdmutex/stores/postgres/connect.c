/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Opens a connection in a thread of its own: libpq looks up names and reads files without regard to anybody who waits,
 * and a handshake needs more stack than a caller may have.  The driver learns of the end by a descriptor.
 *
 * A child that is forked while the thread is inside libpq would find its locks taken, and OpenSSL's.  So fork() waits
 * for the end of the step, though not for ever: in a look-up of a name, which may last, no such lock is held.
 */
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/descriptor.h"
#include "base/poll.h"
#include "stores/postgres/parts.h"

#define STACK_SIZE ((size_t)512 * 1024)
#define FORK_WAITS_NS (100 * DM_NS_PER_MS)
#define OPTIONS_MOST 96

struct dm_pg_connect {
    PGconn *connection; /* the thread's, until `is_done` */
    char **keywords, **values;
    unsigned timeout_ms;
    int done_bell, stop_bell;
    bool is_done, is_abandoned; /* atomic */
    int users;                  /* the driver and the thread; atomic */
};

/* Held for reading by each thread inside libpq, and for writing by fork(). */
static pthread_rwlock_t stepping = PTHREAD_RWLOCK_INITIALIZER;

/* ---- fork -------------------------------------------------------------------------------- */

static __thread bool is_waited;

static void prepare(void)
{
    struct timespec until;

    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_nsec += FORK_WAITS_NS;
    until.tv_sec += until.tv_nsec / DM_NS_PER_S;
    until.tv_nsec %= DM_NS_PER_S;
    is_waited = pthread_rwlock_clockwrlock(&stepping, CLOCK_MONOTONIC, &until) == 0;
}

static void go_on(void)
{
    if (is_waited)
        pthread_rwlock_unlock(&stepping);
    is_waited = false;
}

/*
 * The child's only thread.  The thread sanitizer does not know pthread_rwlock_clockwrlock(), and takes the write for a
 * race with unlocks in the parent.
 */
__attribute__((__no_sanitize__("thread"))) static void begin_anew(void)
{
    static const pthread_rwlock_t fresh = PTHREAD_RWLOCK_INITIALIZER;

    go_on();
    stepping = fresh;
}

static void mind_forks(void)
{
    pthread_atfork(prepare, go_on, begin_anew);
}

/* ---- the options ------------------------------------------------------------------------- */

/* A list between commas, beginning with its n-th element.  New memory. */
static char *rotate(const char *list, unsigned n)
{
    size_t length = strlen(list);
    unsigned count = 1;
    const char *from = list;
    char *rotated = malloc(length + 2);

    for (const char *at = list; *at; at++)
        count += *at == ',';
    for (n %= count; n; n--)
        from = strchr(from, ',') + 1;
    if (rotated && from == list)
        memcpy(rotated, list, length + 1);
    else if (rotated)
        sprintf(rotated, "%s,%.*s", from, (int)(from - list - 1), list);
    return rotated;
}

static bool is_list(const char *keyword)
{
    return strcmp(keyword, "host") == 0 || strcmp(keyword, "hostaddr") == 0 || strcmp(keyword, "port") == 0;
}

/* One port for several hosts is said once, and is the same list wherever it begins. */
static bool add(struct dm_pg_connect *connect, int *count, const char *keyword, const char *value, unsigned try_number)
{
    int i = *count;

    if (i == OPTIONS_MOST)
        return false;
    connect->keywords[i] = strdup(keyword);
    connect->values[i] = is_list(keyword) ? rotate(value, try_number) : strdup(value);
    ++*count;
    return connect->keywords[i] && connect->values[i];
}

/*
 * What the URL says comes last, and wins.  A role may be set to read-only transactions, which our session changes; a
 * standby cannot be changed.  So the server must be a primary, which is less than "read-write" asks.
 */
static bool fill(struct dm_pg_connect *connect, const struct dm_pg_settings *settings, unsigned try_number)
{
    int count = 0;

    connect->keywords = calloc(OPTIONS_MOST + 1, sizeof *connect->keywords);
    connect->values = calloc(OPTIONS_MOST + 1, sizeof *connect->values);
    if (!connect->keywords || !connect->values || !add(connect, &count, "fallback_application_name", "dmutex", 0) ||
        !add(connect, &count, "target_session_attrs", "primary", 0))
        return false;
    for (PQconninfoOption *option = settings->options; option->keyword; option++) {
        if (option->val && !add(connect, &count, option->keyword, option->val, try_number))
            return false;
    }
    return true;
}

static void free_texts(char **texts)
{
    for (int i = 0; texts && texts[i]; i++) {
        explicit_bzero(texts[i], strlen(texts[i]));
        free(texts[i]);
    }
    free(texts);
}

/* ---- the thread -------------------------------------------------------------------------- */

/* The last user frees. */
static void let_go(struct dm_pg_connect *connect)
{
    if (__atomic_sub_fetch(&connect->users, 1, __ATOMIC_ACQ_REL) > 0)
        return;
    if (connect->connection)
        PQfinish(connect->connection);
    free_texts(connect->keywords);
    free_texts(connect->values);
    dm_bell_close(connect->done_bell);
    dm_bell_close(connect->stop_bell);
    free(connect);
}

static PostgresPollingStatusType begin(struct dm_pg_connect *connect)
{
    PGconn *connection =
        PQconnectStartParams((const char *const *)connect->keywords, (const char *const *)connect->values, 0);

    connect->connection = connection;
    if (!connection || PQstatus(connection) == CONNECTION_BAD)
        return PGRES_POLLING_FAILED;
    PQsetErrorVerbosity(connection, PQERRORS_VERBOSE); /* has the SQLSTATE, which libpq does not tell otherwise */
    return PGRES_POLLING_WRITING;
}

/* False when the time is over, or the driver has gone. */
static bool await(struct dm_pg_connect *connect, PostgresPollingStatusType status, int64_t until_ns)
{
    struct pollfd polled[2] = {
        { .fd = PQsocket(connect->connection), .events = status == PGRES_POLLING_READING ? POLLIN : POLLOUT },
        { .fd = connect->stop_bell, .events = POLLIN },
    };
    int64_t left_ns = until_ns - dm_clock_boot_ns();

    while (left_ns > 0 && !polled[0].revents && !polled[1].revents) {
        dm_poll(polled, 2, left_ns);
        left_ns = until_ns - dm_clock_boot_ns();
    }
    return polled[0].revents && !__atomic_load_n(&connect->is_abandoned, __ATOMIC_ACQUIRE);
}

static void *run(void *user)
{
    struct dm_pg_connect *connect = user;
    int64_t until_ns = dm_clock_boot_ns() + connect->timeout_ms * DM_NS_PER_MS;
    PostgresPollingStatusType status;

    pthread_rwlock_rdlock(&stepping);
    status = begin(connect);
    while (status == PGRES_POLLING_READING || status == PGRES_POLLING_WRITING) {
        bool is_waiting;

        pthread_rwlock_unlock(&stepping);
        is_waiting = await(connect, status, until_ns);
        pthread_rwlock_rdlock(&stepping);
        if (!is_waiting)
            break;
        status = PQconnectPoll(connect->connection);
    }
    __atomic_store_n(&connect->is_done, true, __ATOMIC_RELEASE);
    dm_bell_ring(&connect->done_bell);
    let_go(connect);
    pthread_rwlock_unlock(&stepping);
    return NULL;
}

/* Detached, and with all signals blocked. */
static bool start(struct dm_pg_connect *connect)
{
    pthread_t thread;
    pthread_attr_t attributes;
    sigset_t all, mask;
    int error = pthread_attr_init(&attributes);

    if (error)
        return false;
    pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
    pthread_attr_setstacksize(&attributes, STACK_SIZE);
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &mask);
    error = pthread_create(&thread, &attributes, run, connect);
    pthread_sigmask(SIG_SETMASK, &mask, NULL);
    pthread_attr_destroy(&attributes);
    return error == 0;
}

/* ---- for the driver ---------------------------------------------------------------------- */

struct dm_pg_connect *dm_pg_connect_begin(const struct dm_pg_settings *settings, unsigned try_number)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    struct dm_pg_connect *connect = calloc(1, sizeof *connect);

    if (!connect)
        return NULL;
    pthread_once(&once, mind_forks);
    connect->users = 2;
    connect->timeout_ms = settings->connect_timeout_ms;
    connect->done_bell = dm_bell_open();
    connect->stop_bell = dm_bell_open();
    if (connect->done_bell >= 0 && connect->stop_bell >= 0 && fill(connect, settings, try_number) && start(connect))
        return connect;
    connect->users = 1;
    let_go(connect);
    return NULL;
}

int dm_pg_connect_fd(const struct dm_pg_connect *connect)
{
    return connect->done_bell;
}

bool dm_pg_connect_take(struct dm_pg_connect *connect, PGconn **ret_connection)
{
    PGconn *connection;

    if (!__atomic_load_n(&connect->is_done, __ATOMIC_ACQUIRE))
        return false;
    connection = connect->connection;
    connect->connection = NULL;
    let_go(connect);
    *ret_connection = connection;
    return true;
}

void dm_pg_connect_abandon(struct dm_pg_connect *connect)
{
    __atomic_store_n(&connect->is_abandoned, true, __ATOMIC_RELEASE);
    dm_bell_ring(&connect->stop_bell);
    let_go(connect);
}

/* The thread's last socket, if it has one: the handler before fork() has seen the end of its step. */
void dm_pg_connect_forget(struct dm_pg_connect *connect)
{
    if (connect->connection && PQsocket(connect->connection) >= 0)
        close(PQsocket(connect->connection));
    dm_bell_close(connect->done_bell);
    dm_bell_close(connect->stop_bell);
}
