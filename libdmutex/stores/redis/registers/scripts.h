/* SPDX-License-Identifier: BSD-2-Clause */
/* The scripts on registers, as those of wire/scripts.h. */
#ifndef DM_REDIS_REGISTERS_SCRIPTS_H
#define DM_REDIS_REGISTERS_SCRIPTS_H

#include "stores/redis/wire/scripts.h"

DM_SCRIPT(register_epoch);     /* which data these are */
DM_SCRIPT(register_read);      /* reads a value, unless it is known */
DM_SCRIPT(register_swap);      /* compares and swaps */
DM_SCRIPT(register_swap_full); /* the same if the server's memory is full */

#endif
