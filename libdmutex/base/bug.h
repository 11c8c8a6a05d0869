/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * DM_BUG(condition) aborts with a sentence if the condition is true.  It states what cannot happen, whatever a server
 * sends or an application calls.  Enabled by --enable-assertions and in sanitizer builds (-DDM_LOCK_CHECKS), like
 * dm_assert_held(); otherwise it costs nothing.
 */
#ifndef DM_BASE_BUG_H
#define DM_BASE_BUG_H

#ifdef DM_LOCK_CHECKS
#define DM_BUG(condition) ((condition) ? dm_bug_abort(#condition, __func__) : (void)0)
#else
#define DM_BUG(condition) ((void)sizeof((condition) ? 1 : 0)) /* compiled, not run */
#endif

/* Called only by DM_BUG(). */
__attribute__((noreturn)) void dm_bug_abort(const char *condition, const char *function);

#endif
