/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Threads that wait for a link take turns reading (leader and followers): one thread, the leader, sleeps in ppoll();
 * any thread that finds bytes reads them for all, hands each reply to its slot and wakes the slot's thread.  To lead
 * only means to sleep there.  Reading and dispatching do not block and run under a short lock, so that any thread can
 * do both; the loop thread does if nobody else has for a while.  A leader that is stopped, or leaves at its deadline,
 * stops nobody.
 */
#ifndef DM_LINK_TURNS_H
#define DM_LINK_TURNS_H

#include "link/link.h"

/*
 * Sends the command, once the link is ready, and waits for the reply, which the caller frees with freeReplyObject().
 * Blocks until the deadline at most, and no longer than command_timeout after sending. *ret_reply is set if and only if
 * the result is DM_LINK_OK.
 */
enum dm_link_result dm_link_call(struct dm_link *link, const struct dm_command *command,
                                 const struct dm_deadline *deadline, struct redisReply **ret_reply);

/* Waits until the link is ready.  False when the deadline has passed. */
bool dm_link_await_ready(struct dm_link *link, const struct dm_deadline *deadline);

/*
 * Waits until the link is ready and is_met() returns true. is_met() is called under the link's lock, and takes no lock
 * itself; call dm_link_tell_news() after a change.  False when the deadline has passed.
 */
bool dm_link_await(struct dm_link *link, bool (*is_met)(void *user), void *user, const struct dm_deadline *deadline);

/*
 * Sleeps until another thread posts to the calling thread (dm_self_wake()), taking turns reading the link: a leader
 * that reads its own message needs no other thread to wake it.  Returns true if posted; false when the deadline has
 * passed, or now and then without a reason. cancel_state: during the sleep; the caller has disabled cancellation.  A
 * CLOCK_REALTIME deadline may be late if that clock is set during the sleep.
 */
bool dm_link_listen(struct dm_link *link, const struct dm_deadline *deadline, int cancel_state);

/* Waits until all requests sent before are answered, the deadline has passed, or there is no connection. */
void dm_link_drain(struct dm_link *link, const struct dm_deadline *deadline);

#endif
