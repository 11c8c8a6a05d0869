/* SPDX-License-Identifier: BSD-2-Clause */
/* names.h, and one name with one step, on which most tests work.  Included once by each program of such tests. */
#ifndef UNIT_NAME_STEPS_H
#define UNIT_NAME_STEPS_H

#include "names.h"

static struct dm_reg_name_value name;
static struct dm_reg_step step;

static inline int empty_name(void **state)
{
    (void)state;
    dm_reg_writer_init(&names_writer);
    dm_reg_name_init(&name);
    return 0;
}

static inline int free_name(void **state)
{
    (void)state;
    dm_reg_name_free(&name);
    return 0;
}

/* A step of somebody on a name. */
static inline void on(const char *text, enum dm_reg_act act, const char *who)
{
    dm_reg_name_free(&name);
    set_name(&name, text);
    step = step_by(act, who);
}

/* Does it, twice. */
static inline void go(void)
{
    apply_twice(&name, &step);
}

#endif
