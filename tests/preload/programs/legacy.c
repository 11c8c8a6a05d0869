/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A program as there are many: it has pthread mutexes and condition variables of all kinds, and no
 * header of ours.  On descriptor 3 it takes a line at a time and answers each by one: "0", or the name
 * of the errno value.
 *
 * X, C: a mutex, a condition: a name of the table below, NAME+OFFSET; `mapped+OFFSET`, in what is
 * mapped; another NAME is what dlsym() finds, in the module that was opened last or anywhere.
 *
 *   lock X, trylock X, unlock X, consistent X, destroy X
 *   timedlock X MS, clocklock X MS          by REALTIME, MONOTONIC
 *   init X [recursive|errorcheck] [robust] [shared] [inherit|protect]
 *   cinit C [monotonic] [shared], cdestroy C
 *   wait C X, timedwait C X MS [monotonic], clockwait C X MS, signal C, broadcast C
 *   timeout C X MS [monotonic]   locks, waits until that time however often it wakes up, unlocks
 *   until C X FILE N      locks, waits until the number in FILE is N, unlocks
 *   put C X FILE N        locks, writes N, broadcasts, unlocks
 *   guarded C X           locks, waits for ever; when cancelled, a handler unlocks: `join` has that result
 *   old lock|trylock|unlock X               by the names that older programs use
 *   mtx init|lock|trylock|timedlock|unlock|destroy X [recursive|MS]
 *   cnd init|wait|timedwait|signal|broadcast|destroy C [X [MS]]
 *   count FILE N X        N times: lock, add 1 to the number in FILE, unlock; ENOTUNIQ: somebody else was there
 *   open FILE [deepbind], close             dlopen(), dlclose(): "0" or what dlerror() says
 *   loads FILE N          N times both
 *   map FILE, shm NAME, unmap               two pages, shared; how much of it: unmap [BYTES]
 *   remaps FILE N X       N times: map, lock and unlock X, unmap
 *   tasks, descriptors, has WORD            "0 NUMBER": threads, open files, lines of /proc/self/maps
 *   thread CMD, child CMD, handler CMD      there: the answer is CMD's
 *   start CMD, join, cancel                 in a thread that goes on; the last one's answer, its cancellation
 *   exit N
 */
#include <dlfcn.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <threads.h>
#include <time.h>
#include <unistd.h>

#define CONVERSATION 3
#define ROOM 1024
#define WORDS 8

struct call {
    char line[ROOM];
    char *words[WORDS + 1];
    char answer[ROOM];
};

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
extern pthread_mutex_t shelf_lock; /* a library's: used directly */
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

static void *module = RTLD_DEFAULT;
static char *mapped;
static size_t mapped_size;

/* A module says by a function where its static ones are: NAME_address(). */
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

static void *object_of(const struct call *call, int word)
{
    return call->words[word] ? object(call->words[word]) : NULL;
}

static int has_word(const struct call *call, const char *word)
{
    for (int i = 2; call->words[i]; i++)
        if (strcmp(call->words[i], word) == 0)
            return 1;
    return 0;
}

/* The answer: a result, and its number. */
static void answer(struct call *call, int result)
{
    snprintf(call->answer, ROOM, "%s", result ? strerrorname_np(result) : "0");
}

static void answer_number(struct call *call, long number)
{
    snprintf(call->answer, ROOM, "0 %ld", number);
}

static struct timespec in_ms(clockid_t clock, const char *word)
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

/* ---- mutexes ----------------------------------------------------------------------------- */

static void do_lock(struct call *call) { answer(call, pthread_mutex_lock(object_of(call, 1))); }
static void do_trylock(struct call *call) { answer(call, pthread_mutex_trylock(object_of(call, 1))); }
static void do_unlock(struct call *call) { answer(call, pthread_mutex_unlock(object_of(call, 1))); }
static void do_consistent(struct call *call) { answer(call, pthread_mutex_consistent(object_of(call, 1))); }
static void do_destroy(struct call *call) { answer(call, pthread_mutex_destroy(object_of(call, 1))); }

static void do_timedlock(struct call *call)
{
    struct timespec until = in_ms(CLOCK_REALTIME, call->words[2]);

    answer(call, pthread_mutex_timedlock(object_of(call, 1), &until));
}

static void do_clocklock(struct call *call)
{
    struct timespec until = in_ms(CLOCK_MONOTONIC, call->words[2]);

    answer(call, pthread_mutex_clocklock(object_of(call, 1), CLOCK_MONOTONIC, &until));
}

static void do_init(struct call *call)
{
    pthread_mutexattr_t attr;

    pthread_mutexattr_init(&attr);
    if (has_word(call, "recursive"))
        pthread_mutexattr_settype(&attr, PTHREAD_MUTEX_RECURSIVE);
    if (has_word(call, "errorcheck"))
        pthread_mutexattr_settype(&attr, PTHREAD_MUTEX_ERRORCHECK);
    if (has_word(call, "robust"))
        pthread_mutexattr_setrobust(&attr, PTHREAD_MUTEX_ROBUST);
    if (has_word(call, "shared"))
        pthread_mutexattr_setpshared(&attr, PTHREAD_PROCESS_SHARED);
    if (has_word(call, "inherit"))
        pthread_mutexattr_setprotocol(&attr, PTHREAD_PRIO_INHERIT);
    if (has_word(call, "protect"))
        pthread_mutexattr_setprotocol(&attr, PTHREAD_PRIO_PROTECT);
    answer(call, pthread_mutex_init(object_of(call, 1), &attr));
}

/* ---- conditions -------------------------------------------------------------------------- */

static void do_cinit(struct call *call)
{
    pthread_condattr_t attr;

    pthread_condattr_init(&attr);
    if (has_word(call, "monotonic"))
        pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    if (has_word(call, "shared"))
        pthread_condattr_setpshared(&attr, PTHREAD_PROCESS_SHARED);
    answer(call, pthread_cond_init(object_of(call, 1), &attr));
}

static void do_cdestroy(struct call *call) { answer(call, pthread_cond_destroy(object_of(call, 1))); }
static void do_signal(struct call *call) { answer(call, pthread_cond_signal(object_of(call, 1))); }
static void do_broadcast(struct call *call) { answer(call, pthread_cond_broadcast(object_of(call, 1))); }
static void do_wait(struct call *call) { answer(call, pthread_cond_wait(object_of(call, 1), object_of(call, 2))); }

/* Waits until the time; ETIME: it came back too early with ETIMEDOUT. */
static int wait_until_time(struct call *call, struct timespec *until, clockid_t clock)
{
    int result = pthread_cond_timedwait(object_of(call, 1), object_of(call, 2), until);
    struct timespec now;

    clock_gettime(clock, &now);
    if (now.tv_sec < until->tv_sec || (now.tv_sec == until->tv_sec && now.tv_nsec < until->tv_nsec))
        return result == ETIMEDOUT ? ETIME : result;
    return result;
}

/* A condition that was made `monotonic` is timed so. */
static clockid_t clock_of(const struct call *call)
{
    return has_word(call, "monotonic") ? CLOCK_MONOTONIC : CLOCK_REALTIME;
}

static void do_timedwait(struct call *call)
{
    struct timespec until = in_ms(clock_of(call), call->words[3]);

    answer(call, wait_until_time(call, &until, clock_of(call)));
}

static void do_timeout(struct call *call)
{
    struct timespec until = in_ms(clock_of(call), call->words[3]);
    int result = pthread_mutex_lock(object_of(call, 2));

    while (!result)
        result = wait_until_time(call, &until, clock_of(call));
    answer(call, pthread_mutex_unlock(object_of(call, 2)) ? ENOTRECOVERABLE : result);
}

static void do_clockwait(struct call *call)
{
    struct timespec until = in_ms(CLOCK_MONOTONIC, call->words[3]);

    answer(call, pthread_cond_clockwait(object_of(call, 1), object_of(call, 2), CLOCK_MONOTONIC, &until));
}

static long number_in(const char *path)
{
    char text[32] = "";
    int fd = open(path, O_RDONLY);

    if (fd < 0 || read(fd, text, sizeof text - 1) < 0)
        abort();
    close(fd);
    return strtol(text, NULL, 10);
}

static void do_until(struct call *call)
{
    long wanted = strtol(call->words[4], NULL, 10);
    int result = pthread_mutex_lock(object_of(call, 2));

    while (!result && number_in(call->words[3]) != wanted)
        result = pthread_cond_wait(object_of(call, 1), object_of(call, 2));
    answer(call, result ? result : pthread_mutex_unlock(object_of(call, 2)));
}

static void do_put(struct call *call)
{
    int result = pthread_mutex_lock(object_of(call, 2));
    int fd = open(call->words[3], O_WRONLY | O_TRUNC);

    if (write(fd, call->words[4], strlen(call->words[4])) < 0)
        abort();
    close(fd);
    result = result ? result : pthread_cond_broadcast(object_of(call, 1));
    answer(call, result ? result : pthread_mutex_unlock(object_of(call, 2)));
}

static void unlock_in_handler(void *user)
{
    struct call *call = user;

    answer(call, pthread_mutex_unlock(object_of(call, 2)));
}

static void do_guarded(struct call *call)
{
    int result = pthread_mutex_lock(object_of(call, 2));

    pthread_cleanup_push(unlock_in_handler, call);
    while (!result)
        result = pthread_cond_wait(object_of(call, 1), object_of(call, 2));
    pthread_cleanup_pop(1);
    answer(call, result);
}

/* ---- other names for the same ------------------------------------------------------------ */

static void do_old(struct call *call)
{
    char name[64];
    int (*function)(pthread_mutex_t *);

    snprintf(name, sizeof name, "__pthread_mutex_%s", call->words[1]);
    *(void **)&function = dlsym(RTLD_DEFAULT, name);
    answer(call, function ? function(object_of(call, 2)) : ENOSYS);
}

static void answer_c11(struct call *call, int result)
{
    static const char *const names[] = {
        [thrd_success] = "0", [thrd_busy] = "EBUSY", [thrd_error] = "error", [thrd_nomem] = "ENOMEM", [thrd_timedout] = "ETIMEDOUT",
    };

    snprintf(call->answer, ROOM, "%s", names[result]);
}

static void do_mtx(struct call *call)
{
    const char *what = call->words[1];
    mtx_t *mutex = object_of(call, 2);
    int result = thrd_success;

    if (strcmp(what, "init") == 0)
        result = mtx_init(mutex, has_word(call, "recursive") ? mtx_plain | mtx_recursive : mtx_timed);
    else if (strcmp(what, "lock") == 0)
        result = mtx_lock(mutex);
    else if (strcmp(what, "trylock") == 0)
        result = mtx_trylock(mutex);
    else if (strcmp(what, "unlock") == 0)
        result = mtx_unlock(mutex);
    else if (strcmp(what, "destroy") == 0)
        mtx_destroy(mutex);
    else if (strcmp(what, "timedlock") == 0) {
        struct timespec until = in_ms(CLOCK_REALTIME, call->words[3]);

        result = mtx_timedlock(mutex, &until);
    }
    answer_c11(call, result);
}

static void do_cnd(struct call *call)
{
    const char *what = call->words[1];
    cnd_t *condition = object_of(call, 2);
    int result = thrd_success;

    if (strcmp(what, "init") == 0)
        result = cnd_init(condition);
    else if (strcmp(what, "wait") == 0)
        result = cnd_wait(condition, object_of(call, 3));
    else if (strcmp(what, "signal") == 0)
        result = cnd_signal(condition);
    else if (strcmp(what, "broadcast") == 0)
        result = cnd_broadcast(condition);
    else if (strcmp(what, "destroy") == 0)
        cnd_destroy(condition);
    else if (strcmp(what, "timedwait") == 0) {
        struct timespec until = in_ms(CLOCK_REALTIME, call->words[4]);

        result = cnd_timedwait(condition, object_of(call, 3), &until);
    }
    answer_c11(call, result);
}

/* ---- counting ---------------------------------------------------------------------------- */

/* As two that are apart would see it in a file that they share: read, think, write. */
struct page {
    int64_t number, inside;
};

static int add_one(int fd)
{
    struct page page;
    int is_alone;

    if (pread(fd, &page, sizeof page, 0) != sizeof page)
        return EIO;
    is_alone = page.inside == 0;
    page.inside++;
    if (pwrite(fd, &page, sizeof page, 0) != sizeof page)
        return EIO;
    sched_yield();
    page.number++;
    page.inside--;
    if (pwrite(fd, &page, sizeof page, 0) != sizeof page)
        return EIO;
    return is_alone ? 0 : ENOTUNIQ;
}

static void do_count(struct call *call)
{
    int fd = open(call->words[1], O_RDWR | O_CLOEXEC), result = fd < 0 ? errno : 0;
    void *mutex = object_of(call, 3);

    for (long i = strtol(call->words[2], NULL, 10); i > 0 && !result; i--) {
        result = pthread_mutex_lock(mutex);
        result = result ? result : add_one(fd);
        result = result ? result : pthread_mutex_unlock(mutex);
    }
    close(fd);
    answer(call, result);
}

/* ---- what comes and goes ----------------------------------------------------------------- */

static void do_open(struct call *call)
{
    void *opened = dlopen(call->words[1], RTLD_NOW | (has_word(call, "deepbind") ? RTLD_DEEPBIND : 0));

    snprintf(call->answer, ROOM, "%s", opened ? "0" : dlerror());
    if (opened)
        module = opened;
}

static void do_close(struct call *call)
{
    answer(call, dlclose(module) ? EINVAL : 0);
    module = RTLD_DEFAULT;
}

static void do_loads(struct call *call)
{
    int result = 0;

    for (long i = strtol(call->words[2], NULL, 10); i > 0 && !result; i--) {
        void *opened = dlopen(call->words[1], RTLD_NOW);

        result = !opened || dlclose(opened) ? ENOEXEC : 0;
    }
    answer(call, result);
}

/* `at` NULL: anywhere. */
static int map_file(int fd)
{
    mapped_size = 2 * (size_t)sysconf(_SC_PAGESIZE);
    if (fd < 0 || ftruncate(fd, (off_t)mapped_size) < 0)
        return errno;
    mapped = mmap(mapped, mapped_size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    close(fd);
    return mapped == MAP_FAILED ? errno : 0;
}

static void do_map(struct call *call)
{
    answer(call, map_file(open(call->words[1], O_RDWR | O_CREAT | O_CLOEXEC, 0600)));
}

static void do_shm(struct call *call)
{
    answer(call, map_file(shm_open(call->words[1], O_RDWR | O_CREAT, 0600)));
}

/* `mapped` stays, as a hint for the next one: the same address. */
static void do_unmap(struct call *call)
{
    size_t size = call->words[1] ? strtoul(call->words[1], NULL, 0) : mapped_size;

    answer(call, munmap(mapped, size) < 0 ? errno : 0);
}

static void do_remaps(struct call *call)
{
    int result = 0;

    for (long i = strtol(call->words[2], NULL, 10); i > 0 && !result; i--) {
        result = map_file(open(call->words[1], O_RDWR | O_CLOEXEC));
        result = result ? result : pthread_mutex_lock(object_of(call, 3));
        result = result ? result : pthread_mutex_unlock(object_of(call, 3));
        munmap(mapped, mapped_size);
    }
    answer(call, result);
}

/* ---- what it has ------------------------------------------------------------------------- */

static long entries(const char *path)
{
    DIR *folder = opendir(path);
    long count = 0;

    for (struct dirent *entry; (entry = readdir(folder));)
        count += entry->d_name[0] != '.';
    closedir(folder);
    return count;
}

static void do_tasks(struct call *call) { answer_number(call, entries("/proc/self/task")); }
static void do_descriptors(struct call *call) { answer_number(call, entries("/proc/self/fd") - 1); }

static void do_has(struct call *call)
{
    FILE *maps = fopen("/proc/self/maps", "r");
    char line[4096];
    long count = 0;

    while (fgets(line, sizeof line, maps))
        count += strstr(line, call->words[1]) != NULL;
    fclose(maps);
    answer_number(call, count);
}

/* "0 KIB": memory that is its own. */
static void do_memory(struct call *call)
{
    FILE *status = fopen("/proc/self/status", "r");
    char line[256];
    long kib = -1;

    while (fgets(line, sizeof line, status))
        sscanf(line, "RssAnon: %ld", &kib);
    fclose(status);
    answer_number(call, kib);
}

/* ---- elsewhere --------------------------------------------------------------------------- */

/* The words behind the first as a call of its own. */
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
static int started_count; /* the last one is joined first */

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

static void do_cancel(struct call *call) { answer(call, pthread_cancel(started[started_count - 1].thread)); }

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

/* Another source may know more. */
__attribute__((weak)) const char *extra(char **words);

static const struct {
    const char *name;
    void (*work)(struct call *call);
} commands[] = {
    { "lock", do_lock },           { "trylock", do_trylock },     { "unlock", do_unlock },
    { "consistent", do_consistent }, { "destroy", do_destroy },   { "timedlock", do_timedlock },
    { "clocklock", do_clocklock }, { "init", do_init },           { "cinit", do_cinit },
    { "cdestroy", do_cdestroy },   { "signal", do_signal },       { "broadcast", do_broadcast },
    { "wait", do_wait },           { "timedwait", do_timedwait }, { "clockwait", do_clockwait },
    { "timeout", do_timeout },
    { "until", do_until },         { "put", do_put },             { "guarded", do_guarded },
    { "old", do_old },             { "mtx", do_mtx },             { "cnd", do_cnd },
    { "count", do_count },         { "open", do_open },           { "close", do_close },
    { "loads", do_loads },         { "map", do_map },             { "shm", do_shm },
    { "unmap", do_unmap },         { "remaps", do_remaps },       { "tasks", do_tasks },
    { "descriptors", do_descriptors }, { "has", do_has },         { "memory", do_memory },
    { "thread", do_thread },       { "start", do_start },         { "join", do_join },
    { "cancel", do_cancel },       { "child", do_child },         { "handler", do_handler },
    { "exit", do_exit },
};

static void perform(struct call *call)
{
    char *rest = call->line;
    const char *said;

    for (int i = 0; i < WORDS; i++)
        call->words[i] = strsep(&rest, " ");
    for (size_t i = 0; i < sizeof commands / sizeof commands[0]; i++)
        if (strcmp(commands[i].name, call->words[0]) == 0) {
            commands[i].work(call);
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
