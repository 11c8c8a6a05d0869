/* SPDX-License-Identifier: BSD-2-Clause */
/* Commands in which a preloaded module has no effect are refused before the start, with a reason; all others run. */
#include "run.h"

#include <elf.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <glib.h>

#include "run/program.h"
#include "run/refuse.h"

#define NOBODY 65534
#define UNREACHABLE 98 /* no status of the runner */

/* Runs dmutex-run on the command, with a rule, and with all checks but the server's. */
static void try_command(const char *name)
{
    command_run("DMUTEX_URL=redis://h exec %s -e 'flock:/x => a' --dry-run %s%s%s", dmutex_run,
                name[0] == '/' ? "" : folder, name[0] == '/' ? "" : "/", name);
}

static void assert_refused(const char *name, const char *sentence)
{
    try_command(name);
    assert_status(126);
    assert_errors(sentence);
    assert_string_equal(ran.output, "");
}

static void assert_accepted(const char *name)
{
    try_command(name);
    assert_status(0);
    assert_output("LD_PRELOAD=");
}

/* Compiles a C program that ends with 0. */
static void make_program(const char *name, const char *switches)
{
    write_file("empty.c", 0644, "int main(void) { return 0; }\n");
    compile("empty.c", name, switches);
}

/* Changes bytes of a file in the folder. */
static void patch(const char *name, off_t offset, const void *bytes, size_t size)
{
    char path[200];
    int fd;

    snprintf(path, sizeof path, "%s/%s", folder, name);
    fd = open(path, O_WRONLY);
    assert_true(fd >= 0);
    assert_int_equal(pwrite(fd, bytes, size, offset), size);
    close(fd);
}

/* ---- search ------------------------------------------------------------------------------ */

/* A missing command is 127, and a command that cannot be executed 126, as in a shell. */
static void test_run_says_not_found_when_there_is_no_command(void **state)
{
    (void)state;
    command_run("exec %s no-such-command", dmutex_run);
    assert_status(127);
    assert_errors("dmutex-run: no-such-command: no such command in PATH");
    command_run("exec %s %s/none", dmutex_run, folder);
    assert_status(127);
    assert_errors("/none: No such file or directory");
    command_run("exec %s ''", dmutex_run);
    assert_status(127);
}

static void test_run_says_not_executable_when_it_is_not(void **state)
{
    const char *path = write_file("plain", 0644, "text");

    (void)state;
    command_run("exec %s %s", dmutex_run, path);
    assert_status(126);
    assert_errors("/plain: Permission denied");
    command_run("exec %s %s", dmutex_run, folder);
    assert_status(126);
    command_run("PATH=%s exec %s plain", folder, dmutex_run);
    assert_status(126);
}

/* dmutex-run takes the first executable file in the order of PATH. */
static void test_run_finds_the_first_when_path_has_more(void **state)
{
    (void)state;
    command_run("cd %s && mkdir -p p1 p2 p3", folder);
    write_file("p1/tool", 0644, "no\n");
    write_file("p2/tool", 0755, "#!/bin/sh\necho second\n");
    write_file("p3/tool", 0755, "#!/bin/sh\necho third\n");
    command_run("PATH=%1$s/p1:%1$s/p2:%1$s/p3 exec %2$s tool", folder, dmutex_run);
    assert_status(0);
    assert_string_equal(ran.output, "second\n");
}

/* ---- refused ----------------------------------------------------------------------------- */

static void test_run_accepts_when_the_program_is_dynamic(void **state)
{
    (void)state;
    make_program("dynamic", "");
    assert_accepted("dynamic");
    make_program("fixed", "-no-pie -fno-pie");
    assert_accepted("fixed");
    assert_accepted("/bin/sh");
}

/* A static program is refused, because no dynamic loader would preload the module. */
static void test_run_refuses_when_the_program_is_static(void **state)
{
    (void)state;
    make_program("static", "-static");
    assert_refused("static", "/static is a static program, into which nothing can be preloaded: link it dynamically");
    make_program("static-pie", "-static-pie");
    assert_refused("static-pie", "is a static program");
}

static void test_run_refuses_when_the_architecture_is_another(void **state)
{
    unsigned char class32 = ELFCLASS32, msb = ELFDATA2MSB;
    uint16_t machine = EM_ARM;

    (void)state;
    make_program("arm", "");
    patch("arm", offsetof(Elf64_Ehdr, e_machine), &machine, sizeof machine);
    assert_refused("arm", "/arm is a program for another architecture (arm, ");
    make_program("class32", "");
    patch("class32", EI_CLASS, &class32, 1);
    assert_refused("class32", "32 bits; libdmutex is for");
    make_program("msb", "");
    patch("msb", EI_DATA, &msb, 1);
    assert_refused("msb", "is a program for another architecture");
}

/* Without /proc dmutex-run does not know for what it was built, and says so. */
static void test_run_refuses_when_there_is_no_proc(void **state)
{
    (void)state;
    if (geteuid() != 0)
        return;
    command_run("exec unshare -m sh -c \"mount -t tmpfs none /proc; DMUTEX_URL=redis://h exec %s -e 'flock:/x => a' "
                "--dry-run /bin/sh\"",
                dmutex_run);
    assert_status(126);
    assert_errors("cannot be examined, because /proc is not mounted here");
}

static void test_run_refuses_when_the_c_library_is_another(void **state)
{
    (void)state;
    make_program("musl", "-Wl,--dynamic-linker=/lib/ld-musl-other.so.1");
    assert_refused("musl",
                   "/musl is linked to another C library than libdmutex (its loader is ld-musl-other.so.1, not ");
}

/* A file neither ELF nor #! is refused: a shell would run the file as a script, and the kernel may know the format. */
static void test_run_refuses_when_the_file_is_neither(void **state)
{
    (void)state;
    write_file("text", 0755, "echo hello\n");
    assert_refused("text",
                   "/text is neither a program nor a script that begins with #!: give its interpreter before it");
    write_file("empty", 0755, " ");
    assert_refused("empty", "is neither a program nor a script");
}

/* A cut file, with a header that promises more, is refused. */
static void test_run_refuses_when_the_program_is_cut(void **state)
{
    (void)state;
    make_program("whole", "");
    command_run("cd %s && head -c 70 whole > cut && head -c 20 whole > stub && chmod +x cut stub", folder);
    assert_refused("cut", "is a static program");
    assert_refused("stub", "is neither a program nor a script");
}

/* ---- scripts ----------------------------------------------------------------------------- */

/* dmutex-run examines the interpreter of a script. */
static void test_run_follows_a_script_when_it_names_its_interpreter(void **state)
{
    (void)state;
    write_file("sh", 0755, "#! /bin/sh -e\necho hello\n");
    assert_accepted("sh");
    write_file("env", 0755, "#!/usr/bin/env sh\necho hello\n");
    assert_accepted("env");
    write_file("split", 0755, "#!/usr/bin/env -S sh -e\necho hello\n");
    assert_accepted("split");
    make_program("static", "-static");
    write_file("of-static", 0755, "#!%s/static\n", folder);
    assert_refused("of-static", "/static is a static program");
    write_file("of-script", 0755, "#!%s/of-static\n", folder);
    assert_refused("of-script", "/static is a static program");
    command_run("PATH=%s:$PATH; export PATH; DMUTEX_URL=redis://h exec %s -e 'flock:/x => a' --dry-run %s", folder,
                dmutex_run, write_file("env-static", 0755, "#!/usr/bin/env static\n"));
    assert_status(126);
    assert_errors("/static is a static program");
}

static void test_run_refuses_a_script_when_its_interpreter_is_missing(void **state)
{
    (void)state;
    write_file("orphan", 0755, "#!/no/such/interpreter\n");
    try_command("orphan");
    assert_status(127);
    assert_errors("/orphan: its interpreter /no/such/interpreter: No such file or directory");
    write_file("nothing", 0755, "#!\n");
    try_command("nothing");
    assert_status(127);
    write_file("circle", 0755, "#!%s/circle\n", folder);
    assert_refused("circle", "/circle is neither a program nor a script");
}

/* ---- rights ------------------------------------------------------------------------------ */

/* True if set-id bits have no effect in the folder, so that a module works. */
static bool is_powerless(void)
{
    struct statvfs system;

    assert_int_equal(statvfs(folder, &system), 0);
    return (system.f_flag & ST_NOSUID) || prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) == 1;
}

/* The status with which dmutex-run would refuse the program for a user; 0: accepted. */
static int status_for(uid_t user, const char *name)
{
    g_autofree char *path = g_build_filename(folder, name, NULL);
    int status;
    pid_t pid;

    assert_int_equal(chmod(folder, 0755), 0);
    pid = keeper_fork();
    if (pid == 0) {
        struct program program;
        GError *error = NULL;

        if (setresuid(user, user, user) < 0)
            _exit(99);
        if (access(folder, X_OK) < 0)
            _exit(UNREACHABLE);
        _exit(program_examine(path, &program, &error) ? 0 : error->code);
    }
    status = WEXITSTATUS(keeper_reap(pid));
    if (status == UNREACHABLE)
        fail_msg("user %d cannot reach %s: the folders above it, / too, must be open to all (chmod o+x)", (int)user,
                 folder);
    return status;
}

/*
 * A program that would run with more rights than its user is refused, because it ignores preloaded libraries. Without
 * root, passwd(1) serves as such a program.
 */
static void test_run_refuses_when_the_program_gains_rights(void **state)
{
    int refused = is_powerless() ? 0 : 126;

    (void)state;
    if (getuid() != 0) {
        if (prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) == 0)
            assert_refused("/usr/bin/passwd", "is set-user-ID, and ignores preloaded libraries");
        return;
    }
    make_program("setuid", "");
    command_run("cd %s && chown %d setuid && chmod 4755 setuid", folder, NOBODY);
    assert_int_equal(status_for(0, "setuid"), refused);
    assert_int_equal(status_for(1, "setuid"), refused);
    assert_int_equal(status_for(NOBODY, "setuid"), 0);
    make_program("setgid", "");
    command_run("cd %s && chgrp %d setgid && chmod 2755 setgid", folder, NOBODY);
    assert_int_equal(status_for(0, "setgid"), refused);
    command_run("cd %s && chmod 2745 setgid", folder); /* not executable for the group: once meant mandatory locks */
    assert_int_equal(status_for(0, "setgid"), 0);
}

/* Root's own set-user-ID program is accepted for root, because the module works there. */
static void test_run_accepts_when_root_runs_what_becomes_root(void **state)
{
    int refused = is_powerless() ? 0 : 126;

    (void)state;
    if (getuid() != 0)
        return;
    make_program("roots", "");
    command_run("cd %s && chmod 4755 roots", folder);
    assert_int_equal(status_for(0, "roots"), 0);
    assert_int_equal(status_for(NOBODY, "roots"), refused);
}

static void test_run_refuses_when_the_program_has_capabilities(void **state)
{
    struct vfs_cap_data capabilities = { .magic_etc = VFS_CAP_REVISION_2 | VFS_CAP_FLAGS_EFFECTIVE,
                                         .data = { { .permitted = 1u << CAP_NET_BIND_SERVICE } } };
    g_autofree char *path = g_build_filename(folder, "capable", NULL);

    (void)state;
    if (getuid() != 0)
        return;
    make_program("capable", "");
    if (setxattr(path, "security.capability", &capabilities, sizeof capabilities, 0) < 0)
        return; /* a container may forbid capabilities, or the file system lack them */
    assert_int_equal(status_for(0, "capable"), 0);
    assert_int_equal(status_for(NOBODY, "capable"), is_powerless() ? 0 : 126);
}

/* A program that cannot be read is refused, because dmutex-run cannot examine the program. */
static void test_run_refuses_when_the_program_cannot_be_read(void **state)
{
    (void)state;
    if (getuid() != 0)
        return;
    make_program("secret", "");
    command_run("cd %s && chmod 0711 secret", folder);
    assert_int_equal(status_for(0, "secret"), 0);
    assert_int_equal(status_for(NOBODY, "secret"), 126);
}

/* ---- no rules ---------------------------------------------------------------------------- */

/* Without a rule, dmutex-run examines no command, and says that nothing is distributed. */
static void test_run_runs_anything_when_there_is_no_rule(void **state)
{
    (void)state;
    make_program("static", "-static");
    command_run("exec %s %s/static", dmutex_run, folder);
    assert_status(0);
    assert_errors("dmutex-run: warning: there is no rule, so nothing is distributed: ");
    command_run("exec %s -q %s/static", dmutex_run, folder);
    assert_status(0);
    assert_string_equal(ran.errors, "");
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_run_says_not_found_when_there_is_no_command),
        cmocka_unit_test(test_run_says_not_executable_when_it_is_not),
        cmocka_unit_test(test_run_finds_the_first_when_path_has_more),
        cmocka_unit_test(test_run_accepts_when_the_program_is_dynamic),
        cmocka_unit_test(test_run_refuses_when_the_program_is_static),
        cmocka_unit_test(test_run_refuses_when_the_architecture_is_another),
        cmocka_unit_test(test_run_refuses_when_there_is_no_proc),
        cmocka_unit_test(test_run_refuses_when_the_c_library_is_another),
        cmocka_unit_test(test_run_refuses_when_the_file_is_neither),
        cmocka_unit_test(test_run_refuses_when_the_program_is_cut),
        cmocka_unit_test(test_run_follows_a_script_when_it_names_its_interpreter),
        cmocka_unit_test(test_run_refuses_a_script_when_its_interpreter_is_missing),
        cmocka_unit_test(test_run_refuses_when_the_program_gains_rights),
        cmocka_unit_test(test_run_accepts_when_root_runs_what_becomes_root),
        cmocka_unit_test(test_run_refuses_when_the_program_has_capabilities),
        cmocka_unit_test(test_run_refuses_when_the_program_cannot_be_read),
        cmocka_unit_test(test_run_runs_anything_when_there_is_no_rule),
    };

    test_begin(argc, argv);
    test_tell_asan("detect_leaks=0"); /* it needs /proc for that */
    return cmocka_run_group_tests(tests, run_setup, folder_teardown);
}
