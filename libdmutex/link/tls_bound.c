/* SPDX-License-Identifier: BSD-2-Clause */
#include "link/tls_bound.h"

#include <dlfcn.h>
#include <elf.h>
#include <link.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "base/image.h"

enum { MODULE, LIBSSL, LIBCRYPTO, PARTS };

/* The three, as the loader knows them. */
struct parts {
    void *module; /* a handle with which dlsym() searches only these three and libc */
    const struct link_map *maps[PARTS];
    uintptr_t starts[PARTS], ends[PARTS];
};

/* The tables of one part. */
struct tables {
    const ElfW(Sym) *symbols;
    const char *names;
    const ElfW(Rela) *relocations[2];
    size_t sizes[2];
};

/* ---- where the parts lie ----------------------------------------------------------------- */

static int measure(struct dl_phdr_info *info, size_t size, void *user)
{
    struct parts *parts = user;
    uintptr_t end = 0;

    (void)size;
    for (int i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *segment = &info->dlpi_phdr[i];

        if (segment->p_type == PT_LOAD && segment->p_vaddr + segment->p_memsz > end)
            end = segment->p_vaddr + segment->p_memsz;
    }
    for (int part = 0; part < PARTS; part++) {
        if (parts->maps[part]->l_addr != info->dlpi_addr)
            continue;
        parts->starts[part] = info->dlpi_addr;
        parts->ends[part] = info->dlpi_addr + end;
    }
    return 0;
}

static const struct link_map *map_of(void *address)
{
    struct link_map *map = NULL;
    Dl_info info;

    return address && dladdr1(address, &info, (void **)&map, RTLD_DL_LINKMAP) ? map : NULL;
}

static bool find_parts(void *module, struct parts *ret_parts)
{
    struct link_map *map = NULL;

    *ret_parts = (struct parts){ .module = module };
    dlinfo(module, RTLD_DI_LINKMAP, &map);
    ret_parts->maps[MODULE] = map;
    ret_parts->maps[LIBSSL] = map_of(dlsym(module, "SSL_new"));
    ret_parts->maps[LIBCRYPTO] = map_of(dlsym(module, "OPENSSL_init_crypto"));
    for (int part = 0; part < PARTS; part++) {
        if (!ret_parts->maps[part])
            return false;
    }
    dl_iterate_phdr(measure, ret_parts);
    return true;
}

static bool is_inside(const struct parts *parts, uintptr_t address)
{
    for (int part = 0; part < PARTS; part++) {
        if (address >= parts->starts[part] && address < parts->ends[part])
            return true;
    }
    return false;
}

/* ---- what their calls are bound to ------------------------------------------------------- */

/* glibc has turned the offsets in the table into addresses; other C libraries leave them. */
static const void *at(const struct link_map *map, ElfW(Addr) number)
{
    return (const void *)(number < map->l_addr ? map->l_addr + number : number); /* NOLINT(performance-no-int-to-ptr) */
}

static struct tables tables_of(const struct link_map *map)
{
    struct tables tables = { 0 };

    for (const ElfW(Dyn) *entry = map->l_ld; entry->d_tag != DT_NULL; entry++) {
        switch (entry->d_tag) {
        case DT_SYMTAB:
            tables.symbols = at(map, entry->d_un.d_ptr);
            break;
        case DT_STRTAB:
            tables.names = at(map, entry->d_un.d_ptr);
            break;
        case DT_RELA:
            tables.relocations[0] = at(map, entry->d_un.d_ptr);
            break;
        case DT_RELASZ:
            tables.sizes[0] = entry->d_un.d_val;
            break;
        case DT_JMPREL:
            tables.relocations[1] = at(map, entry->d_un.d_ptr);
            break;
        case DT_PLTRELSZ:
            tables.sizes[1] = entry->d_un.d_val;
            break;
        default:
            break;
        }
    }
    return tables;
}

/*
 * A call that is not bound yet points into its own library.  A call that leaves the three is right if none of them has
 * the function: then it is libc's.
 */
static bool is_right(const struct parts *parts, uintptr_t bound, const char *name)
{
    return is_inside(parts, bound) || !is_inside(parts, (uintptr_t)dlsym(parts->module, name));
}

/* The name of a function that a table binds wrongly, or NULL. */
static const char *find_wrong(const struct parts *parts, const struct link_map *map, const struct tables *tables,
                              int table, uintptr_t *ret_bound)
{
    const ElfW(Rela) *relocations = tables->relocations[table];

    for (size_t i = 0; i < tables->sizes[table] / sizeof *relocations; i++) {
        const ElfW(Sym) *symbol = &tables->symbols[ELF64_R_SYM(relocations[i].r_info)];
        uintptr_t bound;

        if (ELF64_R_SYM(relocations[i].r_info) == 0)
            continue;
        memcpy(&bound, (const char *)map->l_addr + relocations[i].r_offset, sizeof bound);
        if (is_right(parts, bound, tables->names + symbol->st_name))
            continue;
        *ret_bound = bound;
        return tables->names + symbol->st_name;
    }
    return NULL;
}

bool dm_tls_is_bound_well(void *module, char ret_reason[DM_REASON_ROOM])
{
    struct parts parts;

    if (!find_parts(module, &parts)) {
        snprintf(ret_reason, DM_REASON_ROOM, "TLS cannot be loaded: libssl and libcrypto are not where they should be");
        return false;
    }
    for (int i = 0; i < 2 * PARTS; i++) {
        const struct link_map *map = parts.maps[i / 2];
        struct tables tables = tables_of(map);
        uintptr_t bound;
        const char *name = find_wrong(&parts, map, &tables, i % 2, &bound);

        if (!name)
            continue;
        snprintf(ret_reason, DM_REASON_ROOM,
                 "TLS cannot be used: %.50s must be OpenSSL's, but %.100s has a function of that name, too: link that "
                 "with -Wl,--exclude-libs,ALL, so that it keeps its own OpenSSL to itself",
                 name, dm_image_path((const void *)bound)); /* NOLINT(performance-no-int-to-ptr) */
        return false;
    }
    return true;
}
