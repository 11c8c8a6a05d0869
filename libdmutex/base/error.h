/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Failures: one table of them, with the errno of each and its sentence for people.  The sentence says what to do about
 * the failure; a detail that only the caller knows may follow it.
 */
#ifndef DM_BASE_ERROR_H
#define DM_BASE_ERROR_H

#include <stdbool.h>
#include <stddef.h>

#include "base/attrs.h"

#define DM_SENTENCE_ROOM 480

enum dm_failure {
#define X(code, number, sentence) DM_FAIL_##code,
#include "base/error.def"
#undef X
    DM_FAIL_COUNT
};

/*
 * Records the failure as the calling thread's last one and returns its errno value.  `detail` (printf) may be NULL.
 * errno is kept.
 */
int dm_fail(enum dm_failure failure, const char *detail, ...) DM_PRINTF(2, 3);

/* True if the calling thread's last failure was this one. */
bool dm_error_is(enum dm_failure failure);

/* The sentence of the calling thread's last failure; "" if there was none. */
const char *dm_error_sentence(void);

#endif
