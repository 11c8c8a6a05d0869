/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The keys of names in a register store, and back: "n/" and the name of a mutex, "a/" and the id of an anonymous one,
 * "c/" and "d/" for conditions.  What comes after is the key of the process (store/store.h) without its letter; bytes
 * that no key may have are escaped, as %2B.
 */
#ifndef DM_REGISTERS_KEYS_H
#define DM_REGISTERS_KEYS_H

#include <stdbool.h>

#include "registers/driver.h"
#include "store/store.h"

/* Room for the process's key of an anonymous condition of the longest group. */
#define DM_REG_NAME_ROOM (2 * DM_MUTEX_KEY_ROOM + 64)

/* A key that would be too long with all its escapes is cut, and ends with two hashes of the whole. */
void dm_reg_key_write(const char *name, char ret_key[DM_REG_KEY_MAX + 1]);

/*
 * False: dm_reg_key_write() does not write this key for any name, or has cut it.  Of a cut key *ret_name is the
 * beginning of the name; it is "" if the key is not ours.
 */
bool dm_reg_key_read(const char *key, char ret_name[DM_REG_NAME_ROOM]);

#endif
