/* SPDX-License-Identifier: BSD-2-Clause */
/* The request of a caller for a distributed lock. */
#ifndef DM_PRELOAD_KEEPER_WISH_H
#define DM_PRELOAD_KEEPER_WISH_H

#include <stdbool.h>

#include "shared/kernel_lock.h"
#include "shared/rules.h"

/* The texts belong to the wish. Lease and linger are in ms, 0: the default; on_lost is a signal's number, 0: none. */
struct wish {
    bool is_try;
    bool is_again; /* the caller had the kernel's lock before */
    unsigned lease_ms, linger_ms;
    enum rule_on_down on_down;
    int on_lost;
    struct kernel_lock lock;
    const char *name, *path;
};

#endif
