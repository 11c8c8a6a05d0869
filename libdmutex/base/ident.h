/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Identity: the process's uuid, the thread's serial, the label for people.
 *
 * Pids, thread ids and pthread_self() would not do: a forked child can have the same ones, and they are reused after a
 * death.  The uuid is 128 random bits, drawn again in a forked child; a serial is never given twice.
 */
#ifndef DM_BASE_IDENT_H
#define DM_BASE_IDENT_H

#include <stdint.h>

#define DM_UUID_LENGTH 32

#define DM_HOST_ROOM 65
#define DM_PROGRAM_ROOM 33

/* Room for "<pid> <host> <program>".  The text begins with a digit, so that no label looks like the mark of a hold. */
#define DM_LABEL_ROOM 128

struct dm_ident {
    char uuid[DM_UUID_LENGTH + 1];
    char label[DM_LABEL_ROOM];
};

/* Draws a new uuid and writes the label.  `host` as for dm_ident_host(). */
void dm_ident_draw(struct dm_ident *ret_ident, const char *host);

/* The name of this host without blanks: `given`, or the host's own name if that is "". */
void dm_ident_host(const char *given, char ret_host[DM_HOST_ROOM]);

/* The program's name without blanks. */
void dm_ident_program(char ret_program[DM_PROGRAM_ROOM]);

/* `count` random 64-bit words, none of them 0. */
void dm_ident_random(uint64_t *ret_words, unsigned count);

#endif
