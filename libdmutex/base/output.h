/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The file of a log.
 *
 * Never through a link in the last part of the path, which may belong to another user; nothing that makes writers wait.
 * Root writes only to files of its own that have one name, and goes by no link of another user and through no folder
 * that all may change and that is not sticky (base/place.h).  The keeper of lock files is built with this file, too.
 */
#ifndef DM_BASE_OUTPUT_H
#define DM_BASE_OUTPUT_H

/*
 * Opens a file, or a device such as a terminal, for appending; makes a file with mode 0600.  The descriptor is closed
 * on exec.  -1 with errno, and *ret_why is what the path is, for a sentence: "PATH is a symbolic link".
 */
int dm_output_open(const char *path, const char **ret_why);

#endif
