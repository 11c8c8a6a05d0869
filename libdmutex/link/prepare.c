/* SPDX-License-Identifier: BSD-2-Clause */
#include "link/prepare.h"

/* A handshake that has failed leaves the stream without TLS, and the caller closes the stream. */
void dm_prepare(struct dm_prepared *prepared, const struct dm_link_options *options, const struct dm_greeter *greeter)
{
    if (prepared->is_handshake) {
        dm_stream_secure(&prepared->stream, &options->tls, prepared->deadline_ns, prepared->reason);
        return;
    }
    if (greeter->prepare)
        greeter->prepare(greeter->user);
    if (options->open)
        prepared->stream = dm_stream_of(options->open(options->open_user, true, prepared->reason));
    else
        prepared->addresses = dm_addresses_find(&options->address, true, prepared->reason);
}
