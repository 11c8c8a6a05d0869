/* SPDX-License-Identifier: BSD-2-Clause */
/* Runs the snippet of places.h in all places of a program. The argument: a module to load. */
#include <dlfcn.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>

#include "places.h"

extern char **environ;

void linked_function(void);

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_key_t key;
static pid_t parent;

__attribute__((constructor)) static void begin(void)
{
    snippet("main-constructor", &lock);
}

__attribute__((destructor)) static void end(void)
{
    snippet(getpid() == parent || !parent ? "main-destructor" : "child-destructor", &lock);
}

static void at_exit(void)
{
    snippet(getpid() == parent ? "main-atexit" : "child-atexit", &lock);
}

static void handle(int number)
{
    (void)number;
    snippet("handler", &lock);
}

static void end_thread(void *user)
{
    (void)user;
    snippet("thread-end", &lock);
}

static void *work(void *user)
{
    snippet("thread", &lock);
    pthread_setspecific(key, user);
    return NULL;
}

static void in_a_thread(void)
{
    pthread_t thread;

    pthread_key_create(&key, end_thread);
    if (pthread_create(&thread, NULL, work, &key) != 0 || pthread_join(thread, NULL) != 0)
        abort();
}

static void in_a_module(const char *path)
{
    void *module = dlopen(path, RTLD_NOW);
    void (*function)(void);

    if (!module)
        abort();
    *(void **)&function = dlsym(module, "module_function");
    function();
    if (dlclose(module) != 0)
        abort();
}

/* A child and a grandchild; the child ends by exit(), the grandchild by _exit(). */
static void in_children(void)
{
    pid_t pid = fork();

    if (pid == 0) {
        snippet("child", &lock);
        pid = fork();
        if (pid == 0) {
            snippet("grandchild", &lock);
            _exit(0);
        }
        waitpid(pid, NULL, 0);
        exit(0);
    }
    if (pid < 0 || waitpid(pid, NULL, 0) != pid)
        abort();
}

/* Starts the program once more, as another program would. */
static void in_another_process(char *path)
{
    char *const arguments[] = { path, NULL };
    pid_t pid;

    if (posix_spawn(&pid, path, NULL, NULL, arguments, environ) != 0 || waitpid(pid, NULL, 0) != pid)
        abort();
}

int main(int count, char **arguments)
{
    parent = getpid();
    if (count < 2) {
        snippet("spawned", &lock);
        return 0;
    }
    atexit(at_exit);
    signal(SIGUSR1, handle);
    raise(SIGUSR1);
    snippet("main", &lock);
    linked_function();
    in_a_thread();
    in_a_module(arguments[1]);
    in_children();
    in_another_process(arguments[0]);
    raise(SIGUSR1);
    return 0;
}
