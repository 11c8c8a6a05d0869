/* SPDX-License-Identifier: BSD-2-Clause */
#include "store.h"

const struct bench_store *const bench_stores[] = {
    &bench_redis,
#ifdef BENCH_POSTGRES
    &bench_postgres, &bench_postgres_async,
#endif
    &bench_etcd,     NULL,
};
