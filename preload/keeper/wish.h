/* SPDX-License-Identifier: BSD-2-Clause */
/* A caller's request for a distributed lock. */
#ifndef DM_PRELOAD_KEEPER_WISH_H
#define DM_PRELOAD_KEEPER_WISH_H

#include <stdbool.h>

#include "shared/kernel_lock.h"
#include "shared/rules.h"

/* The texts belong to the wish. Lease and linger are in ms, 0: the default. on_lost is a signal, 0: none. */
struct wish {
    bool is_try;
    bool is_again; /* the caller already had the kernel's lock */
    unsigned lease_ms, linger_ms;
    enum rule_on_down on_down;
    int on_lost;
    struct kernel_lock lock;
    const char *name, *path;
};

#endif
