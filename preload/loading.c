/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What comes into the process later, and leaves it: modules and mappings.
 */
#include <dlfcn.h>
#include <errno.h>
#include <link.h>
#include <stdbool.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "library.h"
#include "maps.h"
#include "modules.h"
#include "objects.h"
#include "real.h"
#include "settings.h"
#include "text.h"

/* ---- dlopen ------------------------------------------------------------------------------ */

/*
 * libc takes the module for the caller of dlopen(), and would not look where the program's own module
 * says (DT_RUNPATH).  So a bare name is looked for there first, in the order of the loader: false
 * if it is not there.
 */
static bool find_for_caller(const char *file, const void *caller, char *ret_path)
{
    struct link_map *map = NULL;
    Dl_info info;
    Dl_serinfo size;
    char list[16384] __attribute__((aligned(16)));
    Dl_serinfo *paths = (Dl_serinfo *)(void *)list;

    if (!dladdr1(caller, &info, (void **)&map, RTLD_DL_LINKMAP) || !map ||
        dlinfo(map, RTLD_DI_SERINFOSIZE, &size) != 0 || size.dls_size > sizeof list)
        return false;
    *paths = size;
    if (dlinfo(map, RTLD_DI_SERINFO, paths) != 0)
        return false;
    for (unsigned i = 0; i < paths->dls_cnt; i++) {
        struct text path = text_in(ret_path, MAPS_PATH_ROOM);

        text_add(&path, paths->dls_serpath[i].dls_name);
        text_add(&path, "/");
        text_add(&path, file);
        if (!path.is_cut && access(ret_path, F_OK) == 0)
            return true;
    }
    return false;
}

static void warn_of_deepbind(const char *file)
{
    static bool is_said;

    if (!__atomic_exchange_n(&is_said, true, __ATOMIC_RELAXED))
        text_say(file, " is loaded with RTLD_DEEPBIND: the mutexes that it locks itself stay local", NULL);
}

static void *open_for(const char *file, int mode, const void *caller)
{
    char path[MAPS_PATH_ROOM];
    void *handle = real_get()->dlopen(file, mode | RTLD_NOLOAD);

    if (handle) {
        real_get()->dlclose(handle);
        return real_get()->dlopen(file, mode);
    }
    return real_get()->dlopen(find_for_caller(file, caller, path) ? path : file, mode);
}

EXPORT void *dlopen(const char *file, int mode)
{
    void *handle;

    if (!settings_get()->has_objects || library_is_inside() || !file)
        return real_get()->dlopen(file, mode); /* a jump: libc sees the program's own call */
    if (mode & RTLD_DEEPBIND)
        warn_of_deepbind(file);
    if (strchr(file, '/'))
        handle = real_get()->dlopen(file, mode);
    else
        handle = open_for(file, mode, __builtin_return_address(0));
    modules_update();
    return handle;
}

EXPORT int dlclose(void *handle)
{
    int result = real_get()->dlclose(handle);

    modules_update();
    return result;
}

/* ---- mappings ---------------------------------------------------------------------------- */

EXPORT int munmap(void *address, size_t size)
{
    if (settings_get()->has_mappings)
        objects_forget_memory((uintptr_t)address, size);
    return real_get()->munmap(address, size);
}

/* ---- the module itself ------------------------------------------------------------------- */

__attribute__((constructor)) static void begin(void)
{
    objects_begin();
}
