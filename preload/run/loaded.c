/* SPDX-License-Identifier: BSD-2-Clause */
#include "loaded.h"

#include <dlfcn.h>
#include <elf.h>
#include <stdlib.h>
#include <string.h>

#include "binary.h"
#include "cache.h"
#include "shared/elffile.h"
#include "shared/text.h"

/* One file, with its entries for the loader. */
struct file {
    char *path;
    const struct file *parent; /* the file with the DT_NEEDED; NULL: this is the program */
    GPtrArray *needed;
    char *rpath, *runpath; /* NULL: none */
};

/*
 * The state of one search. Like the loader, we search each name once, for the first file that needs it: a later file
 * gets the same library, whatever its own paths say.
 */
struct search {
    GPtrArray *files;  /* of struct file, in the order of loading */
    GPtrArray *loaded; /* of struct loaded; the same files */
    GHashTable *names; /* of libraries already searched */
};

static void free_loaded(gpointer pointer)
{
    struct loaded *loaded = pointer;

    g_free(loaded->name);
    g_free(loaded->path);
    g_free(loaded);
}

static void free_file(gpointer pointer)
{
    struct file *file = pointer;

    g_free(file->path);
    g_ptr_array_unref(file->needed);
    g_free(file->rpath);
    g_free(file->runpath);
    g_free(file);
}

/* ---- where ------------------------------------------------------------------------------- */

/* True if the file is for this kind of machine. The loader passes over others. */
static bool is_fit(const char *path)
{
    struct binary own, binary;
    bool is_same;

    binary_read(path, &binary);
    binary_read("/proc/self/exe", &own);
    is_same = binary.kind == BINARY_ELF && binary.elf_class == own.elf_class && binary.machine == own.machine;
    binary_clear(&binary);
    binary_clear(&own);
    return is_same;
}

/*
 * Replaces $ORIGIN by the folder of the file. NULL if there is another token, which only the loader knows; then the
 * folder is passed over, because with a wrong guess we would examine a library that is never loaded.
 */
static char *expand(const char *text, const struct file *file)
{
    g_autofree char *origin = g_path_get_dirname(file->path);
    g_autoptr(GString) expanded = g_string_new(text);

    g_string_replace(expanded, "${ORIGIN}", origin, 0);
    g_string_replace(expanded, "$ORIGIN", origin, 0);
    return strchr(expanded->str, '$') ? NULL : g_strdup(expanded->str);
}

static char *find_in_folder(const char *folder, const char *name)
{
    g_autofree char *path = g_build_filename(*folder ? folder : ".", name, NULL);

    return is_fit(path) ? g_steal_pointer(&path) : NULL;
}

/* Searches the folders of a list like "/a:/b"; `file` defines $ORIGIN. list NULL: no folder. */
static char *find_in_list(const char *list, const char *name, const struct file *file)
{
    g_auto(GStrv) folders = g_strsplit_set(list ? list : "", ":;", -1);
    char *found = NULL;

    for (char **folder = list ? folders : NULL; folder && *folder && !found; folder++) {
        g_autofree char *expanded = expand(*folder, file);

        found = expanded ? find_in_folder(expanded, name) : NULL;
    }
    return found;
}

/*
 * Searches by DT_RPATH of the file and its parents. DT_RUNPATH in a file disables its DT_RPATH and, in the file that
 * needs the library, that of the parents, too (ld.so(8)).
 */
static char *find_by_rpath(const struct file *file, const char *name)
{
    char *found = NULL;

    if (file->runpath)
        return NULL;
    for (; file && !found; file = file->parent)
        if (!file->runpath)
            found = find_in_list(file->rpath, name, file);
    return found;
}

/* Searches the loader's default folders; this program's libc is in one of them. */
static char *find_in_system(const char *name)
{
    static const char *const folders[] = { "/lib64", "/usr/lib64", "/lib", "/usr/lib" };
    g_autofree char *of_libc = NULL;
    char *found = NULL;
    Dl_info info;

    if (dladdr(dlsym(RTLD_DEFAULT, "gnu_get_libc_version"), &info)) {
        of_libc = g_path_get_dirname(info.dli_fname);
        found = find_in_folder(of_libc, name);
    }
    for (size_t i = 0; i < G_N_ELEMENTS(folders) && !found; i++)
        found = find_in_folder(folders[i], name);
    return found;
}

/* Searches in the order of ld.so(8). A name with a slash is a path, and is not searched for. */
static char *find(const struct file *file, const char *name)
{
    char *found;

    if (strchr(name, '/')) {
        g_autofree char *path = expand(name, file);

        return path && is_fit(path) ? g_steal_pointer(&path) : NULL;
    }
    found = find_by_rpath(file, name);
    if (!found)
        found = find_in_list(g_getenv("LD_LIBRARY_PATH"), name, file);
    if (!found)
        found = find_in_list(file->runpath, name, file);
    if (!found)
        found = cache_find(name, is_fit);
    return found ? found : find_in_system(name);
}

/* ---- names ------------------------------------------------------------------------------- */

static void take_text(void *user, int64_t tag, const char *text)
{
    struct file *file = user;

    if (tag == DT_NEEDED)
        g_ptr_array_add(file->needed, g_strdup(text));
    else if (tag == DT_RPATH && !file->rpath)
        file->rpath = g_strdup(text);
    else if (tag == DT_RUNPATH && !file->runpath)
        file->runpath = g_strdup(text);
}

/* True if there are builds for newer processors next to the plain file; the loader prefers them. */
static bool has_variants(const char *path)
{
    g_autofree char *folder = g_path_get_dirname(path);
    g_autofree char *variants = g_build_filename(folder, "glibc-hwcaps", NULL);
    GDir *list = g_dir_open(variants, 0, NULL);
    bool is_any = false;
    const char *name;

    while (list && !is_any && (name = g_dir_read_name(list))) {
        g_autofree char *variant = g_build_filename(variants, name, text_basename(path), NULL);

        is_any = g_file_test(variant, G_FILE_TEST_EXISTS);
    }
    if (list)
        g_dir_close(list);
    return is_any;
}

/* Compares the resolved path: two names may lead to one file, which is loaded once. */
static bool is_known(const struct search *search, const char *resolved)
{
    for (guint i = 0; i < search->loaded->len; i++)
        if (strcmp(((const struct loaded *)search->loaded->pdata[i])->path, resolved) == 0)
            return true;
    return false;
}

/*
 * A missing file is silently left out: the loader will report it when the command starts. `parent` points into
 * search->files, which lives as long as the search.
 */
static void add(struct search *search, const char *name, const struct file *parent)
{
    char *resolved = realpath(name, NULL);
    struct loaded *loaded;
    struct file *file;

    if (!resolved || is_known(search, resolved)) {
        free(resolved);
        return;
    }
    loaded = g_new0(struct loaded, 1);
    *loaded = (struct loaded){ g_strdup(name), g_strdup(resolved), has_variants(name) };
    g_ptr_array_add(search->loaded, loaded);
    file = g_new0(struct file, 1);
    *file =
        (struct file){ .path = g_strdup(resolved), .parent = parent, .needed = g_ptr_array_new_with_free_func(g_free) };
    elf_tell_needs(resolved, take_text, file);
    g_ptr_array_add(search->files, file);
    free(resolved);
}

static void need(struct search *search, const struct file *file, const char *name)
{
    g_autofree char *found = NULL;

    if (!*name || !g_hash_table_add(search->names, g_strdup(name)))
        return;
    found = find(file, name);
    if (found)
        add(search, found, file);
}

/* The caller's own LD_PRELOAD. The module, which is added later, has no objects to name. */
static void need_preloaded(struct search *search)
{
    const char *preloaded = g_getenv("LD_PRELOAD");
    g_auto(GStrv) names = g_strsplit_set(preloaded ? preloaded : "", ": ", -1);

    for (char **name = names; *name; name++)
        need(search, search->files->pdata[0], *name);
}

GPtrArray *loaded_find(const struct program *program)
{
    g_autoptr(GPtrArray) files = g_ptr_array_new_with_free_func(free_file);
    g_autoptr(GHashTable) names = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
    struct search search = { .files = files, .names = names };

    search.loaded = g_ptr_array_new_with_free_func(free_loaded);
    add(&search, program->path, NULL);
    if (files->len > 0)
        need_preloaded(&search);
    for (guint i = 0; i < files->len; i++) { /* breadth first, like the loader */
        const struct file *file = files->pdata[i];

        for (guint j = 0; j < file->needed->len; j++)
            need(&search, file, file->needed->pdata[j]);
    }
    return search.loaded;
}

/* gcc's, clang's */
static bool is_asan(const char *path)
{
    g_autofree char *name = g_path_get_basename(path);

    return g_str_has_prefix(name, "libasan.so") || g_str_has_prefix(name, "libclang_rt.asan");
}

char *loaded_find_asan(const struct program *program)
{
    g_autoptr(GPtrArray) loaded = loaded_find(program);

    for (guint i = 1; i < loaded->len; i++) { /* the first is the program */
        const struct loaded *library = loaded->pdata[i];

        if (is_asan(library->name))
            return g_strdup(library->name);
    }
    return NULL;
}
