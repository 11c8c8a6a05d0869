/* SPDX-License-Identifier: BSD-2-Clause */
#include "testlib.h"

#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

struct command ran;

static FILE *output, *errors;

static pid_t start(void)
{
    pid_t pid;

    output = tmpfile();
    errors = tmpfile();
    assert_true(output && errors);
    pid = keeper_fork();
    if (pid == 0) {
        dup2(fileno(output), STDOUT_FILENO);
        dup2(fileno(errors), STDERR_FILENO);
        execl("/bin/sh", "sh", "-c", ran.line, (char *)NULL);
        _exit(127);
    }
    return pid;
}

pid_t command_start(const char *format, ...)
{
    va_list args;

    va_start(args, format);
    vsnprintf(ran.line, sizeof ran.line, format, args);
    va_end(args);
    return start();
}

static void take(FILE *from, char to[COMMAND_ROOM])
{
    size_t length;

    rewind(from);
    length = fread(to, 1, COMMAND_ROOM - 1, from);
    to[length] = '\0';
    fclose(from);
}

void command_await(pid_t pid)
{
    int status = keeper_reap(pid);

    ran.status = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
    take(output, ran.output);
    take(errors, ran.errors);
}

void command_run(const char *format, ...)
{
    va_list args;

    va_start(args, format);
    vsnprintf(ran.line, sizeof ran.line, format, args);
    va_end(args);
    command_await(start());
}

static void fail_with_all(const char *what, const char *file, int line)
{
    print_error("%s\n%s\nstatus %d\noutput:\n%s\nerrors:\n%s\n", what, ran.line, ran.status, ran.output, ran.errors);
    _fail(file, line);
}

void command_check_status(int wanted, const char *file, int line)
{
    char what[40];

    snprintf(what, sizeof what, "status %d was expected of", wanted);
    if (ran.status != wanted)
        fail_with_all(what, file, line);
}

void command_check_text(const char *printed, const char *text, const char *file, int line)
{
    char what[1000];

    snprintf(what, sizeof what, "\"%s\" was expected from", text);
    if (!strstr(printed, text))
        fail_with_all(what, file, line);
}
