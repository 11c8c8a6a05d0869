/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef DM_REDIS_WIRE_TLS_OF_H
#define DM_REDIS_WIRE_TLS_OF_H

#include "config/url.h"
#include "link/tls.h"

/* The TLS options of a link to a server of the URL; the texts are the URL's. */
struct dm_tls_options dm_redis_tls_of(const struct dm_url *url);

#endif
