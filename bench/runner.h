/* SPDX-License-Identifier: BSD-2-Clause */
/* Pairs by two URLs: a process uses one URL, so each URL has a process of its own; the two take turns. */
#ifndef DM_BENCH_RUNNER_H
#define DM_BENCH_RUNNER_H

#include "bench.h"
#include "report.h"

/* Reports the time of a lock and unlock by the first URL, and as its first limit by the second. */
void runner_compare(const struct bench_scene *scene, const char *url, const char *limit_url, struct figure *figure);

#endif
