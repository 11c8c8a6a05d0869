/* SPDX-License-Identifier: BSD-2-Clause */
/* All of libdmutex: the mutexes and condition variables of <pthread.h>, across hosts.  See dmutex(7). */
#ifndef DMUTEX_DMUTEX_H
#define DMUTEX_DMUTEX_H

#include <dmutex/types.h>

#include <dmutex/attr.h>
#include <dmutex/cond.h>
#include <dmutex/error.h>
#include <dmutex/mutex.h>
#include <dmutex/stats.h>
#include <dmutex/version.h>

#endif
