/* SPDX-License-Identifier: BSD-2-Clause */
/* For programs that are linked to the library's parts: TLS is linked in, and nothing is loaded. */
#include "link/tls_calls.h"

const struct dm_tls_calls *dm_tls_load(int64_t deadline_ns, char ret_reason[DM_REASON_ROOM])
{
    (void)deadline_ns;
    (void)ret_reason;
    return &dm_tls_calls;
}

bool dm_tls_load_here(void)
{
    return true;
}

void dm_tls_load_fork_prepare(void)
{
    dm_tls_fork_prepare();
}

void dm_tls_load_fork_parent(void)
{
    dm_tls_fork_parent();
}

void dm_tls_load_fork_child(void)
{
    dm_tls_fork_child();
}
