/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The end of a process by exit() or quick_exit(): claims are given back, other threads are parked.
 *
 * For mutexes, exit() begins when the library's destructor runs: after the atexit() handlers, and after the destructors
 * of the program and of all libraries linked against libdmutex.  So a handler may still stop and join threads that
 * lock.  From then on only the thread in exit() may go on using mutexes; any other thread is parked in its call about a
 * mutex, without a lock of the library, until the process is gone.
 */
#ifndef DM_PROCESS_LIFE_EXIT_H
#define DM_PROCESS_LIFE_EXIT_H

#include "process/claims/process.h"

/*
 * The calling thread ends the process.  Gives back all claims, waits for the answers, for command_timeout at most, and
 * writes the file of DMUTEX_METRICS.  runtime NULL: none was made.  No lock held.
 */
void dm_exit_process(struct dm_runtime *runtime);

#endif
