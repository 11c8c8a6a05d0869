/* SPDX-License-Identifier: BSD-2-Clause */
#include "registers/version.h"

#include <string.h>

#include "base/ident.h"

void dm_reg_writer_init(struct dm_reg_writer *writer)
{
    dm_ident_random(writer->random, 2);
    writer->count = 0;
}

static void write_number(uint8_t *to, uint64_t number)
{
    for (int i = 0; i < 8; i++)
        to[i] = (uint8_t)(number >> (56 - 8 * i));
}

struct dm_reg_version dm_reg_writer_next(struct dm_reg_writer *writer)
{
    struct dm_reg_version version;

    writer->count++;
    write_number(version.bytes, writer->random[0]);
    write_number(version.bytes + 8, writer->random[1]);
    write_number(version.bytes + 16, writer->count);
    return version;
}

bool dm_reg_version_is_absent(const struct dm_reg_version *version)
{
    static const struct dm_reg_version absent;

    return dm_reg_version_equals(version, &absent);
}

bool dm_reg_version_equals(const struct dm_reg_version *one, const struct dm_reg_version *other)
{
    return memcmp(one->bytes, other->bytes, sizeof one->bytes) == 0;
}

/* FNV-1a: identities are few, and no lock depends on who chose them. */
uint64_t dm_reg_identity_number(const char *identity)
{
    uint64_t number = UINT64_C(0xcbf29ce484222325);

    for (; *identity; identity++)
        number = (number ^ (uint8_t)*identity) * UINT64_C(0x100000001b3);
    return number ? number : 1;
}
