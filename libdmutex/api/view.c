/* SPDX-License-Identifier: BSD-2-Clause */
#include "api/view.h"

#include <errno.h>
#include <stdio.h>

#include "api/object.h"
#include "base/rank.h"
#include "process/claims/steps.h"
#include "process/life/exit.h"
#include "process/life/runtime.h"
#include "store/verdict.h"

/* The claim that waits in the store's queue; each line of threads has one.  State lock held. */
static struct dm_claim *find_waiter(struct dm_name *name)
{
    struct dm_claim *claim = name ? name->claims : NULL;

    dm_assert_held(DM_RANK_STATE);
    while (claim && claim->hold.phase != DM_QUEUED)
        claim = claim->next_of_name;
    return claim;
}

/* The record is pinned during the question, because the waiting thread may give up. */
static int ask_for_waiter(struct dm_runtime *runtime, const char *key, struct dm_info *ret_info)
{
    struct dm_deadline deadline = dm_runtime_call_deadline(runtime);
    char reason[DM_REASON_ROOM] = "";
    enum dm_verdict verdict;
    struct dm_claim *claim;
    struct dm_name *name;
    struct dm_question question;
    union dm_more more;

    dm_state_lock();
    name = dm_registry_find(&runtime->registry, key);
    claim = find_waiter(name);
    if (claim) {
        dm_registry_pin(name);
        question = dm_step_question(claim, DM_OP_INFO, (struct dm_request){ 0 });
        question.ret_more = &more;
    }
    dm_state_unlock();
    if (!claim)
        return ESRCH;
    verdict = dm_store_ask(runtime->store, &question, &deadline, reason).verdict;
    dm_state_lock();
    dm_registry_unpin(&runtime->registry, name);
    dm_state_unlock();
    if (verdict != DM_SAYS_DONE)
        return dm_verdict_fail(runtime->store, verdict, reason);
    *ret_info = more.info;
    return 0;
}

int dm_view_wait(const char *name, struct dm_info *ret_info)
{
    struct dm_visit visit = dm_visit_begin();
    struct dm_runtime *runtime = dm_runtime_peek();
    char key[DM_MUTEX_KEY_ROOM];

    snprintf(key, sizeof key, "n%s", name);
    return dm_visit_end(visit, runtime ? ask_for_waiter(runtime, key, ret_info) : ESRCH);
}

/*
 * One call of the store's operation, repeated while the server is not ready.  A repeated call reports names again, from
 * the same cursor on.
 */
static int tell(struct dm_runtime *runtime, struct dm_view *view)
{
    struct dm_deadline deadline = dm_runtime_call_deadline(runtime);
    char reason[DM_REASON_ROOM] = "";
    enum dm_verdict verdict;

    do
        verdict = dm_store_view(runtime->store, view, &deadline, reason);
    while (verdict == DM_SAYS_NOTHING && dm_runtime_pause(&deadline));
    return verdict == DM_SAYS_DONE ? 0 : dm_verdict_fail(runtime->store, verdict, reason);
}

/* All calls of a view; that of one name has one. */
static int tell_all(struct dm_view *view)
{
    struct dm_visit visit = dm_visit_begin();
    struct dm_runtime *runtime;
    int error = dm_runtime_get(NULL, &runtime);

    do
        error = error ? error : tell(runtime, view);
    while (!error && view->cursor != 0);
    if (view->row)
        view->free_row(view->row);
    return dm_visit_end(visit, error);
}

int dm_view_one(const char *key, int waiters, dm_seen_fn handler, void *user)
{
    return tell_all(&(struct dm_view){ .key = key, .waiters = waiters, .handler = handler, .user = user });
}

int dm_view_all(const char *group, int waiters, dm_seen_fn handler, void *user)
{
    return tell_all(&(struct dm_view){ .group = group, .waiters = waiters, .handler = handler, .user = user });
}

bool dm_view_is_reachable(void)
{
    const struct dm_runtime *runtime = dm_runtime_peek();

    return runtime && dm_store_is_able(runtime->store, NULL, DM_ASKS);
}

bool dm_view_is_denied(void)
{
    const struct dm_runtime *runtime = dm_runtime_peek();

    return runtime && dm_store_is_denied(runtime->store);
}

void dm_view_leave(void)
{
    dm_exit_process(dm_runtime_peek());
}
