/* SPDX-License-Identifier: BSD-2-Clause */
/* `dmutex-run --list`: records the objects that this process uses, in a file that dmutex-run reads (seen.h). */
#ifndef DM_PRELOAD_OBSERVE_H
#define DM_PRELOAD_OBSERVE_H

#include <pthread.h>

#include "shared/seen.h"

/* They do nothing unless DMUTEX_LIST is set. A lock of a mutex, a wait on a condition, a lock of a file. */
void observe_mutex(const pthread_mutex_t *mutex);
void observe_condition(const pthread_cond_t *condition);
void observe_file(enum seen_kind kind, const char *path, unsigned bits);

/* In a forked child: another thread may have been recording something. */
void observe_in_child(void);

#endif
