/* SPDX-License-Identifier: BSD-2-Clause */
/* Modules and mappings that are loaded into the process later, or leave it. */
#include <dlfcn.h>
#include <errno.h>
#include <link.h>
#include <stdbool.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "module/base/real.h"
#include "module/base/scratch.h"
#include "module/base/settings.h"
#include "module/names/library.h"
#include "module/names/maps.h"
#include "module/names/modules.h"
#include "module/names/objects.h"
#include "shared/text.h"

/* ---- which file dlopen() means ----------------------------------------------------------- */

/*
 * libc takes the module for the caller of dlopen(), and would use the module's search paths. So names that depend on
 * the program's own module are resolved here: bare names by DT_RUNPATH or DT_RPATH, and $ORIGIN.
 */
struct caller {
    struct link_map *map;
    const char *file; /* the name in the call */
};

/* The folders that a module searches, to be freed. NULL: not known. */
static Dl_serinfo *get_folders(struct link_map *map, size_t *ret_size)
{
    Dl_serinfo head, *list;

    if (dlinfo(map, RTLD_DI_SERINFOSIZE, &head) != 0)
        return NULL;
    *ret_size = head.dls_size;
    list = scratch_take(head.dls_size);
    if (!list)
        return NULL;
    list->dls_size = head.dls_size;
    list->dls_cnt = head.dls_cnt;
    if (dlinfo(map, RTLD_DI_SERINFO, list) == 0)
        return list;
    scratch_give(list, head.dls_size);
    return NULL;
}

static bool has_folder(const Dl_serinfo *folders, const char *name)
{
    for (unsigned i = 0; i < folders->dls_cnt; i++)
        if (strcmp(folders->dls_serpath[i].dls_name, name) == 0)
            return true;
    return false;
}

/* The first of the folders that contains the file, whose path is written; NULL: none. */
static const char *find_in_folders(const Dl_serinfo *folders, const char *file, char *ret_path)
{
    for (unsigned i = 0; i < folders->dls_cnt; i++) {
        const char *folder = folders->dls_serpath[i].dls_name;
        struct text path = text_in(ret_path, MAPS_PATH_ROOM);

        text_add(&path, folder);
        text_add(&path, "/");
        text_add(&path, file);
        if (!path.is_cut && access(ret_path, F_OK) == 0)
            return folder;
    }
    return NULL;
}

/*
 * Finds the file in a folder that only the caller's module searches. The first folder that contains it counts: if our
 * module searches that folder, too, the loader finds the file by itself, using its cache.
 */
static bool find_by_runpath(const struct caller *caller, char *ret_path)
{
    struct link_map *module = NULL;
    Dl_serinfo *own, *everybodys = NULL;
    size_t own_size = 0, everybodys_size = 0;
    const char *folder;
    Dl_info info;
    bool is_found;

    if (!dladdr1((const void *)&find_by_runpath, &info, (void **)&module, RTLD_DL_LINKMAP) || !module)
        return false;
    own = get_folders(caller->map, &own_size);
    if (own)
        everybodys = get_folders(module, &everybodys_size);
    folder = everybodys ? find_in_folders(own, caller->file, ret_path) : NULL;
    is_found = folder && !has_folder(everybodys, folder);
    scratch_give(everybodys, everybodys_size);
    scratch_give(own, own_size);
    return is_found;
}

/*
 * Replaces $ORIGIN or ${ORIGIN} at the beginning by the folder of the caller's module. Other tokens do not depend on
 * the caller.
 */
static bool expand_origin(const struct caller *caller, char *ret_path)
{
    static const char *const words[] = { "$ORIGIN/", "${ORIGIN}/" };
    const char *module = caller->map->l_name[0] ? caller->map->l_name : settings_get()->program;
    struct text path = text_in(ret_path, MAPS_PATH_ROOM);

    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
        size_t length = strlen(words[i]);

        if (strncmp(caller->file, words[i], length) != 0)
            continue;
        text_add_bytes(&path, module, (size_t)(text_basename(module) - module));
        text_add(&path, caller->file + length);
        return !path.is_cut;
    }
    return false;
}

static bool is_loaded(const char *file, int mode)
{
    void *handle = real_get()->dlopen(file, mode | RTLD_NOLOAD);

    if (handle)
        real_get()->dlclose(handle);
    else
        dlerror(); /* the program must not see this error */
    return handle != NULL;
}

static void *open_for(const char *file, int mode, const void *address)
{
    struct caller caller = { .file = file };
    char *path = scratch_take(MAPS_PATH_ROOM);
    Dl_info info;
    bool is_elsewhere = false;
    void *handle;

    if (path && dladdr1(address, &info, (void **)&caller.map, RTLD_DL_LINKMAP) && caller.map) {
        if (strchr(file, '/'))
            is_elsewhere = expand_origin(&caller, path);
        else
            is_elsewhere = !is_loaded(file, mode) && find_by_runpath(&caller, path);
    }
    handle = real_get()->dlopen(is_elsewhere ? path : file, mode);
    scratch_give(path, MAPS_PATH_ROOM);
    return handle;
}

/* ---- dlopen ------------------------------------------------------------------------------ */

static void warn_of_deepbind(const char *file)
{
    static bool is_said;

    if (!__atomic_exchange_n(&is_said, true, __ATOMIC_RELAXED))
        text_say(file, " is loaded with RTLD_DEEPBIND: the mutexes that it locks itself stay local", NULL);
}

/* If the compiler supports it, a call at the end of a function is a jump. */
#if defined(__OPTIMIZE__) && defined(__GNUC__) && !defined(__clang__)
#define JUMPS true
#define JUMPING __attribute__((optimize("optimize-sibling-calls")))
#else
#define JUMPS false
#define JUMPING
#endif

static void *open_and_look(const char *file, int mode, const void *address)
{
    void *handle;

    if (!settings_get()->has_objects)
        return open_for(file, mode, address);
    if (mode & RTLD_DEEPBIND)
        warn_of_deepbind(file);
    objects_begin_loading();
    handle = open_for(file, mode, address);
    objects_end_loading();
    modules_update();
    return handle;
}

/* Without rules about modules, libc sees the program's own call. */
EXPORT JUMPING void *dlopen(const char *file, int mode)
{
    if (library_is_inside() || !file || (JUMPS && !settings_get()->has_objects))
        return real_get()->dlopen(file, mode);
    return open_and_look(file, mode, __builtin_return_address(0));
}

EXPORT int dlclose(void *handle)
{
    int result = real_get()->dlclose(handle);

    modules_update();
    return result;
}

/* ---- mappings ---------------------------------------------------------------------------- */

/* Whole pages are unmapped. */
EXPORT int munmap(void *address, size_t size)
{
    size_t page;

    if (settings_get()->has_mappings) {
        page = (size_t)getpagesize();
        objects_forget_memory((uintptr_t)address, (size + page - 1) / page * page);
    }
    return real_get()->munmap(address, size);
}
