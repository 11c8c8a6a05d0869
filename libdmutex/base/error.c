/* SPDX-License-Identifier: BSD-2-Clause */
#include "base/error.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>

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

        used += snprintf(last + used, sizeof last - (size_t)used, ": ");
        va_start(args, detail);
        vsnprintf(last + used, sizeof last - (size_t)used, detail, args);
        va_end(args);
    }
    errno = kept;
    return table[failure].number;
}

const char *dm_error_sentence(void)
{
    return last;
}
