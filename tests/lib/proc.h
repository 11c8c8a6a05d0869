/* SPDX-License-Identifier: BSD-2-Clause */
/* What the kernel says of a process or of a thread, by its id. */
#ifndef TEST_PROC_H
#define TEST_PROC_H

#include <stdbool.h>
#include <sys/types.h>

/* The letter of its state: S asleep, T stopped, Z not reaped; X also if there is none. */
char proc_state(pid_t id);

/* Neither gone nor waiting to be reaped by who knows whom. */
bool proc_is_alive(pid_t id);

/* 0: there is none. */
pid_t proc_parent(pid_t id);

#endif
