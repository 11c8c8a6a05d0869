/* SPDX-License-Identifier: BSD-2-Clause */
/* Opens a driver for what dmutex doctor says, and nothing else: is it ready, and if not, why? */
#ifndef DM_REGISTERS_TRIAL_H
#define DM_REGISTERS_TRIAL_H

#include <stdbool.h>

#include "registers/driver.h"

struct dm_reg_trial {
    bool is_ready, is_final; /* final: it never will be */
    char reason[DM_REG_REASON_ROOM];
    void (*on_warning)(void *user, const char *text);
    void *user;
};

/* The client to open the driver with; valid as long as the trial. */
struct dm_reg_client dm_reg_trial_client(struct dm_reg_trial *trial);

/* Blocks until the driver is ready, or never will be, or until this time.  Ends the driver; it is not freed. */
void dm_reg_trial_run(struct dm_reg_trial *trial, struct dm_reg_driver *driver, int64_t until_ns);

#endif
