/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The caller's objects, read and checked.  Every public function reads the object once, at its
 * beginning: after an unlock is sent, the memory may be anybody's.
 */
#ifndef DM_API_OBJECT_H
#define DM_API_OBJECT_H

#include "dmutex/types.h"
#include "runtime/acquire.h"

#define DM_MARK_DESTROYED 0x64656164u /* dmutex_t.dm_state after dmutex_destroy() */
#define DM_MARK_ATTR 0x61747472u      /* dmutexattr_t.dm_state after dmutexattr_init() */

/* Around every public function: errno and the thread's cancel state are kept. */
struct dm_visit {
    int kept_errno;
    int cancel_state;
};
struct dm_visit dm_visit_begin(void);
int dm_visit_end(struct dm_visit visit, int result);

/* 0 if a name can be one, else an errno value, noted.  `room`: where its NUL must be found. */
int dm_object_check_name(const char *name, size_t room);

/* Keeps a checked name in an object, or none (NULL): then the room is cleared. */
void dm_object_keep_name(uint8_t *ret_named, char ret_room[DMUTEX_PRIVATE_NAME_ROOM], const char *name);

/* Copies an object's name out, for the getname functions. */
int dm_object_copy_name(bool is_named, const char *name, char *buf, size_t size);

/* Gives an anonymous object its id, if it has none, and reads it: the same for all who share it. */
void dm_object_make_id(uint64_t id[2], uint64_t ret_id[2]);

/* 0 if the object can be used, else an errno value, noted. */
int dm_object_check(const dmutex_t *mutex);

/*
 * Reads the object.  runtime may be NULL; then *ret_target->key is "" for an object that has no
 * name without one (an anonymous one).  Gives an anonymous object its id, if it has none.
 */
int dm_object_read(dmutex_t *mutex, const struct dm_runtime *runtime, struct dm_target *ret_target);

#endif
