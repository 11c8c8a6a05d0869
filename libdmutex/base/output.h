/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The file of a log.
 *
 * The last part of the path is never followed as a link, because it may belong to another user, and nothing is opened
 * that makes writers block.  Root writes only to files of its own that have one name, and follows no link of another
 * user and uses no folder that everyone may change and that is not sticky (base/place.h).  The keeper of lock files is
 * built with this file, too.
 */
#ifndef DM_BASE_OUTPUT_H
#define DM_BASE_OUTPUT_H

/*
 * Opens a file, or a device such as a terminal, for appending; creates a file with mode 0600.  The descriptor is closed
 * on exec.  Returns -1 with errno; *ret_why then completes a sentence: "PATH is a symbolic link".
 */
int dm_output_open(const char *path, const char **ret_why);

#endif
