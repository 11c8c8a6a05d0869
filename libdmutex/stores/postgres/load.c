/* SPDX-License-Identifier: BSD-2-Clause */
/* Loads the module for the first URL of PostgreSQL, and opens the store on registers with its driver. */
#include <dlfcn.h>
#include <stdio.h>
#include <sys/auxv.h>

#include "base/module.h"
#include "config.h"
#include "registers/store.h"
#include "store/drivers.h"
#include "stores/postgres/open.h"

/* Once the module is loaded. Atomic: a thread that has loaded it, too, writes them again. */
static dm_reg_open_fn *open_driver;
static dm_pg_examine_fn *examine;

static bool take(void *handle, const char *path, char ret_reason[DM_REASON_ROOM])
{
    void *opens = dlsym(handle, DM_POSTGRES_OPEN), *examines = dlsym(handle, DM_POSTGRES_EXAMINE);

    if (!opens || !examines) {
        snprintf(ret_reason, DM_REASON_ROOM, "%.200s is no module of libdmutex: install libdmutex-postgres again",
                 path);
        return false;
    }
    __atomic_store_n(&open_driver, (dm_reg_open_fn *)opens, __ATOMIC_RELAXED);
    __atomic_store_n(&examine, (dm_pg_examine_fn *)examines, __ATOMIC_RELAXED);
    return true;
}

static struct dm_module module = {
    .file = "store-postgres.so",
    .folder = dm_postgres_folder,
    .name = "the module of PostgreSQL",
    .missing = "locks on PostgreSQL need a module, install libdmutex-postgres",
    .take = take,
};

/* Not for a program with more rights than its caller, which is refused. */
struct dm_module *dm_postgres_module(void)
{
    return getauxval(AT_SECURE) ? NULL : &module;
}

dm_pg_examine_fn *dm_postgres_examiner(char ret_reason[DM_REASON_ROOM])
{
    dm_module_load_here(&module);
    dm_module_reason(&module, ret_reason);
    return dm_module_is_loaded(&module) ? __atomic_load_n(&examine, __ATOMIC_RELAXED) : NULL;
}

static struct dm_reg_driver *make(void *user, const struct dm_reg_client *client, char ret_reason[DM_REASON_ROOM])
{
    const struct dm_url *url = user;
    const struct dm_reg_place place = { url->database, url->prefix, url->connect_timeout_ms, url->command_timeout_ms };

    return __atomic_load_n(&open_driver, __ATOMIC_RELAXED)(PACKAGE_VERSION, &place, client, ret_reason);
}

struct dm_store *dm_postgres_store_open(struct dm_url *url, const struct dm_ident *ident, const struct dm_host *host,
                                        char ret_reason[DM_REASON_ROOM])
{
    struct dm_store *store;

    if (getauxval(AT_SECURE)) {
        snprintf(ret_reason, DM_REASON_ROOM,
                 "a program with more rights than its caller, such as a set-user-ID one, cannot lock on PostgreSQL, "
                 "because libpq obeys variables and files of the caller: let a service with these rights lock instead");
        return NULL;
    }
    store = dm_registers_open(ident, host, make, url, ret_reason);
    if (store && !url->has_grace)
        dm_registers_trust_data(store);
    return store;
}
