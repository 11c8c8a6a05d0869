/* SPDX-License-Identifier: BSD-2-Clause */
#include "run.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

char folder[64];
char dmutex_run[4096];

/* tests/preload/test_x lies beside preload/here/dmutex-run. */
static void find_program(void)
{
    char *end;

    strcpy(dmutex_run, program_path);
    end = strstr(dmutex_run, "/tests/preload/");
    assert_non_null(end);
    strcpy(end, "/preload/here/dmutex-run");
    assert_int_equal(access(dmutex_run, X_OK), 0);
}

/*
 * Allows the module in front of the sanitizer's library, because sanitized programs of the tree are run so and the
 * sanitizer would refuse.
 */
static void allow_module(void)
{
    const char *options = getenv("ASAN_OPTIONS");
    char more[1000];

    snprintf(more, sizeof more, "%s:verify_asan_link_order=0", options ? options : "");
    setenv("ASAN_OPTIONS", more, 1);
}

/* Makes an empty configuration of the user, so that the machine's own configuration is not read. */
static void hide_configuration(void)
{
    setenv("HOME", folder, 1);
    unsetenv("XDG_CONFIG_HOME");
    command_run("mkdir -p %s/.config/dmutex && touch %s/.config/dmutex/preload.conf", folder, folder);
    assert_status(0);
}

int run_setup(void **state)
{
    (void)state;
    allow_module();
    keeper_make_folder(folder, sizeof folder);
    hide_configuration();
    unsetenv("LD_PRELOAD");
    find_program();
    return 0;
}

int run_teardown(void **state)
{
    (void)state;
    keeper_remove_folder(folder);
    return 0;
}

const char *write_file(const char *name, int mode, const char *format, ...)
{
    static char path[200];
    va_list args;
    FILE *file;

    snprintf(path, sizeof path, "%s/%s", folder, name);
    unlink(path);
    file = fopen(path, "w");
    assert_non_null(file);
    va_start(args, format);
    vfprintf(file, format, args);
    va_end(args);
    assert_int_equal(fclose(file), 0);
    assert_int_equal(chmod(path, (mode_t)mode), 0);
    return path;
}

void compile(const char *source, const char *program, const char *switches)
{
    const char *compiler = getenv("CC");

    command_run("cd %s && %s -pthread %s -o %s %s", folder, compiler ? compiler : "cc", source, program, switches);
    assert_status(0);
}
