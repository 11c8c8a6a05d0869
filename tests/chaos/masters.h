/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A stage with independent masters, a quorum, instead of two servers, and its faults.  A fault strikes as many servers
 * as a quorum can do without, chosen by the dice, unless the fault says more.  Each server has its own wall clock
 * (skew.c), and each host a network to each server. masters_heal() ends all faults.
 */
#ifndef CHAOS_MASTERS_H
#define CHAOS_MASTERS_H

#include "stage.h"

#define MASTERS_MOST 5

struct masters {
    struct server *servers[MASTERS_MOST];
    int64_t *skew_s[MASTERS_MOST]; /* shared with the server: how far the wall clock is ahead */
    int64_t usual_s[MASTERS_MOST]; /* the same, while no fault has struck the clock */
    int count;
    char folder[32];
    int names_of_files; /* counted up, so that a restarted server finds nothing */
};

/* `options`: of the processes' URL, "?command_timeout=200". */
void masters_begin(struct stage *stage, int count, const char *options);
void masters_end(struct stage *stage);

/* Writes the URL of all servers for the processes of a host. */
void masters_write_url(const struct stage *stage, int host, char *ret_url, size_t size);

/* Sets the clocks an hour apart, permanently, before any process uses the servers. */
void masters_set_clocks_apart(struct stage *stage);

/* Killed; they come back with nothing, or with older data. */
void masters_kill_empty(struct stage *stage);
void masters_kill_with_older(struct stage *stage);
void masters_restart_all(struct stage *stage); /* all at once, with nothing; they are back at the return */

/* The servers keep all data. */
void masters_kill_with_aof(struct stage *stage);
void masters_stop(struct stage *stage);
void masters_pause(struct stage *stage);
void masters_fill(struct stage *stage);   /* maxmemory */
void masters_demote(struct stage *stage); /* READONLY */
void masters_kill_connections(struct stage *stage);
void masters_forget_scripts(struct stage *stage);

/*
 * Restarted empty with a wall clock that is an hour fast or slow and, at the end, once more with the right clock.
 * Tokens may go back, because a token of the fast clock may be on these servers only.
 */
void masters_restart_with_wrong_clock(struct stage *stage);

void masters_flush(struct stage *stage);

/* The wall clock of a running server jumps forward by an hour: no promise covers this while threads compete. */
void masters_step_on(struct stage *stage);

void masters_heal(struct stage *stage);

#endif
