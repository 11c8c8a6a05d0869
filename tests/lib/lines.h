/* SPDX-License-Identifier: BSD-2-Clause */
/* The lines of a text file, such as a log. */
#ifndef TEST_LINES_H
#define TEST_LINES_H

/* How many lines contain the text; 0 if there is no file. */
int lines_with(const char *path, const char *text);

#endif
