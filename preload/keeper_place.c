/* SPDX-License-Identifier: BSD-2-Clause */
#include "keeper_place.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "keeper_spawn.h"
#include "keeper_talk.h"
#include "real.h"
#include "text.h"

/* ---- which keeper ------------------------------------------------------------------------ */

/* FNV-1a, of the text and its NUL. */
static uint64_t mix(uint64_t hash, const char *text)
{
    do
        hash = (hash ^ (unsigned char)*text) * 0x100000001b3;
    while (*text++);
    return hash;
}

/* Pids mean something in one pid namespace only, a server's address in one network namespace. */
static uint64_t mix_namespace(uint64_t hash, const char *path)
{
    char number[24];
    struct text text = text_in(number, sizeof number);
    struct stat status = { .st_ino = 0 };

    if (stat(path, &status) == 0)
        text_add_number(&text, status.st_ino);
    return mix(hash, number);
}

static uint64_t identify(void)
{
    const char *url = secure_getenv("DMUTEX_URL");
    uint64_t hash = mix(0xcbf29ce484222325, KEEPER_VERSION);

    hash = mix(hash, url ? url : "");
    hash = mix_namespace(hash, "/proc/self/ns/pid");
    return mix_namespace(hash, "/proc/self/ns/net");
}

static void write_folder(struct text *text)
{
    const char *given = secure_getenv("DMUTEX_LOCAL_DIR");

    if (given && *given) {
        text_add(text, given);
        return;
    }
    text_add(text, "/tmp/dmutex-");
    text_add_number(text, geteuid());
}

bool keeper_find_place(struct sockaddr_un *ret_address)
{
    struct text path = text_in(ret_address->sun_path, sizeof ret_address->sun_path);

    ret_address->sun_family = AF_UNIX;
    write_folder(&path);
    text_add(&path, "/keeper-");
    text_add_hex(&path, identify());
    if (path.is_cut)
        text_say("DMUTEX_LOCAL_DIR is too long for a socket's path of 107 bytes", NULL);
    return !path.is_cut;
}

static int make_socket(void)
{
    return socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
}

int keeper_connect(const struct sockaddr_un *address)
{
    int connection = make_socket(), result;

    do {
        result = connect(connection, (const struct sockaddr *)address, sizeof *address);
    } while (result < 0 && errno == EINTR);
    if (result == 0)
        return connection;
    if (connection >= 0) {
        result = errno;
        close(connection);
        errno = result;
    }
    return -1;
}

/* ---- the folder -------------------------------------------------------------------------- */

static int complain(const char *what, const char *why)
{
    text_say("the keeper of lock files cannot be started: ", what, why, NULL);
    return -1;
}

static int complain_of_error(const char *what)
{
    const char *why = strerrordesc_np(errno);

    text_say("the keeper of lock files cannot be started: ", what, ": ", why ? why : "an unknown error", NULL);
    return -1;
}

/* Ours and closed to others: /tmp is everybody's, and who listens there is told what to lock. */
static int open_folder(const char *path)
{
    struct stat status;
    int folder;

    if (mkdir(path, 0700) < 0 && errno != EEXIST)
        return complain_of_error(path);
    folder = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (folder < 0)
        return complain_of_error(path);
    if (fstat(folder, &status) == 0 && status.st_uid == geteuid() && (status.st_mode & 077) == 0)
        return folder;
    close(folder);
    return complain(path, ": this folder belongs to another user, or is open to others: set DMUTEX_LOCAL_DIR");
}

static int open_folder_of(const struct sockaddr_un *address)
{
    char path[sizeof address->sun_path];
    struct text text = text_in(path, sizeof path);

    text_add_bytes(&text, address->sun_path, (size_t)(strrchr(address->sun_path, '/') - address->sun_path));
    return open_folder(path);
}

/* Held while a socket's name is made or removed; goes with its descriptor, also when we are killed. */
static int take_guard(int folder)
{
    int guard = openat(folder, KEEPER_GUARD, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);

    while (guard >= 0 && real_get()->flock(guard, LOCK_EX) < 0) {
        if (errno == EINTR)
            continue;
        close(guard);
        guard = -1;
    }
    return guard;
}

/* ---- the start --------------------------------------------------------------------------- */

/*
 * The caller makes the socket, so that everybody can connect from now on, and nobody waits until the
 * keeper has come up.
 */
static int listen_at(int folder, const struct sockaddr_un *address)
{
    int listening = make_socket();

    if (listening >= 0)
        unlinkat(folder, text_basename(address->sun_path), 0); /* of one that was killed */
    if (bind(listening, (const struct sockaddr *)address, sizeof *address) == 0 && listen(listening, SOMAXCONN) == 0)
        return listening;
    complain_of_error(address->sun_path);
    if (listening >= 0)
        close(listening);
    return -1;
}

static int start_guarded(int folder, const struct sockaddr_un *address)
{
    int connection = keeper_connect(address), listening, error;

    if (connection >= 0)
        return connection; /* somebody else was quicker */
    if (errno != ENOENT && errno != ECONNREFUSED)
        return complain_of_error(address->sun_path); /* there may be one, so its name stays */
    listening = listen_at(folder, address);
    if (listening < 0)
        return -1;
    error = keeper_spawn(listening, folder, address->sun_path);
    if (error == 0)
        connection = keeper_connect(address);
    close(listening);
    if (error == 0 && connection >= 0)
        return connection;
    unlinkat(folder, text_basename(address->sun_path), 0);
    errno = error ? error : errno;
    return complain_of_error(keeper_program());
}

static int start_in(int folder, const struct sockaddr_un *address)
{
    int guard = take_guard(folder), connection;

    if (guard < 0)
        return complain_of_error(KEEPER_GUARD);
    connection = start_guarded(folder, address);
    close(guard);
    return connection;
}

/* Signals are blocked: a handler that locks a file must not wait for the guard that it has interrupted. */
int keeper_start(const struct sockaddr_un *address)
{
    sigset_t all, mask;
    int folder, connection = -1;

    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &mask);
    folder = open_folder_of(address);
    if (folder >= 0) {
        connection = start_in(folder, address);
        close(folder);
    }
    pthread_sigmask(SIG_SETMASK, &mask, NULL);
    return connection;
}
