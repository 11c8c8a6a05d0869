/* SPDX-License-Identifier: BSD-2-Clause */
#include "stores/redis/wire/tls_of.h"

struct dm_tls_options dm_redis_tls_of(const struct dm_url *url)
{
    return (struct dm_tls_options){
        .is_on = url->has_tls,
        .is_verified = url->is_verified,
        .name = url->servername ? url->servername : url->host,
        .cacert = url->cacert,
        .cert = url->cert,
        .key = url->key,
    };
}
