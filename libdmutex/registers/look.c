/* SPDX-License-Identifier: BSD-2-Clause */
/* Reads for people, outside the protocol: any keys, all at once, and lists of keys.  Nothing is written. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/self.h"
#include "registers/store_parts.h"

struct dm_reg_look *dm_reg_look_new(int count)
{
    struct dm_reg_look *look = calloc(1, sizeof *look + (size_t)count * sizeof look->items[0]);

    if (look)
        look->count = count;
    return look;
}

void dm_reg_look_free(struct dm_reg_look *look)
{
    for (int i = 0; look && i < look->count; i++)
        free(look->items[i].value);
    if (look)
        free(look->keys);
    free(look);
}

/* Nothing is known of what had no answer. */
static void end_item(struct dm_reg_look *look)
{
    if (--look->left > 0)
        return;
    if (look->is_left)
        dm_reg_look_free(look);
    else if (look->asker)
        dm_self_wake(look->asker);
}

static void note_reason(struct dm_reg_look *look, bool is_refused, const char *reason)
{
    look->has_failed = true;
    look->is_refused = look->is_refused || is_refused;
    if (reason)
        snprintf(look->reason, sizeof look->reason, "%s", reason);
}

void dm_registers_look_replied(const struct dm_reg_request *request, const struct dm_reg_reply *reply)
{
    struct dm_reg_look *look = request->look;
    struct dm_reg_looked *item = &look->items[request->item];

    if (reply->outcome == DM_REG_DONE && !look->is_left) {
        item->value = reply->size ? malloc(reply->size) : NULL;
        if (reply->size && item->value)
            memcpy(item->value, reply->value, reply->size);
        item->is_read = !reply->size || item->value;
        item->size = reply->size;
        item->age_ms = reply->age_ms;
    }
    if (reply->outcome != DM_REG_DONE)
        note_reason(look, reply->outcome == DM_REG_REFUSED, reply->reason);
    else if (!item->is_read)
        note_reason(look, false, "out of memory");
    end_item(look);
}

void dm_registers_look_listed(struct dm_reg_look *look, const char *const *keys, int count, bool is_last,
                              const char *reason)
{
    if (count > 0 && !look->is_left)
        look->keys = calloc((size_t)count, sizeof look->keys[0]);
    if (count > 0 && look->keys) {
        for (int i = 0; i < count; i++)
            snprintf(look->keys[i], sizeof look->keys[i], "%s", keys[i]);
        look->key_count = count;
    }
    look->is_last = is_last;
    if (count < 0)
        note_reason(look, reason != NULL, reason);
    else if (count > 0 && !look->keys)
        note_reason(look, false, "out of memory");
    end_item(look);
}

/* ---- sending ----------------------------------------------------------------------------- */

/* Sends the read of one item.  What cannot be sent is answered at once. */
void dm_reg_look_read(struct dm_registers *registers, struct dm_reg_look *look, int index, const char *key)
{
    const struct dm_reg_request request = { .asked = DM_REG_ASKED_LOOK, .look = look, .item = index };
    const struct dm_reg_item item = { .key = key };

    if (dm_registers_send(registers, &request, &item))
        return;
    note_reason(look, false, NULL);
    end_item(look);
}

void dm_reg_look_list(struct dm_registers *registers, struct dm_reg_look *look, const char *prefix, const char *after,
                      int most)
{
    const struct dm_reg_request request = { .asked = DM_REG_ASKED_LOOK, .look = look };

    look->left = 1;
    if (dm_registers_send_list(registers, &request, prefix, after, most))
        return;
    note_reason(look, false, NULL);
    end_item(look);
}

/* ---- the end ----------------------------------------------------------------------------- */

/* No answer will come any more. */
void dm_registers_end_looks(struct dm_registers *registers)
{
    struct dm_reg_request **at = &registers->requests;

    while (*at) {
        struct dm_reg_request *request = *at;

        if (request->asked != DM_REG_ASKED_LOOK) {
            at = &request->next;
            continue;
        }
        *at = request->next;
        note_reason(request->look, false, NULL);
        end_item(request->look);
        free(request);
    }
    registers->last_request = at;
}
