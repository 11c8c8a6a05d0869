/* SPDX-License-Identifier: BSD-2-Clause */
#include "base/bug.h"

#include <stdio.h>
#include <stdlib.h>

void dm_bug_abort(const char *condition, const char *function)
{
    fprintf(stderr, "libdmutex: %s() finds what cannot be: %s\n", function, condition);
    abort();
}
