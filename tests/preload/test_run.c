/* SPDX-License-Identifier: BSD-2-Clause */
/* dmutex-run: the options, the server, the command's environment, and the exec of the command. */
#include "run.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* The module next to the program, as in LD_PRELOAD. */
static char module[4096];

static int setup(void **state)
{
    run_server_setup(state);
    test_build_path(module, sizeof module, "preload/here/../.libs/libdmutex-preload.so");
    return 0;
}

/* A URL without a server. */
static const char *dead_url(void)
{
    static char url[200];

    snprintf(url, sizeof url, "unix://%s/nobody?connect_timeout=100&command_timeout=100", folder);
    return url;
}

/*
 * A Redis server contains its own hiredis, and exports its functions.  A library locks there, because servers have no
 * mutex whose name is the same in all versions, and ends the server.
 */
static void test_run_works_when_a_server_has_another_hiredis_inside(void **state)
{
    char library[4096];

    (void)state;
    if (IS_ADDRESS_SANITIZED || IS_THREAD_SANITIZED)
        return; /* the server, which is not sanitized, cannot load a sanitized library */
    test_build_path(library, sizeof library, "libdmutex/.libs");
    write_file("lock.c", 0644,
               "#include <pthread.h>\n#include <signal.h>\n#include <unistd.h>\n"
               "pthread_mutex_t guard = PTHREAD_MUTEX_INITIALIZER;\n"
               "static void *visit(void *unused) {\n"
               "    while (access(\"other\", F_OK) != 0) usleep(1000);\n"
               "    pthread_mutex_lock(&guard);\n"
               "    pthread_mutex_unlock(&guard);\n"
               "    kill(getpid(), SIGTERM);\n"
               "    return unused;\n"
               "}\n"
               "__attribute__((constructor)) static void begin(void)\n"
               "{ pthread_t thread; pthread_create(&thread, NULL, visit, NULL); }\n");
    compile("lock.c", "lock.so", "-shared -fPIC");
    command_run("cd %s && echo 'port 0\nunixsocket other\nsave \"\"' >other.conf && "
                "LD_LIBRARY_PATH=%s LD_PRELOAD=./lock.so exec %s -e 'sym:lock.so:guard => run/other' -- %s other.conf",
                folder, library, dmutex_run, getenv("DMUTEX_TEST_SERVER"));
    assert_status(0);
    assert_string_equal(ran.errors, "");
}

/* ---- options ----------------------------------------------------------------------------- */

static void test_run_describes_itself_when_asked(void **state)
{
    (void)state;
    command_run("exec %s --version", dmutex_run);
    assert_status(0);
    assert_string_equal(ran.output, "dmutex-run " DMUTEX_VERSION_STRING "\n");
    command_run("exec %s --help", dmutex_run);
    assert_status(0);
    assert_output("usage: dmutex-run [OPTION...] [--] COMMAND [ARGUMENT...]");
    assert_string_equal(ran.errors, "");
}

static void test_run_refuses_when_the_usage_is_wrong(void **state)
{
    static const char *const bad[] = { "",       "--",       "--nonsense true", "--config", "-e", "--output x true",
                                       "--list", "--dry-run" };

    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        command_run("exec %s %s", dmutex_run, bad[i]);
        assert_status(64);
        assert_errors("--");
        assert_string_equal(ran.output, "");
    }
}

/* Arguments after the command belong to the command, even if they look like options. */
static void test_run_leaves_arguments_alone_when_they_look_like_options(void **state)
{
    (void)state;
    command_run("exec %s sh -c 'echo \"$@\"' --version -e -- x", dmutex_run);
    assert_status(0);
    assert_string_equal(ran.output, "-e -- x\n");
    command_run("exec %s -- printf '[%%s]' '' 'a b' --", dmutex_run);
    assert_string_equal(ran.output, "[][a b][--]");
    command_run("exec %s -e 'flock:/x => a' -- sh -c 'echo \"$@\"' sh --config x", dmutex_run);
    assert_status(0);
    assert_string_equal(ran.output, "--config x\n");
}

/* ---- without rules ----------------------------------------------------------------------- */

/* Without a rule, dmutex-run adds no variable, and needs no server. */
static void test_run_changes_nothing_when_there_is_no_rule(void **state)
{
    static char before[COMMAND_ROOM];

    (void)state;
    command_run("unset DMUTEX_URL; exec env | grep -v ^_=");
    strcpy(before, ran.output);
    command_run("unset DMUTEX_URL; exec %s -q env | grep -v ^_=", dmutex_run);
    assert_status(0);
    assert_string_equal(ran.output, before);
    assert_string_equal(ran.errors, "");
}

/* ---- the server -------------------------------------------------------------------------- */

/* Rules without a configured server are refused, because a lock of this host only would not exclude other hosts. */
static void test_run_refuses_when_no_server_is_configured(void **state)
{
    (void)state;
    command_run("unset DMUTEX_URL; DMUTEX_LOCAL_DIR=%s/local exec %s -e 'sym:legacyd:m => a' echo is run", folder,
                dmutex_run);
    assert_status(78);
    assert_errors(
        "no server is configured: write Url=redis://HOST into [server] of the configuration, or set DMUTEX_URL");
    assert_string_equal(ran.output, "");
    command_run("test -e %s/local", folder);
    assert_status(1);
    command_run("DMUTEX_URL= exec %s -e 'sym:legacyd:m => a' true", dmutex_run);
    assert_status(78);
}

static void test_run_refuses_when_the_url_is_bad(void **state)
{
    const char *path;

    (void)state;
    command_run("DMUTEX_URL=http://h exec %s -e 'sym:legacyd:m => a' true", dmutex_run);
    assert_status(78);
    assert_errors("dmutex-run: DMUTEX_URL: ");
    path = write_file("url.conf", 0644, "[server]\nUrl=redis://:s3cret@h:0\n[lock a]\nMatch=sym:legacyd:m\n");
    command_run("exec %s --config %s true", dmutex_run, path);
    assert_status(78);
    assert_errors("/url.conf: [server] Url: ");
    assert_null(strstr(ran.errors, "s3cret"));
}

/* The configuration's server is preferred to the server of DMUTEX_URL, and the command sees the same server. */
static void test_run_prefers_the_configured_server_when_there_are_two(void **state)
{
    const char *path = write_file("server.conf", 0644, "[server]\nUrl=%s\n[lock a]\nMatch=flock:/x\n", the_server->url);

    (void)state;
    command_run("DMUTEX_URL='%s' exec %s --config %s sh -c 'echo $DMUTEX_URL'", dead_url(), dmutex_run, path);
    assert_status(0);
    assert_output(the_server->url);
}

/*
 * If the server is down, dmutex-run fails if a lock would fail; a lock that waits, or is local then, lets the command
 * run.
 */
static void test_run_goes_by_ondown_when_the_server_is_down(void **state)
{
    static const struct {
        const char *rules;
        int status;
    } cases[] = {
        { "flock:/x => a", 69 },
        { "flock:/x => a ondown=block", 0 },
        { "fcntl:/x => a ondown=local", 0 },
        { "sym:legacyd:m => a", 0 },
        { "sym:legacyd:m => a ondown=fail", 69 },
        { "sym:legacyd:m => a; sym:sh:n => b ondown=fail", 69 },
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        command_run("DMUTEX_URL='%s' exec %s -e '%s' echo is run", dead_url(), dmutex_run, cases[i].rules);
        assert_status(cases[i].status);
        assert_errors("/nobody?connect_timeout=100&command_timeout=100 (DMUTEX_URL) cannot be used: ");
        assert_string_equal(ran.output, cases[i].status ? "" : "is run\n");
    }
}

/* A server that refuses the connection is reported like a missing one, with the reason. */
static void test_run_says_why_when_the_server_refuses(void **state)
{
    (void)state;
    assert_true(side_try(the_server->side, "CONFIG SET requirepass s3cret"));
    command_run("exec %s -e 'flock:/x => a' true", dmutex_run);
    assert_true(side_try(the_server->side, "CONFIG SET requirepass %s", ""));
    assert_status(69);
    assert_errors("cannot be used: ");
}

/* ---- the environment --------------------------------------------------------------------- */

static void test_run_configures_the_module_when_there_are_rules(void **state)
{
    const char *path =
        write_file("env.conf", 0644, "[lock a]\nMatch=sym:legacyd:m\nLease=1s\n[lock b]\nMatch=flock:/y\n");

    (void)state;
    command_run(
        "DMUTEX_MAP='flock:/old => old' exec %s --config %s -e 'flock:/1 => one' -e 'flock:/2 => two;flock:/3 => three'"
        " sh -c 'echo \"$DMUTEX_MAP|$DMUTEX_RULES|$LD_PRELOAD|$DMUTEX_CONF\"'",
        dmutex_run, path);
    assert_status(0);
    assert_output("flock:/1 => one; flock:/2 => two; flock:/3 => three; flock:/old => old|"
                  "sym:legacyd:m => a lease=1000; flock:/y => b|");
    assert_output(module);
    assert_output("/env.conf\n");
}

/* Other preloads stay, in their order; the module is there once. */
static void test_run_keeps_what_is_preloaded_when_there_is_something(void **state)
{
    char wanted[9000];

    (void)state;
    write_file("empty.c", 0644, "int nothing;\n");
    compile("empty.c", "one.so", "-shared -fPIC");
    compile("empty.c", "two.so", "-shared -fPIC");
    command_run("LD_PRELOAD='%1$s/one.so %1$s/two.so' exec %2$s -e 'flock:/x => a' sh -c 'echo $LD_PRELOAD'", folder,
                dmutex_run);
    assert_status(0);
    snprintf(wanted, sizeof wanted, "%s:%s/one.so %s/two.so\n", module, folder, folder);
    assert_string_equal(ran.output, wanted);
}

/* A dmutex-run inside another dmutex-run changes nothing. */
static void test_run_changes_nothing_when_it_is_nested(void **state)
{
    /* the inner dmutex-run may be sanitized, and then the sanitizer is preloaded, too */
    static const char filter[] = "grep -v -e ^_= -e ^DMUTEX_USED= | sed 's,=[^=:]*/lib[at]san[^:]*:,=,'";
    static char once[COMMAND_ROOM];
    char path[200];

    (void)state;
    strcpy(path, write_file("nested.conf", 0644, "[lock a]\nMatch=flock:/x\\;y\n"));
    command_run("exec %s --config %s env | %s", dmutex_run, path, filter);
    assert_status(0);
    strcpy(once, ran.output);
    command_run("exec %s --config %s %s env | %s", dmutex_run, path, dmutex_run, filter);
    assert_string_equal(ran.output, once);
    command_run("cd / && exec %s --config %s sh -c 'HOME=/nowhere %s env' |"
                " grep -v -e ^_= -e ^DMUTEX_USED= | grep -v -e ^PWD -e ^HOME",
                dmutex_run, path, dmutex_run);
    assert_output("DMUTEX_RULES=flock:/x\\;y => a\n");
}

/* Rules of the environment stay if there is no configuration file, and give way to a file's rules. */
static void test_run_keeps_the_rules_around_it_when_it_has_none(void **state)
{
    const char *path = write_file("inner.conf", 0644, "[lock b]\nMatch=flock:/y\n");

    (void)state;
    command_run("DMUTEX_RULES='flock:/x => a' exec %s sh -c 'echo \"$DMUTEX_RULES\"'", dmutex_run);
    assert_status(0);
    assert_string_equal(ran.output, "flock:/x => a\n");
    command_run("DMUTEX_RULES='flock:/x => a' exec %s --config %s sh -c 'echo \"$DMUTEX_RULES\"'", dmutex_run, path);
    assert_string_equal(ran.output, "flock:/y => b\n");
}

/*
 * Rules too long for a variable, which the kernel limits, are refused with a sentence clearer than "Argument list too
 * long".
 */
static void test_run_refuses_when_the_rules_are_too_long(void **state)
{
    char path[200];

    (void)state;
    strcpy(path, write_file("long.conf", 0644, "[lock a]\nMatch=flock:/x\n"));
    command_run(
        "for i in $(seq 4000); do echo \"[lock group/a-rather-long-name-$i]\"; echo Match=flock:/x/$i; done >%s", path);
    assert_status(0);
    command_run("exec %s --config %s true", dmutex_run, path);
    assert_status(78);
    assert_errors("the rules are too long for DMUTEX_RULES: ");
}

/* ---- exec of the command ----------------------------------------------------------------- */

static void test_run_ends_as_the_command_when_it_ends(void **state)
{
    (void)state;
    command_run("exec %s -e 'flock:/x => a' sh -c 'exit 3'", dmutex_run);
    assert_status(3);
    command_run("exec %s -e 'flock:/x => a' sh -c 'kill -KILL $$'", dmutex_run);
    assert_status(128 + SIGKILL);
    command_run("echo input | %s -e 'flock:/x => a' sh -c 'cat; echo error >&2'", dmutex_run);
    assert_status(0);
    assert_string_equal(ran.output, "input\n");
    assert_string_equal(ran.errors, "error\n");
}

/* The command has the pid of dmutex-run, so the parent can wait for the command and signal the command. */
static void test_run_keeps_its_pid_when_it_becomes_the_command(void **state)
{
    char wanted[20];
    pid_t pid =
        command_start("exec %s -e 'flock:/x => a' sh -c 'echo $$ $0; exec grep SigBlk /proc/self/status'", dmutex_run);

    (void)state;
    command_await(pid);
    assert_status(0);
    snprintf(wanted, sizeof wanted, "%d sh\n", (int)pid);
    assert_output(wanted);
    assert_output("SigBlk:\t0000000000000000");
}

/* No descriptor of dmutex-run is open in the command, not even the connection. */
static void test_run_leaves_no_descriptor_when_it_becomes_the_command(void **state)
{
    static char before[COMMAND_ROOM];

    (void)state;
    command_run("exec ls /proc/self/fd");
    strcpy(before, ran.output);
    command_run("exec %s -e 'flock:/x => a' ls /proc/self/fd", dmutex_run);
    assert_string_equal(ran.output, before);
}

/* ---- --check, --dry-run, -v, -q ---------------------------------------------------------- */

/* --check prints a line for each rule, and the server; the command is not run. */
static void test_check_reports_each_rule_when_asked(void **state)
{
    (void)state;
    command_run(
        "exec %s -e 'flock:/x => a; sym:plugin.so:m => b; flock:/y => c program=other' --check touch %s/was-run",
        dmutex_run, folder);
    assert_status(0);
    assert_output("good: flock:/x => a: when such a file is locked\n"
                  "later: sym:plugin.so:m => b: when plugin.so is loaded\n"
                  "later: flock:/y => c: for the program other only\n"
                  "good: the server ");
    command_run("test -e %s/was-run", folder);
    assert_status(1);
}

/* --check prints all rules before failing, and fails if the server is down, with every OnDown. */
static void test_check_fails_when_something_is_wrong(void **state)
{
    (void)state;
    command_run("exec %s -e 'sym:libc.so.6:none => a; flock:/y => c' --check cat", dmutex_run);
    assert_status(78);
    assert_output("BAD: sym:libc.so.6:none => a: ");
    assert_output("good: flock:/y => c: ");
    assert_errors("1 of 2 rules cannot be used");
    command_run("DMUTEX_URL='%s' exec %s -e 'sym:x:m => a' --check cat", dead_url(), dmutex_run);
    assert_status(69);
    assert_output("later: sym:x:m => a: when x is loaded\n");
    command_run("exec %s --check", dmutex_run);
    assert_status(0);
    assert_output("good: the server ");
    assert_output(" answers\nthere is no rule: nothing is distributed\n");
    command_run("DMUTEX_URL='%s' exec %s --check", dead_url(), dmutex_run);
    assert_status(69);
    assert_errors(" cannot be used: ");
    command_run("unset DMUTEX_URL; exec %s --check", dmutex_run);
    assert_status(78);
    assert_errors("no server is configured");
    command_run("exec %s -e 'sym:x:m => a' --check", dmutex_run);
    assert_status(0);
    assert_output("later: sym:x:m => a: looked for in x when a command is given\n");
}

/* --dry-run prints a command line for a shell with the same effect. */
static void test_dry_run_prints_what_would_be_run_when_asked(void **state)
{
    static char line[COMMAND_ROOM];

    (void)state;
    command_run("exec %s -e 'flock:/x => a' --dry-run sh -c 'echo \"$DMUTEX_MAP\" \"it'\"'\"'s\"'", dmutex_run);
    assert_status(0);
    strcpy(line, ran.output);
    command_run("%s", line);
    assert_status(0);
    assert_string_equal(ran.output, "flock:/x => a it's\n");
}

/* --dry-run does not show a password. */
static void test_dry_run_hides_the_password_when_there_is_one(void **state)
{
    const char *path =
        write_file("secret.conf", 0600, "[server]\nUrl=redis://me:s3cret@h/0\n[lock a]\nMatch=flock:/x\n");

    (void)state;
    command_run("exec %s --config %s --dry-run true", dmutex_run, path);
    assert_status(0);
    assert_output("DMUTEX_URL_FILE=");
    assert_null(strstr(ran.output, "redis:"));
    assert_null(strstr(ran.output, "s3cret"));
}

static void test_run_says_as_much_as_its_options_ask_for(void **state)
{
    const char *path = write_file("say.conf", 0644, "[lock a]\nMatch=shm:/ring+0x40\n");

    (void)state;
    command_run("exec %s --config %s true", dmutex_run, path);
    assert_errors("dmutex-run: warning: ");
    command_run("exec %s -q --config %s true", dmutex_run, path);
    assert_string_equal(ran.errors, "");
    command_run("exec %s -v --config %s true", dmutex_run, path);
    assert_errors("dmutex-run: reading ");
    assert_errors("dmutex-run: warning: ");
    assert_errors("dmutex-run: the module is ");
    command_run("exec %s -q -e 'sym:x' true", dmutex_run);
    assert_errors("-e: sym:x: ");
}

/* ---- the whole way ----------------------------------------------------------------------- */

/* A program without any knowledge of libdmutex locks on the server if a rule names the mutex. */
static void test_run_distributes_a_mutex_when_a_rule_names_it(void **state)
{
    char library[4096];

    (void)state;
    if (IS_ADDRESS_SANITIZED || IS_THREAD_SANITIZED)
        return; /* the server, which is not sanitized, cannot load a sanitized library */
    test_build_path(library, sizeof library, "libdmutex/.libs");
    write_file("legacy.c", 0644,
               "#include <pthread.h>\n"
               "static pthread_mutex_t queue_lock = PTHREAD_MUTEX_INITIALIZER;\n"
               "int main(void) { return pthread_mutex_lock(&queue_lock) || pthread_mutex_unlock(&queue_lock); }\n");
    compile("legacy.c", "legacy", "$SANITIZER_CFLAGS"); /* sanitized if the library, which the program loads, is */
    command_run("LD_LIBRARY_PATH=%s exec %s -e 'sym:legacy:queue_lock => run/queue' %s/legacy", library, dmutex_run,
                folder);
    assert_status(0);
    assert_string_equal(ran.errors, "");
    assert_int_equal(side_count_keys(the_server->side, "dmutex:{run}:state:queue"), 1);
}

/* Attack K4: the sanitizer's runtime ends a program in which another library is loaded before. */
static void test_run_distributes_a_mutex_when_the_program_has_a_sanitizer(void **state)
{
    char library[4096];

    (void)state;
    if (IS_ADDRESS_SANITIZED || IS_THREAD_SANITIZED)
        return; /* the server, which is not sanitized, cannot load a sanitized library */
    test_build_path(library, sizeof library, "libdmutex/.libs");
    write_file("checked.c", 0644,
               "#include <pthread.h>\n"
               "static pthread_mutex_t queue_lock = PTHREAD_MUTEX_INITIALIZER;\n"
               "int main(void) { return pthread_mutex_lock(&queue_lock) || pthread_mutex_unlock(&queue_lock); }\n");
    compile("checked.c", "checked", "-fsanitize=address");
    command_run("LD_LIBRARY_PATH=%s exec %s -e 'sym:checked:queue_lock => run/checked' %s/checked", library, dmutex_run,
                folder);
    assert_status(0);
    assert_int_equal(side_count_keys(the_server->side, "dmutex:{run}:state:checked"), 1);
    command_run("LD_LIBRARY_PATH=%s exec %s --list %s/checked", library, dmutex_run, folder);
    assert_status(0);
    assert_errors("checked:queue_lock");
}

#define PAIRS "100000"

/* Runs a program that locks and unlocks many times, with a line for the lock's section.  Returns its commands. */
static int64_t commands_of_pairs(const char *line)
{
    char library[4096];
    const char *config = write_file("pairs.conf", 0644, "[lock run/pairs]\nMatch=sym:pairs:queue_lock\n%s", line);
    int64_t before = client_commands();

    test_build_path(library, sizeof library, "libdmutex/.libs");
    command_run("LD_LIBRARY_PATH=%s exec %s --config %s %s/pairs", library, dmutex_run, config, folder);
    assert_status(0);
    return client_commands() - before;
}

/* The lease stays with the program between its locks if the configuration says so, and goes back at its end. */
static void test_run_keeps_a_lease_when_the_rule_has_a_linger_time(void **state)
{
    int64_t commands;

    (void)state;
    write_file("pairs.c", 0644,
               "#include <pthread.h>\n"
               "static pthread_mutex_t queue_lock = PTHREAD_MUTEX_INITIALIZER;\n"
               "int main(void)\n"
               "{\n"
               "    for (int i = 0; i < " PAIRS "; i++)\n"
               "        if (pthread_mutex_lock(&queue_lock) || pthread_mutex_unlock(&queue_lock))\n"
               "            return 1;\n"
               "    return 0;\n"
               "}\n");
    compile("pairs.c", "pairs", "$SANITIZER_CFLAGS");
    commands = commands_of_pairs("Lease=60s\nLinger=60s\n");
    print_message("# %lld commands for " PAIRS " pairs\n", (long long)commands);
    assert_within(commands, 1, strtol(PAIRS, NULL, 10) - 1);
    assert_int_equal(side_count_keys(the_server->side, "dmutex:{run}:lock:pairs"), 0);
}

/* Programs that change the user but leave HOME as it was find the system's rules, and get a message. */
static void test_run_passes_a_file_over_when_it_is_in_a_home_that_is_closed_to_the_user(void **state)
{
    (void)state;
    command_run("cd %2$s && mkdir -p closed/.config/dmutex && echo wrong >closed/.config/dmutex/preload.conf && "
                "chmod 0 closed && less=; "
                "test $(id -u) != 0 || less='setpriv --bounding-set=-dac_override,-dac_read_search'; "
                "unset XDG_CONFIG_HOME; HOME=$PWD/closed $less %1$s -e 'flock:/x => y' echo is run; chmod 700 closed",
                dmutex_run, folder);
    assert_string_equal(ran.output, "is run\n");
    assert_errors("warning: ");
    assert_errors("/closed/.config/dmutex/preload.conf is not read: you may not enter a folder on its path; ");
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_run_works_when_a_server_has_another_hiredis_inside),
        cmocka_unit_test(test_run_describes_itself_when_asked),
        cmocka_unit_test(test_run_refuses_when_the_usage_is_wrong),
        cmocka_unit_test(test_run_leaves_arguments_alone_when_they_look_like_options),
        cmocka_unit_test(test_run_changes_nothing_when_there_is_no_rule),
        cmocka_unit_test(test_run_refuses_when_no_server_is_configured),
        cmocka_unit_test(test_run_refuses_when_the_url_is_bad),
        cmocka_unit_test(test_run_prefers_the_configured_server_when_there_are_two),
        cmocka_unit_test(test_run_goes_by_ondown_when_the_server_is_down),
        cmocka_unit_test(test_run_says_why_when_the_server_refuses),
        cmocka_unit_test(test_run_configures_the_module_when_there_are_rules),
        cmocka_unit_test(test_run_keeps_what_is_preloaded_when_there_is_something),
        cmocka_unit_test(test_run_changes_nothing_when_it_is_nested),
        cmocka_unit_test(test_run_keeps_the_rules_around_it_when_it_has_none),
        cmocka_unit_test(test_run_refuses_when_the_rules_are_too_long),
        cmocka_unit_test(test_run_ends_as_the_command_when_it_ends),
        cmocka_unit_test(test_run_keeps_its_pid_when_it_becomes_the_command),
        cmocka_unit_test(test_run_leaves_no_descriptor_when_it_becomes_the_command),
        cmocka_unit_test(test_check_reports_each_rule_when_asked),
        cmocka_unit_test(test_check_fails_when_something_is_wrong),
        cmocka_unit_test(test_dry_run_prints_what_would_be_run_when_asked),
        cmocka_unit_test(test_dry_run_hides_the_password_when_there_is_one),
        cmocka_unit_test(test_run_says_as_much_as_its_options_ask_for),
        cmocka_unit_test(test_run_distributes_a_mutex_when_a_rule_names_it),
        cmocka_unit_test(test_run_distributes_a_mutex_when_the_program_has_a_sanitizer),
        cmocka_unit_test(test_run_keeps_a_lease_when_the_rule_has_a_linger_time),
        cmocka_unit_test(test_run_passes_a_file_over_when_it_is_in_a_home_that_is_closed_to_the_user),
    };

    test_begin(argc, argv);
    return cmocka_run_group_tests(tests, setup, run_server_teardown);
}
