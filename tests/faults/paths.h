/* SPDX-License-Identifier: BSD-2-Clause */
/* The main paths through the library, each armed at the path's begin. */
#ifndef TEST_FAULTS_PATHS_H
#define TEST_FAULTS_PATHS_H

#include "config.h"
#include "run.h"

#if DM_HAVE_TLS
#define PATH_COUNT 18
#else
#define PATH_COUNT 16
#endif
extern const struct path paths[PATH_COUNT];

#endif
