/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Checks the promises of doc/design/protocol.md; the checker sees every process and the server at once.  A broken
 * promise ends the run (world_break()).
 *
 * Some faults void some promises: I1 for a lease after data were lost or the server's clock was stepped far; I2 when
 * data are lost while the clock is behind its earlier value.
 */
#ifndef SIM_CHECK_H
#define SIM_CHECK_H

#include "process.h"
#include "store.h"

#define LEASE_MAX_MS 2500

void check_begin(int names);
void check_end(void);

/* After each event. */
void check_all(void);

/* Around each script, on the server. */
void check_before_script(int script, const struct text *arguments, int argument_count);
void check_after_script(int script, const struct text *keys, int key_count, const struct text *arguments,
                        int argument_count);

/*
 * Called before the script: the next script comes from a closed connection to a server that was replaced and is the
 * master again.  No client can kill a connection on a server that it does not reach, so an acquire may arrive after the
 * release of its attempt (A7 of reliability.md): nobody holds that hold, and it ends with its lease.
 */
void check_late_script(int script, const struct text *arguments);

/* The server sends a message to an inbox, given by its channel. */
void check_told(struct text channel, struct text message);

/* A thread has come out of a call with the mutex; its claim. */
void check_entered(int name, const struct dm_claim *claim);

/* The current process exits, and reports a death to the store, with this hold. */
void check_told_death(const struct dm_claim *claim);

/* Without faults: no process keeps an idle lease much beyond its linger time. */
void check_kept(int64_t lease_ns);

/* The plain store has granted a name, with the word "an owner died" or without. */
void check_granted(int name, const char *uuid, uint64_t thread, uint64_t attempt, bool is_dead);

/* The thread is inside a hold by mistake, knows it, and waits for the state lock; misled_token counts that long. */
void check_misled(struct thread *thread, const struct dm_tenure *tenure);

/* The application is informed of a loss. */
void check_lost(const char *name, uint64_t token);

/* Checks that a thread of the library holds none of the library's locks while it waits (I11). */
void check_no_lock(const char *where);

/* Marks a look of the simulator at the library's records: no thread takes its turn at the lock of the records. */
void check_begin_look(void);
void check_end_look(void);

/* A claim has changed: the next check_all() has something to do. */
void check_soon(void);

/*
 * Single keys are gone; a new server comes and gives grace (I1 holds); all data are gone; older data are back; the
 * clock has made a large step; the clock has gone back.
 */
enum forgiven { DATA_TORN, DATA_GRACED, DATA_LOST, DATA_BACK, CLOCK_STEPPED, CLOCK_SET_BACK };
void check_forgive(enum forgiven what);
bool check_is_torn(void);

/*
 * Returns the moment since which a live waiter waits on the server while no thread owns the name;
 * DM_NEVER: no such waiter.
 */
int64_t check_idle_since(int name);

#endif
