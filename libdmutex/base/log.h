/* SPDX-License-Identifier: BSD-2-Clause */
/* Log messages, for the application's callback and the destination named by DMUTEX_LOG.  Silent by default. */
#ifndef DM_BASE_LOG_H
#define DM_BASE_LOG_H

#include <stdbool.h>

#include "base/attrs.h"
#include "dmutex/error.h"

void dm_log_error(const char *format, ...) DM_PRINTF(1, 2);
/* An error that must not go unseen: written to standard error if neither a callback nor DMUTEX_LOG takes it. */
void dm_log_alarm(const char *format, ...) DM_PRINTF(1, 2);
void dm_log_warn(const char *format, ...) DM_PRINTF(1, 2);
void dm_log_info(const char *format, ...) DM_PRINTF(1, 2);
void dm_log_debug(const char *format, ...) DM_PRINTF(1, 2);

/* True if a message of this level would be passed on or written. */
bool dm_log_is_heard(int level);

/*
 * The application's callback is never called with one of our locks held.  So a message that is logged under a lock is
 * kept, and delivered at the end of the call (dm_visit_end()) or by the loop thread.  The function that
 * dm_log_on_kept() sets is called for each kept message, and wakes that thread.
 *
 * dm_log_deliver() does nothing if the thread holds a lock: it may run in a signal handler that has interrupted a
 * section.
 */
void dm_log_deliver(void);
bool dm_log_has_kept(void);
void dm_log_on_kept(void (*kept)(void));

/* The application's callback; NULL for none. */
void dm_log_set(dmutex_log_fn log, void *user);

/*
 * Sets where messages go if DMUTEX_LOG is not set: `value` is as in DMUTEX_LOG, and `from` names its source in
 * messages.  Only the first call has an effect.  A file that this user may not write is not used.
 */
void dm_log_set_default(const char *value, const char *from);

/* The parent holds the log's lock across fork(), so that the settings are consistent in the child. */
void dm_log_fork_prepare(void);
void dm_log_fork_parent(void);
void dm_log_fork_child(void);

#endif
