/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * An ordinary program: pthread mutexes and condition variables of all kinds, and no header of libdmutex. The program
 * reads a command per line from descriptor 3, and answers each by a line: "0", or the name of the errno value.
 *
 * X, C: a mutex, a condition: a name of the table below, NAME+OFFSET; `mapped+OFFSET`, in the mapping; dlsym() finds
 * another NAME, in the module that was opened last or anywhere.
 *
 *   lock X, trylock X, unlock X, consistent X, destroy X
 *   timedlock X MS, clocklock X MS          by REALTIME, MONOTONIC
 *   init X [recursive|errorcheck] [robust] [shared] [inherit|protect]
 *   cinit C [monotonic] [shared], cdestroy C
 *   wait C X, timedwait C X MS [monotonic], clockwait C X MS, signal C, broadcast C
 *   timeout C X MS [monotonic]   locks, waits until the time, through all wake-ups, unlocks
 *   until C X FILE N      locks, waits until the number in FILE is N, unlocks
 *   put C X FILE N        locks, writes N, broadcasts, unlocks
 *   guarded C X           locks, waits for ever; when cancelled, a handler unlocks: `join` has the handler's result
 *   old lock|trylock|unlock X               by the names that older programs use
 *   mtx init|lock|trylock|timedlock|unlock|destroy X [recursive|MS]
 *   cnd init|wait|timedwait|signal|broadcast|destroy C [X [MS]]
 *   count FILE N X        N times: lock, add 1 to the number in FILE, unlock; ENOTUNIQ: another process was inside
 *   open FILE [deepbind], close             dlopen(), dlclose(): "0" or the text of dlerror()
 *   loads FILE N          N times both
 *   map FILE, shm NAME, unmap               two pages, shared; a part: unmap [BYTES]
 *   remaps FILE N X       N times: map, lock and unlock X, unmap
 *   remakes N X           N times: make, unlock in vain, destroy X
 *   tasks, descriptors, has WORD            "0 NUMBER": threads, open files, lines of /proc/self/maps
 *   memory                                  "0 KIB": the process's own memory
 *   thread CMD, child CMD, handler CMD      run CMD there: the answer is CMD's
 *   start CMD, join, cancel                 a thread that goes on; the latest thread's answer, or cancellation
 *   exit N
 */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <threads.h>
#include <unistd.h>

#include "legacy.h"

#define CONVERSATION 3

static void perform(struct call *call);

/* ---- objects ----------------------------------------------------------------------------- */

pthread_mutex_t queue_lock = PTHREAD_MUTEX_INITIALIZER;
#ifdef EXPORTED
#define LOCAL /* a symbol of the program that libraries may see */
#else
#define LOCAL static
#endif
LOCAL pthread_mutex_t static_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t other_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t recursive_lock = PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP;
static pthread_mutex_t errorcheck_lock = PTHREAD_ERRORCHECK_MUTEX_INITIALIZER_NP;
static pthread_mutex_t adaptive_lock = PTHREAD_ADAPTIVE_MUTEX_INITIALIZER_NP;
static pthread_mutex_t made_lock; /* by init */
static mtx_t c11_lock;
static struct {
    char title[24];
    pthread_mutex_t locks[3];
} table = { .locks = { PTHREAD_MUTEX_INITIALIZER, PTHREAD_MUTEX_INITIALIZER, PTHREAD_MUTEX_INITIALIZER } };
static pthread_cond_t ready = PTHREAD_COND_INITIALIZER;
static pthread_cond_t other_ready = PTHREAD_COND_INITIALIZER;
static pthread_cond_t made_ready;
static cnd_t c11_ready;
static __thread pthread_mutex_t thread_lock;

#ifdef DIRECT
extern pthread_mutex_t shelf_lock; /* of a library: used directly */
#endif

static const struct {
    const char *name;
    void *address;
} objects[] = {
    { "queue_lock", &queue_lock },
    { "static_lock", &static_lock },
    { "other_lock", &other_lock },
    { "recursive_lock", &recursive_lock },
    { "errorcheck_lock", &errorcheck_lock },
    { "adaptive_lock", &adaptive_lock },
    { "made_lock", &made_lock },
    { "c11_lock", &c11_lock },
    { "table", &table },
    { "ready", &ready },
    { "other_ready", &other_ready },
    { "made_ready", &made_ready },
    { "c11_ready", &c11_ready },
#ifdef DIRECT
    { "direct_lock", &shelf_lock },
#endif
};

/* Finds static objects of a module: the module has a function NAME_address() for each. */
static char *find_in_module(const char *name)
{
    char function[200];
    void *(*address)(void);

    snprintf(function, sizeof function, "%.180s_address", name);
    *(void **)&address = dlsym(module, function);
    return address ? address() : dlsym(module, name);
}

static char *find(const char *name)
{
    if (strcmp(name, "mapped") == 0)
        return mapped;
    if (strcmp(name, "thread_lock") == 0)
        return (char *)&thread_lock;
    for (size_t i = 0; i < sizeof objects / sizeof objects[0]; i++)
        if (strcmp(objects[i].name, name) == 0)
            return objects[i].address;
    return find_in_module(name);
}

static void *object(const char *word)
{
    char name[200];
    const char *plus = strchr(word, '+');
    char *found;

    snprintf(name, sizeof name, "%.*s", (int)(plus ? plus - word : (long)strlen(word)), word);
    found = find(name);
    if (!found) {
        fprintf(stderr, "no object %s\n", name);
        abort();
    }
    return found + (plus ? strtoul(plus + 1, NULL, 0) : 0);
}

void *object_of(const struct call *call, int word)
{
    return call->words[word] ? object(call->words[word]) : NULL;
}

int has_word(const struct call *call, const char *word)
{
    for (int i = 2; call->words[i]; i++)
        if (strcmp(call->words[i], word) == 0)
            return 1;
    return 0;
}

void answer(struct call *call, int result)
{
    snprintf(call->answer, ROOM, "%s", result ? strerrorname_np(result) : "0");
}

void answer_number(struct call *call, long number)
{
    snprintf(call->answer, ROOM, "0 %ld", number);
}

struct timespec in_ms(clockid_t clock, const char *word)
{
    long ms = strtol(word, NULL, 10);
    struct timespec time;

    clock_gettime(clock, &time);
    time.tv_sec += ms / 1000;
    time.tv_nsec += ms % 1000 * 1000000;
    if (time.tv_nsec >= 1000000000) {
        time.tv_nsec -= 1000000000;
        time.tv_sec++;
    }
    if (time.tv_nsec < 0) {
        time.tv_nsec += 1000000000;
        time.tv_sec--;
    }
    return time;
}

/* ---- elsewhere --------------------------------------------------------------------------- */

/* The words after the first one, as a separate call. */
static struct call *inner(const struct call *call)
{
    static __thread struct call room;

    memset(&room, 0, sizeof room);
    for (int i = 1; call->words[i]; i++) {
        strcat(room.line, i > 1 ? " " : "");
        strcat(room.line, call->words[i]);
    }
    return &room;
}

static void *work(void *user)
{
    perform(user);
    return NULL;
}

static void do_thread(struct call *call)
{
    struct call *task = inner(call);
    pthread_t thread;

    if (pthread_create(&thread, NULL, work, task) != 0 || pthread_join(thread, NULL) != 0)
        abort();
    strcpy(call->answer, task->answer);
}

static struct started {
    pthread_t thread;
    struct call call;
} started[8];
static int started_count; /* the latest is joined first */

static void do_start(struct call *call)
{
    struct started *one = &started[started_count++];

    one->call = *inner(call);
    answer(call, pthread_create(&one->thread, NULL, work, &one->call));
}

static void do_join(struct call *call)
{
    struct started *one = &started[--started_count];

    if (pthread_join(one->thread, NULL) != 0)
        abort();
    strcpy(call->answer, one->call.answer);
}

static void do_cancel(struct call *call)
{
    answer(call, pthread_cancel(started[started_count - 1].thread));
}

static void do_child(struct call *call)
{
    struct call *task = inner(call);
    int ends[2];
    pid_t pid;

    if (pipe(ends) < 0 || (pid = fork()) < 0)
        abort();
    if (pid == 0) {
        perform(task);
        if (write(ends[1], task->answer, ROOM) < 0)
            abort();
        _exit(0);
    }
    close(ends[1]);
    if (read(ends[0], call->answer, ROOM) <= 0)
        answer(call, ECHILD);
    close(ends[0]);
    waitpid(pid, NULL, 0);
}

static struct call *in_handler;

static void handle(int number)
{
    (void)number;
    perform(in_handler);
}

static void do_handler(struct call *call)
{
    in_handler = inner(call);
    signal(SIGUSR1, handle);
    raise(SIGUSR1);
    strcpy(call->answer, in_handler->answer);
}

static void do_exit(struct call *call)
{
    exit((int)strtol(call->words[1], NULL, 10));
}

/* ---- the conversation -------------------------------------------------------------------- */

/* Performs further commands, if another source defines extra(). */
__attribute__((weak)) const char *extra(char **words);

static const struct command elsewhere[] = {
    { "thread", do_thread }, { "start", do_start },     { "join", do_join }, { "cancel", do_cancel },
    { "child", do_child },   { "handler", do_handler }, { "exit", do_exit }, { NULL, NULL },
};

static void perform(struct call *call)
{
    static const struct command *const tables[] = { calls, around, elsewhere };
    char *rest = call->line;
    const char *said;

    for (int i = 0; i < WORDS; i++)
        call->words[i] = strsep(&rest, " ");
    for (size_t i = 0; i < sizeof tables / sizeof tables[0]; i++)
        for (const struct command *command = tables[i]; command->name; command++)
            if (strcmp(command->name, call->words[0]) == 0) {
                command->work(call);
                return;
            }
    said = extra ? extra(call->words) : NULL;
    snprintf(call->answer, ROOM, "%s", said ? said : "unknown");
}

static void say(const char *text)
{
    char line[ROOM + 1];
    int length = snprintf(line, sizeof line, "%s\n", text);

    if (write(CONVERSATION, line, (size_t)length) != length)
        exit(0);
}

int main(void)
{
    static struct call call;
    size_t length = 0;

    fcntl(CONVERSATION, F_SETFD, FD_CLOEXEC);
    say("ready");
    while (read(CONVERSATION, call.line + length, 1) == 1 && length < ROOM - 1) {
        if (call.line[length++] != '\n')
            continue;
        call.line[length - 1] = '\0';
        perform(&call);
        say(call.answer);
        length = 0;
    }
    return 0;
}
