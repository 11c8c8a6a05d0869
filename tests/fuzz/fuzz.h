/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A fuzzer: one function that takes any bytes, and aborts when something is wrong. libFuzzer drives the fuzzer with
 * clang (`make fuzz`), and driver.c drives the fuzzer everywhere, by changing the seeds at random.
 */
#ifndef TEST_FUZZ_H
#define TEST_FUZZ_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#define FUZZ_INPUT_MAX 1024

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length);

struct fuzzer {
    const char *name;
    const char *const *seeds;  /* correct inputs; the last: NULL */
    const char *const *words;  /* words of such inputs; none: the inputs are not texts */
    unsigned long usual, many; /* executions in `make check` and `make check-long` */
};

extern const struct fuzzer fuzzer;

/* A condition that must be true of any input. */
#define must(condition)                                                             \
    do {                                                                            \
        if (!(condition)) {                                                         \
            fprintf(stderr, "%s:%d: not so: %s\n", __FILE__, __LINE__, #condition); \
            abort();                                                                \
        }                                                                           \
    } while (0)

/* The bytes as a text, up to the first NUL; valid until the next call. */
const char *fuzz_text(const uint8_t *bytes, size_t length);

#endif
