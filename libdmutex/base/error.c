/* SPDX-License-Identifier: BSD-2-Clause */
#include "base/error.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/text.h"

static const struct {
    int number;
    const char *sentence;
} table[DM_FAIL_COUNT] = {
#define X(code, number, sentence) { number, sentence },
#include "base/error.def"
#undef X
};

/* dmutex_strerror_np() returns a pointer to this text, which the thread's next failure overwrites. */
static __thread char composed[DM_SENTENCE_ROOM];
static __thread enum dm_failure composed_of;
static __thread const char *last; /* `composed`, or a sentence of the table; NULL: no failure yet */

/* Only two stores, so that a failing call of a local mutex, such as trylock in a loop, is cheap. */
static int fail_plainly(enum dm_failure failure)
{
    last = table[failure].sentence;
    return table[failure].number;
}

int dm_fail(enum dm_failure failure, const char *detail, ...)
{
    int kept = errno, used;
    va_list args;

    if (!detail)
        return fail_plainly(failure);
    used = snprintf(composed, sizeof composed, "%s", table[failure].sentence);
    /* The ": " is written last, so that an empty detail leaves the bare sentence. */
    if (used < (int)sizeof composed - 3) {
        va_start(args, detail);
        if (vsnprintf(composed + used + 2, sizeof composed - (size_t)used - 2, detail, args) > 0)
            memcpy(composed + used, ": ", 2);
        va_end(args);
    }
    dm_text_clean(composed); /* the text may quote a server, or a name */
    composed_of = failure;
    last = composed;
    errno = kept;
    return table[failure].number;
}

bool dm_error_is(enum dm_failure failure)
{
    return last == composed ? composed_of == failure : last == table[failure].sentence;
}

const char *dm_error_sentence(void)
{
    return last ? last : "";
}
