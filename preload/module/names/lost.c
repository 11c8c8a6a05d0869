/* SPDX-License-Identifier: BSD-2-Clause */
#include "lost.h"

#include <string.h>

#include "base/own_signal.h"
#include "objects.h"
#include "shared/text.h"

/* Finds the rule for the name. If several objects have it, the newest one decides what happens. */
static struct object *find(const char *name)
{
    struct object *object = objects_first();

    while (object && (object->rule->is_condition || strcmp(object->name, name) != 0))
        object = object->next;
    return object;
}

void lost_tell(const char *name, uint64_t token, void *user)
{
    struct object *object = find(name);
    int number = object ? object->rule->on_lost : 0;

    (void)token;
    (void)user;
    if (object)
        __atomic_add_fetch(&object->counts.losses, 1, __ATOMIC_RELAXED);
    text_say("the lease of ", name, " has ended while it was held: others may have it from now on",
             number ? "" : " (OnLost= ends the program)", NULL);
    if (number)
        dm_own_signal(number);
}
