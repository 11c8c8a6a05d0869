/* SPDX-License-Identifier: BSD-2-Clause */
#include "host.h"

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

#define STRINGS 128
#define OUTPUT_ROOM 4096

struct host {
    char folder[64];
    char *strings[STRINGS]; /* of the environment */
    int count;
};

struct job {
    pid_t pid;
    int fd; /* the job's standard input and output */
    char output[OUTPUT_ROOM];
};

int host_begin_test(void **state)
{
    (void)state;
    wait_until(side_count_keys(the_server->side, "dmutex:{f}:lock:*") == 0);
    return 0;
}

/* ---- hosts ------------------------------------------------------------------------------- */

static bool is_named_as(const char *one, const char *other)
{
    size_t length = strcspn(one, "=") + 1;

    return strncmp(one, other, length) == 0;
}

/* Replaces a string of the same name. */
void host_put(struct host *host, const char *string)
{
    int i = 0;

    while (i < host->count && !is_named_as(host->strings[i], string))
        i++;
    assert_true(i < STRINGS - 1);
    free(host->strings[i]);
    host->strings[i] = strdup(string);
    if (i == host->count)
        host->count++;
}

static void __attribute__((__format__(__printf__, 2, 3))) put(struct host *host, const char *format, ...)
{
    va_list arguments;
    char *string;

    va_start(arguments, format);
    assert_return_code(vasprintf(&string, format, arguments), errno);
    va_end(arguments);
    host_put(host, string);
    free(string);
}

/* Sets a variable to the path of a file of the build tree that is next to this program. */
static void put_path(struct host *host, const char *name, const char *path)
{
    put(host, "%s=%.*s/%s", name, (int)(strrchr(program_path, '/') - program_path), program_path, path);
}

/* Makes a sanitizer in the keeper write to the files that host_end() reads. */
static void put_sanitizer(struct host *host, const char *name)
{
    const char *before = getenv(name);

    put(host, "%s=%s:log_path=%s/sanitizer", name, before ? before : "", host->folder);
}

struct host *host_make(const char *name, const char *settings)
{
    struct host *host = calloc(1, sizeof *host);

    assert_non_null(host);
    snprintf(host->folder, sizeof host->folder, "%s/%s", the_server->folder, name);
    assert_return_code(mkdir(host->folder, 0700), errno);
    for (char **string = environ; *string; string++)
        host_put(host, *string);
    put(host, "DMUTEX_URL=%s", the_server->url);
    put(host, "DMUTEX_HOST=%s", name);
    put(host, "DMUTEX_LOCAL_DIR=%s/keeper", host->folder);
    put(host, "DMUTEX_LOG=info:%s/log", host->folder);
    put(host, "DMUTEX_MAP=flock:%s/*.lock => f/%%b %s; fcntl:%s/*.lock => f/%%b %s", host->folder, settings,
        host->folder, settings);
    put_path(host, "DMUTEX_KEEPER", "../../preload/keeper/dmutex-keeper");
    put_path(host, "LD_PRELOAD", "../../preload/.libs/libdmutex-preload.so");
    put_path(host, "LOCKER", "locker");
    put_path(host, "DMUTEX_RUN", "../../preload/dmutex-run");
    put_sanitizer(host, "ASAN_OPTIONS");
    put_sanitizer(host, "TSAN_OPTIONS");
    put_sanitizer(host, "UBSAN_OPTIONS");
    return host;
}

const char *host_folder(const struct host *host)
{
    return host->folder;
}

/* Fails the test if a sanitizer has written a report, and shows the report. */
static void check_sanitizer(const struct host *host)
{
    DIR *folder = opendir(host->folder);
    struct dirent *entry;

    while ((entry = readdir(folder))) {
        char command[512];

        if (strncmp(entry->d_name, "sanitizer", 9) != 0)
            continue;
        snprintf(command, sizeof command, "sed 's/^/# /' %s/%.200s >&2", host->folder, entry->d_name);
        (void)!system(command);
        fail_msg("a sanitizer complains of the keeper");
    }
    closedir(folder);
}

void host_end(struct host *host)
{
    int keeper = host_open_keeper(host);

    if (keeper >= 0) {
        assert_true(await_readable(keeper));
        close(keeper);
    }
    check_sanitizer(host);
    for (int i = 0; i < host->count; i++)
        free(host->strings[i]);
    free(host);
}

struct host *a, *b;

int host_pair_setup(void **state)
{
    test_group_setup(state);
    a = host_make("a", "lease=60s");
    b = host_make("b", "lease=2s");
    return 0;
}

int host_pair_teardown(void **state)
{
    host_end(a);
    host_end(b);
    return test_group_teardown(state);
}

bool host_has_said(struct host *host, const char *words)
{
    char path[80], content[16384];
    size_t length;
    FILE *file;

    snprintf(path, sizeof path, "%s/said", host->folder);
    file = fopen(path, "r");
    if (!file)
        return false;
    length = fread(content, 1, sizeof content - 1, file);
    fclose(file);
    content[length] = '\0';
    return strstr(content, words) != NULL;
}

/* ---- the keeper -------------------------------------------------------------------------- */

/* A keeper's argument is the name of the keeper's socket. */
static bool is_keeper_of(const struct host *host, const char *pid)
{
    char path[64], line[512], socket[96];
    ssize_t length;
    int fd;

    snprintf(path, sizeof path, "/proc/%.10s/cmdline", pid);
    fd = open(path, O_RDONLY | O_CLOEXEC);
    length = fd >= 0 ? read(fd, line, sizeof line) : -1;
    if (fd >= 0)
        close(fd);
    snprintf(socket, sizeof socket, "%s/keeper/keeper-", host->folder);
    return length > 0 && memmem(line, (size_t)length, socket, strlen(socket));
}

pid_t host_keeper(struct host *host)
{
    DIR *processes = opendir("/proc");
    struct dirent *entry;
    pid_t found = 0;

    while (!found && (entry = readdir(processes)))
        if (entry->d_name[0] >= '0' && entry->d_name[0] <= '9' && is_keeper_of(host, entry->d_name))
            found = atoi(entry->d_name);
    closedir(processes);
    return found;
}

/* -1: no keeper. */
int host_open_keeper(struct host *host)
{
    pid_t pid = host_keeper(host);
    int fd = pid ? (int)syscall(SYS_pidfd_open, pid, 0) : -1;

    if (pid)
        assert_true(fd >= 0 || errno == ESRCH);
    return fd;
}

long host_reads(struct host *host)
{
    char path[32], line[80];
    long reads = -1;
    FILE *stream;

    snprintf(path, sizeof path, "/proc/%d/io", (int)host_keeper(host));
    stream = fopen(path, "r");
    assert_non_null(stream);
    while (fgets(line, sizeof line, stream) && sscanf(line, "syscr: %ld", &reads) != 1)
        continue;
    fclose(stream);
    return reads;
}

/* ---- jobs -------------------------------------------------------------------------------- */

struct job *host_start(struct host *host, const char *script)
{
    char *const arguments[] = { (char *)"/bin/sh", (char *)"-c", (char *)script, NULL };
    struct job *job = calloc(1, sizeof *job);
    posix_spawn_file_actions_t actions;
    int ends[2];
    char said[80];

    assert_non_null(job);
    snprintf(said, sizeof said, "%s/said", host->folder);
    assert_return_code(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), errno);
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, ends[1], 0);
    posix_spawn_file_actions_adddup2(&actions, ends[1], 1);
    posix_spawn_file_actions_addopen(&actions, 2, said, O_WRONLY | O_CREAT | O_APPEND, 0600);
    posix_spawn_file_actions_addchdir_np(&actions, host->folder);
    assert_int_equal(posix_spawn(&job->pid, arguments[0], &actions, NULL, arguments, host->strings), 0);
    posix_spawn_file_actions_destroy(&actions);
    keeper_watch(job->pid);
    close(ends[1]);
    job->fd = ends[0];
    return job;
}

struct job *host_start_holder(struct host *host)
{
    struct job *holder = host_start(host, "flock x.lock sh -c 'echo has; read go'");

    job_expect(holder, "has");
    return holder;
}

int host_run(struct host *host, const char *script)
{
    return job_end(host_start(host, script));
}

bool host_can_unshare(struct host *host, const char *what)
{
    char script[64];

    snprintf(script, sizeof script, "unshare -r %s true", what);
    if (host_run(host, script) == 0)
        return true;
    print_message("# unshare -r %s is forbidden here: not looked at\n", what);
    return false;
}

bool await_readable(int fd)
{
    return wait_readable(fd, WAIT_LIMIT_MS);
}

bool job_has_spoken(struct job *job)
{
    return wait_readable(job->fd, 0);
}

/* Reads up to the end of the output or, if is_line, the end of a line. */
static const char *take(struct job *job, bool is_line)
{
    size_t length = 0;

    while (length < OUTPUT_ROOM - 1) {
        if (!await_readable(job->fd))
            fail_msg("the job says nothing");
        if (read(job->fd, job->output + length, 1) != 1 || (is_line && job->output[length] == '\n'))
            break;
        length++;
    }
    job->output[length] = '\0';
    return job->output;
}

void job_expect(struct job *job, const char *line)
{
    assert_string_equal(take(job, true), line);
}

const char *job_line(struct job *job)
{
    return take(job, true);
}

const char *job_rest(struct job *job)
{
    return take(job, false);
}

void job_go(struct job *job)
{
    assert_int_equal(send(job->fd, "\n", 1, MSG_NOSIGNAL), 1);
}

void job_signal(struct job *job, int number)
{
    assert_return_code(kill(job->pid, number), errno);
}

pid_t job_pid(const struct job *job)
{
    return job->pid;
}

int job_end(struct job *job)
{
    int status = keeper_reap(job->pid);

    close(job->fd);
    free(job);
    return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

void job_finish(struct job *job)
{
    job_go(job);
    assert_int_equal(job_end(job), 0);
}

/* ---- the server's view ------------------------------------------------------------------- */

static const char *key(const char *kind, const char *file)
{
    char name[64];

    snprintf(name, sizeof name, "f/%s", file);
    return key_of(kind, name);
}

bool is_held(const char *file)
{
    return side_int(the_server->side, "EXISTS %s", key("lock", file)) == 1;
}

int waiters_for(const char *file)
{
    char name[PATH_MAX];

    snprintf(name, sizeof name, "f/%s", file);
    return waiters_at(the_server->side, name);
}

void lose(const char *file)
{
    char name[80];
    dmutex_t mutex;

    snprintf(name, sizeof name, "f/%s", file);
    assert_result(dmutex_init_np(&mutex, name, NULL), 0);
    assert_result(dmutex_forceunlock_np(&mutex), 0);
    assert_result(dmutex_destroy(&mutex), 0);
}
