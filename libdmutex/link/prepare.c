/* SPDX-License-Identifier: BSD-2-Clause */
#include "link/prepare.h"

#include "base/descriptor.h"

static void open_by_hook(struct dm_prepared *prepared, const struct dm_link_options *options)
{
    int fd = options->open(options->open_user, true, prepared->reason);

    prepared->may_open_later = fd == DM_OPEN_LATER;
    prepared->stream = dm_stream_of(fd < 0 ? -1 : fd);
}

/* A failed handshake leaves the stream without TLS, and the caller closes it. */
void dm_prepare(struct dm_prepared *prepared, const struct dm_link_options *options)
{
    struct dm_address address = { .host = prepared->host, .port = prepared->port };

    if (prepared->task == DM_PREPARING_LOGIN)
        return;
    if (prepared->task == DM_PREPARING_HANDSHAKE)
        dm_stream_secure(&prepared->stream, &options->tls, prepared->deadline_ns, prepared->reason);
    else if (options->open)
        open_by_hook(prepared, options);
    else
        prepared->found = dm_addresses_find(prepared->host[0] ? &address : &options->address, true,
                                            &prepared->addresses, prepared->reason);
}
