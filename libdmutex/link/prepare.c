/* SPDX-License-Identifier: BSD-2-Clause */
#include "link/prepare.h"

/* A handshake that has failed leaves the stream without TLS, and the caller closes the stream. */
void dm_prepare(struct dm_prepared *prepared, const struct dm_link_options *options)
{
    struct dm_address address = { .host = prepared->host, .port = prepared->port };

    if (prepared->task == DM_PREPARING_LOGIN)
        return;
    if (prepared->task == DM_PREPARING_HANDSHAKE)
        dm_stream_secure(&prepared->stream, &options->tls, prepared->deadline_ns, prepared->reason);
    else if (options->open)
        prepared->stream = dm_stream_of(options->open(options->open_user, true, prepared->reason));
    else
        prepared->found = dm_addresses_find(prepared->host[0] ? &address : &options->address, true,
                                            &prepared->addresses, prepared->reason);
}
