/* SPDX-License-Identifier: BSD-2-Clause */
/* The main paths through the library, each armed at the path's begin. */
#ifndef TEST_FAULTS_PATHS_H
#define TEST_FAULTS_PATHS_H

#include "run.h"

#define PATH_COUNT 14
extern const struct path paths[PATH_COUNT];

#endif
