/* SPDX-License-Identifier: BSD-2-Clause */
/* One distributed lock, and the thread that owns the lock. */
#ifndef DM_PRELOAD_KEEPER_HOLD_H
#define DM_PRELOAD_KEEPER_HOLD_H

#include <dmutex/dmutex.h>

#include <pthread.h>
#include <semaphore.h>
#include <stdint.h>

#include "holders.h"
#include "voice.h"
#include "wish.h"
#include "witness.h"

struct caller;

/*
 * A lock of the kernel's that a hold stands for. One file may have two locks, by flock() and by fcntl(), which do not
 * keep each other out on one host; elsewhere one mutex stands for both.
 */
struct backing {
    bool is_there;
    struct kernel_lock lock;
    unsigned missing; /* looks that did not find the lock */
    struct holder known;
    bool is_known; /* in this look: `known` has the lock */
    struct witness witness;
    struct voice voice; /* of the process that took the lock */
    bool is_doubt_said;
};
#define BACKINGS 2

/* The kernel locks behind a lost hold, and copies of their voices, which the caller closes. */
struct loss {
    int count, voices; /* of locks and voices */
    struct kernel_lock locks[BACKINGS];
    int fds[BACKINGS];
};

/* The place of the backing among the two. */
static inline int backing_of(const struct kernel_lock *lock)
{
    return lock->kind == LOCK_OF_FLOCK ? 0 : 1;
}

/*
 * ASKING -> HELD -> LOST -> OVER; any may be left out. The hold's thread writes HELD and OVER, the library's thread
 * LOST, and only after HELD: a loss before HELD is noted in lost_token, and the thread asks again.
 */
enum hold_phase { HOLD_ASKING, HOLD_HELD, HOLD_LOST, HOLD_OVER };

struct hold {
    struct wish wish; /* with texts of the hold's own */
    pthread_t thread;
    sem_t end; /* posted: give the lock back */

    /* The thread of the hold that ended for this hold, to be joined before the first request. */
    bool has_former;
    pthread_t former;

    /* The thread's own. */
    dmutex_t mutex;
    bool is_local; /* no server, and OnDown=local */

    /* Guarded; the main loop alone writes the backings. */
    enum hold_phase phase;
    uint64_t token;      /* from HELD on: the fencing token; 0: locked on this host only */
    uint64_t lost_token; /* ASKING: the highest token of a lost hold of this name; 0: none */
    int error;           /* OVER: why there was no lock; 0, EBUSY, or ENOLCK with the sentence */
    char sentence[400];
    struct backing backings[BACKINGS];

    /* The main loop's. */
    struct caller *caller; /* the process that waits for the answer; NULL: no caller any more */
    bool is_granted, is_ending, is_joined_by_other;
    int file_watch;
};

/* The backing's descriptors belong to the hold from now on. */
struct hold *hold_new(const struct wish *wish, const struct backing *backing);

/*
 * Starts the thread. The thread calls on_granted once if the lock is granted, and on_over in any case at last, both in
 * the main loop. 0 or an errno value.
 */
int hold_start(struct hold *hold, void (*on_granted)(void *hold), void (*on_over)(void *hold));

/* The thread gives the lock back as soon as the lock is held; any more calls do nothing. */
void hold_end(struct hold *hold);

/* Takes hold_end() back; false if the thread has seen the end already. */
bool hold_revive(struct hold *hold);

/* After on_over. */
void hold_free(struct hold *hold);

enum hold_phase hold_phase(struct hold *hold);

/*
 * The library has lost the hold of this token and of the hold's name. HELD to LOST, by the library's thread, with the
 * kernel locks behind the hold and their voices. False if there is nothing to tell: the token is of another hold, or
 * this hold is not held yet, and its thread asks again.
 */
bool hold_lose(struct hold *hold, uint64_t token, struct loss *ret_loss);

/* True if this file's lock is behind the hold. */
bool hold_is_of(const struct hold *hold, const struct kernel_lock *lock);

/*
 * Adds the lock to the kernel locks behind the hold, in place of a lock that the new lock keeps out; the second removes
 * the lock at a place; the third drops a voice that its process has no more.
 */
void hold_add_backing(struct hold *hold, const struct backing *backing);
void hold_remove_backing(struct hold *hold, int place);
void hold_look_at_voice(struct hold *hold, int place);

#endif
