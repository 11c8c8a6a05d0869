/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * dmutex doctor: findings, in the order in which they were made.
 *
 *   doctor.c          the word: the way through, and the output
 *   doctor_server.c   answers of INFO and CONFIG GET
 *   doctor_link.c     trials: rights, times, messages
 */
#ifndef DM_TOOLS_DOCTOR_H
#define DM_TOOLS_DOCTOR_H

#include <stdbool.h>
#include <stdint.h>

#include "probe.h"

enum grade { GRADE_OK, GRADE_WARN, GRADE_FAIL };

/* A fact that the server may refuse to tell. */
enum answer { UNKNOWN, NO, YES };

struct finding {
    enum grade grade;
    char check[16];   /* a word for the thing that was checked */
    char text[640];   /* the fact; cleaned */
    char advice[400]; /* the remedy, or "" */
};

#define FINDINGS_MOST 64

struct doctor {
    struct dm_url *url;
    struct probe *probe;
    struct finding findings[FINDINGS_MOST];
    int count;

    /* For the promises. */
    enum answer is_master, keeps_locks, survives_power; /* keeps_locks: evicts nothing */
    enum answer knows_birth;                            /* since when the server is there: grace */
    bool lacks_rights;
    bool has_sentinels; /* which promise P3 under assumption A8 */
};

/* Adds a finding; the advice follows by doctor_advise(). */
void doctor_find(struct doctor *doctor, enum grade grade, const char *check, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

/* Adds a remedy to the last finding. */
void doctor_advise(struct doctor *doctor, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* A reply that is no error, or NULL; words up to NULL. */
redisReply *doctor_ask(struct doctor *doctor, const char *const *words);

/* For a group of Sentinel, first: the rest is about its master.  False: the sentinels name none. */
bool doctor_look_at_sentinels(struct doctor *doctor);

void doctor_look_at_server(struct doctor *doctor);
void doctor_try_rights(struct doctor *doctor);
void doctor_try_times(struct doctor *doctor);
void doctor_try_messages(struct doctor *doctor);
void doctor_look_at_grace(struct doctor *doctor);

#endif
