/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Servers that are far away: a process relays all bytes, each after a delay, as a network does.
 *
 * The relay takes processor time itself, so it is for delays that are long beside a server's work.
 */
#ifndef DM_BENCH_DISTANCE_H
#define DM_BENCH_DISTANCE_H

#include <sys/types.h>

enum { DISTANCE_MAX = 8 };

/*
 * Relays to `count` ports of 127.0.0.1, at most DISTANCE_MAX, with so many milliseconds for the way and back; sets the
 * ports to connect to.  The process ends by bench_kill(), or with the benchmark.
 */
pid_t distance_begin(const int *ports, int count, double round_trip_ms, int *ret_ports);

#endif
