/* SPDX-License-Identifier: BSD-2-Clause */
/* System calls that the kernel refuses to a process (seccomp). Needs no privileges. */
#ifndef TEST_FILTER_H
#define TEST_FILTER_H

#include <linux/filter.h>
#include <stdbool.h>

/* From now on this system call fails with this error, in the calling thread and in what it starts. */
bool filter_refuse(long call, int error);

/* Adds any filter of `count` instructions. */
bool filter_add(struct sock_filter *code, unsigned short count);

#endif
