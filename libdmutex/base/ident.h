/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Identity: the process's uuid, the thread's serial, the label for people.
 *
 * Never the pid, the thread id or pthread_self(): a forked child has equal numbers, and a death frees the numbers for
 * new use.  The uuid is 128 random bits, drawn again in a forked child; a serial is given once and never again.
 */
#ifndef DM_BASE_IDENT_H
#define DM_BASE_IDENT_H

#include <stdint.h>

#define DM_UUID_LENGTH 32

#define DM_HOST_ROOM 65
#define DM_PROGRAM_ROOM 33

/* Room for "<pid> <host> <program>", which begins with a digit: no label looks like the mark of a hold. */
#define DM_LABEL_ROOM 128

struct dm_ident {
    char uuid[DM_UUID_LENGTH + 1];
    char label[DM_LABEL_ROOM];
};

/* Draws a new uuid and writes the label.  `host` as for dm_ident_host(). */
void dm_ident_draw(struct dm_ident *ret_ident, const char *host);

/* The name of this host, as one word: the given one, or the host's own if that is "". */
void dm_ident_host(const char *given, char ret_host[DM_HOST_ROOM]);

/* The program's name, as one word. */
void dm_ident_program(char ret_program[DM_PROGRAM_ROOM]);

/* `count` random 64-bit words, none of them 0. */
void dm_ident_random(uint64_t *ret_words, unsigned count);

#endif
