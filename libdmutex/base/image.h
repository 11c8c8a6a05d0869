/* SPDX-License-Identifier: BSD-2-Clause */
/* Where the program and its shared libraries lie in memory. */
#ifndef DM_BASE_IMAGE_H
#define DM_BASE_IMAGE_H

#include <stdbool.h>
#include <stdint.h>

#define DM_IMAGE_PARTS 4 /* writable segments of a module; linkers make one or two */

struct dm_image {
    uintptr_t base;
    bool is_program; /* not a shared library */
    unsigned count;
    struct {
        uintptr_t start;   /* after the part that is read-only after relocation */
        uintptr_t end;     /* of the bytes from the file */
        uintptr_t all_end; /* of the zeros after them */
    } parts[DM_IMAGE_PARTS];
};

/*
 * Finds the module that has the address in a writable segment.  Returns false, with *ret_image untouched, if none has.
 */
bool dm_image_find(const void *address, struct dm_image *ret_image);

/* True if the address is in zero-initialised data. */
bool dm_image_is_zeros(const struct dm_image *image, const void *address);

/* The file of the module that contains the address, or "?".  Valid as long as the module is loaded. */
const char *dm_image_path(const void *address);

#endif
