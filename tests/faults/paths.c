/* SPDX-License-Identifier: BSD-2-Clause */
#include "paths.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <dmutex/testing.h>

#include "../lib/testlib.h"

/* ---- lock and unlock --------------------------------------------------------------------- */

/* The first use of a process; the server has a name that must be looked up. */
static void take_lock(void)
{
    arm();
    if (tried(dmutex_lock(&mutex), 0) == 0)
        done(dmutex_unlock(&mutex), 0);
    done(dmutex_destroy(&mutex), 0);
    disarm();
    make_objects();
}

/* Asks each question, with and without a hold. */
static void take_questions(void)
{
    dmutex_info_t info = { .struct_size = sizeof info };
    int is_locked_now;
    uint64_t token;

    warm_up();
    arm();
    tried(dmutex_islocked_np(&mutex, &is_locked_now), 0);
    if (tried(dmutex_trylock(&mutex), 0) == 0) {
        tried(dmutex_renew_np(&mutex), 0);
        tried(dmutex_getinfo_np(&mutex, &info), 0);
        done(dmutex_token_np(&mutex, &token), 0);
        done(dmutex_unlock(&mutex), 0);
    }
    disarm();
}

static void hand_over(struct peer *peer)
{
    done(dmutex_lock(&mutex), 0);
    peer_say(peer);
    await(peer_has_spoken(peer) || waiters_of(&mutex) == 1);
    done(dmutex_unlock(&mutex), 0);
    done(dmutex_lock(&mutex), 0);
    done(dmutex_unlock(&mutex), 0);
}

/* Another process hands the mutex over to this process, and back. */
static void take_one(void (*prepare)(void))
{
    struct peer peer;

    peer_start(&peer, hand_over);
    if (prepare)
        prepare();
    peer_hear(&peer);
    arm();
    if (tried(dmutex_lock(&mutex), 0) == 0)
        done(dmutex_unlock(&mutex), 0);
    disarm();
    peer_say(&peer);
    peer_end(&peer);
}

static void take_handoff(void)
{
    take_one(warm_up);
}

/* The wait is the first use of a process. */
static void take_first_wait(void)
{
    take_one(NULL);
}

static void hold_on(struct peer *peer)
{
    done(dmutex_lock(&mutex), 0);
    peer_say(peer);
    peer_hear(peer);
    done(dmutex_unlock(&mutex), 0);
}

/* The time passes while another process holds the mutex. */
static void take_timeout(void)
{
    struct timespec soon;
    struct peer peer;

    peer_start(&peer, hold_on);
    warm_up();
    peer_hear(&peer);
    soon = wait_time_in_ms(CLOCK_REALTIME, 20);
    arm();
    tried(dmutex_timedlock(&mutex, &soon), ETIMEDOUT);
    disarm();
    peer_say(&peer);
    peer_end(&peer);
}

/* ---- conditions -------------------------------------------------------------------------- */

static void broadcast_on(struct peer *peer)
{
    while (!peer_has_spoken(peer)) {
        done(dmutex_lock(&mutex), 0);
        done(dcond_broadcast(&cond), 0);
        done(dmutex_unlock(&mutex), 0);
        wait_nap();
    }
}

/* After each result of a wait, the caller owns the mutex. */
static void take_wait(void)
{
    struct peer peer;

    peer_start(&peer, broadcast_on);
    warm_up();
    done(dmutex_lock(&mutex), 0);
    arm();
    tried(dcond_wait(&cond, &mutex), 0);
    done(dmutex_unlock(&mutex), 0);
    disarm();
    peer_say(&peer);
    peer_end(&peer);
}

static void take_timedwait(void)
{
    struct timespec soon;

    warm_up();
    done(dmutex_lock(&mutex), 0);
    soon = wait_time_in_ms(CLOCK_REALTIME, 10);
    arm();
    tried(dcond_timedwait(&cond, &mutex, &soon), ETIMEDOUT);
    done(dmutex_unlock(&mutex), 0);
    disarm();
}

static void wait_once(struct peer *peer)
{
    done(dmutex_lock(&mutex), 0);
    peer_say(peer);
    done(dcond_wait(&cond, &mutex), 0);
    done(dmutex_unlock(&mutex), 0);
}

/* Peers wait; a peer ends when the signal has reached the peer, or a later signal that does not fail. */
static void take_wake(int count, int (*wake)(dcond_t *))
{
    struct peer peers[2];

    for (int i = 0; i < count; i++)
        peer_start(&peers[i], wait_once);
    warm_up();
    for (int i = 0; i < count; i++) {
        peer_hear(&peers[i]);
        done(dmutex_lock(&mutex), 0); /* the peer gives the mutex up by waiting */
        done(dmutex_unlock(&mutex), 0);
    }
    arm();
    if (tried(wake(&cond), 0) != 0) {
        disarm();
        done(wake(&cond), 0);
    }
    disarm();
    for (int i = 0; i < count; i++)
        peer_end(&peers[i]);
}

static void take_signal(void)
{
    take_wake(1, dcond_signal);
}

static void take_broadcast(void)
{
    take_wake(2, dcond_broadcast);
}

/* ---- deaths ------------------------------------------------------------------------------ */

static void die_holding(struct peer *peer)
{
    (void)peer;
    done(dmutex_lock(&mutex), 0);
}

/* The death is reported until the mutex is made consistent, even when calls fail. */
static void take_death(void)
{
    struct peer peer;

    peer_start(&peer, die_holding);
    warm_up();
    peer_end(&peer);
    arm();
    if (tried(dmutex_lock(&mutex), EOWNERDEAD) != EOWNERDEAD) {
        disarm();
        done(dmutex_lock(&mutex), EOWNERDEAD);
    }
    if (tried(dmutex_consistent(&mutex), 0) != 0) {
        disarm();
        done(dmutex_consistent(&mutex), 0);
    }
    done(dmutex_unlock(&mutex), 0);
    disarm();
}

static void hold_until_forced(struct peer *peer)
{
    int result;

    done(dmutex_lock(&mutex), 0);
    peer_say(peer);
    peer_hear(peer);
    result = dmutex_unlock(&mutex);
    done(result == EPERM ? 0 : result, 0);
}

/* A lock is taken away once, however often the call has to ask: the next holder keeps it. */
static void take_force(void)
{
    struct peer first, next;

    warm_up();
    peer_start(&first, hold_until_forced);
    peer_hear(&first);
    peer_start(&next, hold_on);
    await(waiters_of(&mutex) == 1);
    arm();
    tried(dmutex_forceunlock_np(&mutex), 0);
    if (tried(dmutex_lock(&spare), 0) == 0)
        done(dmutex_unlock(&spare), 0);
    disarm();
    peer_say(&first);
    peer_end(&first);
    peer_hear(&next);
    peer_say(&next);
    peer_end(&next);
}

static void die_armed(struct peer *peer)
{
    keeper_mind_leaks();
    warm_up();
    die_holding(peer);
    arm();
}

/* A process ends with a hold: the end is reported when the lease ends, at the latest. */
static void take_exit(void)
{
    struct peer peer;

    peer_start(&peer, die_armed);
    peer_end(&peer);
    done(dmutex_lock(&mutex), EOWNERDEAD);
    done(dmutex_consistent(&mutex), 0);
    done(dmutex_unlock(&mutex), 0);
}

/* ---- fork, network, local server --------------------------------------------------------- */

/* Parent and child continue at the same time; one of the two has the failure. */
static void take_fork(void)
{
    struct peer child;

    warm_up();
    done(dmutex_lock(&mutex), 0);
    arm();
    child.fd = -1;
    child.pid = fork();
    if (tried(dmutex_lock(&spare), 0) == 0)
        done(dmutex_unlock(&spare), 0);
    done(dmutex_unlock(&mutex), child.pid ? 0 : EPERM);
    if (child.pid == 0)
        exit(0); /* not at once: a release that is not sent yet would be left to the lease */
    disarm();
    peer_end(&child);
}

static bool has_reconnected(void)
{
    dmutex_stats_t stats = { .struct_size = sizeof stats };

    done(dmutex_stats_np(&stats), 0);
    return stats.reconnects > 0;
}

/* Both connections break under a hold. */
static void take_reconnect(void)
{
    warm_up();
    done(dmutex_lock(&mutex), 0);
    arm();
    cut_connections();
    if (tried(dmutex_lock(&spare), 0) == 0)
        done(dmutex_unlock(&spare), 0);
    done(dmutex_unlock(&mutex), 0);
    disarm();
    await(has_reconnected());
}

/* The first lock starts the server, which keeps no descriptor of the process. */
static void take_local(void)
{
    struct pollfd reader = { .events = POLLIN };
    int ends[2];

    setenv("DMUTEX_URL", "local:?connect_timeout=20000", 1); /* a server may take long to start on a busy machine */
    if (pipe(ends) < 0)
        run_complain("pipe: %s", strerror(errno));
    arm();
    if (tried(dmutex_lock(&mutex), 0) == 0)
        done(dmutex_unlock(&mutex), 0);
    disarm();
    done(dmutex_lock(&mutex), 0);
    done(dmutex_unlock(&mutex), 0);
    close(ends[1]);
    reader.fd = ends[0];
    if (poll(&reader, 1, WAIT_LIMIT_MS) != 1)
        run_complain("the server has a descriptor of ours");
    close(ends[0]);
}

/* True if the process of this entry of /proc works below the folder, also in a removed folder. */
static bool is_in(const char *entry, const char *folder)
{
    char path[300], place[300];
    size_t length = strlen(folder);

    snprintf(path, sizeof path, "/proc/%s/cwd", entry);
    return readlink(path, place, sizeof place) > (ssize_t)length && strncmp(place, folder, length) == 0 &&
           place[length] == '/';
}

static bool has_servers(const char *folder)
{
    DIR *processes = opendir("/proc");
    const struct dirent *entry;
    bool has = false;

    while (!has && (entry = readdir(processes)))
        has = isdigit((unsigned char)entry->d_name[0]) && is_in(entry->d_name, folder);
    closedir(processes);
    return has;
}

/* A server for a test, which leaves no trace. */
static void take_testserver(void)
{
    dmutex_test_server_t *server;
    const char *folder = getenv("TMPDIR");

    arm();
    if (tried(dmutex_test_server_start(&server), 0) == 0) {
        if (tried(dmutex_lock(&mutex), 0) == 0)
            done(dmutex_unlock(&mutex), 0);
        tried(dmutex_test_server_kill(server), 0);
        tried(dmutex_test_server_restart(server), 0);
        if (tried(dmutex_test_server_stop(server), 0) != 0) {
            disarm();
            done(dmutex_test_server_stop(server), 0);
        }
    }
    disarm();
    await(!has_servers(folder));
    if (rmdir(folder) < 0 && !is_failing(FAIL_FILE)) /* the reaper, which has two descriptors, can open another */
        run_complain("%s: %s", folder, strerror(errno));
    mkdir(folder, 0700);
    warm_up();
}

const struct path paths[PATH_COUNT] = {
    { .name = "lock", .take = take_lock, .is_tcp = true },
#if DM_HAVE_TLS
    { .name = "tls", .take = take_lock, .is_tls = true },
    { .name = "tls-reconnect", .take = take_reconnect, .is_tls = true },
#endif
    { .name = "questions", .take = take_questions },
    { .name = "handoff", .take = take_handoff },
    { .name = "cluster", .take = take_first_wait, .is_clustered = true },
    { .name = "timeout", .take = take_timeout },
    { .name = "wait", .take = take_wait },
    { .name = "timedwait", .take = take_timedwait },
    { .name = "signal", .take = take_signal },
    { .name = "broadcast", .take = take_broadcast },
    { .name = "death", .take = take_death },
    { .name = "force", .take = take_force, .is_confirmed = true },
    { .name = "exit", .take = take_exit },
    { .name = "fork", .take = take_fork },
    { .name = "reconnect", .take = take_reconnect },
    { .name = "local", .take = take_local, .is_local = true, .starts_servers = true },
    { .name = "testserver", .take = take_testserver, .is_local = true, .starts_servers = true },
};
