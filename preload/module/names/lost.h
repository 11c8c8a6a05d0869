/* SPDX-License-Identifier: BSD-2-Clause */
/* OnLost: what to do when the lease of a held mutex has ended. */
#ifndef DM_PRELOAD_LOST_H
#define DM_PRELOAD_LOST_H

#include <stdint.h>

/* For dmutex_setlost_np(); runs in the library's thread, before anybody else can own the name. */
void lost_tell(const char *name, uint64_t token, void *user);

#endif
