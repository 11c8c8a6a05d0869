/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The library's own locks and their nesting order: a thread that holds a lock may take only locks of a higher rank.
 * With --enable-assertions and in sanitizer builds (-DDM_LOCK_CHECKS) a breach aborts.
 *
 * No lock is held while a thread waits for the network, runs the application's callback, or sleeps: a message that is
 * logged under a lock is delivered to the callback after the thread has given its last lock back (base/log.h).
 */
#ifndef DM_BASE_RANK_H
#define DM_BASE_RANK_H

#include <pthread.h>
#include <stdbool.h>

enum dm_rank {
    DM_RANK_GATE,         /* process/keep/loop.c: the loop thread runs; left only in poll and in callbacks */
    DM_RANK_START,        /* process/life/runtime.c: the runtime is being made or configured */
    DM_RANK_STATE,        /* process/claims/registry.c: names, attempts, everything the core decides on */
    DM_RANK_QUORUM,       /* stores/quorum/quorum.c: what the servers of a quorum have said */
    DM_RANK_REGISTERS,    /* registers/store.c: a store on registers, with its driver */
    DM_RANK_CLUSTER,      /* stores/redis/cluster/cluster.c: the nodes of a Cluster, and which node serves a slot */
    DM_RANK_CONN,         /* link/link.c: one link's socket, slots and buffers */
    DM_RANK_MASTER_WATCH, /* stores/redis/sentinel/master_watch.c: what the sentinels say */
    DM_RANK_NODE,         /* stores/redis/node/node.c: which server a link is connected to */
    DM_RANK_TLS,          /* link/tls.c: a thread enters OpenSSL for a handshake */
    DM_RANK_LOG,          /* base/log.c: the log's destination */
    DM_RANK_COUNT
};

/*
 * The stages in which fork() takes a store's locks, in the order of their ranks; it gives them back in reverse.  A
 * store that is made of stores takes the locks of one stage in all of them before the next stage.
 */
enum dm_fork_stage {
    DM_FORK_STORES, /* the locks of each store */
    DM_FORK_WAYS,   /* the locks of each connection */
    DM_FORK_SERVER, /* the locks of each server */
    DM_FORK_SHARED, /* locks shared by all, taken once */
    DM_FORK_STAGES
};

struct dm_mutex {
    pthread_mutex_t mutex;
    enum dm_rank rank;
};

/* clang-format off */
#define DM_MUTEX_INITIALIZER(rank) { PTHREAD_MUTEX_INITIALIZER, rank }
/* clang-format on */

void dm_mutex_lock(struct dm_mutex *mutex);
void dm_mutex_unlock(struct dm_mutex *mutex);

/*
 * A thread that a peer keeps busy gives a lock back and takes it again at once, before a thread that waits for the lock
 * has woken up.  So a thread that has processed as many bytes as one turn may take owes fork() a pause.  It pauses
 * where it holds no lock, and only while a fork() collects the library's locks, for some 10 ms at most.
 */
void dm_mutex_owe_pause(void);
void dm_mutex_pause(void);
void dm_mutex_begin_collecting(void);
void dm_mutex_end_collecting(void);

/* In a forked child: the lock is free and new. */
void dm_mutex_reset(struct dm_mutex *mutex);

/* In a forked child whose parent took all locks before fork(): the child no longer holds any of them. */
void dm_mutex_fork_child(void);

/*
 * Aborts, with a sentence, unless the calling thread holds a lock of this rank.  Each function whose caller must hold
 * the lock begins with it.  Costs nothing without -DDM_LOCK_CHECKS.
 */
#ifdef DM_LOCK_CHECKS
#define dm_assert_held(rank) dm_mutex_check_held(rank, __func__)
void dm_mutex_check_held(enum dm_rank rank, const char *function);
#else
#define dm_assert_held(rank) ((void)0)
#endif

/*
 * True if the calling thread holds no lock of this library.  False in a signal handler that has interrupted a
 * section.
 */
bool dm_mutex_holds_none(void);

#endif
