/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The wall between the library and OpenSSL.  What tls.h declares is a module, libdmutex-tls.so, which the library loads
 * for its first TLS connection.  So a program without TLS neither loads OpenSSL nor pays for it.  Programs that are
 * linked to the library's parts contain the same functions.
 */
#ifndef DM_LINK_TLS_CALLS_H
#define DM_LINK_TLS_CALLS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/rank.h"
#include "link/tls.h"

/* The functions of tls.h. */
struct dm_tls_calls {
    const char *version; /* the package's: a library and a module of different versions do not fit */
    struct dm_tls *(*open)(int, const struct dm_tls_options *, int64_t, char[DM_REASON_ROOM]);
    void (*free)(struct dm_tls *);
    ssize_t (*send)(struct dm_tls *, const char *, size_t);
    ssize_t (*receive)(struct dm_tls *, char *, size_t);
    bool (*has_stack)(void);
    const char *(*reason)(const struct dm_tls *);
    bool (*holds)(const struct dm_tls *);
    bool (*is_cut)(const struct dm_tls *);
    short (*events)(const struct dm_tls *, bool);
    void (*fork_prepare)(void), (*fork_parent)(void), (*fork_child)(void);
};

extern const struct dm_tls_calls dm_tls_calls;

/* What the module calls in the library, because these functions have data that must exist only once. */
struct dm_tls_host {
    void (*mutex_lock)(struct dm_mutex *);
    void (*mutex_unlock)(struct dm_mutex *);
    void (*mutex_reset)(struct dm_mutex *);
    bool (*has_stack)(size_t);
#ifdef DM_LOCK_CHECKS
    void (*check_held)(enum dm_rank, const char *);
#endif
};

/* The function that the module exports. */
#define DM_TLS_MODULE_BEGIN "dm_tls_module_begin"
typedef const struct dm_tls_calls *dm_tls_module_begin_fn(const struct dm_tls_host *host);

/*
 * The functions; loads the module if necessary, and waits for that until the deadline (dm_clock_boot_ns()) at most.
 * Only for the library's own threads; no lock held.  NULL with the reason.
 */
const struct dm_tls_calls *dm_tls_load(int64_t deadline_ns, char ret_reason[DM_REASON_ROOM]);

/* As dm_module_load_here(). */
bool dm_tls_load_here(void);

/* Around fork(), after dm_module_fork_prepare(): as in tls.h, if there is a module. */
void dm_tls_load_fork_prepare(void);
void dm_tls_load_fork_parent(void);
void dm_tls_load_fork_child(void);

#endif
