/* SPDX-License-Identifier: BSD-2-Clause */
/* Messages: to the application's callback, and to where DMUTEX_LOG says.  Silent by default. */
#ifndef DM_BASE_LOG_H
#define DM_BASE_LOG_H

#include <stdbool.h>

#include "base/attrs.h"
#include "dmutex/error.h"

void dm_log_error(const char *format, ...) DM_PRINTF(1, 2);
/* An error that would go unseen: to standard error, if neither a callback nor DMUTEX_LOG takes the message. */
void dm_log_alarm(const char *format, ...) DM_PRINTF(1, 2);
void dm_log_warn(const char *format, ...) DM_PRINTF(1, 2);
void dm_log_info(const char *format, ...) DM_PRINTF(1, 2);
void dm_log_debug(const char *format, ...) DM_PRINTF(1, 2);

/* True if a line of this level would reach a reader. */
bool dm_log_is_heard(int level);

/*
 * The application's callback runs outside all locks of ours.  So a message that is logged with a lock held is kept, and
 * handed over by the end of the call (dm_visit_end()) or by the loop thread, which dm_log_on_kept() wakes.
 *
 * dm_log_deliver() does nothing with a lock held: a signal handler may have interrupted a section.
 */
void dm_log_deliver(void);
bool dm_log_has_kept(void);
void dm_log_on_kept(void (*kept)(void));

/* The application's callback; NULL for none. */
void dm_log_set(dmutex_log_fn log, void *user);

/*
 * Where messages go if DMUTEX_LOG does not say: `value` is as in DMUTEX_LOG, and `from` names its source in messages.
 * The first call counts, and later ones do nothing.  A file that this user may not write is no log.
 */
void dm_log_set_default(const char *value, const char *from);

/* Around fork(): the parent holds the log's lock across fork(), so the child finds the settings whole. */
void dm_log_fork_prepare(void);
void dm_log_fork_parent(void);
void dm_log_fork_child(void);

#endif
