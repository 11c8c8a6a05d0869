/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Opens a connection in a thread of its own: libmariadb looks up names without regard to anybody who waits, and a
 * handshake needs more stack than a caller may have.  The driver learns of the end by a descriptor.
 *
 * A child that is forked while the thread is inside libmariadb would find locks of OpenSSL taken.  So fork() waits for
 * the end of the step, though not for ever: in a look-up of a name, which may last, no such lock is held.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/descriptor.h"
#include "base/poll.h"
#include "base/shield.h"
#include "stores/mariadb/parts.h"

#define STACK_SIZE ((size_t)512 * 1024)

/*
 * What libmariadb switches to while it works for us; pages that are never used cost nothing.  Its own 60 KiB are little
 * for a look-up of a name.
 */
#define INNER_STACK_SIZE ((size_t)256 * 1024)
#define FORK_WAITS_NS (100 * DM_NS_PER_MS)

/* The server asks for one of these, and gets no password in clear text. */
#define LOGINS "mysql_native_password,client_ed25519,caching_sha2_password,sha256_password,parsec"

enum { HOST, USER, PASSWORD, DATABASE, PATH, CACERT, CERT, KEY, TEXTS };

struct dm_maria_connect {
    MYSQL *connection; /* the thread's, until `is_done` */
    char *texts[TEXTS];
    unsigned port, timeout_ms;
    unsigned answer_s; /* for calls that block */
    size_t left;
    bool has_tls, is_verified;
    int done_bell, stop_bell;
    bool is_open;
    bool is_done, is_abandoned; /* atomic */
    int users;                  /* the driver and the thread; atomic */
};

/* Held for reading by each thread inside libmariadb, and for writing by fork(). */
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

/* ---- answers without end ----------------------------------------------------------------- */

/*
 * libmariadb reads an answer to its end, and comes back only if nothing is there to be read.  So a server could keep
 * us for ever, and fill the memory.
 */
static __thread struct {
    const MYSQL *connection;
    size_t *left;
} limited;

/* Of libmariadb, for what reads and writes: in no header. */
int ma_pvio_register_callback(my_bool is_on, void (*callback)(int, MYSQL *, const unsigned char *, size_t));

/* After a read. */
static void count_bytes(int mode, MYSQL *connection, const unsigned char *bytes, size_t got)
{
    (void)bytes;
    if (mode != 0 || !limited.left || connection != limited.connection || (ssize_t)got <= 0)
        return;
    if (got <= *limited.left) {
        *limited.left -= got;
        return;
    }
    *limited.left = 0;
    shutdown(mysql_get_socket(connection), SHUT_RDWR);
}

void dm_maria_limit(const MYSQL *connection, size_t *left)
{
    limited.connection = connection;
    limited.left = left;
}

/* ---- the thread -------------------------------------------------------------------------- */

void dm_maria_close(MYSQL *connection)
{
    struct dm_shield shield;

    dm_shield_raise(&shield);
    mysql_close(connection);
    dm_shield_lower(&shield);
}

/* The last user frees. */
static void let_go(struct dm_maria_connect *connect)
{
    if (__atomic_sub_fetch(&connect->users, 1, __ATOMIC_ACQ_REL) > 0)
        return;
    if (connect->connection)
        dm_maria_close(connect->connection);
    for (int i = 0; i < TEXTS; i++) {
        if (connect->texts[i])
            explicit_bzero(connect->texts[i], strlen(connect->texts[i]));
        free(connect->texts[i]);
    }
    dm_bell_close(connect->done_bell);
    dm_bell_close(connect->stop_bell);
    free(connect);
}

/* libmariadb lets the whole process ignore SIGPIPE, which is the program's to decide. */
static void set_up_library(void)
{
    struct sigaction action;

    sigaction(SIGPIPE, NULL, &action);
    mysql_library_init(0, NULL, NULL);
    ma_pvio_register_callback(true, count_bytes);
    sigaction(SIGPIPE, &action, NULL);
}

/* A server could ask for any file of ours, without that option. */
static bool set_options(struct dm_maria_connect *connect)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    const unsigned protocol = connect->texts[PATH] ? MYSQL_PROTOCOL_SOCKET : MYSQL_PROTOCOL_TCP, no_files = 0;
    const size_t stack = INNER_STACK_SIZE;
    my_bool is_on = 1, is_verified = connect->is_verified;
    MYSQL *connection;

    pthread_once(&once, set_up_library);
    connection = connect->connection = mysql_init(NULL);
    if (!connection || mysql_options(connection, MYSQL_OPT_NONBLOCK, &stack) != 0)
        return false;
    mysql_options(connection, MYSQL_OPT_LOCAL_INFILE, &no_files);
    mysql_options(connection, MYSQL_OPT_PROTOCOL, &protocol);
    mysql_options(connection, MYSQL_OPT_READ_TIMEOUT, &connect->answer_s);
    mysql_options(connection, MYSQL_OPT_WRITE_TIMEOUT, &connect->answer_s);
    mysql_options(connection, MYSQL_SET_CHARSET_NAME, "utf8mb4");
    mysql_options(connection, MARIADB_OPT_RESTRICTED_AUTH, LOGINS);
    if (connect->has_tls) {
        mysql_ssl_set(connection, connect->texts[KEY], connect->texts[CERT], connect->texts[CACERT], NULL, NULL);
        mysql_options(connection, MYSQL_OPT_SSL_ENFORCE, &is_on);
        mysql_options(connection, MYSQL_OPT_SSL_VERIFY_SERVER_CERT, &is_verified);
    }
    return true;
}

short dm_maria_events(int waits)
{
    return (short)((waits & MYSQL_WAIT_READ ? POLLIN : 0) | (waits & MYSQL_WAIT_WRITE ? POLLOUT : 0) |
                   (waits & MYSQL_WAIT_EXCEPT ? POLLPRI : 0));
}

/* False when the time is over, or the driver has gone. */
static bool await(struct dm_maria_connect *connect, int waits, int64_t until_ns)
{
    struct pollfd polled[2] = {
        { .fd = mysql_get_socket(connect->connection), .events = dm_maria_events(waits) },
        { .fd = connect->stop_bell, .events = POLLIN },
    };
    int64_t left_ns = until_ns - dm_clock_boot_ns();

    while (left_ns > 0 && !polled[0].revents && !polled[1].revents) {
        dm_poll(polled, 2, left_ns);
        left_ns = until_ns - dm_clock_boot_ns();
    }
    return polled[0].revents && !__atomic_load_n(&connect->is_abandoned, __ATOMIC_ACQUIRE);
}

/* libmariadb's sockets would live on in other programs. */
static void mark_socket(MYSQL *connection)
{
    int fd = mysql_get_socket(connection);

    if (fd >= 0)
        fcntl(fd, F_SETFD, FD_CLOEXEC);
}

static void connect_to(struct dm_maria_connect *connect)
{
    int64_t until_ns = dm_clock_boot_ns() + connect->timeout_ms * DM_NS_PER_MS;
    char **texts = connect->texts;
    MYSQL *opened = NULL;
    int waits;

    if (!set_options(connect))
        return;
    connect->left = DM_MARIA_LEFT;
    dm_maria_limit(connect->connection, &connect->left);
    waits = mysql_real_connect_start(&opened, connect->connection, texts[HOST], texts[USER], texts[PASSWORD],
                                     texts[DATABASE], connect->port, texts[PATH], CLIENT_MULTI_STATEMENTS);
    while (waits) {
        bool is_ready;

        mark_socket(connect->connection);
        pthread_rwlock_unlock(&stepping);
        is_ready = await(connect, waits, until_ns);
        pthread_rwlock_rdlock(&stepping);
        if (!is_ready)
            break;
        waits = mysql_real_connect_cont(&opened, connect->connection, waits & ~MYSQL_WAIT_TIMEOUT);
    }
    if (opened)
        mark_socket(connect->connection);
    dm_maria_limit(NULL, NULL);
    connect->is_open = !waits && opened;
}

static void *run(void *user)
{
    struct dm_maria_connect *connect = user;

    pthread_rwlock_rdlock(&stepping);
    connect_to(connect);
    __atomic_store_n(&connect->is_done, true, __ATOMIC_RELEASE);
    dm_bell_ring(&connect->done_bell);
    let_go(connect);
    pthread_rwlock_unlock(&stepping);
    return NULL;
}

/* Detached, and with all signals blocked. */
static bool start(struct dm_maria_connect *connect)
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

static bool copy(struct dm_maria_connect *connect, const struct dm_url *url, unsigned n)
{
    const struct dm_url_host *host = url->host_count ? &url->hosts[n % (unsigned)url->host_count] : NULL;
    const char *const texts[TEXTS] = {
        [HOST] = host ? host->host : NULL,
        [USER] = url->user,
        [PASSWORD] = url->password,
        [DATABASE] = url->database,
        [PATH] = url->path,
        [CACERT] = url->cacert,
        [CERT] = url->cert,
        [KEY] = url->key,
    };

    for (int i = 0; i < TEXTS; i++) {
        connect->texts[i] = texts[i] ? strdup(texts[i]) : NULL;
        if (texts[i] && !connect->texts[i])
            return false;
    }
    connect->port = host ? (unsigned)atoi(host->port) : 0;
    connect->timeout_ms = url->connect_timeout_ms;
    connect->answer_s = (url->command_timeout_ms + 999) / 1000;
    connect->has_tls = url->has_tls;
    connect->is_verified = url->is_verified;
    return true;
}

struct dm_maria_connect *dm_maria_connect_begin(const struct dm_url *url, unsigned n)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    struct dm_maria_connect *connect = calloc(1, sizeof *connect);

    if (!connect)
        return NULL;
    pthread_once(&once, mind_forks);
    connect->users = 2;
    connect->done_bell = dm_bell_open();
    connect->stop_bell = dm_bell_open();
    if (connect->done_bell >= 0 && connect->stop_bell >= 0 && copy(connect, url, n) && start(connect))
        return connect;
    connect->users = 1;
    let_go(connect);
    return NULL;
}

int dm_maria_connect_fd(const struct dm_maria_connect *connect)
{
    return connect->done_bell;
}

bool dm_maria_connect_take(struct dm_maria_connect *connect, MYSQL **ret_connection, bool *ret_is_open)
{
    MYSQL *connection;

    if (!__atomic_load_n(&connect->is_done, __ATOMIC_ACQUIRE))
        return false;
    connection = connect->connection;
    *ret_is_open = connect->is_open;
    connect->connection = NULL;
    let_go(connect);
    *ret_connection = connection;
    return true;
}

void dm_maria_connect_abandon(struct dm_maria_connect *connect)
{
    __atomic_store_n(&connect->is_abandoned, true, __ATOMIC_RELEASE);
    dm_bell_ring(&connect->stop_bell);
    let_go(connect);
}

/* The thread's last socket, if it has one: the handler before fork() has seen the end of its step. */
void dm_maria_connect_forget(struct dm_maria_connect *connect)
{
    if (connect->connection && mysql_get_socket(connect->connection) >= 0)
        close(mysql_get_socket(connect->connection));
    dm_bell_close(connect->done_bell);
    dm_bell_close(connect->stop_bell);
}
