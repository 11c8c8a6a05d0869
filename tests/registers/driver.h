/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * One suite for every driver of a register store: it tests the contract of registers/driver.h, and knows the driver by
 * that alone.  A test program fills a bed, and returns what driver_suite() returns:
 *
 *     const struct driver_bed bed = { .name = "postgres", .open = open_driver, .close = close_driver, .cut = cut };
 *     return driver_suite(&bed);
 *
 * All keys begin with a random word, so the suite may run on a store that others use.
 */
#ifndef TESTS_REGISTERS_DRIVER_H
#define TESTS_REGISTERS_DRIVER_H

#include "registers/driver.h"

struct driver_bed {
    const char *name;
    void *user;
    /* A driver as another process would have it; the suite calls listen() and want(). */
    struct dm_reg_driver *(*open)(void *user, const struct dm_reg_client *client);
    /* After the driver's end(); NULL: nothing is left to do. */
    void (*close)(void *user, struct dm_reg_driver *driver);

    /* NULL: the bed cannot do this, and the tests of it are left out. */
    void (*cut)(void *user);         /* breaks all connections; new ones succeed */
    void (*change_data)(void *user); /* from now on the store has other data, and so another identity */
};

/* Runs all tests, or those that match DRIVER_TEST in the environment.  Returns the number of failed tests. */
int driver_suite(const struct driver_bed *bed);

#endif
