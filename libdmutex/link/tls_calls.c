/* SPDX-License-Identifier: BSD-2-Clause */
#include "link/tls_calls.h"

#include "config.h"

const struct dm_tls_calls dm_tls_calls = {
    .version = PACKAGE_VERSION,
    .open = dm_tls_open,
    .free = dm_tls_free,
    .send = dm_tls_send,
    .receive = dm_tls_receive,
    .has_stack = dm_tls_has_stack,
    .reason = dm_tls_reason,
    .holds = dm_tls_holds,
    .is_cut = dm_tls_is_cut,
    .events = dm_tls_events,
    .fork_prepare = dm_tls_fork_prepare,
    .fork_parent = dm_tls_fork_parent,
    .fork_child = dm_tls_fork_child,
};
