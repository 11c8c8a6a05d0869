/* SPDX-License-Identifier: BSD-2-Clause */
/* One distributed lock, and the thread that owns it. */
#ifndef DM_PRELOAD_KEEPER_HOLD_H
#define DM_PRELOAD_KEEPER_HOLD_H

#include <dmutex/dmutex.h>

#include <pthread.h>
#include <semaphore.h>

#include "holders.h"
#include "holds.h"

/* ASKING -> HELD -> LOST -> OVER; any may be left out. */
enum hold_phase { HOLD_ASKING, HOLD_HELD, HOLD_LOST, HOLD_OVER };

struct hold {
    struct wish wish; /* with texts of its own; the lock changes under the guard */
    pthread_t thread;
    sem_t end; /* posted: give it back */

    /* The thread whose lock ended for this one, to be joined before anything is asked. */
    bool has_former;
    pthread_t former;

    /* The thread's own. */
    dmutex_t mutex;
    bool is_local; /* no server, and OnDown=local */

    /* Guarded. */
    enum hold_phase phase;
    int error;             /* OVER: why there was no lock; 0, EBUSY, or ENOLCK with the sentence */
    char sentence[400];

    /* The main loop's. */
    struct caller *caller; /* who waits for the answer; NULL: nobody any more */
    bool is_granted, is_ending, is_joined_by_other;
    unsigned missing;      /* looks that did not find it */
    struct holder known;
    int file_watch;
};

struct hold *hold_new(const struct wish *wish);

/*
 * Starts the thread.  It calls on_granted once if it gets the lock, and on_over in any case at last,
 * both in the main loop.  0 or an errno value.
 */
int hold_start(struct hold *hold, void (*on_granted)(struct hold *hold), void (*on_over)(struct hold *hold));

/* The thread gives the lock back as soon as it has it; any more calls do nothing. */
void hold_end(struct hold *hold);

/* Takes hold_end() back; false if the thread has seen it already. */
bool hold_revive(struct hold *hold);

/* After on_over. */
void hold_free(struct hold *hold);

enum hold_phase hold_phase(struct hold *hold);

/* HELD to LOST, by the library's thread; false if it is not held. */
bool hold_lose(struct hold *hold, struct kernel_lock *ret_lock);

/* It is somebody else's from now on who has the same kernel's lock. */
void hold_hand_on(struct hold *hold, const struct kernel_lock *lock);

#endif
