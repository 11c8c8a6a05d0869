/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Failures: one table of what can go wrong, the errno it becomes and the sentence it leaves.
 * The sentence says what to do; a detail that only the place knows may follow it.
 */
#ifndef DM_BASE_ERROR_H
#define DM_BASE_ERROR_H

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
 * Notes the failure as the calling thread's last one and returns its errno value.  `detail`
 * (printf) may be NULL.  errno is kept.
 */
int dm_fail(enum dm_failure failure, const char *detail, ...) DM_PRINTF(2, 3);

/* The calling thread's last sentence, "" before any. */
const char *dm_error_sentence(void);

#endif
