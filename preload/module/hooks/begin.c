/* SPDX-License-Identifier: BSD-2-Clause */
/* The module's own beginning, and its part in the program's fork(). */
#include <pthread.h>

#include "module/base/gate.h"
#include "module/base/settings.h"
#include "module/names/library.h"
#include "module/names/lookup.h"
#include "module/names/modules.h"
#include "module/watch/matches.h"
#include "module/watch/observe.h"
#include "module/watch/report.h"

/* ---- fork() ------------------------------------------------------------------------------ */

static void before_fork(void)
{
    gate_before_fork();
    library_before_fork();
}

static void in_child(void)
{
    gate_in_child();
    library_in_child();
    modules_in_child();
    objects_in_child();
    observe_in_child();
    report_in_child();
}

/* ---- the module itself ------------------------------------------------------------------- */

__attribute__((constructor)) static void begin(void)
{
    lookup_begin();
    matches_begin();
    if (settings_get()->count > 0 || settings_get()->list_folder)
        pthread_atfork(before_fork, gate_after_fork, in_child);
}
