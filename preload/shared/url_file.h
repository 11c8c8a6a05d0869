/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A server URL with a password stays in the configuration file. The environment, which every process of the user can
 * read and every child inherits, only has the file's path, in DMUTEX_URL_FILE.
 *
 * Calls no malloc and no stdio, because the module reads the file before main().
 */
#ifndef DM_PRELOAD_URL_FILE_H
#define DM_PRELOAD_URL_FILE_H

#include <stdbool.h>
#include <stddef.h>

#define URL_FILE_VARIABLE "DMUTEX_URL_FILE"
#define URL_ROOM 1024

/*
 * Copies the value of Url in the section [server]. False with the reason, a literal: the file cannot be read, has no
 * Url, or can be written by users other than root and this user.
 */
bool url_file_read(const char *path, char ret_url[URL_ROOM], const char **ret_reason);

#endif
