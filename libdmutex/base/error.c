/* SPDX-License-Identifier: BSD-2-Clause */
#include "base/error.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static const struct {
    int number;
    const char *sentence;
} table[DM_FAIL_COUNT] = {
#define X(code, number, sentence) { number, sentence },
#include "base/error.def"
#undef X
};

static __thread char last[DM_SENTENCE_ROOM];

int dm_fail(enum dm_failure failure, const char *detail, ...)
{
    int kept = errno;
    int used = snprintf(last, sizeof last, "%s", table[failure].sentence);

    if (detail && used < (int)sizeof last - 3) {
        va_list args;

        va_start(args, detail);
        if (vsnprintf(last + used + 2, sizeof last - (size_t)used - 2, detail, args) > 0)
            memcpy(last + used, ": ", 2);
        va_end(args);
    }
    errno = kept;
    return table[failure].number;
}

const char *dm_error_sentence(void)
{
    return last;
}
