/* SPDX-License-Identifier: BSD-2-Clause */
/* Answers, messages and threads that wait for them, until the lock is given back. */
#include <stdio.h>
#include <stdlib.h>

#include "base/descriptor.h"
#include "base/self.h"
#include "registers/store_parts.h"

static void put_batch(struct dm_registers *registers, struct dm_reg_batch *batch)
{
    batch->next = NULL;
    *registers->last_batch = batch;
    registers->last_batch = &batch->next;
}

void dm_registers_answer(struct dm_registers *registers, struct dm_reg_batch *batch, int index,
                         const struct dm_answer *answer, const char *refusal)
{
    batch->answers[index] = *answer;
    if (refusal)
        snprintf(batch->refusal, sizeof batch->refusal, "%s", refusal);
    if (--batch->left == 0)
        put_batch(registers, batch);
}

void dm_registers_leave_unanswered(struct dm_registers *registers, struct dm_reg_batch *batch)
{
    batch->is_unanswered = true;
    if (--batch->left == 0)
        put_batch(registers, batch);
}

void dm_registers_tell(struct dm_registers *registers, const struct dm_message *message)
{
    struct dm_reg_news_item *item = malloc(sizeof *item);

    if (!item)
        return; /* a poll finds it */
    *item = (struct dm_reg_news_item){ .message = *message };
    *registers->last_news = item;
    registers->last_news = &item->next;
}

void dm_registers_wake_all(struct dm_registers *registers)
{
    dm_assert_held(DM_RANK_REGISTERS);
    for (struct dm_reg_sleeper *sleeper = registers->sleepers; sleeper; sleeper = sleeper->next)
        dm_self_wake(sleeper->self);
    if (registers->has_leader) /* it is no sleeper, and another thread may have taken what it polls for */
        dm_bell_ring(&registers->bell);
}
