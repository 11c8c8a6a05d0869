/* SPDX-License-Identifier: BSD-2-Clause */
/* One turn of the store: what has come, what follows from it, and what goes out without the lock. */
#include <stdlib.h>

#include "base/descriptor.h"
#include "base/minmax.h"
#include "base/thread.h"
#include "base/units.h"
#include "registers/store_parts.h"

/* After a pause as long as this the process was stopped, perhaps. */
#define PAUSE_NS (500 * DM_NS_PER_MS)

/* A driver that takes no reads is asked again after this time. */
#define RETRY_NS (10 * DM_NS_PER_MS)

/* ---- turns ------------------------------------------------------------------------------- */

bool dm_registers_may_work(const struct dm_registers *registers)
{
    size_t needed = registers->driver->ops->stack(registers->driver);

    return needed == 0 || dm_thread_has_stack(needed);
}

/* The answers that end releases and sessions are no answers to threads, so those who wait for the end are woken. */
static void wake_drains(struct dm_registers *registers)
{
    int owed = 2 * dm_registers_is_owing(registers) + dm_registers_has_sessions(registers);

    if (owed != registers->owed)
        dm_registers_wake_all(registers);
    registers->owed = owed;
}

/* Names need sessions, and sessions that are over change what names do: so sessions come once more, after both. */
void dm_registers_run(struct dm_registers *registers)
{
    int64_t due_ns, now_ns = dm_clock_boot_ns();

    dm_assert_held(DM_RANK_REGISTERS);
    if (registers->is_ended)
        return;
    if (!dm_registers_may_work(registers)) {
        registers->due_ns = 0;
        return;
    }
    if (now_ns - registers->ran_ns > PAUSE_NS)
        registers->ready_ns = now_ns;
    registers->ran_ns = now_ns;
    dm_registers_run_names(registers);
    dm_registers_run_sessions(registers);
    dm_registers_tell_names(registers);
    due_ns = dm_registers_run_names(registers);
    due_ns = dm_min64(due_ns, dm_registers_run_sessions(registers));
    if (dm_registers_tell_names(registers))
        due_ns = 0;
    dm_registers_renew_all(registers);
    due_ns = dm_min64(due_ns, dm_registers_run_sweep(registers));
    due_ns = dm_min64(due_ns, dm_registers_run_rest(registers));
    dm_registers_flush(registers);
    if (registers->has_failed)
        due_ns = dm_min64(due_ns, now_ns + RETRY_NS);
    dm_registers_answer_failed(registers);
    if (registers->drains)
        wake_drains(registers);
    registers->due_ns = due_ns;
}

/*
 * A request goes out when it is made, so nothing is left for a second turn: the answer comes later.  What is reserved
 * is never kept beyond one turn: others wait for it.
 */
void dm_registers_work(struct dm_registers *registers)
{
    const struct dm_reg_driver_ops *ops = registers->driver->ops;
    bool may_turn = !registers->is_ended && dm_registers_may_work(registers);

    dm_assert_held(DM_RANK_REGISTERS);
    if (may_turn)
        ops->turn(registers->driver);
    dm_registers_run(registers);
    if (may_turn && ops->let_go)
        ops->let_go(registers->driver);
}

/* ---- what there is to wait for ------------------------------------------------------------- */

bool dm_registers_has_news(const struct dm_registers *registers)
{
    return registers->batches || registers->news || registers->tells_ready || registers->tells_inbox;
}

int64_t dm_registers_due_ns(const struct dm_registers *registers)
{
    return dm_registers_has_news(registers) ? 0 : registers->due_ns;
}

/* A number made of what there is to wait for now. */
uint64_t dm_registers_sum(const struct dm_watch *watch)
{
    uint64_t sum = (uint64_t)watch->count;

    for (int i = 0; i < watch->count; i++)
        sum = (sum ^ (uint64_t)(uint32_t)watch->polled[i].fd << 16 ^ (uint16_t)watch->polled[i].events) *
              UINT64_C(0x100000001b3);
    return sum;
}

uint64_t dm_registers_probe(struct dm_registers *registers)
{
    dm_watch_clear(&registers->probe);
    if (!registers->is_ended)
        registers->driver->ops->watch(registers->driver, &registers->probe);
    dm_watch_until(&registers->probe, dm_registers_due_ns(registers));
    return dm_registers_sum(&registers->probe);
}

/*
 * A leader that waits for other things than there are is woken, and looks again.  The loop thread is told; while it
 * leaves the descriptors to leaders, it knows none.
 */
bool dm_registers_has_changed(struct dm_registers *registers)
{
    uint64_t sum = dm_registers_probe(registers);

    dm_assert_held(DM_RANK_REGISTERS);
    if (registers->has_leader && (registers->led_sum != sum || registers->probe.due_ns < registers->led.due_ns))
        dm_bell_ring(&registers->bell);
    if (registers->has_leader || registers->is_left_to_leader)
        return dm_registers_due_ns(registers) < registers->loop_due_ns;
    return registers->loop_sum != sum || registers->probe.due_ns < registers->loop_due_ns;
}

/* An ended store keeps no descriptor, once nobody polls it. */
void dm_registers_close_bell(struct dm_registers *registers)
{
    dm_assert_held(DM_RANK_REGISTERS);
    if (!registers->is_ended || registers->has_leader)
        return;
    dm_bell_close(registers->bell);
    registers->bell = DM_BELL_GONE;
}

/* ---- delivery ------------------------------------------------------------------------------ */

static void deliver_batch(struct dm_reg_batch *batch)
{
    batch->done(batch->user, batch->is_unanswered ? NULL : batch->answers, batch->count,
                batch->refusal[0] ? batch->refusal : NULL);
    free(batch);
}

static bool take_flag(bool *flag)
{
    bool was = *flag;

    *flag = false;
    return was;
}

/* The order matters: a process learns that the way is open before it hears anything by it. */
void dm_registers_deliver(struct dm_registers *registers)
{
    const struct dm_host *host = &registers->host;
    struct dm_reg_batch *batches;
    struct dm_reg_news_item *news;
    bool is_ready, is_inbox, is_change;

    dm_mutex_lock(&registers->lock);
    batches = registers->batches;
    registers->batches = NULL;
    registers->last_batch = &registers->batches;
    news = registers->news;
    registers->news = NULL;
    registers->last_news = &registers->news;
    is_ready = take_flag(&registers->tells_ready);
    is_inbox = take_flag(&registers->tells_inbox);
    is_change = take_flag(&registers->tells_change) || dm_registers_has_changed(registers);
    dm_mutex_unlock(&registers->lock);
    if (is_ready)
        host->on_ready(host->user);
    if (is_inbox)
        host->on_inbox(host->user);
    while (batches) {
        struct dm_reg_batch *batch = batches;

        batches = batch->next;
        deliver_batch(batch);
    }
    while (news) {
        struct dm_reg_news_item *item = news;

        news = item->next;
        host->on_message(host->user, &item->message);
        free(item);
    }
    if (is_change)
        host->on_change(host->user);
}
