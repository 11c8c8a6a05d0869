/* SPDX-License-Identifier: BSD-2-Clause */
/* The start of the module itself, and its part in the program's fork(). */
#include <pthread.h>
#include <unistd.h>

#include "module/base/gate.h"
#include "module/base/real.h"
#include "module/base/settings.h"
#include "module/names/library.h"
#include "module/names/lookup.h"
#include "module/names/modules.h"
#include "module/watch/matches.h"
#include "module/watch/observe.h"
#include "module/watch/report.h"
#include "shared/export.h"

/* ---- fork() ------------------------------------------------------------------------------ */

static void in_child(void)
{
    gate_in_child();
    library_in_child();
    modules_in_child();
    objects_in_child();
    observe_in_child();
    report_in_child();
}

static bool has_rules(void)
{
    return settings_get()->count > 0 || settings_get()->list_folder;
}

/*
 * libc's fork() lists its handlers before it calls the first one. If a thread opens libdmutex in between, this module's
 * handlers would not tell it about the fork().
 */
EXPORT pid_t fork(void)
{
    pid_t pid;

    if (!has_rules())
        return real_get()->fork();
    gate_before_fork();
    pid = real_get()->fork();
    if (pid != 0)
        gate_after_fork();
    return pid;
}

/* ---- the module itself ------------------------------------------------------------------- */

__attribute__((constructor)) static void begin(void)
{
    lookup_begin();
    matches_begin();
    if (has_rules())
        pthread_atfork(gate_before_fork, gate_after_fork, in_child);
}
