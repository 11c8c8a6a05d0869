/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Tries clauses and prints one line for each, in the order of the tables:
 *
 *     <id> <name>: <outcome>
 *
 *     shalls [page | id]...     all, or those of some pages, or some
 *     shalls --list [...]       ids and names only
 *
 * The outcome begins with the clause's words, and ends with "hangs" when the clause did not end within LIMIT_MS, or
 * with the signal that killed the clause.
 */
#include "shalls.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

/* Against hanging only. */
#define LIMIT_MS 60000

/* How many clauses are tried at once; the longest ones wait for leases and do nothing else. */
#define AT_ONCE 8

#define CLAUSES 400
#define OUTCOME_ROOM 1000

static const struct {
    const char *name;
    const struct clause *clauses;
} pages[] = {
    { "mutex_init", mutex_init_clauses },   { "mutex", mutex_clauses },
    { "mutex_time", mutex_time_clauses },   { "mutexattr", mutexattr_clauses },
    { "robust", robust_clauses },           { "shared", shared_clauses },
    { "cancel", cancel_clauses },           { "cond_wait", cond_wait_clauses },
    { "cond_time", cond_time_clauses },     { "cond_signal", cond_signal_clauses },
    { "cond_robust", cond_robust_clauses }, { "cond_shared", cond_shared_clauses },
    { "cond_cancel", cond_cancel_clauses }, { "condattr", condattr_clauses },
};
#define PAGES (sizeof pages / sizeof pages[0])

/* One clause to be tried. Its process writes the outcome. */
struct trial {
    const struct clause *clause;
    char *outcome;
    pid_t pid; /* 0: not begun, or over */
    int64_t limit_ms;
};

static struct trial trials[CLAUSES];
static int trial_count;
static char *own_outcome; /* in a clause's process */

/* Adds a piece to the outcome of this process's clause. */
static void __attribute__((__format__(__printf__, 1, 2))) tell(const char *format, ...)
{
    size_t length = strlen(own_outcome);
    va_list arguments;

    va_start(arguments, format);
    vsnprintf(own_outcome + length, OUTCOME_ROOM - length, format, arguments);
    va_end(arguments);
}

void say(const char *what, int result)
{
    if (result == CANCELLED)
        say_text(what, "cancelled");
    else if (result == KILLED)
        say_text(what, "killed");
    else if (result == ENOTSUP)
        say_text(what, "ENOTSUP"); /* EOPNOTSUPP by the other name */
    else
        say_text(what, result == 0 ? "0" : strerrorname_np(result));
}

void say_number(const char *what, long number)
{
    tell(" %s=%ld", what, number);
}

void say_whether(const char *what, bool is_so)
{
    say_text(what, is_so ? "yes" : "no");
}

void say_text(const char *what, const char *seen)
{
    tell(" %s=%s", what, seen ? seen : "?");
}

static int64_t now_ms(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

/* Tries a clause in a process, the leader of a group with all children of the clause. */
static void begin(struct trial *trial)
{
    trial->limit_ms = now_ms() + LIMIT_MS;
    trial->pid = fork();
    if (trial->pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        setpgid(0, 0);
        own_outcome = trial->outcome;
        trial->clause->check();
        _exit(0);
    }
    if (trial->pid < 0) {
        perror("fork");
        exit(2);
    }
    setpgid(trial->pid, trial->pid);
}

/* True if the trial's process has ended, or was ended at the time limit. */
static bool is_over(struct trial *trial)
{
    int status;
    bool is_late = now_ms() > trial->limit_ms;

    if (is_late)
        kill(-trial->pid, SIGKILL);
    if (waitpid(trial->pid, &status, is_late ? 0 : WNOHANG) == 0)
        return false;
    kill(-trial->pid, SIGKILL);
    own_outcome = trial->outcome;
    if (is_late)
        tell(" hangs");
    else if (WIFSIGNALED(status))
        tell(" SIG%s", sigabbrev_np(WTERMSIG(status)));
    else if (WEXITSTATUS(status) != 0)
        tell(" exit=%d", WEXITSTATUS(status));
    return true;
}

/* Tries all, some at once. */
static void run_all(void)
{
    int begun = 0, over = 0, running = 0;

    while (over < trial_count) {
        while (begun < trial_count && running < AT_ONCE) {
            begin(&trials[begun++]);
            running++;
        }
        for (int i = 0; i < begun; i++) {
            if (trials[i].pid != 0 && is_over(&trials[i])) {
                trials[i].pid = 0;
                running--;
                over++;
            }
        }
        nap();
    }
}

/* True if the arguments choose the clause; without arguments, all are chosen. */
static bool is_chosen(const char *page, const char *id, char **names)
{
    if (!*names)
        return true;
    for (; *names; names++) {
        if (strcmp(*names, page) == 0 || strcmp(*names, id) == 0)
            return true;
    }
    return false;
}

static void choose(char **names)
{
    char *outcomes = shared_memory((size_t)CLAUSES * OUTCOME_ROOM);

    for (size_t p = 0; p < PAGES; p++) {
        for (const struct clause *clause = pages[p].clauses; clause->id; clause++) {
            if (!is_chosen(pages[p].name, clause->id, names))
                continue;
            if (trial_count == CLAUSES)
                abort();
            trials[trial_count].clause = clause;
            trials[trial_count].outcome = outcomes + (size_t)trial_count * OUTCOME_ROOM;
            trial_count++;
        }
    }
}

int main(int argc, char **argv)
{
    bool is_list = argc > 1 && strcmp(argv[1], "--list") == 0;

    choose(argv + 1 + is_list);
    if (!is_list)
        run_all();
    for (int i = 0; i < trial_count; i++) {
        printf("%s %s%s%s\n", trials[i].clause->id, trials[i].clause->name, is_list ? "" : ":", trials[i].outcome);
    }
    return trial_count == 0;
}
