/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Versions of values, and the numbers of identities.
 *
 * A version is never given twice, to any value of any key: 128 random bits of the writer, and the writer's count of
 * writes.  Stores' own numbers begin again after a deletion or a restart, and then a stopped writer could take a new
 * value for the one that it knew.
 */
#ifndef DM_REGISTERS_VERSION_H
#define DM_REGISTERS_VERSION_H

#include <stdbool.h>
#include <stdint.h>

#define DM_REG_VERSION_SIZE 24

/* All zero: the key is absent. */
struct dm_reg_version {
    uint8_t bytes[DM_REG_VERSION_SIZE];
};

/* Draws versions.  One writer belongs to one process: a forked child makes its own. */
struct dm_reg_writer {
    uint64_t random[2];
    uint64_t count;
};

void dm_reg_writer_init(struct dm_reg_writer *writer);
struct dm_reg_version dm_reg_writer_next(struct dm_reg_writer *writer);

bool dm_reg_version_is_absent(const struct dm_reg_version *version);
bool dm_reg_version_equals(const struct dm_reg_version *one, const struct dm_reg_version *other);

/* The number by which values name an identity; 0 is none. */
uint64_t dm_reg_identity_number(const char *identity);

#endif
