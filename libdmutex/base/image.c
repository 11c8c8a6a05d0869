/* SPDX-License-Identifier: BSD-2-Clause */
#include "base/image.h"

#include <dlfcn.h>
#include <elf.h>
#include <link.h>
#include <stddef.h>

struct search {
    uintptr_t address;
    bool is_past_program; /* the program comes first */
    struct dm_image image;
};

/* Where the read-only part of a segment ends: the linker puts it first. */
static uintptr_t end_of_readonly(const struct dl_phdr_info *info, const ElfW(Phdr) *segment)
{
    uintptr_t start = segment->p_vaddr;

    for (int i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *other = &info->dlpi_phdr[i];

        if (other->p_type == PT_GNU_RELRO && other->p_vaddr == segment->p_vaddr && other->p_memsz <= segment->p_memsz)
            start += other->p_memsz;
    }
    return info->dlpi_addr + start;
}

/*
 * A segment for which there is no room is left out. That is safe: an object in it belongs to no module, so its
 * automatic name is refused (rule 3 of names/automatic.h).
 */
static void add_part(struct dm_image *image, const struct dl_phdr_info *info, const ElfW(Phdr) *segment)
{
    uintptr_t start = end_of_readonly(info, segment), bytes = info->dlpi_addr + segment->p_vaddr;

    if (image->count == DM_IMAGE_PARTS)
        return;
    image->parts[image->count].start = start;
    image->parts[image->count].end = bytes + segment->p_filesz > start ? bytes + segment->p_filesz : start;
    image->parts[image->count].all_end = bytes + segment->p_memsz;
    image->count++;
}

static bool has(const struct dm_image *image, uintptr_t address)
{
    for (unsigned i = 0; i < image->count; i++) {
        if (address >= image->parts[i].start && address < image->parts[i].all_end)
            return true;
    }
    return false;
}

/*
 * Runs under the loader's lock, so it uses no malloc(), no lock of the library and no callback. dl_iterate_phdr(3)
 * reports the program first.
 */
static int look(struct dl_phdr_info *info, size_t size, void *user)
{
    struct search *search = user;

    (void)size;
    search->image = (struct dm_image){ .base = info->dlpi_addr, .is_program = !search->is_past_program };
    search->is_past_program = true;
    for (int i = 0; i < info->dlpi_phnum; i++) {
        if (info->dlpi_phdr[i].p_type == PT_LOAD && (info->dlpi_phdr[i].p_flags & PF_W))
            add_part(&search->image, info, &info->dlpi_phdr[i]);
    }
    return has(&search->image, search->address);
}

bool dm_image_find(const void *address, struct dm_image *ret_image)
{
    struct search search = { .address = (uintptr_t)address };

    if (!dl_iterate_phdr(look, &search))
        return false;
    *ret_image = search.image;
    return true;
}

bool dm_image_is_zeros(const struct dm_image *image, const void *address)
{
    for (unsigned i = 0; i < image->count; i++) {
        if ((uintptr_t)address >= image->parts[i].end && (uintptr_t)address < image->parts[i].all_end)
            return true;
    }
    return false;
}

const char *dm_image_path(const void *address)
{
    Dl_info info;

    return dladdr(address, &info) && info.dli_fname && *info.dli_fname ? info.dli_fname : "?";
}
