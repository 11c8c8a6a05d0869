/* SPDX-License-Identifier: BSD-2-Clause */
/* The file of DMUTEX_REPORT: opened when there is something to write, and only if no stranger can redirect it. */
#ifndef DM_PRELOAD_REPORT_OUTPUT_H
#define DM_PRELOAD_REPORT_OUTPUT_H

#include <stdbool.h>

#include "module/names/objects.h"

struct report_output {
    int fd;         /* starts as -1 */
    bool is_broken; /* and that was reported */
    char path[4096];
};

/* Adds a line for the name, unless nothing was locked. */
void report_output_add(struct report_output *output, const char *name, const struct object_counts *counts);

void report_output_end(struct report_output *output);

#endif
