/* SPDX-License-Identifier: BSD-2-Clause */
/* The words of commands, from the bytes of a link. */
#ifndef SIM_WORDS_H
#define SIM_WORDS_H

#include "net.h"

#define WORDS_MAX 2048

/*
 * Calls `run` for each whole command that has come by the link, as long as the link is known to the server.  Words end
 * with a NUL, and are valid during the call.
 */
void words_run(struct link *link, void (*run)(struct link *link, const struct text *words, int count));

#endif
