/* SPDX-License-Identifier: BSD-2-Clause */
/* Random calls of the library's scripts, about one mutex and one condition. */
#ifndef TEST_SIM_RANDOM_CALLS_H
#define TEST_SIM_RANDOM_CALLS_H

#include <stdint.h>

#define WORDS_MAX 64

struct call {
    const char *words[WORDS_MAX]; /* keys, then arguments */
    int keys, count;
    char room[WORDS_MAX][96];
};

void call_add(struct call *call, const char *format, ...) __attribute__((__format__(__printf__, 2, 3)));

/* Represents the server's clock at the beginning of a word of a call; call_say() inserts the clock. */
#define CALL_NOW "now"
#define CALL_ROOM 48
const char *call_say(const char *word, int64_t now_us, char room[CALL_ROOM]);

/* A word at random. */
#define ANY(...) \
    call_any_of((const char *const[]){ __VA_ARGS__ }, sizeof((const char *const[]){ __VA_ARGS__ }) / sizeof(char *))
const char *call_any_of(const char *const *words, unsigned count);

/* The keys: lock state queue waiter cond sleeper. */
extern const char *const call_keys[6];

/* Makes a random call of a random script.  Returns the script's name. */
const char *call_make(struct call *call, const char **ret_text);

#endif
