/* SPDX-License-Identifier: BSD-2-Clause */
#include "spawn/reaper.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/attrs.h"
#include "base/clock.h"
#include "base/place.h"
#include "spawn/pgserver.h"
#include "spawn/server.h"

#define START_LIMIT_MS 10000
#define POSTGRES_LIMIT_MS 60000 /* initdb writes many files */

/* The reaper's descriptors; no others are open. */
enum { CONVERSATION_FD, LIFE_FD, FIRST_FREE_FD };

/*
 * ---- the reaper's side ----
 *
 * The reaper is forked from a process that may have threads, so it calls only async-signal-safe functions. (In glibc
 * posix_spawn() is one: it allocates nothing, and takes no lock that a thread could have left locked.)
 */

/* The reaper's state, in its own memory. */
struct keeping {
    struct dm_server_plan plan;
    const char *path;
    const struct dm_pgserver *postgres; /* NULL: the server is Redis */
    int error;                          /* why the reaper could not become PostgreSQL's user; 0: it did */
    bool has_data;                      /* initdb has been run */
    pid_t server;                       /* 0: none */
    bool is_paused;
};

static void reap(struct keeping *keeping)
{
    while (waitpid(keeping->server, NULL, 0) < 0 && errno == EINTR)
        continue;
    keeping->server = 0;
    keeping->is_paused = false;
}

/* True if the server is running; notices if it has ended by itself. */
static bool is_running(struct keeping *keeping)
{
    pid_t ended = keeping->server ? waitpid(keeping->server, NULL, WNOHANG) : 0;

    if (ended > 0 || (ended < 0 && errno == ECHILD))
        keeping->server = 0;
    return keeping->server != 0;
}

/* The server's processes are our children now that the first of them is gone. */
static void kill_orphans(struct keeping *keeping)
{
    pid_t ended;

    while ((ended = waitpid(-1, NULL, WNOHANG)) >= 0) {
        if (ended == 0) {
            dm_pgserver_signal_children(getpid(), SIGKILL);
            dm_server_nap();
        }
    }
    dm_pgserver_clean(keeping->postgres);
}

static void kill_server(struct keeping *keeping)
{
    if (is_running(keeping)) {
        kill(keeping->server, SIGKILL);
        reap(keeping);
    }
    if (keeping->postgres)
        kill_orphans(keeping);
}

static int make_data(struct keeping *keeping, const struct dm_deadline *deadline)
{
    int status, error = dm_pgserver_spawn_initdb(keeping->postgres, &keeping->plan, &keeping->server);

    if (error)
        return error;
    while (waitpid(keeping->server, &status, WNOHANG) == 0) {
        if (dm_deadline_left_ns(deadline) == 0) {
            kill_server(keeping);
            return DM_REAPER_SILENT;
        }
        dm_server_nap();
    }
    keeping->has_data = WIFEXITED(status) && WEXITSTATUS(status) == 0;
    return keeping->has_data ? 0 : DM_REAPER_ENDED;
}

static int spawn_server(struct keeping *keeping, const struct dm_deadline *deadline)
{
    const char *program;
    int error = keeping->error;

    if (!keeping->postgres)
        return dm_server_spawn(&keeping->plan, &keeping->server, &program);
    if (!error && !keeping->has_data)
        error = make_data(keeping, deadline);
    return error ? error : dm_pgserver_spawn(keeping->postgres, &keeping->plan, &keeping->server);
}

static bool answers(const struct keeping *keeping)
{
    return keeping->postgres ? dm_pgserver_is_ready(keeping->postgres, keeping->server)
                             : dm_server_answers(keeping->path);
}

static int start(struct keeping *keeping)
{
    struct dm_deadline deadline = dm_deadline_in_ms(keeping->postgres ? POSTGRES_LIMIT_MS : START_LIMIT_MS);
    int error;

    kill_server(keeping);
    keeping->is_paused = false;
    error = spawn_server(keeping, &deadline);
    if (error) {
        keeping->server = 0;
        return error;
    }
    while (!answers(keeping)) {
        if (!is_running(keeping))
            return DM_REAPER_ENDED;
        if (dm_deadline_left_ns(&deadline) == 0)
            return DM_REAPER_SILENT;
        dm_server_nap();
    }
    return 0;
}

/* Their parent has stopped, so no more are born. */
static int pause_children(pid_t postmaster)
{
    if (!dm_pgserver_signal_children(postmaster, SIGSTOP))
        return DM_REAPER_BLIND;
    while (!dm_pgserver_have_children_stopped(postmaster))
        dm_server_nap();
    return 0;
}

static int pause_server(struct keeping *keeping)
{
    int status;

    if (!is_running(keeping))
        return DM_REAPER_NOTHING;
    if (keeping->is_paused)
        return 0;
    kill(keeping->server, SIGSTOP);
    if (waitpid(keeping->server, &status, WUNTRACED) != keeping->server || !WIFSTOPPED(status)) {
        keeping->server = 0;
        return DM_REAPER_NOTHING;
    }
    keeping->is_paused = true;
    return keeping->postgres ? pause_children(keeping->server) : 0;
}

static int resume_server(struct keeping *keeping)
{
    if (!is_running(keeping))
        return DM_REAPER_NOTHING;
    if (keeping->postgres)
        dm_pgserver_signal_children(keeping->server, SIGCONT);
    kill(keeping->server, SIGCONT);
    keeping->is_paused = false;
    return 0;
}

static int carry_out(struct keeping *keeping, enum dm_reaper_order order)
{
    switch (order) {
    case DM_REAPER_START:
        return start(keeping);
    case DM_REAPER_KILL:
        kill_server(keeping);
        return 0;
    case DM_REAPER_PAUSE:
        return pause_server(keeping);
    case DM_REAPER_RESUME:
        return resume_server(keeping);
    case DM_REAPER_END:
        break;
    }
    return 0;
}

/* False when no more orders will come: the process has ended, closed the conversation or sent DM_REAPER_END. */
static bool next_order(enum dm_reaper_order *ret_order)
{
    struct pollfd ends[] = { { .fd = CONVERSATION_FD, .events = POLLIN }, { .fd = LIFE_FD, .events = POLLIN } };

    while (poll(ends, DM_COUNT(ends), -1) < 0) {
        if (errno != EINTR && errno != ENOMEM)
            return false;
        dm_server_nap();
    }
    if (ends[1].revents & POLLIN)
        return false;
    return recv(CONVERSATION_FD, ret_order, sizeof *ret_order, 0) == (ssize_t)sizeof *ret_order &&
           *ret_order != DM_REAPER_END;
}

static void remove_entries(int directory);

static void remove_entry(int directory, const char *name)
{
    int inner;

    if (strcmp(name, ".") == 0 || strcmp(name, "..") == 0 || unlinkat(directory, name, 0) == 0)
        return;
    inner = openat(directory, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (inner < 0)
        return;
    remove_entries(inner);
    close(inner);
    unlinkat(directory, name, AT_REMOVEDIR);
}

/* Does not use readdir(), which allocates. */
static void remove_entries(int directory)
{
    union {
        struct dirent64 entry; /* for the alignment */
        char bytes[1024];
    } room;
    ssize_t got;

    while ((got = getdents64(directory, &room, sizeof room)) > 0) {
        for (ssize_t at = 0; at < got;) {
            struct dirent64 *entry = (struct dirent64 *)(void *)(room.bytes + at);

            remove_entry(directory, entry->d_name);
            at += entry->d_reclen;
        }
    }
}

/* After /tmp has been cleaned, the path may lead to somebody else's folder. */
static void remove_directory(const char *path)
{
    struct dm_fault fault;
    int folder = dm_place_open_own(path, false, &fault);
    int directory = folder >= 0 ? openat(folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;

    if (directory >= 0) {
        remove_entries(directory);
        close(directory);
    }
    if (folder >= 0) {
        dm_place_remove(folder, path);
        close(folder);
    }
}

/* Gives up everything of the program's: descriptors, session, working directory. */
static void leave_program(int conversation, int life)
{
    setsid();
    if (chdir("/") < 0)
        return; /* then the reaper just stays in the old working directory */
    conversation = fcntl(conversation, F_DUPFD, FIRST_FREE_FD);
    life = life >= 0 ? fcntl(life, F_DUPFD, FIRST_FREE_FD) : -1;
    close(LIFE_FD);
    dup2(conversation, CONVERSATION_FD);
    if (life >= 0)
        dup2(life, LIFE_FD);
    closefrom(FIRST_FREE_FD);
    prctl(PR_SET_NAME, "dmutex-reaper");
    signal(SIGCHLD, SIG_DFL); /* if SIGCHLD were ignored, the server's end could not be seen */
}

static void __attribute__((__noreturn__)) keep(struct keeping *keeping, int conversation, int life)
{
    enum dm_reaper_order order;
    int result;

    leave_program(conversation, life);
    if (keeping->postgres) {
        prctl(PR_SET_CHILD_SUBREAPER, 1);
        keeping->error = dm_pgserver_become_user(keeping->postgres, keeping->plan.directory);
    }
    while (next_order(&order)) {
        result = carry_out(keeping, order);
        if (send(CONVERSATION_FD, &result, sizeof result, MSG_NOSIGNAL) < 0)
            break;
    }
    kill_server(keeping);
    remove_directory(keeping->plan.directory);
    _exit(0);
}

/* ---- the process's side ------------------------------------------------------------------ */

/* Becomes readable when this process ends; -1 where the kernel has none (before 5.3). */
static int open_own_life(void)
{
#ifdef SYS_pidfd_open
    return (int)syscall(SYS_pidfd_open, getpid(), 0);
#else
    return -1;
#endif
}

/*
 * fork() without pthread_atfork() handlers, and without a signal at the child's end, which hides the child from wait().
 */
static pid_t fork_unseen(void)
{
    return (pid_t)syscall(SYS_clone, 0, 0, 0, 0, 0);
}

/* All signals stay blocked in the reaper, so that no handler of the program runs there. */
static pid_t fork_reaper(struct keeping *keeping, int conversation, int life)
{
    sigset_t all, mask;
    pid_t pid;

    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &mask);
    pid = fork_unseen();
    if (pid == 0)
        keep(keeping, conversation, life);
    pthread_sigmask(SIG_SETMASK, &mask, NULL);
    return pid;
}

static int make_plan(struct keeping *keeping, const char *directory)
{
    int error = dm_server_plan_init(&keeping->plan, directory, -1, false);

    if (!error && keeping->postgres) {
        error = dm_pgserver_plan_log(&keeping->plan);
        if (error)
            dm_server_plan_clear(&keeping->plan);
    }
    return error;
}

int dm_reaper_begin(struct dm_reaper *ret_reaper, const char *directory, const char *path,
                    const struct dm_pgserver *postgres)
{
    struct keeping keeping = { .path = path, .postgres = postgres };
    int ends[2], life, error;
    pid_t pid;

    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) < 0)
        return errno;
    error = make_plan(&keeping, directory);
    if (error) {
        close(ends[0]);
        close(ends[1]);
        return error;
    }
    life = open_own_life();
    pid = fork_reaper(&keeping, ends[1], life);
    if (pid < 0)
        error = errno;
    dm_server_plan_clear(&keeping.plan);
    close(ends[1]);
    if (life >= 0)
        close(life);
    if (error)
        close(ends[0]);
    else
        *ret_reaper = (struct dm_reaper){ .pid = pid, .fd = ends[0], .file = dm_fileid_of(ends[0]) };
    return error;
}

static bool tell(const struct dm_reaper *reaper, enum dm_reaper_order order)
{
    return dm_fileid_has(&reaper->file, reaper->fd) &&
           send(reaper->fd, &order, sizeof order, MSG_NOSIGNAL) == (ssize_t)sizeof order;
}

/* False at the end of the conversation. */
static bool hear(const struct dm_reaper *reaper, int *ret_result)
{
    ssize_t got;

    do {
        got = recv(reaper->fd, ret_result, sizeof *ret_result, 0);
    } while (got < 0 && errno == EINTR);
    return got == (ssize_t)sizeof *ret_result;
}

int dm_reaper_do(const struct dm_reaper *reaper, enum dm_reaper_order order)
{
    int result;

    return tell(reaper, order) && hear(reaper, &result) ? result : DM_REAPER_GONE;
}

void dm_reaper_end(struct dm_reaper *reaper)
{
    int result;

    if (tell(reaper, DM_REAPER_END)) {
        while (hear(reaper, &result))
            continue;
    }
    dm_fileid_close(&reaper->file, reaper->fd);
    while (waitpid(reaper->pid, NULL, __WALL) < 0 && errno == EINTR)
        continue;
}
