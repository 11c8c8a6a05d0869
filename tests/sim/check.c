/* SPDX-License-Identifier: BSD-2-Clause */
#include "check_parts.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "liar.h"
#include "server.h"
#include "world.h"

/* A turn of the loop takes the lock some times for each claim, and waits at its end. */
#define LOCKS_AWAKE_MOST 5000

struct check check;

void check_soon(void)
{
    check.is_due = true;
}

/* ---- I11: the library's lock --------------------------------------------------------------- */

/* Called by the linker's --wrap: threads take turns here. */
void __real_dm_state_lock(void);
void __real_dm_state_unlock(void);
void __wrap_dm_state_lock(void);
void __wrap_dm_state_unlock(void);

/* A thread that is preempted in between has not waited. */
static void count_lock(struct thread *thread)
{
    thread->locks++;
    if (++thread->locks_awake == LOCKS_AWAKE_MOST)
        world_break("a thread spins: it took the state lock %d times without a wait", LOCKS_AWAKE_MOST);
}

void __wrap_dm_state_lock(void)
{
    thread_preempt();
    __real_dm_state_lock();
    check.locks++;
    if (thread_current())
        count_lock(thread_current());
}

void __wrap_dm_state_unlock(void)
{
    check.locks--;
    __real_dm_state_unlock();
}

void check_begin_look(void)
{
    __real_dm_state_lock();
}

void check_end_look(void)
{
    __real_dm_state_unlock();
}

void check_no_lock(const char *where)
{
    counters.checks++;
    if (check.locks)
        world_break("I11: %s waits with the state lock held", where);
}

/* ---- I1: certain holders ------------------------------------------------------------------- */

/* Returns the number of a name: names are "ng/x0", "ng/x1" ... */
static int name_of(const char *key)
{
    return key[0] == 'n' ? key[4] - '0' : -1;
}

static void check_believers(void)
{
    const struct dm_claim *believer[NAMES_MAX] = { NULL };
    int of_process[NAMES_MAX] = { 0 };

    for (struct process *process = processes(); process; process = process->next) {
        const struct dm_claim *claim = process->is_alive ? process->runtime.registry.claims : NULL;

        for (; claim; claim = claim->next) {
            int name = name_of(claim->name->key);

            if (!dm_hold_is_certain(&claim->hold, process_local_ns(process)))
                continue;
            if (believer[name])
                world_break("I1: p%d attempt %" PRIu64 " (token %" PRIu64 ") and p%d attempt %" PRIu64
                            " (token %" PRIu64 ") both own x%d",
                            of_process[name], believer[name]->hold.serial, believer[name]->hold.token, process->number,
                            claim->hold.serial, claim->hold.token, name);
            believer[name] = claim;
            of_process[name] = process->number;
        }
    }
}

void check_all(void)
{
    if (!check.is_due)
        return;
    check.is_due = false;
    counters.checks++;
    if (world_now() >= check.forgiven_until_ns)
        check_believers();
}

/* ---- kept leases ------------------------------------------------------------------------------ */

static void check_claim_kept(const struct process *process, const struct dm_claim *claim, int64_t more_ns)
{
    int64_t idle_ns;

    if (!claim->tenure || !dm_hold_is_idle(&claim->hold) || claim->name->line.first)
        return;
    idle_ns = process_local_ns(process) - claim->tenure->left_ns;
    if (idle_ns > claim->tenure->linger_ms * MS + more_ns)
        world_break("liveness: p%d has kept x%d for %" PRId64 " ms, %u were asked for", process->number,
                    name_of(claim->name->key), idle_ns / MS, claim->tenure->linger_ms);
}

void check_kept(int64_t lease_ns)
{
    for (struct process *process = processes(); process; process = process->next) {
        const struct dm_claim *claim = process->is_alive ? process->runtime.registry.claims : NULL;

        for (; claim; claim = claim->next)
            check_claim_kept(process, claim, lease_ns);
    }
}

/* ---- forgiven breaches ----------------------------------------------------------------------------- */

/* Begins the checks of a name again, from the data that the server has now. */
static void begin_again(struct known *known)
{
    char id[80];

    look_copy_id(known->hold, look_hold(known));
    for (int i = 0; i < look_count_waiters(known); i++) {
        look_waiter(known, i, id);
        look_note_arrival(id, 0);
    }
    known->is_hold_found = true;
    known->lost_token = server_now_token();
    if (known->lost_token < known->ever_token)
        known->lost_token = known->ever_token;
}

/* Ended entries live again, in the data of now or in those of a copy. */
static void note_revived(void)
{
    for (int i = 0; i < check.count; i++)
        check.names[i].has_revived = check.names[i].has_revived || look_has_orphans(&check.names[i]);
}

/* A quorum, and a group with sentinels, keep their promises when a server loses its data. */
void check_forgive(enum forgiven what)
{
    if (!server_is_judged())
        return;
    if (server_is_clock_behind())
        note_revived();
    if (what == CLOCK_SET_BACK)
        return;
    if (what == DATA_BACK || what == DATA_GRACED) {
        memset(check.over, 0, sizeof check.over);
        check.over_count = 0;
    }
    check.is_torn = check.is_torn || what == DATA_TORN;
    if (what != DATA_GRACED)
        check.forgiven_until_ns = world_now() + LEASE_MAX_MS * MS * 5 / 4;
    for (int i = 0; i < check.count && what != CLOCK_STEPPED; i++)
        begin_again(&check.names[i]);
}

/* ---- reports of threads -------------------------------------------------------------------------- */

void check_entered(int name, const struct dm_claim *claim)
{
    struct known *known = &check.names[name];
    char id[80];
    uint64_t hash;
    bool is_first; /* of the store's hold: the process's threads that follow get no death */

    if (!dm_hold_is_certain(&claim->hold, dm_clock_boot_ns()))
        return; /* certainty ended on the way out of the call; the end could as well come just after the call */
    counters.holds += !server_is_judged();
    if (claim->hold.is_token_soft)
        return;
    snprintf(id, sizeof id, "%s:%" PRIu64 ":%" PRIu64, process_current()->runtime.ident.uuid, claim->hold.thread,
             claim->hold.serial);
    hash = look_hash(id, strlen(id));
    if (dm_claim_token(claim) <= known->entered_token && claim->hold.token > known->lost_token &&
        world_now() >= check.forgiven_until_ns &&
        !liar_is_there()) /* who may move a token, and forget it: SECURITY.md */
        world_break("I2: x%d is entered with token %" PRIu64 " after %" PRIu64, name, dm_claim_token(claim),
                    known->entered_token);
    known->entered_token = dm_claim_token(claim);
    is_first = !claim->tenure || dm_tenure_number(claim->tenure) == 0;
    if (is_first && strcmp(known->hold, id) == 0 && claim->hold.is_robust && !known->is_hold_found &&
        claim->hold.is_owner_dead != (known->dead_hold == hash))
        world_break("I9: %s owns x%d and is told %s death", id, name, claim->hold.is_owner_dead ? "a" : "no");
    check_soon();
}

void check_granted(int name, const char *uuid, uint64_t thread, uint64_t attempt, bool is_dead)
{
    struct known *known = &check.names[name];

    snprintf(known->hold, sizeof known->hold, "%s:%" PRIu64 ":%" PRIu64, uuid, thread, attempt);
    known->dead_hold = is_dead ? look_hash(known->hold, strlen(known->hold)) : 0;
    known->is_hold_found = false;
    counters.holds++;
}

/* I9: a thread that has not returned from lock, and never will, was not inside. */
void check_told_death(const struct dm_claim *claim)
{
    const struct thread *thread = process_current()->threads;
    int name = atoi(strchr(claim->name->key, 'x') + 1);

    while (thread && thread->self.serial != claim->holder)
        thread = thread->next;
    if (!thread || !(thread->is_entering || thread->is_seen_inside || thread->levels[name] > 0))
        world_break("I9: p%d exits and tells of a death, and no thread had x%d", process_current()->number, name);
}

void check_misled(struct thread *thread, const struct dm_tenure *tenure)
{
    const struct dm_claim *claim = dm_claim_of(tenure);
    uint64_t could_go_out = thread->self.serial << DM_TENURE_SHIFT | DM_TENURE_OPEN;

    if (!claim || claim->hold.phase != DM_HELD)
        return;
    thread->is_seen_inside = tenure->word != could_go_out;
    if (thread->is_seen_inside)
        return;
    thread->misled_token = dm_claim_token(claim);
    thread->misled_name = name_of(claim->name->key);
}

/* A thread that could have gone out has nothing to lose. */
void check_lost(const char *name, uint64_t token)
{
    const struct process *process = process_current();

    for (const struct thread *thread = process->threads; thread; thread = thread->next) {
        if (thread->misled_token == token && thread->misled_name == atoi(strchr(name, 'x') + 1))
            world_break("I1: p%d is told that %s was lost, and its thread holds nothing", process->number, name);
    }
    world_note("lost %s %" PRIu64, name, token);
    counters.losses++;
}

/* ---- beginning and end ------------------------------------------------------------------------------ */

void check_begin(int names)
{
    static const struct dm_naming naming = { "d", "d:inbox:" };

    memset(&check, 0, sizeof check);
    check.count = names;
    for (int i = 0; i < names; i++) {
        char name[24];

        snprintf(name, sizeof name, "g/x%d", i);
        check.names[i].keys = dm_keys_new(&naming, name, false);
        name[2] = 'c';
        check.names[i].condition = dm_keys_new_condition(&naming, NULL, name, false);
        check.names[i].idle_since_ns = DM_NEVER;
    }
}

void check_end(void)
{
    for (int i = 0; i < check.count; i++) {
        free(check.names[i].keys);
        free(check.names[i].condition);
    }
}

bool check_is_torn(void)
{
    return check.is_torn;
}
