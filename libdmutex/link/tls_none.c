/* SPDX-License-Identifier: BSD-2-Clause */
/* A build without OpenSSL.  The URL parser refuses TLS, so no connection asks for it. */
#include <stdio.h>

#include "link/tls_calls.h"

const struct dm_tls_calls *dm_tls_load(int64_t deadline_ns, char ret_reason[DM_REASON_ROOM])
{
    (void)deadline_ns;
    snprintf(ret_reason, DM_REASON_ROOM, "this libdmutex was built without TLS");
    return NULL;
}

bool dm_tls_load_here(void)
{
    return true;
}

void dm_tls_load_fork_prepare(void)
{
}

void dm_tls_load_fork_parent(void)
{
}

void dm_tls_load_fork_child(void)
{
}
