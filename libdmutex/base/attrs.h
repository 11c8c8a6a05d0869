/* SPDX-License-Identifier: BSD-2-Clause */
/* Compiler attributes by the names used here. */
#ifndef DM_BASE_ATTRS_H
#define DM_BASE_ATTRS_H

#define DM_PRINTF(format, first) __attribute__((__format__(__printf__, format, first)))

/* For a function whose locals must be off the stack when its caller sleeps, where it may be cancelled. */
#define DM_OWN_FRAME __attribute__((__noinline__))

/*
 * gcc and clang announce sanitizers in different ways. Two places read DM_UNDER_TSAN: real.c, because the sanitizer
 * must see the locks, and self.c, because the sanitizer forgets a thread one pass early.
 */
#if defined(__SANITIZE_THREAD__)
#define DM_UNDER_TSAN 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define DM_UNDER_TSAN 1
#endif
#endif
#ifndef DM_UNDER_TSAN
#define DM_UNDER_TSAN 0
#endif

#define DM_COUNT(array) (sizeof(array) / sizeof((array)[0]))

#endif
