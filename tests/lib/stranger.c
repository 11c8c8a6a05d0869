/* SPDX-License-Identifier: BSD-2-Clause */
#include "stranger.h"

#include <errno.h>
#include <grp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "testlib.h"

void stranger_require(void)
{
    if (geteuid() == 0)
        return;
    puts("1..0 # SKIP only root can be another user");
    exit(0);
}

static void become(uid_t user)
{
    if (setgroups(0, NULL) < 0 || setresgid(user, user, user) < 0 || setresuid(user, user, user) < 0)
        _exit(99);
}

int stranger_call(uid_t user, int (*function)(void *argument), void *argument)
{
    pid_t pid = keeper_fork();

    if (pid == 0) {
        become(user);
        _exit(function(argument));
    }
    return WEXITSTATUS(keeper_reap(pid));
}

static int run(void *line)
{
    execl("/bin/sh", "sh", "-c", line, NULL);
    return 98;
}

void stranger_run(uid_t user, const char *format, ...)
{
    char line[1000];
    va_list args;

    va_start(args, format);
    vsnprintf(line, sizeof line, format, args);
    va_end(args);
    assert_int_equal(stranger_call(user, run, line), 0);
}

static bool does_listen(const char *folder)
{
    struct sockaddr_un address = { .sun_family = AF_UNIX };
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    bool is_there;

    snprintf(address.sun_path, sizeof address.sun_path, "%s/s", folder);
    is_there = connect(fd, (struct sockaddr *)&address, sizeof address) == 0;
    close(fd);
    return is_there;
}

pid_t stranger_serve(uid_t user, const char *folder)
{
    const char *program = getenv("DMUTEX_TEST_SERVER");
    pid_t pid = keeper_fork();

    program = program && *program ? program : "redis-server";
    if (pid == 0) {
        become(user);
        if (chdir(folder) == 0)
            execlp(program, program, "--port", "0", "--unixsocket", "s", "--unixsocketperm", "777", "--save", "",
                   "--logfile", "/dev/null", NULL);
        _exit(97);
    }
    wait_until(does_listen(folder));
    return pid;
}

void stranger_end(pid_t server)
{
    assert_return_code(kill(server, SIGKILL), errno);
    keeper_reap(server);
}
