/* SPDX-License-Identifier: BSD-2-Clause */
/* Random numbers for repeated tests: the same numbers in every run, and more rounds under `make check-long`. */
#ifndef TESTS_UNIT_RANDOM_H
#define TESTS_UNIT_RANDOM_H

#include <stdint.h>
#include <stdlib.h>

static uint64_t random_state = UINT64_C(0x9e3779b97f4a7c15);

static inline uint64_t random_word(void)
{
    random_state ^= random_state << 13;
    random_state ^= random_state >> 7;
    random_state ^= random_state << 17;
    return random_state;
}

/* 0 .. limit-1 */
static inline unsigned random_below(unsigned limit)
{
    return (unsigned)((random_word() >> 16) % limit);
}

/* Writes random bytes without `not_this`; `to` also has room for a NUL. */
static inline void random_bytes(char *to, unsigned length, char not_this)
{
    for (unsigned i = 0; i < length; i++) {
        do
            to[i] = (char)random_word();
        while (to[i] == not_this);
    }
    to[length] = '\0';
}

/* Returns `usual` rounds, or ten times as many under `make check-long`. */
static inline int rounds(int usual)
{
    const char *is_long = getenv("DMUTEX_TEST_LONG");

    return is_long && *is_long ? usual * 10 : usual;
}

#endif
