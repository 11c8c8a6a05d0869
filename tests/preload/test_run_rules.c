/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Rules that name an object in a program or library: dmutex-run finds the object without running the program, or
 * refuses the rule, with the rule's place and a remedy.
 */
#include "run.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* A library with a static mutex, a mutex that the program copies, and objects that cannot be a mutex. */
static const char library_source[] = "#include <pthread.h>\n"
                                     "static pthread_mutex_t hidden = PTHREAD_MUTEX_INITIALIZER;\n"
                                     "pthread_mutex_t shown = PTHREAD_MUTEX_INITIALIZER;\n"
                                     "pthread_mutex_t row[3];\n"
                                     "const long fixed[5] = { 1 };\n"
                                     "__thread pthread_mutex_t own;\n"
                                     "void use(void) { pthread_mutex_lock(&hidden); pthread_mutex_unlock(&hidden); }\n";
static const char program_source[] = "#include <pthread.h>\n"
                                     "extern pthread_mutex_t shown;\n"
                                     "extern void use(void);\n"
                                     "pthread_mutex_t global = PTHREAD_MUTEX_INITIALIZER;\n"
                                     "pthread_cond_t filled = PTHREAD_COND_INITIALIZER;\n"
                                     "int main(int argc, char **argv)\n"
                                     "{\n"
                                     "    (void)argv;\n"
                                     "    if (argc > 1) { pthread_mutex_lock(&global); pthread_mutex_lock(&shown); }\n"
                                     "    use();\n"
                                     "    return pthread_cond_signal(&filled);\n"
                                     "}\n";

static int build(void **state)
{
    char switches[200];

    run_setup(state);
    write_file("lib.c", 0644, "%s", library_source);
    write_file("prog.c", 0644, "%s", program_source);
    compile("lib.c", "libplain.so.1", "-shared -fPIC -Wl,-soname,libplain.so.1 -Wl,--build-id=0x0011223344556677");
    snprintf(switches, sizeof switches, "libplain.so.1 -no-pie -fno-pie -Wl,-rpath,%s -Wl,--build-id=0xaabbccdd",
             folder);
    compile("prog.c", "prog", switches);
    command_run("cd %s && cp prog stripped && strip stripped", folder);
    assert_status(0);
    return 0;
}

/* Runs dmutex-run --dry-run with a configuration on a program; the server is not asked. */
static void dry_run(const char *config, const char *program)
{
    const char *path = write_file("rules.conf", 0644, "[server]\nUrl=redis://h\n%s", config);

    command_run("exec %s -v --config %s --dry-run %s/%s", dmutex_run, path, folder, program);
}

static void assert_found(const char *config, const char *sentence)
{
    dry_run(config, "prog");
    assert_status(0);
    assert_errors(sentence);
}

static void assert_refused(const char *config, const char *program, const char *sentence)
{
    dry_run(config, program);
    assert_status(78);
    assert_errors(sentence);
    assert_string_equal(ran.output, "");
}

/* ---- accepted rules ---------------------------------------------------------------------- */

/* Global and static symbols are found, in the program and in libraries, by basename and by path. */
static void test_rules_find_a_symbol_when_it_is_there(void **state)
{
    char config[300];

    (void)state;
    assert_found("[lock a]\nMatch=sym:prog:global\n", "sym:prog:global => a: ");
    assert_errors("/prog+0x");
    assert_found("[lock a]\nMatch=sym:libplain.so.1:hidden\n", "/libplain.so.1+0x");
    snprintf(config, sizeof config, "[lock a]\nMatch=sym:%s/libplain.so.1:row+0x28\n", folder);
    assert_found(config, "row+0x28 => a: ");
    assert_found("[lock a]\nMatch=sym:prog:global\nCond=sym:prog:filled\n", "cond:sym:prog:filled => a: ");
}

/* A variable that the loader copies into the program is found there, because all modules use the copy. */
static void test_rules_find_the_copy_when_the_program_has_one(void **state)
{
    (void)state;
    assert_found("[lock a]\nMatch=sym:libplain.so.1:shown\n", "sym:libplain.so.1:shown => a: ");
    assert_errors("/prog+0x");
}

/* Rules are resolved without running the program: the program's constructor would print a line. */
static void test_rules_are_resolved_when_the_program_has_not_run(void **state)
{
    (void)state;
    write_file("loud.c", 0644,
               "#include <stdio.h>\n#include <pthread.h>\npthread_mutex_t m;\n"
               "__attribute__((constructor)) static void shout(void) { puts(\"I run\"); }\n"
               "int main(void) { return 0; }\n");
    compile("loud.c", "loud", "");
    dry_run("[lock a]\nMatch=sym:loud:m;sym:libc.so.6:no_such\nRequired=no\n", "loud");
    assert_status(0);
    assert_errors("sym:loud:m => a: ");
    assert_null(strstr(ran.output, "I run"));
    assert_null(strstr(ran.errors, "I run"));
}

/* Examines a program by --check and --dry-run; neither may leave folder/was-run. */
static void assert_not_run(const char *program)
{
    static const char *const ways[] = { "--check", "--dry-run" };

    for (size_t i = 0; i < 2; i++) {
        command_run(
            "DMUTEX_URL=unix:///nowhere?connect_timeout=50 exec %s -v -e 'sym:libplain.so.1:hidden => a' %s %s/%s",
            dmutex_run, ways[i], folder, program);
        if (!strstr(ran.output, "/libplain.so.1+0x") && !strstr(ran.errors, "/libplain.so.1+0x"))
            fail_msg("%s%s", ran.output, ran.errors);
        command_run("test -e %s/was-run", folder);
        assert_status(1);
    }
}

/* Rules are resolved without running the file's loader, here an untrusted script with the loader's name. */
static void test_rules_are_resolved_when_the_loader_is_not_to_be_trusted(void **state)
{
    char switches[500];

    (void)state;
    command_run("cd %s && mkdir -p evil && readelf -p .interp prog | sed -n 's,.*/\\(ld[^/]*\\)$,\\1,p' >interp",
                folder);
    assert_status(0);
    command_run(
        "cd %s && name=$(cat interp) && test -n \"$name\" && printf '#!/bin/sh\ntouch %s/was-run\n' >evil/$name && "
        "chmod +x evil/$name",
        folder, folder);
    assert_status(0);
    snprintf(switches, sizeof switches,
             "libplain.so.1 -no-pie -fno-pie -Wl,-rpath,%s -Wl,--dynamic-linker=%s/evil/$(cat interp)", folder, folder);
    compile("prog.c", "misled", switches);
    assert_not_run("misled");
}

/* Rules are resolved without running the file's auditor, which the loader would run even for a list. */
static void test_rules_are_resolved_when_the_program_has_an_auditor(void **state)
{
    char switches[500];

    (void)state;
    write_file("auditor.c", 0644,
               "#include <fcntl.h>\n"
               "unsigned la_version(unsigned version) { creat(\"%s/was-run\", 0644); return version; }\n",
               folder);
    compile("auditor.c", "auditor.so", "-shared -fPIC");
    snprintf(switches, sizeof switches, "libplain.so.1 -no-pie -fno-pie -Wl,-rpath,%s -Wl,--audit=%s/auditor.so",
             folder, folder);
    compile("prog.c", "audited", switches);
    assert_not_run("audited");
    command_run("%s/audited; test -e %s/was-run", folder, folder); /* the control: the auditor works */
    assert_status(0);
    command_run("rm %s/was-run", folder);
}

/* Rules are resolved if a library is missing; a FIFO in a library's place does not block. */
static void test_rules_are_resolved_when_a_library_is_missing(void **state)
{
    char switches[300];

    (void)state;
    command_run("cd %s && mkdir -p pipes && mkfifo pipes/libplain.so.1", folder);
    snprintf(switches, sizeof switches, "libplain.so.1 -no-pie -fno-pie -Wl,-rpath,%s/pipes", folder);
    compile("prog.c", "alone", switches);
    dry_run("[lock a]\nMatch=sym:libplain.so.1:hidden\n", "alone");
    assert_status(0);
    assert_errors("sym:libplain.so.1:hidden => a: when libplain.so.1 is loaded");
}

/* An offset is found if the rule has the whole build-id or the beginning. */
static void test_rules_find_an_offset_when_the_build_is_the_same(void **state)
{
    char config[300];
    unsigned long offset;
    char *at;

    (void)state;
    assert_found("[lock a]\nMatch=sym:libplain.so.1:hidden\n", "/libplain.so.1+0x");
    at = strstr(ran.errors, "/libplain.so.1+0x");
    offset = strtoul(strchr(at, '+') + 1, NULL, 16);
    snprintf(config, sizeof config,
             "[lock a]\nMatch=off:libplain.so.1@build-id:0011223344556677+0x%lx;off:libplain.so.1@build-id:0011+%lu\n",
             offset, offset);
    assert_found(config, "off:libplain.so.1@build-id:0011223344556677+0x");
    assert_errors("off:libplain.so.1@build-id:0011+0x");
}

/* A warning is said for an object with the size of a read-write lock, as std::shared_mutex, before and during use. */
static void test_rules_are_warned_of_when_they_name_a_read_write_lock(void **state)
{
    (void)state;
    write_file("shared.c", 0644,
               "#include <pthread.h>\n"
               "pthread_rwlock_t table = PTHREAD_RWLOCK_INITIALIZER;\n"
               "int main(void)\n"
               "{\n"
               "    for (int i = 0; i < 3; i++)\n"
               "        if (pthread_rwlock_wrlock(&table) || pthread_rwlock_unlock(&table) ||\n"
               "            pthread_rwlock_rdlock(&table) ||\n"
               "            pthread_rwlock_unlock(&table)) return 1;\n"
               "    return 0;\n"
               "}\n");
    compile("shared.c", "shared", "");
    dry_run("[lock a]\nMatch=sym:shared:table\n", "shared");
    assert_status(0);
    assert_errors("has the size of a read-write lock, as std::shared_mutex: if it is one, it is not distributed");
    command_run("DMUTEX_URL=unix:///nowhere?connect_timeout=50 exec %s -q -e 'sym:shared:table => a' %s/shared",
                dmutex_run, folder);
    assert_status(0);
    assert_string_equal(ran.errors,
                        "dmutex: a: is a read-write lock, which is not distributed: it stays local, and the rule "
                        "has no effect\n");
}

/* ---- refused ----------------------------------------------------------------------------- */

static void test_rules_are_refused_when_the_symbol_is_not_there(void **state)
{
    (void)state;
    assert_refused("[lock a]\nMatch=sym:prog:globall\n", "prog", "/rules.conf: [lock a] Match: sym:prog:globall: ");
    assert_errors("/prog has no symbol globall; is it spelled as by nm(1)?");
    assert_refused("[lock a]\nMatch=sym:stripped:global\n", "stripped", "/stripped has no symbol global");
    assert_errors("take the off: rule that dmutex-run --list shows");
    assert_refused("[lock a]\nMatch=sym:prog:global\nCond=sym:prog:empty\n", "prog",
                   "[lock a] Cond: cond:sym:prog:empty: ");
}

static void test_rules_are_refused_when_the_symbol_is_no_object(void **state)
{
    (void)state;
    assert_refused("[lock a]\nMatch=sym:prog:main\n", "prog", "main in ");
    assert_errors("is not a variable that all threads share and can write");
    assert_refused("[lock a]\nMatch=sym:libplain.so.1:own\n", "prog", "own in ");
    assert_refused("[lock a]\nMatch=sym:libplain.so.1:fixed\n", "prog", "fixed in ");
    assert_refused("[lock a]\nMatch=sym:prog:global+0x100000\n", "prog", "is not a mutex: there is no memory");
    assert_refused("[lock a]\nMatch=sym:prog:global\nCond=off:prog@build-id:aabbccdd+0x10\n", "prog",
                   "is not a condition variable");
}

/* A rule is refused if two source files have a static variable of the name, because the choice would be chance. */
static void test_rules_are_refused_when_the_symbol_is_there_twice(void **state)
{
    (void)state;
    write_file("one.c", 0644, "#include <pthread.h>\nstatic pthread_mutex_t m;\nvoid *one(void) { return &m; }\n");
    write_file("two.c", 0644,
               "#include <pthread.h>\nstatic pthread_mutex_t m;\nvoid *one(void);\n"
               "int main(void) { return one() == &m; }\n");
    compile("one.c two.c", "twice", "");
    assert_refused("[lock a]\nMatch=sym:twice:m\n", "twice", "several");
}

static void test_rules_are_refused_when_the_build_is_another(void **state)
{
    (void)state;
    assert_refused(
        "[lock a]\nMatch=off:prog@build-id:aabbccde+0x4040\n", "prog",
        "/prog is another build (build-id aabbccdd): take the rule that dmutex-run --list shows for this one");
    command_run("cd %s && objcopy --remove-section=.note.gnu.build-id prog nameless", folder);
    assert_refused("[lock a]\nMatch=off:nameless@build-id:aa+0x4040\n", "nameless", "has no build-id");
}

/* A rule for a file by path is refused if the file lacks the symbol, for every program. */
static void test_rules_are_refused_when_a_file_that_is_named_has_no_such_symbol(void **state)
{
    char config[300];

    (void)state;
    snprintf(config, sizeof config, "[lock a]\nMatch=sym:%s/libplain.so.1:none\n", folder);
    write_file("script", 0755, "#!/bin/sh\n");
    assert_refused(config, "script", "/libplain.so.1 has no symbol none");
}

/* ---- Required ---------------------------------------------------------------------------- */

/* By default a module may come later, by dlopen() or in another program; with Required=yes the module must be there. */
static void test_rules_need_their_module_when_required(void **state)
{
    (void)state;
    assert_found("[lock a]\nMatch=sym:plugin.so:m\n", "sym:plugin.so:m => a: when plugin.so is loaded");
    assert_refused("[lock a]\nMatch=sym:plugin.so:m\nRequired=yes\n", "prog",
                   "/prog does not load plugin.so: correct the name, or leave Required=yes out if it does so later");
    assert_found("[lock a]\nMatch=sym:prog:global\nRequired=yes\n", "/prog+0x");
}

/* With Required=no, a missing symbol is a warning, and stays local. */
static void test_rules_are_warned_of_when_not_required(void **state)
{
    (void)state;
    dry_run("[lock a]\nMatch=sym:prog:none\nRequired=no\n", "prog");
    assert_status(0);
    assert_errors("warning: ");
    assert_errors("/prog has no symbol none");
    assert_errors("it stays local");
}

/* A rule for another program is not tried. */
static void test_rules_are_not_tried_when_they_are_for_another_program(void **state)
{
    char config[300];

    (void)state;
    assert_found("[lock a]\nMatch=sym:prog:none\nProgram=legacyd\nRequired=yes\n", "for the program legacyd only");
    snprintf(config, sizeof config, "[lock a]\nMatch=sym:prog:none\nProgram=%s/prog\n", folder);
    assert_refused(config, "prog", "has no symbol none");
    assert_refused("[lock a]\nMatch=sym:prog:none\nProgram=prog\n", "prog", "has no symbol none");
}

/* Rules for mappings and files wait until the program maps or locks the file. */
static void test_rules_of_files_wait_when_there_is_nothing_yet(void **state)
{
    (void)state;
    assert_found("[lock a]\nMatch=shm:/ring+0x40;map:/srv/x+8\nSharedState=yes\nRequired=yes\n", "when it is mapped");
    assert_found("[lock a]\nMatch=flock:/run/*.lock\n", "when such a file is locked");
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rules_find_a_symbol_when_it_is_there),
        cmocka_unit_test(test_rules_find_the_copy_when_the_program_has_one),
        cmocka_unit_test(test_rules_are_resolved_when_the_program_has_not_run),
        cmocka_unit_test(test_rules_are_resolved_when_the_loader_is_not_to_be_trusted),
        cmocka_unit_test(test_rules_are_resolved_when_the_program_has_an_auditor),
        cmocka_unit_test(test_rules_are_resolved_when_a_library_is_missing),
        cmocka_unit_test(test_rules_find_an_offset_when_the_build_is_the_same),
        cmocka_unit_test(test_rules_are_warned_of_when_they_name_a_read_write_lock),
        cmocka_unit_test(test_rules_are_refused_when_the_symbol_is_not_there),
        cmocka_unit_test(test_rules_are_refused_when_the_symbol_is_no_object),
        cmocka_unit_test(test_rules_are_refused_when_the_symbol_is_there_twice),
        cmocka_unit_test(test_rules_are_refused_when_the_build_is_another),
        cmocka_unit_test(test_rules_are_refused_when_a_file_that_is_named_has_no_such_symbol),
        cmocka_unit_test(test_rules_need_their_module_when_required),
        cmocka_unit_test(test_rules_are_warned_of_when_not_required),
        cmocka_unit_test(test_rules_are_not_tried_when_they_are_for_another_program),
        cmocka_unit_test(test_rules_of_files_wait_when_there_is_nothing_yet),
    };

    test_begin(argc, argv);
    return cmocka_run_group_tests(tests, build, folder_teardown);
}
