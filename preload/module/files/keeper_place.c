/* SPDX-License-Identifier: BSD-2-Clause */
#include "keeper_place.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "keeper_spawn.h"
#include "module/base/real.h"
#include "module/base/settings.h"
#include "shared/keeper_talk.h"
#include "shared/text.h"

#define DESCRIPTORS_LEAST 32

/* ---- which keeper ------------------------------------------------------------------------ */

/* FNV-1a over the text and its NUL. */
static uint64_t mix(uint64_t hash, const char *text)
{
    do
        hash = (hash ^ (unsigned char)*text) * 0x100000001b3;
    while (*text++);
    return hash;
}

/* Pids are only valid in one pid namespace, a server's address only in one network namespace. */
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
    const char *url = settings_get()->url;
    uint64_t hash = mix(0xcbf29ce484222325, KEEPER_VERSION);

    hash = mix(hash, url ? url : "");
    hash = mix_namespace(hash, "/proc/thread-self/ns/pid");
    return mix_namespace(hash, "/proc/thread-self/ns/net");
}

static void write_folder(struct text *text)
{
    const char *given = secure_getenv("DMUTEX_LOCAL_DIR");

    if (given && *given) {
        text_add(text, given);
        while (text->length > 1 && text->bytes[text->length - 1] == '/')
            text->bytes[--text->length] = '\0';
        return;
    }
    text_add(text, "/tmp/dmutex-");
    text_add_number(text, geteuid());
}

bool keeper_find_place(struct keeper_place *ret_place)
{
    struct text folder = text_in(ret_place->folder, sizeof ret_place->folder);
    struct text name = text_in(ret_place->name, sizeof ret_place->name);
    bool is_good;

    write_folder(&folder);
    text_add(&name, "keeper-"); /* KEEPER_SOCKET_PREFIX */
    text_add_hex(&name, identify());
    is_good =
        ret_place->folder[0] == '/' && !folder.is_cut && folder.length + 1 + name.length < sizeof ret_place->folder;
    if (!is_good)
        text_say("DMUTEX_LOCAL_DIR is not an absolute path, or too long for a socket's of 107 bytes", NULL);
    return is_good;
}

/* ---- the folder -------------------------------------------------------------------------- */

static int complain(const struct dm_fault *fault)
{
    char digits[12];
    struct text number = text_in(digits, sizeof digits);
    const char *error = strerrordesc_np(fault->error);

    text_add_number(&number, fault->owner);
    if (fault->kind == DM_FAULT_OWNER)
        text_say("the keeper of lock files cannot be asked: ", fault->place, " ", fault->words, " ", digits,
                 fault->is_open ? ": it is not used; chmod +t it, or set DMUTEX_LOCAL_DIR to a folder elsewhere, as "
                                  "/dev/shm/dmutex"
                                : ": it is not used; set DMUTEX_LOCAL_DIR to a folder of your own",
                 NULL);
    else if (fault->error == EAFNOSUPPORT)
        text_say("the keeper of lock files cannot be asked: this program may make no unix socket: allow AF_UNIX, as in "
                 "RestrictAddressFamilies= of its unit",
                 NULL);
    else
        text_say("the keeper of lock files cannot be started: ", fault->place, ": ", error ? error : "unknown error",
                 fault->error == EROFS || fault->error == EACCES || fault->error == ENOSPC
                     ? ": set DMUTEX_LOCAL_DIR to a folder that can be written"
                     : "",
                 NULL);
    return -1;
}

static int complain_of_error(const char *what)
{
    struct dm_fault fault = { .kind = DM_FAULT_ERROR, .error = errno };
    struct text place = text_in(fault.place, sizeof fault.place);

    text_add(&place, what);
    return complain(&fault);
}

/* The fault names a path that a person can look at, not only the socket's name. */
static int connect_in(int folder, const struct keeper_place *place, struct dm_fault *ret_fault)
{
    int connection = dm_place_connect(folder, place->name, SOCK_SEQPACKET, ret_fault);
    struct text path;

    if (connection >= 0)
        return connection;
    if (strcmp(ret_fault->place, place->name) != 0)
        return -1; /* it is /proc */
    path = text_in(ret_fault->place, sizeof ret_fault->place);
    text_add(&path, place->folder);
    text_add(&path, "/");
    text_add(&path, place->name);
    return -1;
}

/* Everybody can write to /tmp, and we believe whoever listens there. So the whole place is checked. */
int keeper_connect(const struct keeper_place *place, struct dm_fault *ret_fault)
{
    int folder = dm_place_open_own(place->folder, false, ret_fault), connection;

    if (folder < 0)
        return -1;
    connection = connect_in(folder, place, ret_fault);
    close(folder);
    return connection;
}

/* Held while a socket's name is made or removed. Ends with the descriptor, even if the process is killed. */
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
 * The caller makes the socket, so that every process can connect from now on, without waiting for the keeper to start.
 */
static int listen_at(int folder, const struct keeper_place *place)
{
    int listening = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    struct sockaddr_un address;

    if (listening < 0)
        return complain_of_error(place->folder);
    unlinkat(folder, place->name, 0); /* left by a killed keeper */
    if (dm_place_address(folder, place->name, &address) &&
        bind(listening, (const struct sockaddr *)&address, sizeof address) == 0 && listen(listening, SOMAXCONN) == 0)
        return listening;
    complain_of_error(place->folder);
    close(listening);
    return -1;
}

static int spawn_in(int folder, const struct keeper_place *place)
{
    int listening = listen_at(folder, place), connection = -1, error;
    char path[sizeof place->folder + sizeof place->name + 1];
    struct text text = text_in(path, sizeof path);
    struct dm_fault fault;

    if (listening < 0)
        return -1;
    text_add(&text, place->folder);
    text_add(&text, "/");
    text_add(&text, place->name);
    error = keeper_spawn(listening, folder, path);
    if (error == 0)
        connection = connect_in(folder, place, &fault);
    close(listening);
    if (connection >= 0)
        return connection;
    unlinkat(folder, place->name, 0);
    if (error == 0)
        return complain(&fault);
    errno = error;
    return complain_of_error(keeper_program());
}

static int start_guarded(int folder, const struct keeper_place *place)
{
    struct dm_fault fault;
    int connection = connect_in(folder, place, &fault);

    if (connection >= 0)
        return connection; /* another process was faster */
    if (fault.kind != DM_FAULT_ABSENT)
        return complain(&fault); /* a keeper may be running, so the name stays */
    return spawn_in(folder, place);
}

/* A separate function, so that its buffers and those of the search for the folder are not on the stack together. */
static __attribute__((__noinline__)) int start_in(int folder, const struct keeper_place *place)
{
    int guard = take_guard(folder), connection;

    if (guard < 0)
        return complain_of_error(place->folder);
    connection = start_guarded(folder, place);
    close(guard);
    return connection;
}

/*
 * True if children of this process are born in another pid namespace, after unshare() or setns(). The first of them
 * becomes process 1 there: a keeper that goes into the background would end the namespace, and no more processes could
 * be made in it. While there is none, the kernel's link leads nowhere.
 */
static bool are_children_elsewhere(void)
{
    static const char own[] = "/proc/thread-self/ns/pid", theirs[] = "/proc/thread-self/ns/pid_for_children";
    struct stat status, other;

    if (lstat(theirs, &other) < 0 || stat(own, &status) < 0)
        return false; /* a kernel before Linux 4.12 */
    return stat(theirs, &other) < 0 || other.st_ino != status.st_ino;
}

/* With fewer descriptors a keeper could not even serve one program, and would be in the way of a better one. */
static bool has_few_descriptors(void)
{
    struct rlimit limit;

    return getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_max < DESCRIPTORS_LEAST;
}

/* Blocks signals: a handler that locks a file must not wait for a guard that the interrupted code holds. */
int keeper_start(const struct keeper_place *place)
{
    struct dm_fault fault;
    sigset_t all, mask;
    int folder, connection = -1;

    if (are_children_elsewhere()) {
        text_say("the keeper of lock files cannot be started by a process that has left its pid namespace: fork first, "
                 "as unshare --fork does",
                 NULL);
        return -1;
    }
    if (has_few_descriptors()) {
        text_say(
            "the keeper of lock files cannot be started with less than 32 descriptors: raise the hard limit, as by "
            "ulimit -Hn",
            NULL);
        return -1;
    }
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &mask);
    folder = dm_place_open_own(place->folder, true, &fault);
    if (folder >= 0) {
        connection = start_in(folder, place);
        close(folder);
    } else {
        complain(&fault);
    }
    pthread_sigmask(SIG_SETMASK, &mask, NULL);
    return connection;
}
