/* SPDX-License-Identifier: BSD-2-Clause */
#include "tool.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static char fifo[128], errors[128];

void tool_use(const char *in_folder, const char *url)
{
    char path[4096];

    test_build_path(path, sizeof path, "tools/dmutex");
    setenv("dmutex", path, 1);
    setenv("F", in_folder, 1);
    setenv("DMUTEX_URL", url, 1);
}

int tool_setup(void **state)
{
    test_group_setup(state);
    tool_use(the_server->folder, the_server->url);
    snprintf(fifo, sizeof fifo, "%s/go", the_server->folder);
    snprintf(errors, sizeof errors, "%s/errors", the_server->folder);
    return mkfifo(fifo, 0600);
}

int tool_teardown(void **state)
{
    return test_group_teardown(state);
}

pid_t tool_start(const char *format, ...)
{
    char line[4096];
    va_list args;
    pid_t pid;
    int fd;

    va_start(args, format);
    vsnprintf(line, sizeof line, format, args);
    va_end(args);
    pid = keeper_fork();
    if (pid == 0) {
        fd = open(errors, O_WRONLY | O_CREAT | O_TRUNC | O_APPEND, 0600);
        dup2(fd, STDERR_FILENO);
        dup2(fd, STDOUT_FILENO);
        execl("/bin/sh", "sh", "-c", line, (char *)NULL);
        _exit(127);
    }
    return pid;
}

/* Blocks until the command reads. */
void tool_go(void)
{
    int fd = open(fifo, O_WRONLY);

    assert_int_equal(write(fd, "go\n", 3), 3);
    close(fd);
}

int tool_await(pid_t pid)
{
    int status = keeper_reap(pid);

    return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

static void read_file(const char *path, char *ret_text, size_t room)
{
    FILE *file = fopen(path, "r");
    size_t length = file ? fread(ret_text, 1, room - 1, file) : 0;

    ret_text[length] = '\0';
    if (file)
        fclose(file);
}

bool tool_has_said(const char *text)
{
    static char said[COMMAND_ROOM];

    read_file(errors, said, sizeof said);
    return strstr(said, text) != NULL;
}

bool tool_has(const char *name)
{
    return access(server_file(the_server, name), F_OK) == 0;
}

long tool_number(const char *name)
{
    char text[40];

    read_file(server_file(the_server, name), text, sizeof text);
    return atol(text);
}

bool tool_is_held(const char *name)
{
    dmutex_t mutex;

    assert_result(dmutex_init_np(&mutex, name, NULL), 0);
    return is_locked(&mutex);
}

const struct tool_subcommand tool_subcommands[TOOL_WORDS] = {
    { "list", "tw/held", 0 },
    { "list --json", "\"name\":\"tw/held\"", 0 },
    { "show tw/held", "  held by   ", 0 },
    { "show --json tw/held", "\"locked\":true", 0 },
    { "top", "1 held, 0 waiting\n", 0 },
    { "top --json", "{\"held\":1,", 0 },
    { "token tw/held", "\n", 0 },
    { "wait -w 0 tw/held", "", 75 },
    { "run -n tw/held touch $F/ran", "", 75 },
    { "run tw/free echo is run", "is run\n", 0 },
    { "break -y tw/held", "", 0 },
    { "wait tw/held", "", 0 },
};

void tool_use_subcommands(const char *url)
{
    struct actor *holder = actor_start_at(url);

    setenv("URL", url, 1);
    actor_do(holder, "0", "lock tw/held");
    for (size_t i = 0; i < TOOL_WORDS; i++) {
        command_run("DMUTEX_URL=$URL exec $dmutex %s", tool_subcommands[i].arguments);
        assert_status(tool_subcommands[i].status);
        assert_output(tool_subcommands[i].output);
    }
    assert_false(tool_has("ran"));
    actor_do(holder, "EPERM", "unlock tw/held");
    actor_end(holder);
}

/* The JSON output contains the same sentence.  Each subcommand takes a command_timeout. */
void tool_check_refusals(const char *url, const char *found, const char *sentence)
{
    setenv("URL", url, 1);
    for (size_t i = 0; i < TOOL_WORDS; i++) {
        if (strstr(tool_subcommands[i].arguments, "--json"))
            continue;
        command_run("DMUTEX_URL=$URL exec $dmutex %s", tool_subcommands[i].arguments);
        assert_status(69);
        assert_errors(sentence);
        assert_string_equal(ran.output, "");
    }
    assert_false(tool_has("ran"));
    command_run("DMUTEX_URL=$URL exec $dmutex doctor");
    assert_status(69);
    assert_output(found);
}

const char *tool_user(const char *changes)
{
    static char url[200];

    side_text(the_server->side,
              "ACL SETUSER app reset on >secret resetkeys ~dmutex:* resetchannels &dmutex:inbox:* -@all +eval "
              "+evalsha +subscribe +publish +pubsub|numsub +role +info +client|id +client|kill +time +del +exists "
              "+pexpire +pttl +hset +hget +hmget +hlen +hdel +zadd +zrem +zrange +zrank +zscore +zcard");
    if (*changes)
        side_text(the_server->side, "ACL SETUSER app %s", changes);
    snprintf(url, sizeof url, "unix://app:secret@%s?command_timeout=1000", the_server->path);
    return url;
}

bool tool_check_json(void)
{
    static char printed[COMMAND_ROOM];
    char path[200];
    FILE *file;

    snprintf(path, sizeof path, "%s/json", the_server->folder);
    file = fopen(path, "w");
    assert_non_null(file);
    fputs(ran.output, file);
    fclose(file);
    strcpy(printed, ran.output);
    command_run("command -v python3 >/dev/null || exit 77; python3 -c 'import json,sys; "
                "json.loads(open(sys.argv[1], \"rb\").read().decode(\"utf-8\"))' %s",
                path);
    if (ran.status == 77)
        return false;
    assert_status(0);
    strcpy(ran.output, printed);
    return true;
}
