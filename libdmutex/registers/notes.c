/* SPDX-License-Identifier: BSD-2-Clause */
/* FORCE: a note in the session of the holder that is to be broken, before its hold is broken. */
#include <stdlib.h>
#include <string.h>

#include "registers/store_parts.h"

/* A later holder is not meant: the hold that was to be broken has ended then. */
bool dm_reg_task_begin_note(struct dm_registers *registers, struct dm_reg_task *task,
                            const struct dm_reg_name_value *value)
{
    const struct dm_reg_entry *hold = value->entries;
    struct dm_reg_note *note;

    if (task->note || value->hold_count == 0)
        return true;
    note = calloc(1, sizeof *note);
    if (!note)
        return false;
    note->ref = (struct dm_reg_ref){ .session = value->sessions[hold->session].id,
                                     .thread = hold->thread,
                                     .attempt = hold->attempt };
    note->is_done =
        dm_registers_is_our_living(registers, &note->ref.session); /* a notice within the process is never lost */
    task->note = note;
    return true;
}

enum dm_reg_progress dm_reg_task_send_note(struct dm_registers *registers, struct dm_reg_task *task)
{
    struct dm_reg_note *note = task->note;
    struct dm_reg_request request = { .asked = DM_REG_ASKED_NOTE, .name = task->name, .is_swap = note->must_swap };
    char key[DM_REG_SESSION_KEY_ROOM];
    struct dm_reg_item item = { .key = key, .value = registers->bytes };

    if (dm_clock_boot_ns() < note->retry_ns) {
        dm_reg_errand_refused(&task->errand, note->retry_ns); /* reads the name again then */
        return DM_REG_TASK_WAITS;
    }
    dm_reg_session_key(&note->ref.session, key);
    if (note->must_swap) {
        item.version = note->value.version;
        note->value.version = dm_reg_writer_next(&registers->writer);
        item.size = dm_reg_session_encode(&note->value, registers->bytes);
        note->must_swap = false;
    }
    if (dm_registers_send(registers, &request, &item))
        task->name->under_way = task;
    return DM_REG_TASK_WAITS;
}

/* A session that is dead or absent has nobody to tell; one with too many notes is told by its notice alone. */
static void read_note(struct dm_reg_note *note, const struct dm_reg_reply *reply)
{
    const char *reason;

    note->is_done = true;
    if (reply->size == 0 || dm_reg_session_decode(reply->value, reply->size, &note->value, &reason) ||
        note->value.is_dead || note->value.broken_count == DM_REG_NOTES_MAX)
        return;
    for (int i = 0; i < note->value.broken_count; i++) {
        if (note->value.broken[i] == note->ref.attempt)
            return;
    }
    note->value.broken[note->value.broken_count++] = note->ref.attempt;
    note->must_swap = true;
    note->is_done = false;
}

void dm_registers_note_replied(struct dm_registers *registers, const struct dm_reg_request *request,
                               const struct dm_reg_reply *reply)
{
    struct dm_reg_task *task = request->name->under_way;

    if (!task)
        return;
    request->name->under_way = NULL;
    if (task->is_dropped) {
        dm_reg_task_finish_with(registers, task, DM_SAYS_NOTHING);
        return;
    }
    if (reply->outcome == DM_REG_DONE && request->is_swap)
        task->note->is_done = true;
    else if (reply->outcome == DM_REG_DONE)
        read_note(task->note, reply);
    else if (reply->outcome != DM_REG_CONFLICT) /* else it is read again at once */
        task->note->retry_ns = dm_clock_boot_ns() + DM_REG_REFUSED_NS;
}
