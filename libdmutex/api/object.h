/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The caller's objects, read and checked.  Every public function copies the object once, at the beginning, checks the
 * copy, and uses the copy only: the memory may be shared with a process that changes the object meanwhile, and after an
 * unlock is sent the memory may belong to anybody.  Two places of an object are written and read in place, by atomic
 * steps: the id, and the binding of an anonymous condition.
 */
#ifndef DM_API_OBJECT_H
#define DM_API_OBJECT_H

#include "dmutex/types.h"
#include "process/calls/acquire.h"

#define DM_MARK_DESTROYED 0x64656164u /* dmutex_t.dm_state after dmutex_destroy() */
#define DM_NAMED_DESTROYED 255        /* dmutex_t.dm_named of a destroyed local mutex: not a mutex any more */
#define DM_MARK_ATTR 0x61747472u      /* dmutexattr_t.dm_state after dmutexattr_init() */

/* Around every public function: errno and the thread's cancel state are kept. */
struct dm_visit {
    int kept_errno;
    int cancel_state;
};
struct dm_visit dm_visit_begin(void);
int dm_visit_end(struct dm_visit visit, int result);

/* 0 if the text can be a name, else an errno value, noted.  `room`: where the NUL must be found. */
int dm_object_check_name(const char *name, size_t room);

/* Keeps a checked name in an object, or none (NULL): then the room is cleared. */
void dm_object_keep_name(uint8_t *ret_named, char *ret_room, size_t room, const char *name);

/* Copies an object's name out, for the getname functions. */
int dm_object_copy_name(bool is_named, const char *name, char *buf, size_t size);

/*
 * Gives an anonymous object an id, if there is none, and reads the id: the same for all processes that share the
 * object.
 */
void dm_object_make_id(uint64_t id[2], uint64_t ret_id[2]);

/* Copies an object of 256 bytes, each byte once, also while others write. */
void dm_object_copy(const void *object, void *ret_copy);

/* Checks the automatic name of an object that has one, before the object is copied.  0, or EINVAL, noted. */
int dm_object_settle_mutex(const dmutex_t *mutex);
int dm_object_settle_cond(const dcond_t *cond);

/* Copies a mutex and checks the copy.  0 if it can be used, else an errno value, noted. */
int dm_object_take(const dmutex_t *mutex, dmutex_t *ret_copy);

/* The same for a mutex of the server; EINVAL for a local mutex. */
int dm_object_take_shared(const dmutex_t *mutex, dmutex_t *ret_copy);

/*
 * Reads a mutex of the server.  runtime may be NULL; then *ret_target->key is "" for an object that has no name without
 * a runtime (an anonymous object).  Gives an anonymous object an id, if there is none.
 */
int dm_object_read(dmutex_t *mutex, const struct dm_runtime *runtime, struct dm_target *ret_target);

/* Reads a mutex of the server and starts the runtime. */
int dm_object_open(dmutex_t *mutex, struct dm_runtime **ret_runtime, struct dm_target *ret_target);

#endif
