/* SPDX-License-Identifier: BSD-2-Clause */
#include "loaded.h"

#include <stdlib.h>
#include <string.h>

#include "refuse.h"

static void free_loaded(gpointer pointer)
{
    struct loaded *loaded = pointer;

    g_free(loaded->name);
    g_free(loaded->path);
    g_free(loaded);
}

static void add(GPtrArray *list, const char *name)
{
    char *path = realpath(name, NULL);
    struct loaded *loaded = g_new0(struct loaded, 1);

    loaded->name = g_strdup(name);
    loaded->path = g_strdup(path ? path : name);
    free(path);
    g_ptr_array_add(list, loaded);
}

/* `libx.so.1 => /lib/libx.so.1 (0x7f...)`, `/lib64/ld-linux.so.2 (0x7f...)`, `linux-vdso.so.1 (0x...)` */
static void read_line(GPtrArray *list, char *line)
{
    char *arrow = strstr(line, " => "), *path = g_strstrip(arrow ? arrow + 4 : line);
    char *address = strstr(path, " (0x");

    if (path[0] != '/' || !address)
        return;
    *address = '\0';
    add(list, path);
}

GPtrArray *loaded_find(const struct program *program)
{
    char *const arguments[] = { program->loader, (char *)"--list", program->path, NULL };
    GPtrArray *list = g_ptr_array_new_with_free_func(free_loaded);
    g_autofree char *output = NULL, *complaints = NULL;
    g_autoptr(GError) error = NULL;
    g_auto(GStrv) lines = NULL;
    int status;

    add(list, program->path);
    if (!g_spawn_sync(NULL, (char **)arguments, NULL, G_SPAWN_DEFAULT, NULL, NULL, &output, &complaints, &status,
                      &error) ||
        !g_spawn_check_wait_status(status, &error)) {
        say_warning("the libraries of %s are not known: %s", program->path,
                    complaints && *complaints ? g_strstrip(complaints) : error->message);
        return list;
    }
    lines = g_strsplit(output, "\n", -1);
    for (char **line = lines; *line; line++)
        read_line(list, *line);
    return list;
}
