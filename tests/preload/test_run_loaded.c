/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * dmutex-run finds the libraries of a program without running anything. The dynamic loader is the measure, because the
 * loader lists the libraries of programs that can be trusted.
 */
#include "run.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <glib.h>

#include "run/loaded.h"

/* True if the path is a file of the loader's own list, not the vdso and not the loader. */
static bool is_library(const char *path)
{
    return path[0] == '/' && !strstr(path, "/ld-linux") && !strstr(path, "/ld64");
}

static int compare(gconstpointer one, gconstpointer other)
{
    return strcmp(*(char *const *)one, *(char *const *)other);
}

/* Sorts the paths, and joins them by newlines. */
static char *joined(GPtrArray *paths)
{
    g_ptr_array_sort(paths, compare);
    g_ptr_array_add(paths, NULL);
    return g_strjoinv("\n", (char **)paths->pdata);
}

/* The libraries that the loader lists, resolved. */
static char *listed_by_loader(const char *program)
{
    g_autoptr(GPtrArray) paths = g_ptr_array_new_with_free_func(g_free);
    g_auto(GStrv) lines = NULL;

    command_run("LD_TRACE_LOADED_OBJECTS=1 exec %s", program);
    assert_status(0);
    lines = g_strsplit(ran.output, "\n", -1);
    for (char **line = lines; *line; line++) {
        char *arrow = strstr(*line, " => "), *path = g_strstrip(arrow ? arrow + 4 : *line);
        char *end = strstr(path, " (0x"), *resolved;

        if (!end)
            continue;
        *end = '\0';
        resolved = realpath(path, NULL);
        if (resolved && is_library(resolved))
            g_ptr_array_add(paths, g_strdup(resolved));
        free(resolved);
    }
    return joined(paths);
}

static char *found_by_us(const char *program)
{
    g_autoptr(GPtrArray) paths = g_ptr_array_new_with_free_func(g_free);
    char *resolved = realpath(program, NULL);
    struct program examined = { .command = resolved, .path = resolved };
    g_autoptr(GPtrArray) loaded = loaded_find(&examined);

    for (guint i = 1; i < loaded->len; i++) { /* the first is the program */
        const struct loaded *one = loaded->pdata[i];

        if (is_library(one->path))
            g_ptr_array_add(paths, g_strdup(one->path));
    }
    free(resolved);
    return joined(paths);
}

static void assert_same(const char *program)
{
    g_autofree char *wanted = listed_by_loader(program), *got = found_by_us(program);

    assert_string_equal(got, wanted);
}

/* The libraries of installed programs, and of dmutex-run, are the loader's. */
static void test_libraries_are_the_loaders_when_the_system_has_them(void **state)
{
    static const char *const programs[] = { "/bin/sh",          "/usr/bin/env",  "/usr/bin/perl",
                                            "/usr/bin/python3", "/usr/bin/gdb",  "/usr/bin/redis-server",
                                            "/usr/bin/flock",   "/usr/sbin/sshd" };

    (void)state;
    assert_same(dmutex_run);
    for (size_t i = 0; i < G_N_ELEMENTS(programs); i++)
        if (access(programs[i], X_OK) == 0)
            assert_same(programs[i]);
}

static void make_library(const char *name, const char *needs, const char *switches)
{
    g_autofree char *all = g_strdup_printf("-shared -fPIC -Wl,--no-as-needed %s %s -Wl,-soname,%s", needs, switches,
                                           strrchr(name, '/') + 1);

    compile("empty.c", name, all);
}

/* The libraries are the loader's even if only DT_RPATH, DT_RUNPATH, $ORIGIN or a variable says where they are. */
static void test_libraries_are_the_loaders_when_the_program_says_where(void **state)
{
    static const char *const ways[] = {
        "-Wl,--disable-new-dtags,-rpath,'$ORIGIN/one:$ORIGIN/two'", /* the program's libraries inherit DT_RPATH */
        "-Wl,--enable-new-dtags,-rpath,'$ORIGIN/one:${ORIGIN}/two'",
        "-Wl,--enable-new-dtags,-rpath,'$ORIGIN/two:$ORIGIN/one'",
        "-Wl,--enable-new-dtags,-rpath,/nowhere:'$ORIGIN/one'",
        "",
    };
    g_autofree char *program = g_build_filename(folder, "main", NULL), *both = NULL;

    (void)state;
    write_file("empty.c", 0644, "int main(void) { return 0; }\n");
    command_run("cd %s && mkdir -p one two", folder);
    make_library("two/libdeep.so", "", "");
    make_library("one/libtop.so", "two/libdeep.so", "");
    make_library("two/libtop.so", "", ""); /* another library of the name */
    for (size_t i = 0; i < G_N_ELEMENTS(ways); i++) {
        g_autofree char *switches = g_strdup_printf(
            "-Wl,--no-as-needed one/libtop.so -Wl,--allow-shlib-undefined -Wl,-rpath-link,two %s", ways[i]);

        compile("empty.c", "main", switches);
        assert_same(program);
    }
    both = g_strdup_printf("/nowhere:%s/two:%s/one", folder, folder);
    setenv("LD_LIBRARY_PATH", both, 1);
    assert_same(program);
    unsetenv("LD_LIBRARY_PATH");
}

/* The libraries are the loader's with a preloaded library, too. */
static void test_libraries_are_the_loaders_when_one_is_preloaded(void **state)
{
    g_autofree char *path = g_build_filename(folder, "two/libdeep.so", NULL);

    (void)state;
    setenv("LD_PRELOAD", path, 1);
    assert_same("/bin/sh");
    unsetenv("LD_PRELOAD");
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_libraries_are_the_loaders_when_the_system_has_them),
        cmocka_unit_test(test_libraries_are_the_loaders_when_the_program_says_where),
        cmocka_unit_test(test_libraries_are_the_loaders_when_one_is_preloaded),
    };

    test_begin(argc, argv);
    return cmocka_run_group_tests(tests, run_setup, folder_teardown);
}
