/* SPDX-License-Identifier: BSD-2-Clause */
#include "ready.h"

#include "module/base/own_lock.h"

static enum object_state get_ready(struct object *object, ready_make_fn make, int bits)
{
    const struct library *library = library_get();
    int cancel_state;

    library_enter();
    cancel_state = own_lock(&objects_making);
    if (object->state == OBJECT_NEW)
        __atomic_store_n(&object->state, make(object, library, bits), __ATOMIC_RELEASE);
    own_unlock(&objects_making, cancel_state);
    library_leave();
    return object->state;
}

struct object *ready_object(struct object *object, ready_make_fn make, int bits)
{
    enum object_state state;

    if (!object || library_is_inside())
        return NULL;
    state = __atomic_load_n(&object->state, __ATOMIC_ACQUIRE);
    if (state == OBJECT_NEW)
        state = get_ready(object, make, bits);
    return state == OBJECT_READY ? object : NULL;
}
