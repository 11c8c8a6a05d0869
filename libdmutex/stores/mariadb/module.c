/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The module's end of the wall.  It uses nothing of the library, whose symbols are hidden: files of base/ without data
 * are compiled in, and here is the one function whose own file would need more.
 */
#include <stddef.h>
#include <sys/random.h>

#include "base/ident.h"
#include "stores/mariadb/open.h"

void dm_ident_random(uint64_t *ret_words, unsigned count)
{
    for (unsigned i = 0; i < count; i++) {
        do {
            while (getrandom(&ret_words[i], sizeof ret_words[i], 0) != (ssize_t)sizeof ret_words[i])
                continue;
        } while (ret_words[i] == 0);
    }
}
