/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The ways to name a mutex of an unchanged program: symbols of programs and libraries, linked and loaded in all ways,
 * and offsets. test_mappings.c tests names in mappings.
 */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "naming.h"

#define VISITS 200
#define LOADERS 4
#define ID "5eed5eed5eed5eed5eed5eed5eed5eed5eed5eed"
#define WITH_ID "-Wl,--build-id=0x" ID
#define WRONG_CONFIGURATION 78

#define test_of_program(test) cmocka_unit_test_setup(test, forget_said)

/* ---- programs ---------------------------------------------------------------------------- */

static int build_all(void **state)
{
    if (programs_setup(state) != 0)
        return -1;
    build("legacy", LEGACY, "-fPIE -pie " WITH_ID);
    build("fixed", LEGACY, "-fno-pie -no-pie");
    build("libshelf.so", "shelf.c", "-fPIC -shared " WITH_ID);
    build("linked", LEGACY, "-Wl,--no-as-needed -L$folder -lshelf -Wl,-rpath,$folder");
    build("copying", LEGACY, "-fno-pie -no-pie -DDIRECT -L$folder -lshelf -Wl,-rpath,$folder");
    build("exporting", LEGACY, "-rdynamic -DEXPORTED -Wl,--no-as-needed -L$folder -lshelf -Wl,-rpath,$folder");
    build("searching", LEGACY, "-Wl,--enable-new-dtags -Wl,-rpath,$folder/later");
    command_run("cd %s && mkdir later elsewhere && cp libshelf.so later/liblater.so && ln -s legacy alias && "
                "cp libshelf.so elsewhere/ && strip -o stripped legacy",
                folder);
    assert_status(0);
    return 0;
}

/* Asserts that the program does not start under the rules: a sentence, and no output of the program. */
static void check_refused(const char *program, const char *rules, const char *sentence)
{
    char command[100];

    snprintf(command, sizeof command, "./%s 3>&1", program);
    run_under(rules, command);
    assert_status(WRONG_CONFIGURATION);
    assert_errors(sentence);
    assert_string_equal(ran.output, "");
}

/* Asserts that the rules give the program's mutex the name t/x, and that no sentence is printed. */
static void check_rule(const char *program, const char *rules, const char *object)
{
    struct actor *actor = start_program(program, rules, NULL);

    check_named(actor, object, "t/x");
    actor_end(actor);
    assert_string_equal(said(), "");
}

/* A rule for a symbol of a file of the folder, by path; valid until the next call. */
static const char *rule_by_path(const char *file, const char *symbol)
{
    static char rule[512];

    snprintf(rule, sizeof rule, "sym:%s/%s:%s => t/x", folder, file, symbol);
    return rule;
}

/* ---- symbols of the program -------------------------------------------------------------- */

/* Two processes of a program are never inside at once, and no visit is lost. */
static void test_a_program_excludes_itself_when_it_is_started_twice(void **state)
{
    static const char rules[] = "sym:legacy:static_lock => t/x";
    struct actor *a = start_program("legacy", rules, NULL), *b = start_program("legacy", rules, NULL);
    char page[80];

    (void)state;
    snprintf(page, sizeof page, "%s/page", folder);
    actor_begin_count(page);
    actor_send(a, "count %s %d static_lock", page, VISITS);
    actor_send(b, "count %s %d static_lock", page, VISITS);
    actor_expect(a, "0");
    actor_expect(b, "0");
    assert_int_equal(actor_counted(page), 2 * VISITS);
    actor_end(a);
    actor_end(b);
}

/* Without a rule, the two processes can hold the mutex at once: the control for the test before. */
static void test_a_program_does_not_exclude_itself_when_no_rule_says_so(void **state)
{
    struct actor *a = start_program("legacy", NULL, NULL), *b = start_program("legacy", NULL, NULL);

    (void)state;
    actor_do(a, "0", "lock static_lock");
    actor_do(b, "0", "trylock static_lock");
    actor_end(a);
    actor_end(b);
}

/*
 * A symbol of the program is named: static or global, in .data or .bss, in a position-independent or a fixed program.
 */
static void test_a_symbol_is_named_when_it_is_the_programs(void **state)
{
    (void)state;
    check_rule("legacy", "sym:legacy:static_lock => t/x", "static_lock");
    check_rule("legacy", "sym:legacy:queue_lock => t/x", "queue_lock");
    check_rule("legacy", "sym:legacy:made_lock => t/x", "made_lock");
    check_rule("fixed", "sym:fixed:static_lock => t/x", "static_lock");
    check_rule("fixed", "sym:fixed:made_lock => t/x", "made_lock");
}

/* A mutex in a struct or an array is named by an offset from the symbol; its neighbours are not named. */
static void test_a_member_is_named_when_the_rule_has_an_offset(void **state)
{
    struct actor *actor = start_program("legacy", "sym:legacy:table+0x40 => t/x", NULL);

    (void)state;
    check_named(actor, "table+64", "t/x");
    check_local(actor, "table+24");
    check_local(actor, "table+104");
    actor_end(actor);
    check_rule("fixed", "sym:fixed:table+24 => t/x", "table+24");
}

/* A rule may name the program by path, by a link to the program, and by the name in the call. */
static void test_a_program_is_meant_when_its_path_or_a_link_is_said(void **state)
{
    (void)state;
    check_rule("legacy", rule_by_path("legacy", "static_lock"), "static_lock");
    check_rule("legacy", rule_by_path("alias", "static_lock"), "static_lock");
    check_rule("alias", rule_by_path("legacy", "static_lock"), "static_lock");
    check_rule("alias", "sym:legacy:static_lock => t/x", "static_lock");
    check_rule("alias", "sym:alias:static_lock => t/x", "static_lock");
}

/* A program that no rule names is not changed; a rule of DMUTEX_RULES counts as well as one of DMUTEX_MAP. */
static void test_a_program_is_left_alone_when_another_one_is_meant(void **state)
{
    struct actor *actor = start_program("legacy", "sym:fixed:static_lock => t/x; sym:/nowhere/legacy:queue_lock => t/y",
                                        "DMUTEX_RULES=sym:legacy:other_lock => t/z", NULL);

    (void)state;
    check_local(actor, "static_lock");
    check_local(actor, "queue_lock");
    check_named(actor, "other_lock", "t/z");
    actor_end(actor);
}

/* A static member of a C++ class is named by the mangled name. */
static void test_a_static_member_of_a_class_is_named_when_it_is_mangled(void **state)
{
    struct actor *actor;

    (void)state;
    if (!has_cxx())
        return;
    build_guarded();
    actor = start_program("guarded", "sym:guarded:_ZN3app5Shelf5guardE => t/x", NULL);
    actor_do(actor, "0", "std lock");
    actor_do(actor, "EBUSY", "std try_lock");
    actor_do(actor, "0", "std unlock");
    actor_do(actor, "0", "std try_lock");
    assert_int_equal(side_int(the_server->side, "EXISTS %s", key_of("state", "t/x")), 1);
    actor_do(actor, "0", "std unlock");
    actor_end(actor);
}

/* ---- symbols of libraries ---------------------------------------------------------------- */

/* Exported and static symbols of a linked library are named, by basename and by path. */
static void test_a_symbol_is_named_when_it_is_of_a_linked_library(void **state)
{
    (void)state;
    check_rule("linked", "sym:libshelf.so:shelf_lock => t/x", "shelf_lock");
    check_rule("linked", "sym:libshelf.so:hidden_lock => t/x", "hidden_lock");
    check_rule("linked", rule_by_path("libshelf.so", "hidden_lock"), "hidden_lock");
}

/* A mutex of a library is named if the program has a copy: the program and the library use the copy. */
static void test_a_symbol_is_named_when_the_program_has_a_copy_of_it(void **state)
{
    struct actor *actor = start_program("copying", "sym:libshelf.so:shelf_lock => t/x", NULL);

    (void)state;
    check_named(actor, "direct_lock", "t/x");
    check_named(actor, "shelf_lock", "t/x");
    actor_end(actor);
    check_rule("copying", "sym:libshelf.so:hidden_lock => t/x", "hidden_lock");
}

/* A rule for a library's static variable does not name the program's variable of the same name, even if exported. */
static void test_a_librarys_own_is_named_when_the_program_has_one_of_that_name(void **state)
{
    struct actor *actor = start_program("exporting", "sym:libshelf.so:static_lock => t/x", NULL);

    (void)state;
    check_local(actor, "static_lock");
    check_named(actor, "shelf_static", "t/x");
    actor_end(actor);
}

/* ---- libraries that are loaded later ----------------------------------------------------- */

/* A symbol of a library is named while the library is loaded, each time that the library is loaded. */
static void test_a_symbol_is_named_whenever_its_library_is_loaded(void **state)
{
    struct actor *actor = start_program("legacy", "sym:libshelf.so:hidden_lock => t/x", NULL);

    (void)state;
    for (int i = 0; i < 3; i++) {
        actor_do(actor, "0", "open %s/libshelf.so", folder);
        check_named(actor, "hidden_lock", "t/x");
        check_local(actor, "shelf_lock");
        actor_do(actor, "0", "close");
    }
    check_local(actor, "static_lock");
    actor_end(actor);
}

/* A bare name is found in the program's own RUNPATH, as without the module; a library outside RUNPATH is not found. */
static void test_a_library_is_found_when_only_the_callers_runpath_says_where(void **state)
{
    static const char *const rules[] = { NULL, "sym:liblater.so:hidden_lock => t/x", "flock:/nowhere => t/y" };

    (void)state;
    if (is_sanitized())
        return;
    for (size_t i = 0; i < sizeof rules / sizeof rules[0]; i++) {
        struct actor *actor = start_program("searching", rules[i], NULL);

        actor_do(actor, "0", "open liblater.so");
        if (i == 1)
            check_named(actor, "hidden_lock", "t/x");
        else
            check_local(actor, "hidden_lock");
        actor_send(actor, "open libshelf.so");
        assert_non_null(strstr(actor_answer(actor), "No such file"));
        actor_end(actor);
    }
}

/* $ORIGIN is the program's folder, as without the module. */
static void test_a_library_is_found_when_its_path_begins_at_the_program(void **state)
{
    static const char *const rules[] = { NULL, "sym:liblater.so:hidden_lock => t/x" };

    (void)state;
    if (is_sanitized())
        return;
    for (size_t i = 0; i < sizeof rules / sizeof rules[0]; i++) {
        struct actor *actor = start_program("legacy", rules[i], NULL);

        actor_do(actor, "0", "open $ORIGIN/later/liblater.so");
        if (i == 1)
            check_named(actor, "hidden_lock", "t/x");
        actor_end(actor);
    }
}

/* LD_LIBRARY_PATH comes before RUNPATH, and a loaded library before both, as without the module. */
static void test_a_library_is_taken_from_where_the_loader_would_take_it(void **state)
{
    char path[300];
    struct actor *actor;

    (void)state;
    if (is_sanitized())
        return;
    command_run("cd %s && cp later/liblater.so elsewhere/", folder);
    assert_status(0);
    snprintf(path, sizeof path, "LD_LIBRARY_PATH=%s/elsewhere", folder);
    actor = start_program("searching", "sym:libother.so:hidden_lock => t/x", path, NULL);
    actor_do(actor, "0", "open liblater.so");
    actor_do(actor, "0 0", "has /later/liblater.so");
    actor_end(actor);
    command_run("rm %s/elsewhere/liblater.so", folder);
    assert_status(0);
    actor = start_program("searching", "sym:liblater.so:hidden_lock => t/x", NULL);
    actor_do(actor, "0", "open %s/later/liblater.so", folder);
    actor_do(actor, "0", "open liblater.so");
    check_named(actor, "hidden_lock", "t/x");
    actor_end(actor);
}

/* A name stays valid in a thread while other threads load and close other libraries. */
static void test_a_name_stays_when_other_libraries_come_and_go(void **state)
{
    struct actor *actor =
        start_program("linked", "sym:libshelf.so:hidden_lock => t/x; sym:liblater.so:hidden_lock => t/y", NULL);
    char page[80];

    (void)state;
    snprintf(page, sizeof page, "%s/page", folder);
    actor_begin_count(page);
    for (int i = 0; i < LOADERS; i++)
        actor_do(actor, "0", "start loads %s/%s 2000", folder, i % 2 ? "later/liblater.so" : "elsewhere/libshelf.so");
    actor_do(actor, "0", "count %s 1000 hidden_lock", page);
    for (int i = 0; i < LOADERS; i++)
        actor_do(actor, "0", "join");
    check_named(actor, "hidden_lock", "t/x");
    actor_end(actor);
}

/* A library loaded with RTLD_DEEPBIND locks past the module, which is said once. */
static void test_a_sentence_is_said_when_a_library_is_bound_deeply(void **state)
{
    struct actor *actor;

    (void)state;
    if (is_sanitized())
        return;
    actor = start_program("legacy", "sym:libshelf.so:hidden_lock => t/x", NULL);
    actor_do(actor, "0", "open %s/libshelf.so deepbind", folder);
    actor_do(actor, "0", "open %s/libshelf.so deepbind", folder);
    actor_end(actor);
    assert_said("libshelf.so is loaded with RTLD_DEEPBIND: the mutexes that it locks itself stay local");
}

/* ---- offsets ----------------------------------------------------------------------------- */

/* A rule with the offset that nm prints for a symbol of a file. */
static const char *rule_by_offset(const char *file, const char *module, const char *id, const char *symbol)
{
    static char rule[300];

    command_run("nm %s/%s | awk '$3 == \"%s\" { print $1 }'", folder, file, symbol);
    assert_status(0);
    snprintf(rule, sizeof rule, "off:%s@build-id:%s+0x%.*s => t/x", module, id, 16, ran.output);
    return rule;
}

/* An offset is named if the build-id is the file's, or begins the file's; also in a stripped program. */
static void test_an_offset_is_named_when_the_build_id_is_the_files(void **state)
{
    (void)state;
    check_rule("legacy", rule_by_offset("legacy", "legacy", ID, "static_lock"), "static_lock");
    check_rule("stripped", rule_by_offset("legacy", "stripped", ID, "static_lock"), "static_lock");
    check_rule("stripped", rule_by_offset("legacy", "stripped", "5eed5", "static_lock"), "static_lock");
    check_rule("linked", rule_by_offset("libshelf.so", "libshelf.so", ID, "hidden_lock"), "hidden_lock");
}

/* A program is refused if a rule has another build-id than the file, because the offset may be any variable there. */
static void test_a_program_is_refused_when_the_build_id_is_another(void **state)
{
    static const char sentence[] = ": another build-id than the rule's in ";

    (void)state;
    check_refused("legacy", rule_by_offset("legacy", "legacy", "abcd", "static_lock"), sentence);
    check_refused("legacy", rule_by_offset("legacy", "legacy", ID "00", "static_lock"), sentence);
    check_refused("linked", rule_by_offset("libshelf.so", "libshelf.so", "00", "hidden_lock"), sentence);
}

/* A program ends when the program loads a library with another build-id than the rule's. */
static void test_a_program_ends_when_a_library_of_another_build_is_loaded(void **state)
{
    struct actor *actor = start_program("legacy", "off:libshelf.so@build-id:abcd+0x4040 => t/x", NULL);

    (void)state;
    actor_send(actor, "open %s/libshelf.so", folder);
    assert_int_equal(actor_await(actor), WRONG_CONFIGURATION << 8);
    assert_said(": another build-id than the rule's in ");
}

/* ---- missing objects --------------------------------------------------------------------- */

/* A program is refused if a required symbol is missing, or is not a variable. */
static void test_a_program_is_refused_when_a_symbol_is_not_there(void **state)
{
    (void)state;
    check_refused("legacy", "sym:legacy:no_lock => t/x",
                  "dmutex: sym:legacy:no_lock (t/x): no such symbol (stripped? dmutex-run --list has off: rules) in ");
    check_refused("stripped", "sym:stripped:static_lock => t/x", ": no such symbol (stripped?");
    check_refused("legacy", "sym:legacy:main => t/x", ": a symbol that is not a variable in ");
    check_refused("legacy", "sym:legacy:thread_lock => t/x", ": a symbol that is not a variable in ");
    check_refused("linked", "cond:sym:libshelf.so:no_lock+8 => t/x", "cond:sym:libshelf.so:no_lock+0x8 (t/x): ");
}

/* With Required=no, a missing symbol is reported, and stays local. */
static void test_a_program_runs_when_a_symbol_need_not_be_there(void **state)
{
    struct actor *actor = start_program("legacy",
                                        "sym:legacy:no_lock => t/x required=no;"
                                        "sym:legacy:static_lock => t/y",
                                        NULL);

    (void)state;
    assert_said("sym:legacy:no_lock (t/x): no such symbol (stripped? dmutex-run --list has off: rules) in ");
    assert_said("; it is left local");
    check_named(actor, "static_lock", "t/y");
    actor_end(actor);
}

/*
 * With Required=yes for a program, the module must be loaded when the program starts; in other cases the module may
 * come later.
 */
static void test_a_program_is_refused_when_a_required_module_is_not_there(void **state)
{
    struct actor *actor;

    (void)state;
    check_refused("legacy", "sym:libshelf.so:hidden_lock => t/x required=yes program=legacy",
                  "dmutex: sym:libshelf.so:hidden_lock (t/x): required, and its module is not loaded in ");
    check_rule("linked", "sym:libshelf.so:hidden_lock => t/x required=yes program=linked", "hidden_lock");
    check_rule("alias", "sym:alias:static_lock => t/x required=yes program=legacy", "static_lock");
    check_rule("legacy", "sym:libshelf.so:hidden_lock => t/y required=yes; sym:legacy:static_lock => t/x",
               "static_lock");
    actor = start_program("legacy", "sym:libshelf.so:hidden_lock => t/x; sym:fixed:a => t/y required=no", NULL);
    check_local(actor, "static_lock");
    actor_end(actor);
    assert_string_equal(said(), "");
}

/* A rule that cannot be read refuses every program. */
static void test_a_program_is_refused_when_a_rule_cannot_be_read(void **state)
{
    (void)state;
    check_refused("legacy", "sym:legacy => t/x",
                  "dmutex: DMUTEX_MAP: sym:legacy: not of the form sym:MODULE:SYMBOL or sym:MODULE:SYMBOL+OFFSET\n");
    check_refused("legacy", "sym:legacy:static_lock => t/%h",
                  ": its name has a % that is not one of %b, %p, %x, %u and %%\n");
}

/* A name that is too long after expansion refuses the program, too. */
static void test_a_program_is_refused_when_a_name_is_too_long(void **state)
{
    char rule[300] = "sym:legacy:static_lock => t/%p";

    (void)state;
    for (size_t i = strlen(rule); i < 220; i++)
        rule[i] = 'n';
    check_refused("legacy", rule, "is too long, or has a % that means nothing\n");
}

/* ---- which rule -------------------------------------------------------------------------- */

/* Of several rules for an object the first counts; rules of DMUTEX_MAP come before rules of DMUTEX_RULES. */
static void test_the_first_rule_counts_when_several_name_a_mutex(void **state)
{
    struct actor *actor =
        start_program("legacy", "sym:legacy:static_lock => t/x; sym:legacy:static_lock+0 => t/y",
                      "DMUTEX_RULES=sym:legacy:static_lock => t/z; sym:legacy:queue_lock => t/w", NULL);

    (void)state;
    check_named(actor, "static_lock", "t/x");
    check_named(actor, "queue_lock", "t/w");
    actor_end(actor);
}

/* A rule with Program= is for that program only, by name or by path. */
static void test_a_rule_is_for_one_program_when_it_says_so(void **state)
{
    char rules[300];
    struct actor *actor;

    (void)state;
    snprintf(rules, sizeof rules,
             "sym:legacy:static_lock => t/x program=fixed; sym:legacy:queue_lock => t/y program=%s/legacy;"
             "sym:legacy:other_lock => t/z program=legacy; sym:legacy:no_lock => t/v program=/nowhere/legacy",
             folder);
    actor = start_program("legacy", rules, NULL);
    check_local(actor, "static_lock");
    check_named(actor, "queue_lock", "t/y");
    check_named(actor, "other_lock", "t/z");
    actor_end(actor);
}

/* Each % in a name becomes the module's basename, the program or the user. */
static void test_a_name_has_its_words_when_the_rule_has_them(void **state)
{
    char name[100];
    struct actor *actor = start_program("linked", "sym:libshelf.so:hidden_lock => t/%b-%x-%u", NULL);

    (void)state;
    snprintf(name, sizeof name, "t/libshelf.so-linked-%u", (unsigned)getuid());
    check_named(actor, "hidden_lock", name);
    actor_end(actor);
}

/* Two objects of one name are one mutex. */
static void test_two_objects_are_one_mutex_when_they_have_one_name(void **state)
{
    struct actor *actor = start_program("legacy", "sym:legacy:static_lock => t/x; sym:legacy:queue_lock => t/x", NULL);

    (void)state;
    actor_do(actor, "0", "lock static_lock");
    actor_do(actor, "EBUSY", "thread trylock queue_lock");
    actor_do(actor, "0", "unlock static_lock");
    actor_do(actor, "0", "thread trylock queue_lock");
    actor_end(actor);
}

/* ---- unnamed objects --------------------------------------------------------------------- */

/* A process has no thread, file, socket or library of libdmutex before the first use of a named mutex. */
static void test_a_process_has_nothing_of_ours_when_it_locks_no_named_mutex(void **state)
{
    struct actor *bare = start_bare("legacy", NULL);
    struct actor *actor = start_program("legacy",
                                        "sym:legacy:static_lock => t/x; cond:sym:legacy:ready => t/c;"
                                        "shm:/no-such-ring+0 => t/y",
                                        NULL);
    long long descriptors = actor_value(bare, "descriptors");
    int64_t before = client_commands();

    (void)state;
    actor_do(actor, "0", "lock other_lock");
    actor_do(actor, "0", "unlock other_lock");
    actor_do(actor, "0", "init static_lock");
    actor_do(actor, "0", "destroy static_lock");
    actor_do(actor, "0", "init static_lock recursive");
    actor_do(actor, "0", "signal other_ready");
    actor_do(actor, "0 1", "tasks");
    actor_do(actor, "0 0", "has libdmutex.so");
    actor_do(actor, "0 0", "has libhiredis");
    assert_int_equal(actor_value(actor, "descriptors"), descriptors);
    assert_int_equal(client_commands(), before);
    actor_do(actor, "0", "lock static_lock");
    assert_true(actor_value(actor, "tasks") > 1);
    assert_true(actor_value(actor, "has libdmutex.so") > 0);
    assert_true(actor_value(actor, "descriptors") > descriptors);
    actor_do(actor, "0", "unlock static_lock");
    actor_end(actor);
    actor_end(bare);
}

/* An unnamed mutex is local, even next to a named one. */
static void test_a_mutex_is_local_when_no_rule_names_it(void **state)
{
    struct actor *actor = start_program("legacy", "sym:legacy:static_lock => t/x", NULL);

    (void)state;
    check_named(actor, "static_lock", "t/x");
    check_local(actor, "queue_lock");
    check_local(actor, "table+24");
    check_local(actor, "errorcheck_lock");
    actor_end(actor);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        test_of_program(test_a_program_excludes_itself_when_it_is_started_twice),
        test_of_program(test_a_program_does_not_exclude_itself_when_no_rule_says_so),
        test_of_program(test_a_symbol_is_named_when_it_is_the_programs),
        test_of_program(test_a_member_is_named_when_the_rule_has_an_offset),
        test_of_program(test_a_program_is_meant_when_its_path_or_a_link_is_said),
        test_of_program(test_a_program_is_left_alone_when_another_one_is_meant),
        test_of_program(test_a_static_member_of_a_class_is_named_when_it_is_mangled),
        test_of_program(test_a_symbol_is_named_when_it_is_of_a_linked_library),
        test_of_program(test_a_symbol_is_named_when_the_program_has_a_copy_of_it),
        test_of_program(test_a_librarys_own_is_named_when_the_program_has_one_of_that_name),
        test_of_program(test_a_symbol_is_named_whenever_its_library_is_loaded),
        test_of_program(test_a_library_is_found_when_only_the_callers_runpath_says_where),
        test_of_program(test_a_library_is_found_when_its_path_begins_at_the_program),
        test_of_program(test_a_library_is_taken_from_where_the_loader_would_take_it),
        test_of_program(test_a_name_stays_when_other_libraries_come_and_go),
        test_of_program(test_a_sentence_is_said_when_a_library_is_bound_deeply),
        test_of_program(test_an_offset_is_named_when_the_build_id_is_the_files),
        test_of_program(test_a_program_is_refused_when_the_build_id_is_another),
        test_of_program(test_a_program_ends_when_a_library_of_another_build_is_loaded),
        test_of_program(test_a_program_is_refused_when_a_symbol_is_not_there),
        test_of_program(test_a_program_runs_when_a_symbol_need_not_be_there),
        test_of_program(test_a_program_is_refused_when_a_required_module_is_not_there),
        test_of_program(test_a_program_is_refused_when_a_rule_cannot_be_read),
        test_of_program(test_a_program_is_refused_when_a_name_is_too_long),
        test_of_program(test_the_first_rule_counts_when_several_name_a_mutex),
        test_of_program(test_a_rule_is_for_one_program_when_it_says_so),
        test_of_program(test_a_name_has_its_words_when_the_rule_has_them),
        test_of_program(test_two_objects_are_one_mutex_when_they_have_one_name),
        test_of_program(test_a_process_has_nothing_of_ours_when_it_locks_no_named_mutex),
        test_of_program(test_a_mutex_is_local_when_no_rule_names_it),
        cmocka_unit_test(test_nothing_is_left),
    };

    test_begin(argc, argv);
    return cmocka_run_group_tests(tests, build_all, programs_teardown);
}
