/* SPDX-License-Identifier: BSD-2-Clause */
#include "programs.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static char preloads[8192]; /* LD_PRELOAD */
static char errors[80];     /* standard error of the programs */
static char library[4096];  /* the folder of libdmutex */

/* ---- fixtures ---------------------------------------------------------------------------- */

bool is_sanitized(void)
{
    const char *switches = getenv("SANITIZER_CFLAGS");

    return switches && strstr(switches, "address");
}

/* Finds the sanitizer's runtime, which must be the first library of all, and which the programs are not linked with. */
static void find_runtime(void)
{
    if (!is_sanitized())
        return;
    command_run("%s -print-file-name=libasan.so", test_compiler());
    assert_status(0);
    snprintf(preloads, sizeof preloads, "%.*s:", (int)strcspn(ran.output, "\n"), ran.output);
}

static void find_module(void)
{
    preloads[0] = '\0';
    find_runtime();
    test_build_path(preloads + strlen(preloads), sizeof preloads - strlen(preloads),
                    "preload/.libs/libdmutex-preload.so");
    test_build_path(library, sizeof library, "libdmutex/.libs");
}

int folder_setup(void **state)
{
    (void)state;
    keeper_make_folder(folder, sizeof folder);
    snprintf(errors, sizeof errors, "%s/errors", folder);
    find_module();
    test_tell_asan("detect_leaks=0"); /* other programs leave memory allocated */
    return 0;
}

int programs_setup(void **state)
{
    return test_group_setup(state) || folder_setup(state);
}

int programs_teardown(void **state)
{
    return folder_teardown(state) || test_group_teardown(state);
}

/* ---- building ---------------------------------------------------------------------------- */

void build(const char *output, const char *sources, const char *switches)
{
    command_run("folder=%s; cd %s && %s -O1 -g -pthread -D_GNU_SOURCE -o $folder/%s %s %s", folder, PROGRAMS,
                test_compiler(), output, sources, switches);
    assert_status(0);
}

bool has_cxx(void)
{
    const char *cxx = getenv("CXX");

    return cxx && *cxx;
}

void build_guarded(void)
{
    if (!has_cxx())
        return;
    build("legacy.o", LEGACY, "-r");
    command_run("folder=%s; cd %s && %s -O1 -g -pthread -o $folder/guarded guard.cc $folder/legacy.o", folder, PROGRAMS,
                getenv("CXX"));
    assert_status(0);
}

const char *module_path(void)
{
    return preloads;
}

/* ---- starting ---------------------------------------------------------------------------- */

static struct actor *start(const char *name, va_list environment)
{
    char path[200];
    char *const arguments[] = { path, NULL };

    snprintf(path, sizeof path, "%s/%s", folder, name);
    return actor_start_program(the_server, arguments, errors, environment);
}

/* Sets variables of this process, because the next program inherits the variables. */
static void set_module(const char *rules)
{
    setenv("LD_LIBRARY_PATH", library, 1);
    setenv("LD_PRELOAD", preloads, 1);
    if (rules)
        setenv("DMUTEX_MAP", rules, 1);
}

static void unset_module(void)
{
    unsetenv("LD_LIBRARY_PATH");
    unsetenv("LD_PRELOAD");
    unsetenv("DMUTEX_MAP");
}

struct actor *start_program(const char *name, const char *rules, ...)
{
    struct actor *actor;
    va_list environment;

    set_module(rules);
    va_start(environment, rules);
    actor = start(name, environment);
    va_end(environment);
    unset_module();
    return actor;
}

struct actor *start_bare(const char *name, ...)
{
    struct actor *actor;
    va_list environment;

    va_start(environment, name);
    actor = start(name, environment);
    va_end(environment);
    return actor;
}

/* Only the command is under the module, not the shell. */
void run_under(const char *rules, const char *command)
{
    char map[2048] = "";

    assert_null(strchr(rules ? rules : "", '\''));
    if (rules)
        snprintf(map, sizeof map, "DMUTEX_MAP='%s'", rules);
    command_run("cd %s && exec env LD_LIBRARY_PATH=%s LD_PRELOAD=%s %s %s", folder, library, preloads, map, command);
}

/* ---- standard error ---------------------------------------------------------------------- */

const char *said(void)
{
    static char text[64 * 1024];
    FILE *file = fopen(errors, "r");
    size_t length = file ? fread(text, 1, sizeof text - 1, file) : 0;

    text[length] = '\0';
    if (file)
        fclose(file);
    return text;
}

int said_count(const char *text)
{
    int count = 0;

    for (const char *at = said(); (at = strstr(at, text)); at += strlen(text))
        count++;
    return count;
}

int forget_said(void **state)
{
    (void)state;
    unlink(errors);
    return 0;
}
