/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Loads the module for the first URL of PostgreSQL, and opens the store on registers with its driver.  Once loaded the
 * module stays (-z nodelete).  Stores are opened under the lock of the process's start, for which fork() waits, so a
 * child never finds the loader's lists half changed.
 *
 * The caller loads it itself if its stack has room: it may be in a constructor that dlopen() runs, and then no other
 * thread can.
 */
#include <dlfcn.h>
#include <link.h>
#include <semaphore.h>
#include <stdio.h>
#include <string.h>
#include <sys/auxv.h>

#include "base/thread.h"
#include "config.h"
#include "registers/store.h"
#include "store/drivers.h"
#include "stores/postgres/open.h"

#define PATH_ROOM 1024 /* on the stack */

/* dlopen() takes 10 KiB, and a look-up of the user, for whom libpq has a file of services, about as much. */
#define STACK_NEEDED ((size_t)64 * 1024)

/*
 * The module is in a folder next to the library, wherever that was installed or copied.  If the library is linked into
 * the program, or was found by a relative path, we take the folder of the installation, and no other.
 */
static bool find_module(char ret_path[PATH_ROOM])
{
    struct link_map *library = NULL;
    Dl_info info;
    const char *path = "", *slash;
    int length;

    if (dladdr1(dm_postgres_folder, &info, (void **)&library, RTLD_DL_LINKMAP) && library)
        path = library->l_name;
    slash = strrchr(path, '/');
    if (path[0] == '/')
        length = snprintf(ret_path, PATH_ROOM, "%.*s/libdmutex/store-postgres.so", (int)(slash - path), path);
    else
        length = snprintf(ret_path, PATH_ROOM, "%s/store-postgres.so", dm_postgres_folder);
    return length < PATH_ROOM;
}

/* NULL with the reason.  A later try may succeed: what was missing may have been installed since. */
void *dm_postgres_load(const char *function, char ret_reason[DM_REASON_ROOM])
{
    char path[PATH_ROOM];
    void *module, *found;

    if (!find_module(path)) {
        snprintf(ret_reason, DM_REASON_ROOM,
                 "the module of PostgreSQL cannot be loaded: the path of libdmutex is too "
                 "long");
        return NULL;
    }
    module = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!module) {
        snprintf(ret_reason, DM_REASON_ROOM, "locks on PostgreSQL need a module, install libdmutex-postgres: %.230s",
                 dlerror());
        return NULL;
    }
    found = dlsym(module, function);
    if (!found)
        snprintf(ret_reason, DM_REASON_ROOM, "%.200s is no module of libdmutex: install libdmutex-postgres again",
                 path);
    return found;
}

struct making {
    const struct dm_url *url;
    const struct dm_reg_client *client;
    struct dm_reg_driver *driver; /* NULL with the reason */
    char *reason;
    sem_t is_done;
};

static void *make_driver(void *user)
{
    struct making *making = user;
    const struct dm_url *url = making->url;
    const struct dm_reg_place place = { url->database, url->prefix, url->connect_timeout_ms, url->command_timeout_ms };
    dm_reg_open_fn *open = (dm_reg_open_fn *)dm_postgres_load(DM_POSTGRES_OPEN, making->reason);

    making->driver = open ? open(PACKAGE_VERSION, &place, making->client, making->reason) : NULL;
    sem_post(&making->is_done);
    return NULL;
}

static struct dm_reg_driver *make(void *user, const struct dm_reg_client *client, char ret_reason[DM_REASON_ROOM])
{
    struct making making = { .url = user, .client = client, .reason = ret_reason };

    sem_init(&making.is_done, 0, 0);
    if (dm_thread_has_stack(STACK_NEEDED)) {
        dm_thread_allocate_first();
        make_driver(&making);
    } else if (dm_thread_start(make_driver, &making) == 0) {
        while (sem_wait(&making.is_done) < 0)
            continue;
    } else {
        ret_reason[0] = '\0';
    }
    sem_destroy(&making.is_done);
    return making.driver;
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
