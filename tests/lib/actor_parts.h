/* SPDX-License-Identifier: BSD-2-Clause */
/* Shared by the parts of an actor's side: actor_serve.c, which serves, and the files with the commands. */
#ifndef TEST_ACTOR_PARTS_H
#define TEST_ACTOR_PARTS_H

#include <dmutex/dmutex.h>

#define ACTOR_LINE_ROOM 2048
#define ACTOR_WORDS 16
#define ACTOR_THREADS 64

/* One command: its words, and the answer. */
struct call {
    char line[ACTOR_LINE_ROOM]; /* cut into words */
    char *words[ACTOR_WORDS];   /* NULL after the last one */
    char answer[ACTOR_LINE_ROOM];
};

void actor_answer_result(struct call *call, int result);

/* The mutex that a command names; a new one is made as by `init X`. */
dmutex_t *actor_mutex(const char *handle);

/* The page of a file in which actors count: only an owner reads or writes it. */
struct actor_page {
    int64_t number;
    int64_t inside; /* owners inside actor_add_one() */
};
int actor_open_page(const char *path);

/* Returns 0 or an errno value; ENOTUNIQ: another owner was inside. */
int actor_add_one(int fd);

/* Does `work` in this many threads.  Returns 0, or the result of a thread that failed. */
int actor_in_threads(int threads, void *(*work)(void *), void *user);

/* Commands of actor_conditions.c. */
void actor_do_wait(struct call *call);
void actor_do_timedwait(struct call *call);
void actor_do_signal(struct call *call);
void actor_do_crowd(struct call *call);
void actor_do_turns(struct call *call);

#endif
