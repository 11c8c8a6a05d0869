/* SPDX-License-Identifier: BSD-2-Clause */
/* The version of the header, at compile time, and of the library, at run time. */
#ifndef DMUTEX_VERSION_H
#define DMUTEX_VERSION_H

#include <dmutex/types.h>

#define DMUTEX_VERSION_MAJOR 0
#define DMUTEX_VERSION_MINOR 1
#define DMUTEX_VERSION_MICRO 0
#define DMUTEX_VERSION_STRING "0.1.0"

DMUTEX_BEGIN_DECLS

/* Returns the library's version, such as "0.1.0": static memory.  Any thread, at any time.  Since 0.1. */
DMUTEX_API const char *dmutex_version_np(void);

DMUTEX_END_DECLS

#endif
