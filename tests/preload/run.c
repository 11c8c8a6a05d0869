/* SPDX-License-Identifier: BSD-2-Clause */
#include "run.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

char dmutex_run[4096];

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
    test_tell_asan("verify_asan_link_order=0"); /* in sanitized programs the module comes before the sanitizer */
    keeper_make_folder(folder, sizeof folder);
    hide_configuration();
    unsetenv("LD_PRELOAD");
    test_build_path(dmutex_run, sizeof dmutex_run, "preload/here/dmutex-run");
    return 0;
}

int run_server_setup(void **state)
{
    char keeper[4096];

    run_setup(state);
    test_build_path(keeper, sizeof keeper, "preload/keeper/dmutex-keeper");
    the_server = server_start();
    setenv("DMUTEX_URL", the_server->url, 1);
    setenv("DMUTEX_KEEPER", keeper, 1);
    setenv("DMUTEX_LOCAL_DIR", folder, 1);
    return 0;
}

int run_server_teardown(void **state)
{
    server_end(the_server);
    return folder_teardown(state);
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
    command_run("cd %s && %s -pthread %s -o %s %s", folder, test_compiler(), source, program, switches);
    assert_status(0);
}
