/* SPDX-License-Identifier: BSD-2-Clause */
/* The scripts on registers, as those of wire/scripts.h. */
#ifndef DM_REDIS_REGISTERS_SCRIPTS_H
#define DM_REDIS_REGISTERS_SCRIPTS_H

#define DM_SCRIPT(name)                          \
    extern const char dm_lua_##name[];           \
    extern const char dm_sha_##name[];           \
    extern const char dm_lua_##name##_cluster[]; \
    extern const char dm_sha_##name##_cluster[]

DM_SCRIPT(register_epoch);     /* which data these are */
DM_SCRIPT(register_read);      /* reads a value, unless it is known */
DM_SCRIPT(register_swap);      /* compares and swaps */
DM_SCRIPT(register_swap_full); /* the same if the server's memory is full */

#undef DM_SCRIPT

#endif
