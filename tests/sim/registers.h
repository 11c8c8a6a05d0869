/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The library's store on registers (libdmutex/registers/, unchanged) on the store in memory (tests/registers/memory.c),
 * in the simulator's time.  The judge decodes each value that is swapped.
 */
#ifndef SIM_REGISTERS_H
#define SIM_REGISTERS_H

#include "process.h"

void registers_begin(void);
void registers_end(void);

/* True between registers_begin() and registers_end(). */
bool registers_are_there(void);

/* The calling process's store. */
struct dm_store *registers_open(struct process *process, const struct dm_host *host);

/* ---- faults ------------------------------------------------------------------------------- */

void registers_cut(uint32_t number);
void registers_stall(int64_t for_ns);

/* The server ends, and is there again after `down_ns`: with its data, without, or with those of the last copy. */
enum registers_data { REGISTERS_KEEP, REGISTERS_LOSE, REGISTERS_BRING_COPY };
void registers_restart(enum registers_data data, int64_t down_ns);
void registers_copy(void);

/* All data are gone, and the server says that they are the same. */
void registers_wipe(void);

void registers_fill(bool is_full);

/* From now on one request in so many is lost, unanswered, or late, for hours; 0: none. */
void registers_disturb(unsigned one_in);

/* ---- judges ------------------------------------------------------------------------------- */

/* Without faults, at the end: nothing of an attempt that is over stays beside a living session. */
void registers_check_left(void);

#endif
