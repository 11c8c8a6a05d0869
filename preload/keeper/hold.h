/* SPDX-License-Identifier: BSD-2-Clause */
/* One distributed lock, and the thread that owns it. */
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
 * A kernel lock that a hold stands for. One file may have two, by flock() and by fcntl(), which do not exclude each
 * other on one host; on other hosts one mutex stands for both.
 */
struct backing {
    bool is_there;
    struct kernel_lock lock;
    unsigned missing; /* how many checks in a row did not find the lock */
    bool may_be_over; /* since the lock was last seen, somebody has closed the file, or unlocked one */
    struct holder known;
    bool is_known; /* during this check: `known` has the lock */
    struct witness witness;
    struct voice voice; /* to the process that took the lock */
    bool is_doubt_said;
};
#define BACKINGS 2

/* The kernel locks of a lost hold, and copies of their voices, which the caller closes. */
struct loss {
    int count, voices; /* of locks and voices */
    struct kernel_lock locks[BACKINGS];
    int fds[BACKINGS];
};

/* Which of the two backings the lock is. */
static inline int backing_of(const struct kernel_lock *lock)
{
    return lock->kind == LOCK_OF_FLOCK ? 0 : 1;
}

/*
 * ASKING -> HELD -> LOST -> OVER; any of them may be skipped. The hold's thread writes HELD and OVER. The library's
 * thread writes LOST, and only after HELD: a loss before HELD is recorded in lost_token, and the hold's thread asks
 * again.
 */
enum hold_phase { HOLD_ASKING, HOLD_HELD, HOLD_LOST, HOLD_OVER };

struct hold {
    struct wish wish; /* with its own copies of the texts */
    pthread_t thread;
    sem_t end; /* posted: give the lock back */

    /* The thread of the hold that ended to make way for this one; to be joined before the first request. */
    bool has_former;
    pthread_t former;

    /* Used by the thread alone. */
    dmutex_t mutex;
    bool is_local; /* no server, and OnDown=local */

    /* Guarded. Only the main loop writes the backings. */
    enum hold_phase phase;
    uint64_t token;      /* from HELD on: the fencing token; 0: locked on this host only */
    uint64_t lost_token; /* while ASKING: the highest token of a lost hold with this name; 0: none */
    int error;           /* when OVER: why there was no lock; 0, EBUSY, or ENOLCK with the sentence */
    char sentence[400];
    struct backing backings[BACKINGS];

    /* Used by the main loop alone. */
    struct caller *caller; /* the process that waits for the answer; NULL: none any more */
    bool is_granted, is_ending, is_joined_by_other;
    int file_watch;         /* -1: none */
    bool is_surely_watched; /* this very file, and not what its path may be now */
};

/* Takes over the descriptors of the backing. */
struct hold *hold_new(const struct wish *wish, const struct backing *backing);

/*
 * Starts the thread. It calls on_granted once if the lock is granted, and in any case on_over at the end, both in the
 * main loop. Returns 0 or an errno value.
 */
int hold_start(struct hold *hold, void (*on_granted)(void *hold), void (*on_over)(void *hold));

/* The thread gives the lock back as soon as it holds it. Further calls do nothing. */
void hold_end(struct hold *hold);

/* Undoes hold_end(); false if the thread has already seen it. */
bool hold_revive(struct hold *hold);

/* After on_over. */
void hold_free(struct hold *hold);

enum hold_phase hold_phase(struct hold *hold);

/*
 * Called by the library's thread: the library has lost the hold with this token and the hold's name. Turns HELD into
 * LOST, and returns the kernel locks of the hold and their voices. False if there is nothing to report: the token
 * belongs to another hold, or this hold is not held yet, and its thread asks again.
 */
bool hold_lose(struct hold *hold, uint64_t token, struct loss *ret_loss);

/* True if the hold stands for a lock of this file. */
bool hold_is_of(const struct hold *hold, const struct kernel_lock *lock);

/*
 * The first adds a kernel lock to the hold, replacing a lock that the new one excludes. The second removes the lock at
 * a position. The third drops a voice that its process no longer has.
 */
void hold_add_backing(struct hold *hold, const struct backing *backing);
void hold_remove_backing(struct hold *hold, int place);
void hold_look_at_voice(struct hold *hold, int place);

#endif
