/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Modules: parts of the library that it loads when they are first needed, from the folder libdmutex next to it.  Once
 * loaded a module stays (-z nodelete), because connections point into it.
 */
#ifndef DM_BASE_MODULE_H
#define DM_BASE_MODULE_H

#include <stdbool.h>

#include "base/clock.h"
#include "base/text.h"

struct dm_module {
    const char *file;
    const char *folder;  /* of the installation; used if the library's own path is not known */
    const char *name;    /* complaints begin with "<name> cannot be loaded: " */
    const char *missing; /* and this one ends with what the loader says */

    /* Checks the module and keeps what it needs of it, perhaps in several threads at once.  False with the reason. */
    bool (*take)(void *handle, const char *path, char ret_reason[DM_REASON_ROOM]);

    bool is_loaded; /* atomic; set once */

    /* Guarded in module.c. */
    struct dm_module *next; /* of those that a thread has begun to load */
    bool is_begun;
    unsigned under_way; /* threads that load it */
    unsigned failures;  /* loads that have failed, the last one with this reason */
    char reason[DM_REASON_ROOM];
};

bool dm_module_is_loaded(const struct dm_module *module);

/*
 * Loads the module in the calling thread, which may be in a constructor that dlopen() runs: then no other thread can.
 * Takes milliseconds, or as long as other threads are in dlopen(); no lock held.  False if the stack is too small.  A
 * load that has failed leaves the reason.
 */
bool dm_module_load_here(struct dm_module *module);

/* Why the last load failed; "" if none has. */
void dm_module_reason(const struct dm_module *module, char ret_reason[DM_REASON_ROOM]);

/*
 * Lets another thread load the module if necessary, and waits, but not endlessly; no lock held.  False with the reason;
 * *ret_is_late: because of the deadline.
 */
bool dm_module_load(struct dm_module *module, const struct dm_deadline *deadline, bool *ret_is_late,
                    char ret_reason[DM_REASON_ROOM]);

/*
 * Around fork(), before the other locks: a thread that loads holds none.  Waits for a load in progress, but not
 * forever: the thread that forks may be in a constructor for which the load waits.
 */
void dm_module_fork_prepare(void);
void dm_module_fork_parent(void);
void dm_module_fork_child(void);

#endif
