/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Reads and checks the caller's objects.  Every public function copies the object once, at the beginning, checks the
 * copy, and uses only the copy: another process that shares the memory may change the object at any time, and once an
 * unlock is sent the memory may be reused.  Two parts of an object are read and written in place, atomically: the id,
 * and the binding of an anonymous condition.
 */
#ifndef DM_API_OBJECT_H
#define DM_API_OBJECT_H

#include "dmutex/types.h"
#include "process/calls/acquire.h"

#define DM_MARK_DESTROYED 0x64656164u /* dmutex_t.dm_state after dmutex_destroy() */
#define DM_NAMED_DESTROYED 255        /* dmutex_t.dm_named of a destroyed local mutex: no longer a mutex */
#define DM_MARK_ATTR 0x61747472u      /* dmutexattr_t.dm_state after dmutexattr_init() */

/* Around every public function: preserves errno and the thread's cancellation state. */
struct dm_visit {
    int kept_errno;
    int cancel_state;
};
struct dm_visit dm_visit_begin(void);
int dm_visit_end(struct dm_visit visit, int result);

/* 0 if the text can be a name, otherwise an errno value, recorded.  `room`: within how many bytes the NUL must be. */
int dm_object_check_name(const char *name, size_t room);

/* Stores a checked name in an object.  NULL: none, and clears the room. */
void dm_object_keep_name(uint8_t *ret_named, char *ret_room, size_t room, const char *name);

/* Copies an object's name for the getname functions. */
int dm_object_copy_name(bool is_named, const char *name, char *buf, size_t size);

/*
 * Reads the id of an anonymous object, after giving it one if it has none: the same for all processes that share the
 * object.
 */
void dm_object_make_id(uint64_t id[2], uint64_t ret_id[2]);

/* Copies an object of 256 bytes, reading each byte once; others may write it at the same time. */
void dm_object_copy(const void *object, void *ret_copy);

/* Checks the automatic name of an object that has one; called before the object is copied. 0, or EINVAL, recorded. */
int dm_object_settle_mutex(const dmutex_t *mutex);
int dm_object_settle_cond(const dcond_t *cond);

/* Copies a mutex and checks the copy. 0 if it can be used, otherwise an errno value, recorded. */
int dm_object_take(const dmutex_t *mutex, dmutex_t *ret_copy);

/* The same for a mutex of the server; EINVAL for a local mutex. */
int dm_object_take_shared(const dmutex_t *mutex, dmutex_t *ret_copy);

/*
 * Reads a mutex of the server.  Gives an anonymous one an id, if it has none. runtime may be NULL; then an anonymous
 * mutex gets no id, and *ret_target->key is "".
 */
int dm_object_read(dmutex_t *mutex, const struct dm_runtime *runtime, struct dm_target *ret_target);

/* Reads a mutex of the server, and starts the runtime if there is none, as dm_runtime_get() says. */
int dm_object_open(dmutex_t *mutex, const struct dm_deadline *deadline, struct dm_runtime **ret_runtime,
                   struct dm_target *ret_target);

#endif
