/* SPDX-License-Identifier: BSD-2-Clause */
/* The test's side of an actor. */
#include "actor.h"

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "actor_parts.h"
#include "keeper.h"
#include "testlib.h"

extern char **environ;

#define ANSWER_ROOM 2048
#define ENVIRONMENT_ROOM 256

struct actor {
    pid_t pid; /* 0: reaped */
    int fd;
    char answer[ANSWER_ROOM];
};

/* The test program's environment, with the added variables first: the first of two with the same name counts. */
struct environment {
    char *strings[ENVIRONMENT_ROOM];
    int count;
};

static bool is_set(const struct environment *environment, const char *string)
{
    size_t length = strcspn(string, "=") + 1;

    for (int i = 0; i < environment->count; i++) {
        if (strncmp(environment->strings[i], string, length) == 0)
            return true;
    }
    return false;
}

static void put(struct environment *environment, char *string)
{
    if (!is_set(environment, string) && environment->count < ENVIRONMENT_ROOM - 1)
        environment->strings[environment->count++] = string;
}

/* errors: a file for standard error; NULL: the test's own. */
static struct actor *spawn(struct environment *environment, char *const *arguments, const char *errors)
{
    struct actor *actor = calloc(1, sizeof *actor);
    posix_spawn_file_actions_t actions;
    int ends[2];

    assert_non_null(actor);
    for (char **string = environ; *string; string++)
        put(environment, *string);
    assert_return_code(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), errno);
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, ends[1], 3);
    if (errors)
        posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, errors, O_WRONLY | O_CREAT | O_APPEND, 0600);
    assert_int_equal(posix_spawn(&actor->pid, arguments[0], &actions, NULL, arguments, environment->strings), 0);
    posix_spawn_file_actions_destroy(&actions);
    keeper_watch(actor->pid);
    close(ends[1]);
    actor->fd = ends[0];
    actor_expect(actor, "ready");
    return actor;
}

static char *host_label(char *room, size_t size)
{
    static int last;

    snprintf(room, size, "DMUTEX_HOST=host%d", ++last);
    return room;
}

/* Then sets all variables that the environment lacks. */
static struct actor *start(struct environment *environment, const char *url, char *const *arguments, const char *errors)
{
    char url_string[256], host[32];

    snprintf(url_string, sizeof url_string, "DMUTEX_URL=%s", url);
    put(environment, url_string);
    put(environment, host_label(host, sizeof host));
    return spawn(environment, arguments, errors);
}

static struct actor *start_own(struct environment *environment, const char *url)
{
    char *const arguments[] = { program_path, (char *)"--role", (char *)"actor", NULL };

    return start(environment, url, arguments, NULL);
}

static void put_all(struct environment *environment, va_list strings)
{
    char *string;

    while ((string = va_arg(strings, char *)))
        put(environment, string);
}

struct actor *actor_start(const struct server *server)
{
    return actor_start_with(server, NULL);
}

struct actor *actor_start_with(const struct server *server, ...)
{
    struct environment environment = { .count = 0 };
    va_list more;

    va_start(more, server);
    put_all(&environment, more);
    va_end(more);
    return start_own(&environment, server ? server->url : "");
}

struct actor *actor_start_at(const char *url)
{
    struct environment environment = { .count = 0 };

    return start_own(&environment, url);
}

struct actor *actor_start_holder(const struct server *server, const char *name, const char *options)
{
    struct actor *holder = actor_start(server);

    if (*options)
        actor_do(holder, "0", "init %s %s", name, options);
    actor_do(holder, "0", "lock %s", name);
    return holder;
}

struct actor *actor_start_program(const struct server *server, char *const *arguments, const char *errors,
                                  va_list environment)
{
    struct environment strings = { .count = 0 };

    put_all(&strings, environment);
    return start(&strings, server->url, arguments, errors);
}

__attribute__((__format__(__printf__, 2, 0))) static void send_line(struct actor *actor, const char *format,
                                                                    va_list arguments)
{
    char line[ANSWER_ROOM];
    int length = vsnprintf(line, sizeof line - 1, format, arguments);

    assert_within(length, 1, sizeof line - 2);
    line[length++] = '\n';
    assert_int_equal(send(actor->fd, line, (size_t)length, MSG_NOSIGNAL), length);
}

void actor_send(struct actor *actor, const char *format, ...)
{
    va_list arguments;

    va_start(arguments, format);
    send_line(actor, format, arguments);
    va_end(arguments);
}

const char *actor_answer(struct actor *actor)
{
    size_t length = 0;

    do {
        if (!wait_readable(actor->fd, WAIT_LIMIT_MS))
            fail_msg("no answer of the actor");
        if (read(actor->fd, actor->answer + length, 1) != 1)
            fail_msg("the actor has ended");
    } while (actor->answer[length++] != '\n' && length < sizeof actor->answer);
    actor->answer[length - 1] = '\0';
    return actor->answer;
}

bool actor_is_silent(struct actor *actor)
{
    return !wait_readable(actor->fd, 0);
}

long long actor_value(struct actor *actor, const char *format, ...)
{
    va_list arguments;
    const char *answer;

    va_start(arguments, format);
    send_line(actor, format, arguments);
    va_end(arguments);
    answer = actor_answer(actor);
    if (strncmp(answer, "0 ", 2) != 0)
        fail_msg("%s: %s", format, answer);
    return strtoll(answer + 2, NULL, 10);
}

long long actor_counted(const char *path)
{
    int64_t number = -1;
    FILE *file = fopen(path, "r");

    assert_non_null(file);
    assert_int_equal(fread(&number, sizeof number, 1, file), 1);
    fclose(file);
    return number;
}

void actor_begin_count(const char *path)
{
    const char zeros[sizeof(struct actor_page)] = { 0 };
    FILE *file = fopen(path, "w");

    assert_non_null(file);
    assert_int_equal(fwrite(zeros, sizeof zeros, 1, file), 1);
    assert_int_equal(fclose(file), 0);
}

void actor_watch_count(struct count_watch *watch, const char *path)
{
    long long number = actor_counted(path);
    int64_t now_ms = wait_now_ms();

    if (number != watch->last || !watch->since_ms)
        *watch = (struct count_watch){ number, now_ms };
    else if (now_ms > watch->since_ms + WAIT_LIMIT_MS)
        fail_msg("the count stands still at %lld", number);
}

const char *actor_answer_of_count(struct actor *actor, const char *path)
{
    struct count_watch watch = { 0, 0 };

    while (!wait_readable(actor->fd, 100))
        actor_watch_count(&watch, path);
    return actor_answer(actor);
}

pid_t actor_pid(const struct actor *actor)
{
    return actor->pid;
}

/* A process asks for a place in a queue only when its inbox is open. */
void actor_open_inbox(struct actor *actor)
{
    dmutex_t busy;

    make_normal(&busy, "inbox/busy", 0);
    assert_result(dmutex_lock(&busy), 0);
    actor_send(actor, "lock inbox/busy");
    wait_until(waiters_of(&busy) == 1);
    assert_result(dmutex_unlock(&busy), 0);
    actor_expect(actor, "0");
    actor_do(actor, "0", "unlock inbox/busy");
    actor_do(actor, "0", "destroy inbox/busy"); /* with a linger time, the lease goes back now */
    wait_until(!is_locked(&busy));
    assert_result(dmutex_destroy(&busy), 0);
}

int actor_losses(struct actor *actor)
{
    actor_send(actor, "lost");
    return (int)strtol(actor_answer(actor), NULL, 10);
}

void actor_assert_words(struct actor *actor, const char *words)
{
    const char *sentence;

    actor_send(actor, "strerror");
    sentence = actor_answer(actor);
    if (!strchr(sentence, ' ') || !strstr(sentence, words))
        fail_msg("\"%s\" does not say \"%s\"", sentence, words);
}

void actor_kill(struct actor *actor)
{
    assert_return_code(kill(actor->pid, SIGKILL), errno);
    keeper_reap(actor->pid);
    actor->pid = 0;
}

void actor_stop(struct actor *actor)
{
    assert_return_code(kill(actor->pid, SIGSTOP), errno);
    assert_int_equal(waitpid(actor->pid, NULL, WUNTRACED), actor->pid);
}

void actor_cont(struct actor *actor)
{
    assert_return_code(kill(actor->pid, SIGCONT), errno);
}

static void release(struct actor *actor)
{
    close(actor->fd);
    free(actor);
}

int actor_await(struct actor *actor)
{
    int status = keeper_reap(actor->pid);

    release(actor);
    return status;
}

void actor_end(struct actor *actor)
{
    if (actor->pid) {
        shutdown(actor->fd, SHUT_WR);
        assert_int_equal(keeper_reap(actor->pid), 0);
    }
    release(actor);
}
