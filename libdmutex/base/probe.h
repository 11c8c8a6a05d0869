/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Probes for tracers: static tracepoints (USDT) of the provider "dmutex".  Each is one nop until bpftrace, perf or gdb
 * attaches to it.  They need <sys/sdt.h> at build time.
 *
 *   wait      name                a lock call takes the slow way: it asks the server, or waits for a thread
 *   acquired  name, result        the calling thread owns the mutex: 0, or EOWNERDEAD
 *   released  name                the calling thread owns the mutex no more
 *   lost      name, token         the hold was lost; in the library's thread
 *
 * A wait on a condition variable fires none of these: the time of the wait counts as held.  The name is the object's,
 * "" for a mutex without a name.  "wait" and "acquired" of one call come from one thread; the fast path has no "wait".
 */
#ifndef DM_BASE_PROBE_H
#define DM_BASE_PROBE_H

#include "config.h"

#if DM_HAVE_PROBES
#include <sys/sdt.h>
#define DM_PROBE_WAIT(name) DTRACE_PROBE1(dmutex, wait, name)
#define DM_PROBE_ACQUIRED(name, result) DTRACE_PROBE2(dmutex, acquired, name, result)
#define DM_PROBE_RELEASED(name) DTRACE_PROBE1(dmutex, released, name)
#define DM_PROBE_LOST(name, token) DTRACE_PROBE2(dmutex, lost, name, token)
#else
#define DM_PROBE_WAIT(name) ((void)(name))
#define DM_PROBE_ACQUIRED(name, result) ((void)(name), (void)(result))
#define DM_PROBE_RELEASED(name) ((void)(name))
#define DM_PROBE_LOST(name, token) ((void)(name), (void)(token))
#endif

#endif
