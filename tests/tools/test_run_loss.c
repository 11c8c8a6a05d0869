/* SPDX-License-Identifier: BSD-2-Clause */
/* dmutex run: the lock is kept while the command runs; if it was not, the exit status says so. */
#include "tool.h"

#include <fcntl.h>
#include <pty.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Starts a command that holds a lock until tool_go(), or forever; $F/begun contains the command's pid. */
static pid_t start_holder(const char *options, const char *name)
{
    pid_t pid;

    command_run("rm -f $F/begun");
    pid = tool_start("exec $dmutex run %s %s -- sh -c 'echo $$ >$F/b && mv $F/b $F/begun; read go <$F/go'", options,
                     name);
    wait_until(tool_has("begun"));
    return pid;
}

static void break_lock(const char *name)
{
    dmutex_t mutex;

    assert_result(dmutex_init_np(&mutex, name, NULL), 0);
    assert_result(dmutex_forceunlock_np(&mutex), 0);
}

/* More than 20 leases, by the server's clock. */
static void test_run_keeps_the_lock_when_the_command_runs_for_many_leases(void **state)
{
    int lease_ms = late_stretched_ms(250);
    char options[40];
    pid_t pid;

    (void)state;
    snprintf(options, sizeof options, "--lease %d", lease_ms);
    pid = start_holder(options, "t/kept");
    side_set_control(the_server->side, "leases", 20 * lease_ms);
    while (!side_is_control_over(the_server->side, "leases"))
        assert_true(tool_is_held("t/kept"));
    tool_go();
    assert_int_equal(tool_await(pid), 0);
    assert_false(tool_is_held("t/kept"));
}

static void test_run_passes_signals_on_when_it_gets_them(void **state)
{
    pid_t pid;

    (void)state;
    command_run("rm -f $F/begun");
    pid = tool_start("exec $dmutex run t/passed -- "
                     "sh -c 'trap \"exit 5\" USR1; echo >$F/begun; while :; do read go <$F/go; done'");
    wait_until(tool_has("begun"));
    kill(pid, SIGUSR1);
    assert_int_equal(tool_await(pid), 5);
    assert_false(tool_is_held("t/passed"));

    pid = start_holder("", "t/passed");
    kill(pid, SIGTERM);
    assert_int_equal(tool_await(pid), 143);
    assert_false(tool_is_held("t/passed"));
}

static void test_run_ends_the_command_when_the_lock_is_broken(void **state)
{
    pid_t pid;

    (void)state;
    pid = start_holder("", "t/broken");
    break_lock("t/broken");
    assert_int_equal(tool_await(pid), 76);
    assert_true(
        tool_has_said("t/broken: the lock was lost while the command is running: another holder may be inside; the "
                      "command gets SIGTERM\n"));
    assert_true(tool_has_said("t/broken: the command, which had lost the lock, ended with signal 15"));
}

/*
 * Ending the shell of a pipeline alone would leave the pipeline's processes, which would go on as if they had the lock.
 */
static void test_run_ends_all_descendants_when_the_lock_is_broken(void **state)
{
    pid_t pid;

    (void)state;
    command_run("rm -f $F/begun");
    pid = tool_start("exec $dmutex run t/tree -- "
                     "sh -c '(sh -c \"sleep 1000 & echo \\$! >$F/b; mv $F/b $F/begun; wait\") & wait'");
    wait_until(tool_has("begun"));
    assert_true(proc_is_alive((pid_t)tool_number("begun")));
    break_lock("t/tree");
    assert_int_equal(tool_await(pid), 76);
    wait_until(!proc_is_alive((pid_t)tool_number("begun")));
}

/* In a container with the host's /proc, dmutex does not see its descendants, but it knows its command. */
static void test_run_ends_the_command_when_proc_is_of_another_namespace(void **state)
{
    pid_t pid;

    (void)state;
    if (geteuid() != 0)
        return;
    command_run("rm -f $F/begun");
    pid = tool_start("exec unshare -p -f $dmutex run t/foreign -- sh -c 'echo >$F/begun; read go <$F/go'");
    wait_until(tool_has("begun"));
    break_lock("t/foreign");
    assert_int_equal(tool_await(pid), 76);
    assert_true(tool_has_said("t/foreign: the command, which had lost the lock, ended with signal 15"));
}

/* Without a signal the command runs to its end, and the exit status still reports the loss. */
static void test_run_lets_the_command_go_on_when_no_signal_is_wanted(void **state)
{
    pid_t pid;

    (void)state;
    pid = start_holder("--on-lost none", "t/on");
    break_lock("t/on");
    wait_until(
        tool_has_said("t/on: the lock was lost while the command is running: another holder may be inside; the command "
                      "goes on\n"));
    assert_true(proc_is_alive((pid_t)tool_number("begun")));
    tool_go();
    assert_int_equal(tool_await(pid), 76);
    assert_true(tool_has_said("ended with status 0"));
}

/* Neither the signal nor the library's thread waits for a reader, and the loss is reported in the end. */
static void test_run_reports_the_loss_at_the_end_when_a_pipe_has_no_room_before(void **state)
{
    static char text[256 * 1024];
    size_t length = 0;
    pid_t pid;
    int fd;

    (void)state;
    command_run("rm -f $F/begun; mkfifo $F/narrow");
    fd = open(server_file(the_server, "narrow"), O_RDWR | O_NONBLOCK | O_CLOEXEC);
    assert_true(fd >= 0);
    while (write(fd, "    ", 4) > 0)
        continue;
    pid =
        tool_start("exec $dmutex run t/narrow -- sh -c 'echo $$ >$F/b; mv $F/b $F/begun; read go <$F/go' 2>$F/narrow");
    wait_until(tool_has("begun"));
    break_lock("t/narrow");
    wait_until(!proc_is_alive((pid_t)tool_number("begun")));
    do {
        ssize_t got = read(fd, text + length, sizeof text - 1 - length);

        length += got > 0 ? (size_t)got : 0;
        text[length] = '\0';
    } while (!strstr(text, "the command ended with signal 15\n"));
    assert_non_null(strstr(text, "t/narrow: the lock was lost while the command ran: "));
    close(fd);
    assert_int_equal(tool_await(pid), 76);
}

static void test_run_sends_the_named_signal_when_the_lock_is_broken(void **state)
{
    pid_t pid;

    (void)state;
    pid = start_holder("--on-lost sigint", "t/named");
    break_lock("t/named");
    assert_int_equal(tool_await(pid), 76);
    assert_true(tool_has_said("ended with signal 2"));
}

/* OnLost of dmutex.conf is for programs that hold locks themselves.  The command's environment stays as it is. */
static void test_run_does_as_it_was_told_when_dmutex_conf_ends_programs_at_a_loss(void **state)
{
    pid_t pid;

    (void)state;
    command_run("mkdir -p $F/conf/dmutex; printf '[defaults]\\nOnLost=abort\\n' >$F/conf/dmutex/dmutex.conf; "
                "rm -f $F/begun $F/lost");
    pid = tool_start("unset DMUTEX_ONLOST; export XDG_CONFIG_HOME=$F/conf; "
                     "exec $dmutex run --on-lost USR1 t/told -- sh -c 'trap \"echo >$F/lost\" USR1; echo >$F/begun; "
                     "until read go <$F/go; do :; done; test -z \"${DMUTEX_ONLOST+set}\"'");
    wait_until(tool_has("begun"));
    break_lock("t/told");
    wait_until(tool_has("lost"));
    tool_go();
    assert_int_equal(tool_await(pid), 76);
    assert_true(tool_has_said("ended with status 0"));
}

static void test_run_ends_the_command_when_the_server_is_killed(void **state)
{
    pid_t pid;

    (void)state;
    pid = start_holder("--lease 2000", "t/server");
    server_kill(the_server);
    assert_int_equal(tool_await(pid), 76);
    server_restart(the_server);
}

/* The kernel ends the command, and the lock is free when the lease ends. */
static void test_run_ends_the_command_when_it_is_killed_itself(void **state)
{
    pid_t pid;

    (void)state;
    pid = start_holder("--lease 2000", "t/killed");
    kill(pid, SIGKILL);
    assert_int_equal(tool_await(pid), 137);
    wait_until(!proc_is_alive((pid_t)tool_number("begun")));
    command_run("exec $dmutex run t/killed true");
    assert_status(0);
}

static void test_lock_is_free_when_the_process_group_is_killed(void **state)
{
    pid_t pid;

    (void)state;
    command_run("rm -f $F/begun");
    pid = tool_start("exec setsid $dmutex run --lease 2000 t/group -- "
                     "sh -c 'echo $$ >$F/b; mv $F/b $F/begun; read go <$F/go'");
    wait_until(tool_has("begun"));
    kill(-pid, SIGKILL);
    assert_int_equal(tool_await(pid), 137);
    wait_until(!proc_is_alive((pid_t)tool_number("begun")));
    command_run("exec $dmutex run t/group true");
    assert_status(0);
}

/* A stopped holder cannot renew.  It finds the loss when it continues, and then ends the command. */
static void test_run_reports_the_loss_when_it_was_stopped_for_a_lease(void **state)
{
    pid_t pid;

    (void)state;
    pid = start_holder("--lease 2000", "t/stopped");
    kill(pid, SIGSTOP);
    wait_until(!tool_is_held("t/stopped"));
    kill(pid, SIGCONT);
    assert_int_equal(tool_await(pid), 76);
}

/* ---- descendants ------------------------------------------------------------------------- */

/* A process in its own session, like a daemon, which the command does not wait for. */
#define LEAVES_BEHIND \
    "sh -c 'setsid sh -c \"echo \\$\\$ >$F/b; mv $F/b $F/begun; read go <$F/go\" & until test -e $F/begun; do :; done'"

/* R7: like the lock of flock(1), which belongs to the descriptor. */
static void test_run_keeps_the_lock_when_the_command_leaves_a_process_running(void **state)
{
    pid_t pid;

    (void)state;
    command_run("rm -f $F/begun");
    pid = tool_start("exec $dmutex run t/left -- " LEAVES_BEHIND);
    wait_until(tool_has_said("t/left: the command has ended, but the lock, unless lost, is kept until all processes"));
    assert_true(proc_is_alive((pid_t)tool_number("begun")));
    assert_true(tool_is_held("t/left"));
    tool_go();
    assert_int_equal(tool_await(pid), 0);
    assert_false(tool_is_held("t/left"));
}

static void test_run_gives_the_lock_back_with_the_command_when_told_to_close(void **state)
{
    pid_t pid;

    (void)state;
    command_run("rm -f $F/begun");
    pid = tool_start("exec $dmutex run --close t/closed -- " LEAVES_BEHIND);
    assert_int_equal(tool_await(pid), 0);
    assert_true(proc_is_alive((pid_t)tool_number("begun")));
    assert_false(tool_is_held("t/closed"));
    tool_go();
    wait_until(!proc_is_alive((pid_t)tool_number("begun")));
}

/* R7: if only the shell ended, what it has started would go on.  When run has ended, all of them have. */
static void test_run_ends_all_descendants_when_it_is_terminated(void **state)
{
    pid_t pid;

    (void)state;
    command_run("rm -f $F/begun");
    pid = tool_start("exec $dmutex run t/all -- "
                     "sh -c 'setsid sleep 1000 & echo $! >$F/b; mv $F/b $F/begun; wait'");
    wait_until(tool_has("begun"));
    kill(pid, SIGTERM);
    assert_int_equal(tool_await(pid), 143);
    assert_false(proc_is_alive((pid_t)tool_number("begun")));
    assert_false(tool_is_held("t/all"));
}

/* H10: the kernel clears the signal of death when a process changes its user. */
static void test_run_ends_a_descendant_of_another_user_when_it_is_killed_itself(void **state)
{
    pid_t pid;

    (void)state;
    if (geteuid() != 0)
        return;
    command_run("rm -f $F/begun; mkfifo $F/mine; chmod 666 $F/mine");
    pid = tool_start("exec $dmutex run --lease 2000 t/user -- sh -c 'echo $$ >$F/b; mv $F/b $F/begun; "
                     "exec setpriv --reuid=65534 --clear-groups sh -c \"echo >&9; read go <&8\" 9>$F/mine 8<>$F/go'");
    command_run("read word <$F/mine");
    kill(pid, SIGKILL);
    assert_int_equal(tool_await(pid), 137);
    wait_until(!proc_is_alive((pid_t)tool_number("begun")));
}

/* H10: what a script started before it became dmutex run is not part of the job. */
static void test_run_leaves_other_children_alone_when_a_script_became_it(void **state)
{
    pid_t pid, other;

    (void)state;
    command_run("rm -f $F/begun $F/other");
    pid = tool_start("sleep 1000 & echo $! >$F/other; exec $dmutex run t/script -- "
                     "sh -c 'echo >$F/begun; read go <$F/go'");
    wait_until(tool_has("begun"));
    other = (pid_t)tool_number("other");
    break_lock("t/script");
    assert_int_equal(tool_await(pid), 76);
    assert_true(proc_is_alive(other));
    kill(other, SIGKILL);
}

/* ---- the warden -------------------------------------------------------------------------- */

/* The command's shell, a child of the warden, must write its pid to $F/begun as its last step. */
static pid_t warden(void)
{
    wait_until(tool_has("begun"));
    return proc_parent((pid_t)tool_number("begun"));
}

/* What the warden prints about the process left behind would end a program whose standard error nobody reads. */
static void test_run_keeps_the_lock_when_nobody_reads_its_errors(void **state)
{
    pid_t pid, keeping;

    (void)state;
    command_run("rm -f $F/begun $F/end; mkfifo $F/unread $F/end");
    pid = tool_start("(: <$F/unread) & exec $dmutex run t/unread -- "
                     "sh -c '(read go <$F/go) & echo $$ >$F/b; mv $F/b $F/begun; read end <$F/end' 2>$F/unread");
    keeping = warden();
    command_run("echo >$F/end");
    wait_until(proc_has_pending(keeping, SIGPIPE) || !proc_is_alive(keeping));
    assert_true(tool_is_held("t/unread"));
    tool_go();
    assert_int_equal(tool_await(pid), 0);
}

/* The warden must not wait for a reader: by then another one, started later, has printed the same. */
static void test_run_is_terminated_when_its_errors_are_not_read_and_the_pipe_is_full(void **state)
{
    pid_t pid;

    (void)state;
    command_run("rm -f $F/begun; mkfifo $F/full");
    pid = tool_start("exec 8<>$F/full; dd if=/dev/zero of=$F/full bs=4096 oflag=nonblock; exec $dmutex run t/full -- "
                     "sh -c 'sleep 1000 & echo $! >$F/b; mv $F/b $F/begun' 2>&8");
    wait_until(tool_has("begun"));
    command_run("$dmutex run t/later -- sh -c 'sleep 1000 & echo $! >$F/later' 2>$F/said & "
                "until grep -q 'has ended' $F/said; do sleep 0.1; done; kill $(cat $F/later); wait");
    kill(pid, SIGTERM);
    assert_int_equal(tool_await(pid), 0);
    assert_false(proc_is_alive((pid_t)tool_number("begun")));
}

/*
 * `pkill dmutex` finds both.  Of one kind of signal the kernel keeps one pending, and drops the second with its sender.
 */
static void test_run_is_terminated_when_its_warden_gets_the_same_signal(void **state)
{
    pid_t pid = start_holder("", "t/both"), keeping = warden();

    (void)state;
    kill(keeping, SIGSTOP);
    wait_until(proc_state(keeping) == 'T');
    kill(keeping, SIGTERM);
    kill(pid, SIGTERM);
    wait_until(proc_has_pending(keeping, SIGTERM) && !proc_has_pending(pid, SIGTERM) && proc_state(pid) == 'S');
    kill(keeping, SIGCONT);
    assert_int_equal(tool_await(pid), 143);
}

/* The kernel tells only the session leader that the terminal has hung up. */
static void test_run_passes_the_hangup_on_when_it_leads_the_session(void **state)
{
    int terminal, status;
    pid_t pid;

    (void)state;
    command_run("rm -f $F/begun");
    pid = forkpty(&terminal, NULL, NULL, NULL);
    if (pid == 0) {
        execl("/bin/sh", "sh", "-c",
              "exec $dmutex run t/hangup -- sh -c 'echo $$ >$F/b; mv $F/b $F/begun; read go <$F/go'", (char *)NULL);
        _exit(127);
    }
    keeper_watch(pid);
    wait_until(tool_has("begun"));
    close(terminal);
    status = keeper_reap(pid);
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGHUP);
}

/* Nobody finds descendants there, but the command is the warden's child. */
static void test_run_signals_the_command_when_there_is_no_proc(void **state)
{
    static const char line[] = "exec unshare -m sh -c 'mount -t tmpfs none /proc && exec $dmutex run t/blind -- "
                               "sh -c \"echo \\$\\$ >$F/b; mv $F/b $F/begun; read go <$F/go\"'";
    pid_t pid;

    (void)state;
    if (geteuid() != 0)
        return;
    command_run("rm -f $F/begun");
    pid = tool_start("%s", line);
    wait_until(tool_has("begun"));
    kill(pid, SIGTERM);
    assert_int_equal(tool_await(pid), 143);
    command_run("rm -f $F/begun");
    pid = tool_start("%s", line);
    wait_until(tool_has("begun"));
    break_lock("t/blind");
    assert_int_equal(tool_await(pid), 76);
    assert_true(tool_has_said("ended with signal 15"));
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_run_keeps_the_lock_when_the_command_runs_for_many_leases),
        cmocka_unit_test(test_run_passes_signals_on_when_it_gets_them),
        cmocka_unit_test(test_run_ends_the_command_when_the_lock_is_broken),
        cmocka_unit_test(test_run_ends_all_descendants_when_the_lock_is_broken),
        cmocka_unit_test(test_run_ends_the_command_when_proc_is_of_another_namespace),
        cmocka_unit_test(test_run_lets_the_command_go_on_when_no_signal_is_wanted),
        cmocka_unit_test(test_run_reports_the_loss_at_the_end_when_a_pipe_has_no_room_before),
        cmocka_unit_test(test_run_sends_the_named_signal_when_the_lock_is_broken),
        cmocka_unit_test(test_run_does_as_it_was_told_when_dmutex_conf_ends_programs_at_a_loss),
        cmocka_unit_test(test_run_ends_the_command_when_the_server_is_killed),
        cmocka_unit_test(test_run_ends_the_command_when_it_is_killed_itself),
        cmocka_unit_test(test_lock_is_free_when_the_process_group_is_killed),
        cmocka_unit_test(test_run_reports_the_loss_when_it_was_stopped_for_a_lease),
        cmocka_unit_test(test_run_keeps_the_lock_when_the_command_leaves_a_process_running),
        cmocka_unit_test(test_run_gives_the_lock_back_with_the_command_when_told_to_close),
        cmocka_unit_test(test_run_ends_all_descendants_when_it_is_terminated),
        cmocka_unit_test(test_run_ends_a_descendant_of_another_user_when_it_is_killed_itself),
        cmocka_unit_test(test_run_leaves_other_children_alone_when_a_script_became_it),
        cmocka_unit_test(test_run_keeps_the_lock_when_nobody_reads_its_errors),
        cmocka_unit_test(test_run_is_terminated_when_its_errors_are_not_read_and_the_pipe_is_full),
        cmocka_unit_test(test_run_is_terminated_when_its_warden_gets_the_same_signal),
        cmocka_unit_test(test_run_passes_the_hangup_on_when_it_leads_the_session),
        cmocka_unit_test(test_run_signals_the_command_when_there_is_no_proc),
    };

    test_begin(argc, argv);
    test_tell_asan("detect_leaks=0"); /* it needs /proc for that */
    return cmocka_run_group_tests(tests, tool_setup, tool_teardown);
}
