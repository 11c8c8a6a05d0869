/* SPDX-License-Identifier: BSD-2-Clause */
/* The actor's side: does what the lines say. No cmocka here. */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "actor_parts.h"
#include "testlib.h"

#define CONVERSATION 3
#define HANDED_THREADS 4 /* that count at least, if mutexes are handed on */
#define LINE_ROOM ACTOR_LINE_ROOM
#define WORDS ACTOR_WORDS

static void perform(const char *line, char answer[LINE_ROOM]);

void actor_answer_result(struct call *call, int result)
{
    snprintf(call->answer, LINE_ROOM, "%s", result_name(result));
}

static void answer_value(struct call *call, int result, long long value)
{
    if (result)
        actor_answer_result(call, result);
    else
        snprintf(call->answer, LINE_ROOM, "0 %lld", value);
}

/* ---- objects ----------------------------------------------------------------------------- */

struct object {
    struct object *next;
    char *handle;
    dmutex_t *mutex; /* its own, or in a map */
    dmutex_t own;
};

static struct object *objects;
static pthread_mutex_t objects_guard = PTHREAD_MUTEX_INITIALIZER;

static struct object *find(const char *handle)
{
    struct object *object = objects;

    while (object && strcmp(object->handle, handle) != 0)
        object = object->next;
    return object;
}

/* A handle's object; in a new one, the mutex is all zeros. */
static struct object *object_of(const char *handle)
{
    struct object *object = find(handle);

    if (object)
        return object;
    object = calloc(1, sizeof *object);
    object->handle = strdup(handle);
    object->mutex = &object->own;
    object->next = objects;
    objects = object;
    return object;
}

dmutex_t *actor_mutex(const char *handle)
{
    struct object *object;

    pthread_mutex_lock(&objects_guard);
    object = find(handle);
    if (!object) {
        object = object_of(handle);
        dmutex_init_np(object->mutex, handle, NULL);
    }
    pthread_mutex_unlock(&objects_guard);
    return object->mutex;
}

static unsigned number_in(const char *word)
{
    return (unsigned)strtoul(strchr(word, '=') + 1, NULL, 10);
}

static bool begins(const char *word, const char *with)
{
    return strncmp(word, with, strlen(with)) == 0;
}

static int set_option(dmutexattr_t *attr, const char *word)
{
    if (strcmp(word, "recursive") == 0)
        return dmutexattr_settype(attr, PTHREAD_MUTEX_RECURSIVE);
    if (strcmp(word, "errorcheck") == 0)
        return dmutexattr_settype(attr, PTHREAD_MUTEX_ERRORCHECK);
    if (strcmp(word, "robust") == 0)
        return dmutexattr_setrobust(attr, PTHREAD_MUTEX_ROBUST);
    if (strcmp(word, "shared") == 0)
        return dmutexattr_setpshared(attr, PTHREAD_PROCESS_SHARED);
    if (strcmp(word, "fair") == 0)
        return dmutexattr_setfairness_np(attr, DMUTEX_FAIR_NP);
    if (strcmp(word, "anonymous") == 0)
        return dmutexattr_setname_np(attr, NULL);
    if (begins(word, "name="))
        return dmutexattr_setname_np(attr, word + 5);
    if (begins(word, "lease="))
        return dmutexattr_setlease_np(attr, number_in(word));
    if (begins(word, "maxhold="))
        return dmutexattr_setmaxhold_np(attr, number_in(word));
    if (begins(word, "linger="))
        return dmutexattr_setlinger_np(attr, number_in(word));
    return EINVAL;
}

static void do_init(struct call *call)
{
    struct object *object = object_of(call->words[1]);
    dmutexattr_t attr;
    int result = dmutexattr_init(&attr);

    if (!result)
        result = dmutexattr_setname_np(&attr, call->words[1]);
    for (int i = 2; !result && call->words[i]; i++)
        result = set_option(&attr, call->words[i]);
    if (!result)
        result = dmutex_init(object->mutex, &attr);
    actor_answer_result(call, result);
}

static void do_zero(struct call *call)
{
    memset(object_of(call->words[1])->mutex, 0, sizeof(dmutex_t));
    actor_answer_result(call, 0);
}

static void do_map(struct call *call)
{
    struct object *object = object_of(call->words[1]);
    int fd = open(call->words[2], O_RDWR | O_CLOEXEC);
    char *memory = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

    close(fd);
    if (memory == MAP_FAILED) {
        actor_answer_result(call, errno);
        return;
    }
    object->mutex = (dmutex_t *)(memory + atoi(call->words[3]));
    actor_answer_result(call, 0);
}

/* ---- calls about a mutex ----------------------------------------------------------------- */

static const struct {
    const char *word;
    int (*call)(dmutex_t *);
} plain_calls[] = {
    { "lock", dmutex_lock },
    { "trylock", dmutex_trylock },
    { "unlock", dmutex_unlock },
    { "consistent", dmutex_consistent },
    { "renew", dmutex_renew_np },
    { "destroy", dmutex_destroy },
    { "forceunlock", dmutex_forceunlock_np },
};

static bool is_plain(struct call *call)
{
    for (size_t i = 0; i < sizeof plain_calls / sizeof plain_calls[0]; i++) {
        if (strcmp(call->words[0], plain_calls[i].word) == 0) {
            actor_answer_result(call, plain_calls[i].call(actor_mutex(call->words[1])));
            return true;
        }
    }
    return false;
}

static void do_timed(struct call *call)
{
    bool is_real = strcmp(call->words[0], "timedlock") == 0;
    clockid_t clock = is_real ? CLOCK_REALTIME : CLOCK_MONOTONIC;
    struct timespec until = wait_time_in_ms(clock, strtoll(call->words[2], NULL, 10));
    dmutex_t *mutex = actor_mutex(call->words[1]);

    actor_answer_result(call, is_real ? dmutex_timedlock(mutex, &until) : dmutex_clocklock(mutex, clock, &until));
}

static void do_token(struct call *call)
{
    uint64_t token = 0;
    int result = dmutex_token_np(actor_mutex(call->words[1]), &token);

    answer_value(call, result, (long long)token);
}

static void do_remaining(struct call *call)
{
    int64_t left_ms = 0;
    int result = dmutex_remaining_np(actor_mutex(call->words[1]), &left_ms);

    answer_value(call, result, left_ms);
}

static void do_holdcount(struct call *call)
{
    unsigned count = 0;
    int result = dmutex_holdcount_np(actor_mutex(call->words[1]), &count);

    answer_value(call, result, count);
}

static void do_islocked(struct call *call)
{
    int locked = 0;
    int result = dmutex_islocked_np(actor_mutex(call->words[1]), &locked);

    answer_value(call, result, locked);
}

static void do_info(struct call *call)
{
    dmutex_info_t info = { .struct_size = sizeof info };
    int result = dmutex_getinfo_np(actor_mutex(call->words[1]), &info);
    bool is_health = strcmp(call->words[0], "health") == 0;

    answer_value(call, result, is_health ? info.health : info.waiters);
}

/* ---- a counter in a file ----------------------------------------------------------------- */

struct counting {
    int fd;
    long times;
    dmutex_t *mutex;
};

int actor_open_page(const char *path)
{
    return open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
}

int actor_add_one(int fd)
{
    struct actor_page page = { 0, 0 };

    if (pread(fd, &page, sizeof page, 0) < 0)
        return errno;
    if (page.inside++ != 0)
        return ENOTUNIQ;
    if (pwrite(fd, &page, sizeof page, 0) < 0)
        return errno;
    page.inside = 0;
    page.number++;
    return pwrite(fd, &page, sizeof page, 0) < 0 ? errno : 0;
}

static int lock_and_add_one(const struct counting *counting)
{
    int result = dmutex_lock(counting->mutex);
    int unlocked;

    if (result)
        return result;
    result = actor_add_one(counting->fd);
    unlocked = dmutex_unlock(counting->mutex);
    return result ? result : unlocked;
}

static void *count_up(void *user)
{
    const struct counting *counting = user;
    int result = 0;

    for (long i = 0; i < counting->times && !result; i++)
        result = lock_and_add_one(counting);
    return (void *)(intptr_t)result;
}

int actor_in_threads(int threads, void *(*work)(void *), void *user)
{
    pthread_t ids[ACTOR_THREADS];
    int result = 0;

    for (int i = 0; i < threads; i++)
        pthread_create(&ids[i], NULL, work, user);
    for (int i = 0; i < threads; i++) {
        void *of_thread;

        pthread_join(ids[i], &of_thread);
        if (of_thread)
            result = (int)(intptr_t)of_thread;
    }
    return result;
}

static void do_count(struct call *call)
{
    struct counting counting = { .fd = actor_open_page(call->words[1]),
                                 .times = atol(call->words[2]),
                                 .mutex = actor_mutex(call->words[3]) };
    int threads = call->words[4] ? atoi(call->words[4]) : 1;

    if (mutexes_are_handed() && threads < HANDED_THREADS && counting.times * threads % HANDED_THREADS == 0) {
        counting.times = counting.times * threads / HANDED_THREADS;
        threads = HANDED_THREADS;
    }
    actor_answer_result(call, actor_in_threads(threads, count_up, &counting));
    close(counting.fd);
}

/* ---- losses ------------------------------------------------------------------------------ */

static int lost_calls;
static uint64_t lost_token;

static void note_lost(const char *name, uint64_t token, void *user)
{
    (void)name;
    (void)user;
    __atomic_store_n(&lost_token, token, __ATOMIC_RELAXED);
    __atomic_add_fetch(&lost_calls, 1, __ATOMIC_RELEASE);
}

static void do_lost(struct call *call)
{
    int calls = __atomic_load_n(&lost_calls, __ATOMIC_ACQUIRE);

    snprintf(call->answer, LINE_ROOM, "%d %llu", calls,
             (unsigned long long)__atomic_load_n(&lost_token, __ATOMIC_RELAXED));
}

/* ---- threads and children ---------------------------------------------------------------- */

/* A command for a thread; `started` is that of the command `start`. */
struct carried {
    char line[LINE_ROOM];
    char answer[LINE_ROOM];
    pthread_t thread;
};

static struct carried started;

static void *run_carried(void *user)
{
    struct carried *carried = user;

    perform(carried->line, carried->answer);
    return NULL;
}

static void begin_carried(struct carried *carried, const char *line)
{
    snprintf(carried->line, sizeof carried->line, "%s", line);
    pthread_create(&carried->thread, NULL, run_carried, carried);
}

static void carry_in_thread(const char *line, char answer[LINE_ROOM])
{
    struct carried carried;

    begin_carried(&carried, line);
    pthread_join(carried.thread, NULL);
    memcpy(answer, carried.answer, LINE_ROOM);
}

static void carry_in_child(const char *line, char answer[LINE_ROOM], bool by_exit)
{
    int ends[2];
    ssize_t length;
    pid_t pid;

    if (pipe2(ends, O_CLOEXEC) < 0)
        return;
    pid = fork();
    if (pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        perform(line, answer);
        length = write(ends[1], answer, strlen(answer) + 1);
        if (by_exit)
            exit(length < 0);
        _exit(length < 0);
    }
    close(ends[1]);
    length = read(ends[0], answer, LINE_ROOM);
    if (length <= 0)
        snprintf(answer, LINE_ROOM, "the child died");
    close(ends[0]);
    waitpid(pid, NULL, 0);
}

/* posix_spawn() is vfork() and exec(). */
static void carry_in_vfork(char answer[LINE_ROOM])
{
    char *const arguments[] = { (char *)"true", NULL };
    pid_t pid;
    int status = posix_spawn(&pid, "/bin/true", NULL, NULL, arguments, NULL);

    if (!status)
        waitpid(pid, &status, 0);
    snprintf(answer, LINE_ROOM, "%d", status);
}

/* Commands that carry another command; true if the line is one. */
static bool is_carried(const char *line, char answer[LINE_ROOM])
{
    const char *rest = strchr(line, ' ');

    rest = rest ? rest + 1 : "";
    if (begins(line, "in-thread ")) {
        carry_in_thread(rest, answer);
    } else if (begins(line, "in-child ")) {
        carry_in_child(rest, answer, false);
    } else if (begins(line, "in-child-exit ")) {
        carry_in_child(rest, answer, true);
    } else if (begins(line, "in-vfork-exec")) {
        carry_in_vfork(answer);
    } else if (begins(line, "start ")) {
        begin_carried(&started, rest);
        strcpy(answer, "0");
    } else if (strcmp(line, "join") == 0) {
        void *end;

        pthread_join(started.thread, &end);
        strcpy(answer, end == PTHREAD_CANCELED ? "cancelled" : started.answer);
    } else if (strcmp(line, "cancel") == 0) {
        snprintf(answer, LINE_ROOM, "%s", result_name(pthread_cancel(started.thread)));
    } else if (begins(line, "say ")) {
        snprintf(answer, LINE_ROOM, "%s", rest);
    } else {
        return false;
    }
    return true;
}

/* ---- ends -------------------------------------------------------------------------------- */

static void end_by(struct call *call)
{
    int status = call->words[1] ? atoi(call->words[1]) : 0;
    char *const arguments[] = { program_path, (char *)"--role", (char *)"actor", NULL };

    if (strcmp(call->words[0], "exit") == 0)
        exit(status);
    if (strcmp(call->words[0], "_exit") == 0)
        _exit(status);
    if (strcmp(call->words[0], "abort") == 0)
        abort();
    if (strcmp(call->words[0], "segv") == 0) {
        signal(SIGSEGV, SIG_DFL); /* resets the sanitizer's handler */
        raise(SIGSEGV);
    }
    execv(program_path, arguments);
}

/* ---- the conversation -------------------------------------------------------------------- */

static void do_strerror(struct call *call)
{
    snprintf(call->answer, LINE_ROOM, "%s", dmutex_strerror_np());
}

static void do_configure(struct call *call)
{
    actor_answer_result(call, dmutex_configure_np(call->words[1]));
}

static const struct {
    const char *word;
    int least_words;
    void (*perform)(struct call *);
} commands[] = {
    { "init", 2, do_init },
    { "zero", 2, do_zero },
    { "map", 4, do_map },
    { "timedlock", 3, do_timed },
    { "clocklock", 3, do_timed },
    { "token", 2, do_token },
    { "remaining", 2, do_remaining },
    { "holdcount", 2, do_holdcount },
    { "islocked", 2, do_islocked },
    { "health", 2, do_info },
    { "waiters", 2, do_info },
    { "count", 4, do_count },
    { "wait", 3, actor_do_wait },
    { "timedwait", 4, actor_do_timedwait },
    { "signal", 2, actor_do_signal },
    { "broadcast", 2, actor_do_signal },
    { "crowd", 5, actor_do_crowd },
    { "turns", 6, actor_do_turns },
    { "lost", 1, do_lost },
    { "strerror", 1, do_strerror },
    { "configure", 2, do_configure },
    { "exit", 1, end_by },
    { "_exit", 1, end_by },
    { "abort", 1, end_by },
    { "segv", 1, end_by },
    { "exec", 1, end_by },
};

static int cut(struct call *call)
{
    char *rest = call->line, *word;
    int count = 0;

    while (count < WORDS - 1 && (word = strsep(&rest, " ")))
        call->words[count++] = word;
    return count;
}

static void perform(const char *line, char answer[LINE_ROOM])
{
    struct call call = { .answer = "not understood" };
    int count;

    if (is_carried(line, answer))
        return;
    snprintf(call.line, sizeof call.line, "%s", line);
    count = cut(&call);
    if (count < 2 || !is_plain(&call)) {
        for (size_t i = 0; i < sizeof commands / sizeof commands[0]; i++) {
            if (strcmp(call.words[0], commands[i].word) == 0 && count >= commands[i].least_words)
                commands[i].perform(&call);
        }
    }
    memcpy(answer, call.answer, LINE_ROOM);
}

static void say(const char *answer)
{
    if (dprintf(CONVERSATION, "%s\n", answer) < 0)
        _exit(3);
}

void actor_serve(void)
{
    static char line[LINE_ROOM], answer[LINE_ROOM];
    size_t length = 0;

    dmutex_setlost_np(note_lost, NULL);
    say("ready");
    while (read(CONVERSATION, line + length, 1) == 1) {
        if (line[length] != '\n' && length < sizeof line - 1) {
            length++;
            continue;
        }
        line[length] = '\0';
        length = 0;
        perform(line, answer);
        say(answer);
    }
    exit(0);
}
