/* SPDX-License-Identifier: BSD-2-Clause */
/* Compiler attributes by the names used here. */
#ifndef DM_BASE_ATTRS_H
#define DM_BASE_ATTRS_H

#define DM_PRINTF(format, first) __attribute__((__format__(__printf__, format, first)))
#define DM_MUST_CHECK __attribute__((__warn_unused_result__))

#define DM_COUNT(array) (sizeof(array) / sizeof((array)[0]))

#endif
