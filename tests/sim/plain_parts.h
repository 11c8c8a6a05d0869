/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Parts of the plain store:
 *
 *   plain.c        the operations of store/store.h
 *   plain_way.c    the way to the server and back: requests, messages, breaks
 *   plain_locks.c  the server: who holds, who waits
 *   plain_judge.c  the judge of the server
 */
#ifndef SIM_PLAIN_PARTS_H
#define SIM_PLAIN_PARTS_H

#include "plain.h"

#define WAITING_MAX 64

/* One question, and its answer. */
struct asked {
    struct dm_question question;
    struct dm_answer answer;
    union dm_more more;
};

/* A request from the sending to the answer. */
struct request {
    struct request *next; /* of those without an answer */
    struct plain *plain;
    uint64_t connection; /* on which the request was sent */
    dm_answers_fn done;
    void *user;
    int count, questions;    /* the questions are the last of the items */
    union dm_more *ret_more; /* the caller's room for more */
    struct asked items[];
};

/* One process's way to the server. */
struct plain {
    struct dm_store store; /* first */
    struct plain *next;    /* of all of this run */
    struct process *process;
    struct dm_host host;
    uint64_t at_server, at_client; /* the number of the open connection as each end knows it; 0: none */
    bool is_opening, was_wanted;
    uint64_t origin;                    /* of the server that the connection was opened to */
    int64_t to_server_ns, to_client_ns; /* the last arrivals */
    struct request *unanswered;
    struct dm_traffic traffic;
    struct thread *waiting[WAITING_MAX];
    int waiting_count;
};

/* ---- plain_way.c ------------------------------------------------------------------------- */

struct plain *plain_new(struct process *process, const struct dm_host *host);
struct request *plain_request(struct plain *plain, int count);

/* Sends without waiting.  False without a connection: then `done` is never called. */
bool plain_send(struct request *request, dm_answers_fn done, void *user);

/* Opens the connection if closed. */
void plain_want(struct plain *plain);

/* The calling thread waits until the connection may be open. */
void plain_await(struct plain *plain, const struct dm_deadline *deadline);

/* A message to a waiter or holder, from the server. */
void plain_tell(struct plain *to, const struct dm_message *message);

/* ---- plain_locks.c ----------------------------------------------------------------------- */

void locks_begin(void);

/* All data are lost, and nothing is granted for a while. */
void locks_forget(int64_t grace_ns);

/* Answers the question, at this moment. */
void locks_answer(struct plain *from, struct asked *item);

/* The number of the place's name. */
int plain_index(const struct dm_place *place);

/* ---- plain_judge.c ----------------------------------------------------------------------- */

/* A name as the judge sees it. */
struct plain_look {
    bool is_held;
    const struct plain *owner;
    uint64_t attempt; /* of the owner */
    int waiters;      /* live ones */
};

/* At the beginning, and at the loss of all data. */
void plain_judge_reset(void);

/* A request names the holder's attempt, or a waiter's, by this thread; the server knows the attempt by `thread`. */
void plain_judge_named(int index, uint64_t attempt, uint64_t by_thread, uint64_t thread);

/* Around each question; is_owner: the question comes from the holder. */
void plain_judge_begin(int index, const struct plain_look *before, const struct asked *item, bool is_owner);
void plain_judge_end(int index, const struct plain_look *after, const struct asked *item);

/* The server sends a message; a lease has ended, before the next holder comes; a holder comes. */
void plain_judge_told(const struct plain *to, const struct dm_message *message);
void plain_judge_expired(int index);
void plain_judge_granted(int index, bool is_robust, bool is_dead);

#endif
