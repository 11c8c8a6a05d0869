/* SPDX-License-Identifier: BSD-2-Clause */
/* Lock and unlock pairs over two URLs.  A process uses one URL, so each URL has its own process; the two take turns. */
#ifndef DM_BENCH_RUNNER_H
#define DM_BENCH_RUNNER_H

#include "bench.h"
#include "report.h"

/* Reports the time of a lock and unlock over the first URL, with that over the second as its first limit. */
void runner_compare(const struct bench_scene *scene, const char *url, const char *limit_url, struct figure *figure);

#endif
