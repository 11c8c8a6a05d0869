/* SPDX-License-Identifier: BSD-2-Clause */
/* What holds of a fork with any driver; process_driver says which.  As functions for cmocka. */
#ifndef TESTS_REGISTERS_FORKS_H
#define TESTS_REGISTERS_FORKS_H

/* The parent holds a lock, and goes on; the child has nothing of it, and a store of its own. */
void forks_parent_goes_on(void **state);

/* The child closes all descriptors of the parent's store. */
void forks_child_closes_descriptors(void **state);

#endif
