/* SPDX-License-Identifier: BSD-2-Clause */
/* Support for tests of programs that use the library. */
#include "dmutex/testing.h"

#include <errno.h>

#include "api/local.h"
#include "api/object.h"
#include "base/error.h"
#include "base/log.h"
#include "process/calls/release.h"
#include "process/life/testserver.h"

static int start(bool is_postgres, dmutex_test_server_t **ret_server)
{
    struct dm_visit visit = dm_visit_begin();

    if (!ret_server)
        return dm_visit_end(visit, dm_fail(DM_FAIL_NULL_ARGUMENT, NULL));
    return dm_visit_end(visit, dm_testserver_start(is_postgres, ret_server));
}

int dmutex_test_server_start(dmutex_test_server_t **ret_server)
{
    return start(false, ret_server);
}

int dmutex_test_server_start_postgres(dmutex_test_server_t **ret_server)
{
    return start(true, ret_server);
}

/* NULL is allowed, as for free(): a teardown may run after a setup that failed. */
int dmutex_test_server_stop(dmutex_test_server_t *server)
{
    struct dm_visit visit = dm_visit_begin();

    return dm_visit_end(visit, server ? dm_testserver_stop(server) : 0);
}

const char *dmutex_test_server_url(const dmutex_test_server_t *server)
{
    return server ? dm_testserver_url(server) : "";
}

/*
 * The reaper carries out the order. A forked child may not give orders (EPERM): the conversation belongs to the process
 * that started the server.
 */
static int order(dmutex_test_server_t *server, enum dm_reaper_order order)
{
    struct dm_visit visit = dm_visit_begin();

    if (!server)
        return dm_visit_end(visit, dm_fail(DM_FAIL_NULL_ARGUMENT, NULL));
    return dm_visit_end(visit, dm_testserver_do(server, order));
}

int dmutex_test_server_kill(dmutex_test_server_t *server)
{
    return order(server, DM_REAPER_KILL);
}

int dmutex_test_server_restart(dmutex_test_server_t *server)
{
    return order(server, DM_REAPER_START);
}

int dmutex_test_server_pause(dmutex_test_server_t *server)
{
    return order(server, DM_REAPER_PAUSE);
}

int dmutex_test_server_resume(dmutex_test_server_t *server)
{
    return order(server, DM_REAPER_RESUME);
}

/*
 * A local mutex is refused before the object is read, because it has libc's mutex in the place of the name. Without a
 * runtime the process holds nothing, so the result is EPERM, and no runtime is started.
 */
int dmutex_test_abandon(dmutex_t *mutex)
{
    struct dm_visit visit = dm_visit_begin();
    struct dm_runtime *runtime = dm_runtime_peek();
    struct dm_target target;
    int result = dm_local_is(mutex) ? dm_fail(DM_FAIL_LOCAL, NULL) : dm_object_read(mutex, runtime, &target);

    if (!result)
        result = runtime ? dm_release_abandon(runtime, target.key) : dm_fail(DM_FAIL_NOT_OWNER, NULL);
    return dm_visit_end(visit, result);
}

/* The sentence goes to standard error, because cmocka reports only that a setup has failed. */
int dmutex_test_group_setup(void **state)
{
    dmutex_test_server_t *server;
    int error = state ? dmutex_test_server_start(&server) : dm_fail(DM_FAIL_NULL_ARGUMENT, NULL);

    if (!error)
        *state = server;
    else
        dm_log_alarm("dmutex_test_group_setup: %s", dm_error_sentence());
    return error;
}

/*
 * If a failed test did not reach its unlock, the teardown fails, but the next group can begin. Only holds of the
 * calling thread are abandoned; a hold of another thread keeps the server, and the result is EBUSY. The first error is
 * returned even if the second try succeeds, so that the missing unlock is noticed.
 */
int dmutex_test_group_teardown(void **state)
{
    dmutex_test_server_t *server = state ? *state : NULL;
    struct dm_runtime *runtime = dm_runtime_peek();
    int error = dmutex_test_server_stop(server), second = error;

    if (error == EBUSY && runtime) {
        dm_release_abandon_all(runtime);
        second = dmutex_test_server_stop(server);
    }
    if (!second && state)
        *state = NULL;
    return error;
}
