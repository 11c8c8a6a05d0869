/* SPDX-License-Identifier: BSD-2-Clause */
/* Reads the answers of memcached, one after the other, from the bytes that have come. */
#ifndef DM_MEMCACHED_ANSWER_H
#define DM_MEMCACHED_ANSWER_H

#include <stddef.h>
#include <stdint.h>

#define DM_MEMCACHED_LINE_MOST 512

enum dm_memcached_code {
    DM_MEMCACHED_MORE,    /* the answer is not whole yet */
    DM_MEMCACHED_BAD,     /* this is no answer of memcached's */
    DM_MEMCACHED_VALUE,   /* VA */
    DM_MEMCACHED_DONE,    /* HD, STORED */
    DM_MEMCACHED_ABSENT,  /* EN, NF, NOT_FOUND */
    DM_MEMCACHED_OTHER,   /* EX, EXISTS, NOT_STORED: the key has another CAS number, or is there already */
    DM_MEMCACHED_REFUSED, /* ERROR, CLIENT_ERROR, SERVER_ERROR */
    DM_MEMCACHED_TEXT     /* STAT, END, VERSION */
};

struct dm_memcached_answer {
    enum dm_memcached_code code;
    size_t length; /* how many bytes it has */
    char line[DM_MEMCACHED_LINE_MOST];
    const char *value; /* VALUE: a place in the bytes */
    size_t size;
    uint64_t cas; /* of VALUE and HD; 0: not told */
};

/* Reads the answer at the beginning of the bytes.  A value may have `most` bytes. */
void dm_memcached_answer_read(const char *bytes, size_t size, size_t most, struct dm_memcached_answer *ret_answer);

#endif
