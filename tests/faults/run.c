/* SPDX-License-Identifier: BSD-2-Clause */
#include "run.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../lib/testlib.h"

/* After a lease at the latest, everything that a failure loses is back. */
#define LEASE_MS 5000

dmutex_t mutex, spare;
dcond_t cond;

static struct run *current; /* of the present process */

#define DESCRIPTORS 1024 /* the library takes numbers below */

static bool was_open[DESCRIPTORS]; /* before the first use of the library */

/* ---- complaints -------------------------------------------------------------------------- */

void run_complain(const char *format, ...)
{
    va_list more;

    disarm();
    va_start(more, format);
    vsnprintf(current->outcome->complaint, sizeof current->outcome->complaint, format, more);
    va_end(more);
    _exit(1);
}

/*
 * True if the result may report a failure that has ended the call.  A broken network ends no call but one that takes a
 * lock away, which is not asked twice.
 */
static bool is_excuse(int result)
{
    if (!current->outcome->seen.call[0])
        return false;
    if (result == ENOMEM)
        return current->kind == FAIL_MEMORY;
    return result == ENOLCK && (current->kind == FAIL_START || current->path->is_local || current->path->is_confirmed);
}

int run_check(const char *call, int result, int wanted, bool is_excused)
{
    if (result != wanted && !(is_excused && is_excuse(result)))
        run_complain("%s returned %s, not %s (\"%s\")", call, result_name(result), result_name(wanted),
                     dmutex_strerror_np());
    return result;
}

void arm(void)
{
    fail_arm(current->kind, current->nth, &current->outcome->seen);
}

void disarm(void)
{
    fail_disarm();
}

bool is_failing(enum fail_kind kind)
{
    return current->kind == kind;
}

/* ---- peers ------------------------------------------------------------------------------- */

void peer_start(struct peer *peer, void (*life)(struct peer *peer))
{
    int ends[2];
    pid_t parent = getpid();

    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) < 0)
        run_complain("socketpair: %s", strerror(errno));
    peer->pid = fork();
    if (peer->pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (getppid() != parent)
            _exit(1);
        close(ends[0]);
        peer->fd = ends[1];
        life(peer);
        exit(0);
    }
    close(ends[1]);
    peer->fd = ends[0];
    if (peer->pid < 0)
        run_complain("fork: %s", strerror(errno));
}

void peer_end(struct peer *peer)
{
    int status;

    close(peer->fd);
    while (waitpid(peer->pid, &status, 0) < 0)
        continue;
    if (status != 0)
        run_complain("a peer ended with %#x: %s", (unsigned)status, current->outcome->complaint);
}

void peer_say(struct peer *peer)
{
    if (send(peer->fd, "!", 1, MSG_NOSIGNAL) < 0)
        return; /* the other process has ended */
}

void peer_hear(struct peer *peer)
{
    char word;

    if (recv(peer->fd, &word, 1, 0) < 0)
        run_complain("recv: %s", strerror(errno));
}

bool peer_has_spoken(struct peer *peer)
{
    struct pollfd poller = { .fd = peer->fd, .events = POLLIN };

    return poll(&poller, 1, 0) > 0;
}

/* ---- around a path ----------------------------------------------------------------------- */

void make_objects(void)
{
    dmutexattr_t attr;
    char name[64];
    bool is_robust = strcmp(current->path->name, "death") == 0 || strcmp(current->path->name, "exit") == 0;

    dmutexattr_init(&attr);
    dmutexattr_setlease_np(&attr, LEASE_MS);
    if (is_robust)
        dmutexattr_setrobust(&attr, PTHREAD_MUTEX_ROBUST);
    snprintf(name, sizeof name, "%s/mutex", current->name);
    done(dmutex_init_np(&mutex, name, &attr), 0);
    dmutexattr_setfairness_np(&attr, DMUTEX_FAIR_NP); /* each thread asks the server */
    snprintf(name, sizeof name, "%s/spare", current->name);
    done(dmutex_init_np(&spare, name, &attr), 0);
    snprintf(name, sizeof name, "%s/cond", current->name);
    done(dcond_init_np(&cond, name, NULL), 0);
}

static void *lock_once(void *user)
{
    done(dmutex_lock(user), 0);
    done(dmutex_unlock(user), 0);
    return NULL;
}

/* Two threads take turns; those of a fair mutex wait in the server's queue. */
static void use(dmutex_t *object, bool is_fair)
{
    pthread_t thread;

    done(dmutex_lock(object), 0);
    if (pthread_create(&thread, NULL, lock_once, object) != 0)
        run_complain("no thread");
    if (is_fair)
        await(waiters_of(object) == 1);
    done(dmutex_unlock(object), 0);
    pthread_join(thread, NULL);
}

void warm_up(void)
{
    use(&spare, true);
}

static void note_open(void)
{
    for (int fd = 0; fd < DESCRIPTORS; fd++)
        was_open[fd] = fcntl(fd, F_GETFD) >= 0;
}

void cut_connections(void)
{
    for (int fd = 0; fd < DESCRIPTORS; fd++) {
        if (!was_open[fd])
            shutdown(fd, SHUT_RDWR);
    }
}

/* The slot map of a Cluster is read once, and its connection may have been lost after that. */
static bool has_usual_descriptors(const struct outcome *usual)
{
    int count = open_descriptors();

    return count == usual->descriptors || (current->path->is_clustered && count == usual->descriptors - 1);
}

/* Later calls work as if no call had failed, and nothing is left. */
static void look_after(void)
{
    struct outcome *outcome = current->outcome;
    const struct outcome *usual = current->usual ? current->usual : outcome;

    use(&mutex, false);
    use(&spare, true);
    await(proc_own_threads() == 2); /* the main thread and the loop thread */
    outcome->descriptors = open_descriptors();
    await(has_usual_descriptors(usual));
}

static void live(void)
{
    keeper_mind_leaks();
    note_open();
    make_objects();
    current->path->take();
    disarm();
    look_after();
    exit(0);
}

/* ---- the test's side --------------------------------------------------------------------- */

/*
 * A host name that must be looked up.  A machine that lacks this name would ask the network, for long and without
 * success.
 */
static const char *host_name(void)
{
    return access("/etc/hosts", R_OK) == 0 ? "localhost" : "127.0.0.1";
}

const char *run_tls_url, *run_cluster_url, *run_confirmed_url;

static const char *url_of(const struct path *path)
{
    if (path->is_tls)
        return run_tls_url;
    if (path->is_clustered)
        return run_cluster_url;
    return path->is_confirmed ? run_confirmed_url : the_server->url;
}

static void choose_server(struct run *run)
{
    char url[64];

    snprintf(url, sizeof url, "redis://%s:%d?grace=off", host_name(), the_server->port);
    setenv("DMUTEX_URL", run->path->is_tcp ? url : url_of(run->path), 1);
    if (!run->path->is_local)
        return;
    snprintf(run->folder, sizeof run->folder, "%s/%s", the_server->folder, run->name);
    mkdir(run->folder, 0700);
    setenv("DMUTEX_LOCAL_DIR", run->folder, 1);
    setenv("TMPDIR", run->folder, 1);
}

void run_start(struct run *run)
{
    memset(run->outcome, 0, sizeof *run->outcome);
    snprintf(run->name, sizeof run->name, "%s.%s.%u", run->path->name, fail_names[run->kind], run->nth);
    choose_server(run);
    fflush(NULL);
    run->pid = keeper_fork();
    if (run->pid > 0)
        return;
    current = run;
    live();
}

/* Ends the run's local server. */
static void end_local_server(const struct run *run)
{
    char path[128];
    int pid = 0;
    FILE *file;

    snprintf(path, sizeof path, "%s/pid", run->folder);
    file = fopen(path, "r");
    if (file && fscanf(file, "%d", &pid) == 1 && pid > 1)
        kill(pid, SIGKILL);
    if (file)
        fclose(file);
}

const char *run_end(struct run *run)
{
    static char sentence[600];
    const struct outcome *outcome = run->outcome;
    int status = keeper_reap(run->pid);

    if (run->path->is_local)
        end_local_server(run);
    if (status == 0)
        return NULL;
    snprintf(sentence, sizeof sentence, "DM_FAIL=%s:%u (%s) %s: %s", fail_names[run->kind], run->nth,
             outcome->seen.call, run->path->name,
             outcome->complaint[0] ? outcome->complaint
             : status == SIGALRM   ? "hangs"
                                   : "has crashed, or left something");
    return sentence;
}
