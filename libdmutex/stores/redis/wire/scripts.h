/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The scripts of lua/, embedded at build time: the text and the SHA-1 of each script, and both again for a node of a
 * Cluster, where the script begins with lua/_guard.lua and publishes to sharded inboxes.
 */
#ifndef DM_REDIS_WIRE_SCRIPTS_H
#define DM_REDIS_WIRE_SCRIPTS_H

#define DM_SCRIPT(name)                          \
    extern const char dm_lua_##name[];           \
    extern const char dm_sha_##name[];           \
    extern const char dm_lua_##name##_cluster[]; \
    extern const char dm_sha_##name##_cluster[]

DM_SCRIPT(acquire);     /* takes a free lock, or waits in its queue */
DM_SCRIPT(born);        /* since when the server has its identity */
DM_SCRIPT(cancel);      /* settles a timeout against a grant */
DM_SCRIPT(cond_cancel); /* moves a waiter from the condition to the queue, without a signal */
DM_SCRIPT(cond_drop);   /* the end of a condition */
DM_SCRIPT(cond_signal); /* moves one waiter, or all, from the condition to the queue */
DM_SCRIPT(cond_wait);   /* gives a hold back and waits on a condition */
DM_SCRIPT(consistent);  /* declares the data consistent again */
DM_SCRIPT(drop);        /* the end of a mutex */
DM_SCRIPT(force);       /* breaks anybody's hold */
DM_SCRIPT(info);        /* shows all, and writes nothing */
DM_SCRIPT(poll);        /* the heartbeat of waiters; serves a free lock */
DM_SCRIPT(probe);       /* tries every command of the other scripts */
DM_SCRIPT(release);     /* gives back, and grants to the next waiter */
DM_SCRIPT(renew);       /* confirms holds */
DM_SCRIPT(view);        /* shows several names, for people, and writes nothing */

#endif
