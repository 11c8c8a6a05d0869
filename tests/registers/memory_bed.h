/* SPDX-License-Identifier: BSD-2-Clause */
/* The store in memory, as the suite of drivers uses it. */
#ifndef TESTS_REGISTERS_MEMORY_BED_H
#define TESTS_REGISTERS_MEMORY_BED_H

#include "driver.h"
#include "memory.h"

static struct memory *memory;

static struct dm_reg_driver *open_driver(void *user, const struct dm_reg_client *client)
{
    (void)user;
    return memory_open(memory, client);
}

static void cut(void *user)
{
    (void)user;
    memory_cut(memory, NULL);
}

static void change_data(void *user)
{
    (void)user;
    memory_restart(memory, MEMORY_LOSES, 0);
}

static const struct driver_bed bed = { .name = "memory", .open = open_driver, .cut = cut, .change_data = change_data };

#endif
