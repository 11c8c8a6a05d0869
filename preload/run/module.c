/* SPDX-License-Identifier: BSD-2-Clause */
#include "module.h"

#include <string.h>
#include <unistd.h>

#include "refuse.h"

/*
 * Uses the kernel's link, not argv[0], which the caller chooses: the module that we find is loaded into every program.
 */
static char *own_directory(void)
{
    g_autofree char *path = g_file_read_link("/proc/self/exe", NULL);

    return path ? g_path_get_dirname(path) : g_strdup(BINDIR);
}

/* What precedes the directory of programs in the path: "" as configured, more in a staged install. */
static char *stage_of(const char *directory)
{
    return g_str_has_suffix(directory, BINDIR) ? g_strndup(directory, strlen(directory) - strlen(BINDIR))
                                               : g_strdup("");
}

/*
 * The build tree comes first, so that a test never uses an installed module. The build's directories come last, for a
 * dmutex-run that was copied elsewhere.
 */
bool module_find(const char *file_name, char **ret_path, GError **error)
{
    g_autofree char *directory = own_directory(), *stage = stage_of(directory);
    char *places[] = {
        g_build_filename(directory, file_name, NULL),            /* a build tree: libtool's program is in .libs */
        g_strdup_printf("%s/../.libs/%s", directory, file_name), /* the same, without libtool's script */
        g_strdup_printf("%s%s/%s", stage, PKGLIBDIR, file_name),
        g_strconcat(PKGLIBDIR "/", file_name, NULL),
    };
    char *found = NULL;

    for (size_t i = 0; i < G_N_ELEMENTS(places); i++) {
        if (!found && access(places[i], R_OK) == 0)
            found = g_steal_pointer(&places[i]);
        g_free(places[i]);
    }
    if (!found)
        return refuse(error, REFUSE_CONFIG, "%s/%s is not there: install libdmutex again", PKGLIBDIR, file_name);
    if (strpbrk(found, ": ")) { /* to the loader, these end a path */
        refuse(error, REFUSE_CONFIG, "%s cannot be preloaded, with a colon or blank in its path", found);
        g_free(found);
        return false;
    }
    *ret_path = found;
    return true;
}

/*
 * In front, so that the module's functions come before those of other preloads; once, because an outer dmutex-run may
 * have added it already.
 */
char *module_add(const char *before, const char *module)
{
    g_auto(GStrv) there = g_strsplit_set(before ? before : "", ": ", -1);

    if (g_strv_contains((const char *const *)there, module))
        return g_strdup(before);
    return before && *before ? g_strconcat(module, ":", before, NULL) : g_strdup(module);
}
