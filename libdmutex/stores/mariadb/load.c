/* SPDX-License-Identifier: BSD-2-Clause */
/* Loads the module for the first URL of MariaDB, and opens the store on registers with its driver. */
#include <dlfcn.h>
#include <stdio.h>
#include <sys/auxv.h>

#include "base/module.h"
#include "config.h"
#include "registers/store.h"
#include "store/drivers.h"
#include "stores/mariadb/open.h"

/* Once the module is loaded. Atomic: a thread that has loaded it, too, writes them again. */
static dm_maria_open_fn *open_driver;
static dm_maria_examine_fn *examine;

static bool take(void *handle, const char *path, char ret_reason[DM_REASON_ROOM])
{
    void *opens = dlsym(handle, DM_MARIADB_OPEN), *examines = dlsym(handle, DM_MARIADB_EXAMINE);

    if (!opens || !examines) {
        snprintf(ret_reason, DM_REASON_ROOM, "%.200s is no module of libdmutex: install libdmutex-mariadb again", path);
        return false;
    }
    __atomic_store_n(&open_driver, (dm_maria_open_fn *)opens, __ATOMIC_RELAXED);
    __atomic_store_n(&examine, (dm_maria_examine_fn *)examines, __ATOMIC_RELAXED);
    return true;
}

static struct dm_module module = {
    .file = "store-mariadb.so",
    .folder = dm_mariadb_folder,
    .name = "the module of MariaDB",
    .missing = "locks on MariaDB need a module, install libdmutex-mariadb",
    .take = take,
};

/* Not for a program with more rights than its caller, which is refused. */
struct dm_module *dm_mariadb_module(void)
{
    return getauxval(AT_SECURE) ? NULL : &module;
}

dm_maria_examine_fn *dm_mariadb_examiner(char ret_reason[DM_REASON_ROOM])
{
    dm_module_load_here(&module);
    dm_module_reason(&module, ret_reason);
    return dm_module_is_loaded(&module) ? __atomic_load_n(&examine, __ATOMIC_RELAXED) : NULL;
}

static struct dm_reg_driver *make(void *user, const struct dm_reg_client *client, char ret_reason[DM_REASON_ROOM])
{
    return __atomic_load_n(&open_driver, __ATOMIC_RELAXED)(PACKAGE_VERSION, user, client, ret_reason);
}

struct dm_store *dm_mariadb_store_open(struct dm_url *url, const struct dm_ident *ident, const struct dm_host *host,
                                       char ret_reason[DM_REASON_ROOM])
{
    struct dm_store *store;

    if (getauxval(AT_SECURE)) {
        snprintf(ret_reason, DM_REASON_ROOM,
                 "a program with more rights than its caller, such as a set-user-ID one, cannot lock on MariaDB, "
                 "because libmariadb obeys variables of the caller: let a service with these rights lock instead");
        return NULL;
    }
    store = dm_registers_open(ident, host, make, url, ret_reason);
    if (store && !url->has_grace)
        dm_registers_trust_data(store);
    return store;
}
