/* SPDX-License-Identifier: BSD-2-Clause */
/* The inside of a link, only for link.c and turns.c.  Every function here is called with the lock held. */
#ifndef DM_LINK_LINK_PARTS_H
#define DM_LINK_LINK_PARTS_H

#include "base/rank.h"
#include "base/self.h"
#include "link/link.h"
#include "link/session.h"

/*
 * Something that may or may not be worthwhile, depending on the machine: skipped after some misses, and tried again now
 * and then.
 */
struct dm_habit {
    unsigned misses, left_out;
};

/* A thread that waits for the link: on its stack, and in link->calls during the call. */
struct dm_caller {
    struct dm_caller *next, **link;
    struct dm_self *self;
    struct dm_slot *slot; /* once sent */
    redisReply *reply;
    enum dm_link_result result;
    bool is_done;
    bool is_asleep;              /* as a follower */
    bool is_listening;           /* waits for a post: see dm_link_listen() */
    bool is_posted;              /* a sleep as a follower, or a spin, took a post */
    bool is_called;              /* woken while glancing */
    int cancel_state;            /* of the sleeps; elsewhere cancellation is disabled */
    unsigned permanent_failures; /* the session's, when the call began */
    uint64_t drains;             /* waits until this many slots have been answered; 0: for another event */
};

/* The lock guards everything below.  Its rank is CONN: only NODE and LOG are taken under it. */
struct dm_link {
    struct dm_mutex lock;
    struct dm_link_hooks hooks;
    struct dm_session session;
    int64_t turn_ns; /* see dm_link_note_turn() */

    struct dm_caller *calls;
    unsigned calls_alone;      /* how many calls in a row met no other */
    struct dm_caller *leader;  /* sleeps in ppoll() on the socket and the bell, or is_glancing */
    int leader_bell;           /* an eventfd */
    unsigned asleep, draining; /* how many calls have is_asleep, and drains; if 0, a reply searches no list */
    int64_t next_glance_ns;    /* CLOCK_BOOTTIME */
    struct dm_habit spins, reads_at_once; /* see turns.c */
    bool is_glancing;                     /* the leader is awake, and needs no bell */
    bool is_left_to_leader;               /* see dm_link_leave_to_leader() */

    struct dm_slot *finished, **finished_end; /* handlers to be called without the lock */
};

/* Hands out finished replies: wakes the threads, and keeps handlers for dm_link_leave(). */
void dm_link_hand_out(struct dm_link *link);

/* Unlocks, then calls the handlers of finished slots, and starts the thread that an opening needs. */
void dm_link_leave(struct dm_link *link);

/* True if dm_link_leave() must do more than unlock: then no thread may sleep before it. */
bool dm_link_has_news(const struct dm_link *link);

/* Wakes a call's thread if it leads or sleeps. */
void dm_link_wake(struct dm_link *link, struct dm_caller *call);
void dm_link_note_sleep(struct dm_link *link, struct dm_caller *call, bool is_asleep);

/* True if the link is ready, and the command is for any server or may_send() of struct dm_belief allows it. */
bool dm_link_may_send(const struct dm_link *link, const struct dm_command *command);

/* False if the command was written for another server than the one now connected. */
bool dm_link_is_for_peer(const struct dm_link *link, const struct dm_command *command);

/* The loop thread polls the socket again: see dm_link_leave_to_leader(). */
void dm_link_take_back(struct dm_link *link);

/* Closes the bell of a link that has ended, once no thread can sleep on it. */
void dm_link_free_bell(struct dm_link *link);

#endif
