/* SPDX-License-Identifier: BSD-2-Clause */
/* dmutex-run --list: prints rules for the objects that a program uses, to be pasted; the program runs as ever. */
#include "run.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "shared/seen.h"
#include "shared/text.h"

/* ---- a program that uses all kinds of objects -------------------------------------------- */

static const char source[] =
    "#include <fcntl.h>\n#include <pthread.h>\n#include <stdlib.h>\n#include <sys/mman.h>\n#include <time.h>\n"
    "#include <unistd.h>\n"
    "static pthread_mutex_t often = PTHREAD_MUTEX_INITIALIZER;\n"
    "pthread_mutex_t row[3] = { PTHREAD_MUTEX_INITIALIZER, PTHREAD_MUTEX_INITIALIZER, PTHREAD_MUTEX_INITIALIZER };\n"
    "static pthread_mutex_t heir;\n"
    "static pthread_cond_t filled = PTHREAD_COND_INITIALIZER;\n"
    "static void use(pthread_mutex_t *m, int times)\n"
    "{\n"
    "    while (times--) { pthread_mutex_lock(m); pthread_mutex_unlock(m); }\n"
    "}\n"
    "static void make(pthread_mutex_t *m, int shared, int protocol)\n"
    "{\n"
    "    pthread_mutexattr_t attr;\n"
    "    pthread_mutexattr_init(&attr);\n"
    "    if (shared) pthread_mutexattr_setpshared(&attr, PTHREAD_PROCESS_SHARED);\n"
    "    if (shared) pthread_mutexattr_setrobust(&attr, PTHREAD_MUTEX_ROBUST);\n"
    "    pthread_mutexattr_setprotocol(&attr, protocol);\n"
    "    pthread_mutex_init(m, &attr);\n"
    "}\n"
    "static void map(const char *path, int times)\n"
    "{\n"
    "    int fd = open(path, O_RDWR | O_CREAT, 0600);\n"
    "    char *memory;\n"
    "    if (ftruncate(fd, 4096)) abort();\n"
    "    memory = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);\n"
    "    make((void *)(memory + 64), 1, PTHREAD_PRIO_NONE);\n"
    "    use((void *)(memory + 64), times);\n"
    "}\n"
    "int main(int argc, char **argv)\n"
    "{\n"
    "    struct timespec past = { 1, 0 };\n"
    "    use(&often, 9);\n"
    "    use(&row[1], 8);\n"
    "    make(&heir, 0, PTHREAD_PRIO_INHERIT);\n"
    "    use(&heir, 7);\n"
    "    for (int i = 0; i < 6; i++) {\n"
    "        pthread_mutex_lock(&often);\n"
    "        pthread_cond_timedwait(&filled, &often, &past);\n"
    "        pthread_mutex_unlock(&often);\n"
    "    }\n"
    "    if (argc > 2) { map(argv[1], 5); map(argv[2], 4); }\n"
    "    use(calloc(1, 100), 3);\n"
    "    return 0;\n"
    "}\n";

static int build(void **state)
{
    run_setup(state);
    write_file("user.c", 0644, "%s", source);
    compile("user.c", "user", "-O0 -Wl,--build-id=0xfeedbeef");
    command_run("cd %s && cp user stripped && strip stripped", folder);
    assert_status(0);
    return 0;
}

/* ---- output ------------------------------------------------------------------------------ */

/* Asserts a line, which begins with `sign` and the count, two blanks, the rule, and perhaps a remark. */
__attribute__((format(printf, 3, 4))) static void assert_line(char sign, int count, const char *format, ...)
{
    char line[400];
    int length = snprintf(line, sizeof line, "%c%9d  ", sign, count);
    va_list words;

    va_start(words, format);
    vsnprintf(line + length, sizeof line - (size_t)length, format, words);
    va_end(words);
    assert_errors(line);
}

#define assert_listed(count, ...) assert_line(' ', count, __VA_ARGS__)

/* --list names symbols, elements of arrays, and conditions; the most used object comes first. */
static void test_list_names_symbols_when_there_are_some(void **state)
{
    (void)state;
    command_run("exec %s --list %s/user", dmutex_run, folder);
    assert_status(0);
    assert_listed(15, "sym:user:often\n");
    assert_listed(8, "sym:user:row+0x28\n");
    assert_listed(7, "sym:user:heir  # priority inheritance: stays local\n");
    assert_listed(6, "cond:sym:user:filled\n");
    assert_errors(
        "# 3 uses of objects in the heap, on a stack or in memory without a file: these have no lasting name");
    assert_true(strstr(ran.errors, "user:often") < strstr(ran.errors, "user:row"));
    assert_true(strstr(ran.errors, "user:row") < strstr(ran.errors, "user:heir"));
}

/* --list names an object of a stripped file by the offset in the very build. */
static void test_list_names_offsets_when_the_file_is_stripped(void **state)
{
    (void)state;
    command_run("exec %s --list %s/stripped", dmutex_run, folder);
    assert_status(0);
    assert_listed(15, "off:stripped@build-id:feedbeef+0x");
    assert_listed(6, "cond:off:stripped@build-id:feedbeef+0x");
}

/* --list prints rules that dmutex-run takes, and that find the same object. */
static void test_list_prints_rules_that_resolve_when_pasted(void **state)
{
    static const char *const programs[] = { "user", "stripped" };

    (void)state;
    for (size_t i = 0; i < 2; i++) {
        command_run("%1$s --list --output %2$s/list %2$s/%3$s && grep -v '#' %2$s/list | while read count rule; do"
                    " DMUTEX_URL=redis://h %1$s -v -e \"$rule => a required=yes\" --dry-run %2$s/%3$s >&2; done",
                    dmutex_run, folder, programs[i]);
        assert_status(0);
        assert_errors(" => a: /");
        assert_null(strstr(ran.errors, "[lock"));
        assert_null(strstr(ran.errors, "no symbol"));
    }
}

/* --list names an object in shared memory by the file and the offset. */
static void test_list_names_mappings_when_memory_is_shared(void **state)
{
    char shm[100], rule[200];

    (void)state;
    snprintf(shm, sizeof shm, "/dmutex-test-%d", (int)getpid());
    command_run("exec %s --list %s/user %s/mapped /dev/shm%s", dmutex_run, folder, folder, shm);
    snprintf(rule, sizeof rule, "/dev/shm%s", shm);
    unlink(rule);
    assert_status(0);
    assert_listed(5, "map:%s/mapped+0x40  # robust\n", folder);
    assert_listed(4, "shm:%s+0x40  # robust\n", shm);
}

/* --list names a lock file by the path as the kernel knows the path. */
static void test_list_names_a_lock_file_when_it_was_locked(void **state)
{
    (void)state;
    command_run("cd %s && mkdir -p real && ln -sfn real link && exec %s --list flock link/job.lock true", folder,
                dmutex_run);
    assert_status(0);
    assert_listed(1, "flock:%s/real/job.lock\n", folder);
}

/* Of a character that is not seen, as a zero-width space, --list shows each byte as `?`, which a rule takes for any. */
static void test_list_hides_nothing_when_a_name_is_not_all_seen(void **state)
{
    (void)state;
    command_run("cd %s && exec %s --list flock \"$(printf 'a\\342\\200\\213b.lock')\" true", folder, dmutex_run);
    assert_status(0);
    assert_listed(1, "flock:%s/a???b.lock\n", folder);
    assert_true(text_matches("/a???b.lock", "/a\u200bb.lock"));
}

/* --list proposes no rule for byte ranges, as of databases, because a rule would make such locks fail. */
static void test_list_proposes_no_rule_when_parts_of_a_file_are_locked(void **state)
{
    (void)state;
    write_file("ranges.c", 0644,
               "#include <fcntl.h>\n#include <sys/file.h>\n"
               "static void lock(const char *path, short type, off_t length)\n"
               "{\n"
               "    struct flock range = { .l_type = type, .l_whence = SEEK_SET,"
               " .l_start = length ? 64 : 0, .l_len = length };\n"
               "    fcntl(open(path, O_RDWR | O_CREAT, 0600), F_SETLK, &range);\n"
               "}\n"
               "int main(void)\n"
               "{\n"
               "    lock(\"db\", F_WRLCK, 1);\n    lock(\"db\", F_RDLCK, 510);\n    lock(\"whole\", F_WRLCK, 0);\n"
               "    lock(\"both\", F_WRLCK, 0);\n    lock(\"both\", F_WRLCK, 1);\n    lock(\"readers\", F_RDLCK, 0);\n"
               "    return flock(open(\"read\", O_RDWR | O_CREAT, 0600), LOCK_SH);\n"
               "}\n");
    compile("ranges.c", "ranges", "");
    command_run("cd %s && exec %s --list ./ranges", folder, dmutex_run);
    assert_status(0);
    assert_line('#', 2, "fcntl:%s/db  # parts of this file are locked, as databases do: that cannot be distributed\n",
                folder);
    assert_line('#', 2, "fcntl:%s/both  # parts of this file", folder);
    assert_listed(1, "fcntl:%s/whole\n", folder);
    assert_listed(1, "fcntl:%s/readers  # shared locks, too: these need Shared=exclusive\n", folder);
    assert_listed(1, "flock:%s/read  # shared locks, too: these need Shared=exclusive\n", folder);
}

/* --list shows lock files that are made but not locked, although no rule can help. */
static void test_list_shows_lock_files_when_they_are_made_but_not_locked(void **state)
{
    char line[600];

    (void)state;
    write_file(
        "makes.c", 0644,
        "#include <fcntl.h>\n#include <stdio.h>\n#include <sys/stat.h>\n#include <unistd.h>\n"
        "int main(void)\n"
        "{\n"
        "    for (int i = 0; i < 3; i++) close(open(\"job.pid\", O_CREAT | O_EXCL | O_WRONLY, 0600));\n"
        "    close(openat(AT_FDCWD, \"data\", O_CREAT | O_EXCL | O_WRONLY, 0640));\n"
        "    close(open(\"plain\", O_CREAT | O_WRONLY, 0600));\n"
        "    if (link(\"data\", \"mail.lock\") || mkdir(\"dir.lock\", 0700) || mkdir(\"folder\", 0700)) return 1;\n"
        "    mkdir(\"folder\", 0700);\n"
        "    return link(\"nothing\", \"none.lock\") == 0;\n"
        "}\n");
    compile("makes.c", "makes", "");
    command_run("cd %s && exec %s --list ./makes", folder, dmutex_run);
    assert_status(0);
    snprintf(line, sizeof line,
             "# %1$s/dir.lock was made by mkdir(), 1 times: such a lock file cannot be distributed; use flock(1)\n"
             "# %1$s/job.pid was made by O_EXCL, 3 times: such a lock file cannot be distributed; use flock(1)\n"
             "# %1$s/mail.lock was made by link(), 1 times: such a lock file",
             folder);
    assert_errors(line);
    assert_null(strstr(ran.errors, "/data "));
    assert_null(strstr(ran.errors, "/plain"));
    assert_null(strstr(ran.errors, "/folder "));
    assert_null(strstr(ran.errors, "/none.lock"));
    command_run("cd %s && test $(stat -c %%a data) = 640", folder); /* the program's open() had its effect */
    assert_status(0);
}

/* --list counts the children of the command with the command. */
static void test_list_adds_up_when_there_are_more_processes(void **state)
{
    (void)state;
    command_run("exec %s --list sh -c '%s/user; %s/user'", dmutex_run, folder, folder);
    assert_status(0);
    assert_listed(30, "sym:user:often\n");
}

/* --list names an offset if two static objects have one name. */
static void test_list_names_an_offset_when_a_symbol_is_there_twice(void **state)
{
    (void)state;
    write_file("one.c", 0644,
               "#include <pthread.h>\nstatic pthread_mutex_t m;\n"
               "void one(void) { pthread_mutex_lock(&m); pthread_mutex_unlock(&m); }\n");
    write_file("two.c", 0644,
               "#include <pthread.h>\nstatic pthread_mutex_t m;\nvoid one(void);\n"
               "int main(void) { one(); return pthread_mutex_lock(&m); }\n");
    compile("one.c two.c", "twice", "-Wl,--build-id=0xfeedbeef");
    command_run("exec %s --list %s/twice", dmutex_run, folder);
    assert_status(0);
    assert_listed(1, "off:twice@build-id:feedbeef+0x");
}

static void test_list_says_so_when_nothing_was_used(void **state)
{
    (void)state;
    command_run("exec %s --list true", dmutex_run);
    assert_status(0);
    assert_string_equal(ran.errors, "# nothing was used that a rule can name\n");
}

/* ---- files of the module ----------------------------------------------------------------- */

/* As the command of --list: writes a file as a module would. */
static int write_seen(void)
{
    static struct seen_file file = { .version = SEEN_VERSION, .is_full = 1 };
    static const struct seen seen[] = {
        { .kind = SEEN_FLOCK, .place = SEEN_IN_FILE, .count = 20, .path = "/run/lock/a job.lock" },
        { .kind = SEEN_FCNTL, .place = SEEN_IN_FILE, .count = 10, .path = "/var/lib/dpkg/lock" },
        { .kind = SEEN_MUTEX, .place = SEEN_IN_MAPPING, .count = 2, .path = "/dev/zero (deleted)" },
        { .kind = SEEN_MUTEX, .place = SEEN_IN_MODULE, .count = 4, .path = "/no/such/file", .offset = 64 },
        { .kind = SEEN_CONDITION, .place = SEEN_IN_MAPPING, .count = 5, .path = "/srv/x", .offset = 64 },
        { .kind = SEEN_MUTEX, .place = SEEN_IN_MAPPING, .count = 3, .bits = 0xc0, .path = "/srv/x", .offset = 16 },
        { .kind = SEEN_MUTEX, .place = 77, .count = 1, .path = "/srv/x" },
    };
    char path[500];
    FILE *to;

    memcpy(file.entries, seen, sizeof seen);
    memset(file.entries[6].path, 'x', SEEN_PATH_ROOM); /* unterminated */
    snprintf(path, sizeof path, "%s/written", getenv("DMUTEX_LIST"));
    to = fopen(path, "w");
    return to && fwrite(&file, sizeof file, 1, to) == 1 && fclose(to) == 0 ? 0 : 1;
}

static void test_list_names_all_kinds_when_they_were_used(void **state)
{
    (void)state;
    command_run("exec %s --list %s --role seen", dmutex_run, program_path);
    assert_status(0);
    assert_listed(20, "flock:/run/lock/a\\ job.lock\n");
    assert_listed(10, "fcntl:/var/lib/dpkg/lock\n");
    assert_listed(5, "cond:map:/srv/x+0x40\n");
    assert_listed(3, "map:/srv/x+0x10  # priority ceiling: stays local\n");
    assert_errors("# 3 uses of objects in the heap");
    assert_errors("# 4 uses of objects in files without symbols and build-id");
    assert_errors("# a process used more than 4096, or its disk is full: the rest is left out");
}

/* --list skips a file that the module has not written. */
static void test_list_goes_on_when_a_file_is_strange(void **state)
{
    (void)state;
    command_run("exec %s --list sh -c 'echo x >$DMUTEX_LIST/a;"
                " head -c 2000000 /dev/zero >$DMUTEX_LIST/b; mkfifo $DMUTEX_LIST/c'",
                dmutex_run);
    assert_status(0);
    assert_string_equal(ran.errors, "# nothing was used that a rule can name\n");
}

/* ---- the command ------------------------------------------------------------------------- */

/* The list goes to --output, apart from the command's output, and leaves no temporary file. */
static void test_list_is_apart_when_the_command_prints(void **state)
{
    (void)state;
    command_run(
        "mkdir %1$s/tmp; TMPDIR=%1$s/tmp exec %2$s --list --output %1$s/list sh -c 'echo out; echo err >&2; %1$s/user'",
        folder, dmutex_run);
    assert_status(0);
    assert_string_equal(ran.output, "out\n");
    assert_string_equal(ran.errors, "err\n");
    command_run("rmdir %s/tmp && cat %s/list >&2", folder, folder);
    assert_status(0);
    assert_listed(15, "sym:user:often\n");
}

static void test_list_refuses_when_it_cannot_be_written(void **state)
{
    (void)state;
    command_run("exec %1$s --list --output %2$s/none/list touch %2$s/never", dmutex_run, folder);
    assert_status(64);
    assert_errors("/none/list: No such file or directory");
    command_run("test -e %s/never", folder);
    assert_status(1);
}

/* --list ends as the command ends, also by a signal, and prints first. */
static void test_list_ends_as_the_command_when_that_ends(void **state)
{
    (void)state;
    command_run("exec %s --list sh -c '%s/user; exit 3'", dmutex_run, folder);
    assert_status(3);
    assert_listed(15, "sym:user:often\n");
    command_run("exec %s --list sh -c '%s/user; kill -TERM $$'", dmutex_run, folder);
    assert_status(128 + SIGTERM);
    assert_listed(15, "sym:user:often\n");
    command_run("exec %s --list sh -c 'kill -KILL $$'", dmutex_run);
    assert_status(128 + SIGKILL);
}

/* --list passes signals on to the command. */
static void test_list_passes_signals_on_when_it_gets_them(void **state)
{
    static const int signals[] = { SIGTERM, SIGINT, SIGHUP, SIGUSR1, SIGUSR2 };

    (void)state;
    for (size_t i = 0; i < sizeof signals / sizeof signals[0]; i++) {
        pid_t pid = command_start("cd %s; exec %s --list sh -c 'trap \"echo got it; exit 7\" %d;"
                                  " touch ready; while :; do sleep 0.01; done'",
                                  folder, dmutex_run, signals[i]);

        wait_until(access(in_folder("ready"), F_OK) == 0);
        kill(pid, signals[i]);
        command_await(pid);
        assert_status(7);
        assert_string_equal(ran.output, "got it\n");
        command_run("rm %s/ready", folder);
    }
}

/* If the command stops, as by Ctrl-Z, dmutex-run stops too, so that a shell notices, and can continue both. */
static void test_list_stops_when_the_command_stops(void **state)
{
    pid_t pid = command_start("exec %s --list sh -c 'kill -STOP $$; echo goes on; exit 5'", dmutex_run);

    (void)state;
    wait_until(proc_state(pid) == 'T');
    kill(pid, SIGCONT);
    command_await(pid);
    assert_status(5);
    assert_string_equal(ran.output, "goes on\n");
}

/* --list gets the command's status although the parent ignores SIGCHLD, as some daemons do. */
static void test_list_waits_when_the_parent_ignores_its_children(void **state)
{
    (void)state;
    command_run("trap '' CHLD; exec %s --list sh -c '%s/user; exit 3'", dmutex_run, folder);
    assert_status(3);
    assert_listed(15, "sym:user:often\n");
}

/* --list runs with rules that a new build has made wrong, so that the user can find the new rules. */
static void test_list_runs_when_a_rule_does_not_resolve(void **state)
{
    (void)state;
    the_server = server_start();
    command_run("DMUTEX_URL=%s exec %s -e 'off:user@build-id:0011+0x40 => a' --list %s/user", the_server->url,
                dmutex_run, folder);
    server_end(the_server);
    assert_status(0);
    assert_errors("/user is another build (build-id feedbeef)");
    assert_errors("it stays local");
    assert_listed(15, "sym:user:often\n");
}

/* A folder of temporary files that others can change is refused, with the remedy. */
static void test_list_is_refused_when_others_can_exchange_the_folder(void **state)
{
    (void)state;
    command_run("mkdir -p %2$s/open; chmod 777 %2$s/open; TMPDIR=%2$s/open %1$s --list true; echo $?; ls %2$s/open",
                dmutex_run, folder);
    assert_string_equal(ran.output, "126\n");
    assert_errors("/open can be changed by others than its owner, user ");
    assert_errors(": set TMPDIR to a folder that no other user can change");
}

/* A full disk, or a limit of files, costs lines of the list, and not the command. */
static void test_the_command_goes_on_when_there_is_no_room_for_the_list(void **state)
{
    (void)state;
    command_run("ulimit -f 1; exec %s --list flock %s/x.lock echo in", dmutex_run, folder);
    assert_status(0);
    assert_string_equal(ran.output, "in\n");
    assert_errors("dmutex: the list lacks what a process uses: there is no room in ");
    if (geteuid() != 0)
        return;
    command_run("mkdir -p %2$s/full; exec unshare -m sh -c 'mount -t tmpfs -o size=256k none %2$s/full && "
                "{ dd if=/dev/zero of=%2$s/full/all bs=1k 2>%2$s/dd; "
                "TMPDIR=%2$s/full exec %1$s --list flock %2$s/x.lock echo in; }'",
                dmutex_run, folder);
    assert_status(0);
    assert_string_equal(ran.output, "in\n");
    assert_errors("dmutex: the list lacks what a process uses: there is no room in ");
}

/* A process of another user cannot report, and says so. */
static void test_the_list_says_what_it_lacks_when_a_process_has_another_user(void **state)
{
    (void)state;
    if (geteuid() != 0)
        return;
    command_run("exec %s --list setpriv --reuid 61234 --regid 61234 --clear-groups flock /dev/null true", dmutex_run);
    assert_status(0);
    assert_errors("uses: its user is another one than that of dmutex-run");
}

/* No message of a library appears in between: a container's user may have neither a home nor a name. */
static void test_nothing_else_is_said_when_the_user_has_neither_home_nor_name(void **state)
{
    (void)state;
    if (geteuid() != 0)
        return;
    command_run("exec env -u HOME -u XDG_CONFIG_HOME TMPDIR=/tmp setpriv --reuid 61234 --regid 61234 --clear-groups "
                "%s --list flock /dev/null true",
                dmutex_run);
    assert_status(0);
    assert_null(strstr(ran.errors, "WARNING"));
}

static void test_the_sentence_says_what_to_do_when_the_folder_cannot_be_made(void **state)
{
    (void)state;
    command_run("TMPDIR=/proc exec %s --list true", dmutex_run);
    assert_status(126);
    assert_errors(": set TMPDIR to a folder that can be written");
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_list_names_symbols_when_there_are_some),
        cmocka_unit_test(test_the_list_says_what_it_lacks_when_a_process_has_another_user),
        cmocka_unit_test(test_nothing_else_is_said_when_the_user_has_neither_home_nor_name),
        cmocka_unit_test(test_the_sentence_says_what_to_do_when_the_folder_cannot_be_made),
        cmocka_unit_test(test_list_names_offsets_when_the_file_is_stripped),
        cmocka_unit_test(test_list_prints_rules_that_resolve_when_pasted),
        cmocka_unit_test(test_list_names_mappings_when_memory_is_shared),
        cmocka_unit_test(test_list_names_a_lock_file_when_it_was_locked),
        cmocka_unit_test(test_list_hides_nothing_when_a_name_is_not_all_seen),
        cmocka_unit_test(test_list_proposes_no_rule_when_parts_of_a_file_are_locked),
        cmocka_unit_test(test_list_shows_lock_files_when_they_are_made_but_not_locked),
        cmocka_unit_test(test_list_adds_up_when_there_are_more_processes),
        cmocka_unit_test(test_list_names_an_offset_when_a_symbol_is_there_twice),
        cmocka_unit_test(test_list_says_so_when_nothing_was_used),
        cmocka_unit_test(test_list_names_all_kinds_when_they_were_used),
        cmocka_unit_test(test_list_goes_on_when_a_file_is_strange),
        cmocka_unit_test(test_list_is_apart_when_the_command_prints),
        cmocka_unit_test(test_list_refuses_when_it_cannot_be_written),
        cmocka_unit_test(test_list_ends_as_the_command_when_that_ends),
        cmocka_unit_test(test_list_passes_signals_on_when_it_gets_them),
        cmocka_unit_test(test_list_stops_when_the_command_stops),
        cmocka_unit_test(test_list_waits_when_the_parent_ignores_its_children),
        cmocka_unit_test(test_list_runs_when_a_rule_does_not_resolve),
        cmocka_unit_test(test_the_command_goes_on_when_there_is_no_room_for_the_list),
        cmocka_unit_test(test_list_is_refused_when_others_can_exchange_the_folder),
    };

    if (argc > 2 && strcmp(argv[1], "--role") == 0 && strcmp(argv[2], "seen") == 0)
        return write_seen();
    test_begin(argc, argv);
    return cmocka_run_group_tests(tests, build, folder_teardown);
}
