/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Servers that are far away: a process relays all bytes, each after a delay, as a network does.
 *
 * The relay itself takes CPU time, so use it for delays that are long compared with the server's work.
 */
#ifndef DM_BENCH_DISTANCE_H
#define DM_BENCH_DISTANCE_H

#include <sys/types.h>

enum { DISTANCE_MAX = 8 };

/*
 * Relays to `count` ports of 127.0.0.1, at most DISTANCE_MAX, with this round-trip time in milliseconds.  Sets the
 * ports to connect to.  The process ends by bench_kill(), or with the benchmark.
 */
pid_t distance_begin(const int *ports, int count, double round_trip_ms, int *ret_ports);

#endif
